"""A system A x = b by an LU factorization without pivots, and forward and back substitution."""

import numpy as np


def ludcmp(A0: np.ndarray, b: np.ndarray) -> np.ndarray:
    A, x = A0.copy(), b.copy()
    for k in range(len(A)):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :])
    for i in range(len(A)):
        x[i] -= A[i, :i] @ x[:i]
    for i in range(len(A) - 1, -1, -1):
        x[i] = (x[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x
