# Covers: sizes that are parameters.
from tvm import te
import tvm

def matmul(N, L, M, dtype):
    A = te.placeholder((N, L), name="A", dtype="float64")
    B = te.placeholder((L, M), name="B", dtype="float64")
    k = te.reduce_axis((0, L), name="k")
    C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    return s, [A, B, C]
