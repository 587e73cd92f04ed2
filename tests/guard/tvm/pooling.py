# Covers: a stride.
from tvm import te
import tvm

m, n, h = te.var("m"), te.var("n"), te.var("h")
A = te.placeholder((2, 8), name="A")
k = te.reduce_axis((0, 2), name="k")
B = te.compute((2, 4), lambda c, i: te.max(A[c, i * 2 + k], axis=k), name="B")
