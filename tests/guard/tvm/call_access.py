# Covers: an access with parentheses.
from tvm import te
import tvm

m, n, h = te.var("m"), te.var("n"), te.var("h")
A = te.placeholder((m, n), name="A")
B = te.compute((n, m), lambda i, j: A(j, i), name="B")
