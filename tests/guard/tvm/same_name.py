# Covers: an index with the name of a size.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda n: A[n] + 1.0, name="B")
