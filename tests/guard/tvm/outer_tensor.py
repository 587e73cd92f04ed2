# Covers: a tensor of the scope around, and two variables of one name.
from tvm import te

m, n = te.var("n"), te.var("n")
A = te.placeholder((m,), name="A")


def inner():
    return te.compute((n,), lambda i: A[i])
