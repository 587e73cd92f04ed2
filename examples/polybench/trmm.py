"""The transpose of a lower triangular matrix with ones on its diagonal times another."""

import numpy as np


def trmm(alpha: float, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return alpha * (B + np.tril(A, -1).T @ B)
