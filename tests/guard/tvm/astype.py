# Covers: a cast.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), dtype="int32", name="A")
B = te.compute((n,), lambda i: A[i].astype("float32") * 0.5, name="B")
