# Covers: a function of all indices.
from tvm import te
import tvm

m, n, h = te.var("m"), te.var("n"), te.var("h")
A = te.placeholder((m, n), name="A")
B = te.compute((m, n), lambda *i: te.exp(A(*i)), name="B")
