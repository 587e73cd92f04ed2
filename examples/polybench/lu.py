"""The LU factorization without pivots."""

import numpy as np


def lu(A0: np.ndarray) -> np.ndarray:
    A = A0.copy()
    for k in range(len(A)):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :])
    return A
