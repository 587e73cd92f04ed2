# Covers: te.const and its type.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] + te.const(1.5, "float32"), name="B")
