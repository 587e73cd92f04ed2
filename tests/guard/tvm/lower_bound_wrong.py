# Covers: an axis that begins one too early.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
k = te.reduce_axis((0, n - 1), name="k")
S = te.compute((1,), lambda i: te.sum(A[k - 1] + A[k + 1], axis=k), name="S")
