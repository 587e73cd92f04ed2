# Covers: a stage that reads another one.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
