# Covers: te.power and te.max of two.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: te.max(te.power(A[i], 2.0), 1.0), name="B")
