# Covers: an axis that does not begin at zero.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
k = te.reduce_axis((1, n - 1), name="k")
S = te.compute((1,), lambda i: te.sum(A[k - 1] + A[k + 1], axis=k), name="S")
