"""Forward substitution for a lower triangular matrix."""

import numpy as np


def triangular_solve(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - L[i] @ x) / L[i, i]
    return x
