"""The relative residual of a canonical polyadic decomposition."""

import numpy as np


def cp_residual(X: np.ndarray, weights: np.ndarray, A: np.ndarray, B: np.ndarray, C: np.ndarray) -> float:
    R = X - np.einsum("r,ir,jr,kr->ijk", weights, A, B, C)
    return np.sqrt(np.sum(R**2) / np.sum(X**2))
