# Covers: ranges that no sizes have together.
from tvm import te

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n - 5,), lambda i: A[i], name="B")
C = te.compute((3 - n,), lambda i: A[i], name="C")
