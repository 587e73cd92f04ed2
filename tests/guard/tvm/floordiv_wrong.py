# Covers: a quotient by another number.
from tvm import te
import tvm

m, n, h = te.var("m"), te.var("n"), te.var("h")
A = te.placeholder((4, 3), name="A")
B = te.compute((12,), lambda i: A[te.indexdiv(i, 2), te.indexmod(i, 3)], name="B")
