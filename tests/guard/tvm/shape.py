# Covers: a size of a placeholder.
from tvm import te
import tvm

m, n, h = te.var("m"), te.var("n"), te.var("h")
A = te.placeholder((m, n), name="A")
B = te.compute((A.shape[1], A.shape[0]), lambda i, j: A[j, i], name="B")
