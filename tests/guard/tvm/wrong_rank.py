# Covers: an access with too few indices.
from tvm import te
import tvm

m, n, h = te.var("m"), te.var("n"), te.var("h")
A = te.placeholder((m, n), name="A")
B = te.compute((m,), lambda i: A[i], name="B")
