# Covers: a condition that is one too weak.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n + 2,), lambda i: te.if_then_else(te.all(i >= 1, i <= n + 1), A[i - 1], 0.0), name="B")
