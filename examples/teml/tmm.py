"""The product of a transposed matrix with another one."""

import numpy as np


def tmm(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return A.T @ B
