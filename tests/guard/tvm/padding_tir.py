# Covers: tvm.tir.if_then_else.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n + 1,), lambda i: tvm.tir.if_then_else(i < n, A[i], 0.0), name="B")
