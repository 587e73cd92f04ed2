# Covers: a batched multiplication.
from tvm import te
import tvm

b, m, n, h = te.var("b"), te.var("m"), te.var("n"), te.var("h")
A = te.placeholder((b, m, h), name="A")
B = te.placeholder((b, n, h), name="B")
k = te.reduce_axis((0, h), name="k")
C = te.compute((b, m, n), lambda i, y, x: te.sum(A[i, y, k] * B[i, x, k], axis=k), name="C")
