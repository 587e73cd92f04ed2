# Covers: elements of half precision.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), dtype="float16", name="A")
B = te.compute((n,), lambda i: A[i], name="B")
