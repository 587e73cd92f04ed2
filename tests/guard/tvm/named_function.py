# Covers: a function of indices with a name.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
def double(i):
    return A[i] + A[i]

B = te.compute((n,), double, name="B")
