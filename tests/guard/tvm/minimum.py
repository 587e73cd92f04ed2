# Covers: te.min over an axis.
from tvm import te
import tvm

m, n, h = te.var("m"), te.var("n"), te.var("h")
A = te.placeholder((m, n), name="A")
k = te.reduce_axis((0, n), name="k")
S = te.compute((m,), lambda i: te.min(A[i, k], axis=k), name="S")
