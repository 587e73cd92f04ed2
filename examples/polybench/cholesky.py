"""The Cholesky factor of a symmetric positive definite matrix, column by column."""

import numpy as np


def cholesky(A: np.ndarray) -> np.ndarray:
    L = np.zeros_like(A)
    for j in range(len(A)):
        c = A[j:, j] - L[j:, :j] @ L[j, :j]
        L[j:, j] = c / np.sqrt(c[0])
    return L
