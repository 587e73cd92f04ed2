# Covers: a comparison of elements.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: tvm.tir.Select(A[i] > 1.5, A[i], 0.0), name="B")
