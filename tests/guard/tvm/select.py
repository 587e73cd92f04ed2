# Covers: Select computes both of its values.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n + 1,), lambda i: tvm.tir.Select(i < n, A[i], 0.0), name="B")
