# Covers: a reduction.
from tvm import te
import tvm

m, n, h = te.var("m"), te.var("n"), te.var("h")
A = te.placeholder((m, h), name="A")
B = te.placeholder((h, n), name="B")
k = te.reduce_axis((0, h), "k")
C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
