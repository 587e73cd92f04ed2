# Covers: sizes that are numbers.
from tvm import te
import tvm

N, K = 3, 5
A = te.placeholder((N, K), name="A")
B = te.placeholder((K, 2 * N), name="B")
k = te.reduce_axis((0, K), name="k")
C = te.compute((N, 2 * N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
