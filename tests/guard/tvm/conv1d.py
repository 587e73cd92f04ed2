# Covers: an index that is a sum.
from tvm import te
import tvm

n, w = te.var("n"), te.var("w")
A = te.placeholder((n,), name="A")
W = te.placeholder((w,), name="W")
k = te.reduce_axis((0, w), name="k")
B = te.compute((n - w + 1,), lambda i: te.sum(A[i + k] * W[k], axis=k), name="B")
