# Covers: functions of elements.
from tvm import te
import tvm

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: te.sqrt(A[i]) + te.tanh(A[i]) - te.log(A[i]), name="B")
