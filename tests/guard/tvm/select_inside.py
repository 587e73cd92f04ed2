# Covers: Select where both values are inside.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: tvm.tir.Select(i < 2, A[i], 0.0), name="B")
