# Covers: a reducer of one's own.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
k = te.reduce_axis((0, n), name="k")
product = te.comm_reducer(lambda x, y: x * y, lambda t: tvm.tir.const(1, dtype=t), name="product")
B = te.compute((1,), lambda i: product(A[k], axis=k), name="B")
