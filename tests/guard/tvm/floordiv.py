# Covers: a quotient and a remainder.
from tvm import te
import tvm

m, n, h = te.var("m"), te.var("n"), te.var("h")
A = te.placeholder((4, 3), name="A")
B = te.compute((12,), lambda i: A[i // 3, i % 3], name="B")
