# Covers: transposed multiplication with wrong declarations (TeIL, Fig. 3a).
from tvm import te
import tvm

m, n = tvm.var("m"), tvm.var("n")
h = tvm.var("h")
A = tvm.placeholder((m,h), name="A")
B = tvm.placeholder((n,h), name="B")
k = tvm.reduce_axis((0, h), name="k")
C = tvm.compute((m, n), lambda y, x:
    tvm.sum(A[k, y] * B[k, x], axis=k))
