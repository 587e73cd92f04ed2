# Covers: Python's conditional.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] if i > 0 else 0.0, name="B")
