"""A symmetric matrix, of which the lower triangle is read, times another."""

import numpy as np


def symm(alpha: float, A: np.ndarray, B: np.ndarray, beta: float, C: np.ndarray) -> np.ndarray:
    S = np.tril(A) + np.tril(A, -1).T
    return alpha * (S @ B) + beta * C
