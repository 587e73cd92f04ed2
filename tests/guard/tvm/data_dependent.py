# Covers: an index that is an element.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
I = te.placeholder((n,), dtype="int32", name="I")
B = te.compute((n,), lambda i: A[I[i]], name="B")
