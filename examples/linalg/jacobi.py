"""Jacobi's method for A x = b."""

import numpy as np


def jacobi(A: np.ndarray, b: np.ndarray, x0: np.ndarray, sweeps: int) -> np.ndarray:
    d = np.diag(A)
    x = x0
    for _ in range(sweeps):
        x = x + (b - A @ x) / d
    return x
