# Covers: a reduction over two axes.
from tvm import te
import tvm

m, n, h = te.var("m"), te.var("n"), te.var("h")
A = te.placeholder((m, n), name="A")
r = te.reduce_axis((0, m), name="r")
c = te.reduce_axis((0, n), name="c")
S = te.compute((1,), lambda i: te.sum(A[r, c], axis=[r, c]), name="S")
