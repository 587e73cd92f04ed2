"""A sum of two matrix-vector products."""

import numpy as np


def gesummv(alpha: float, beta: float, A: np.ndarray, B: np.ndarray, x: np.ndarray) -> np.ndarray:
    return alpha * (A @ x) + beta * (B @ x)
