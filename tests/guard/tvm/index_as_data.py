# Covers: an index as a number.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] * i, name="B")
