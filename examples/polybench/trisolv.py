"""A triangular system L x = b."""

import numpy as np


def trisolv(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    x = b.copy()
    for i in range(len(b)):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x
