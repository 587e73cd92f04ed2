# Covers: a reduction with where.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
k = te.reduce_axis((0, n), name="k")
S = te.compute((1,), lambda i: te.sum(A[k], axis=k, where=k < n - 2), name="S")
