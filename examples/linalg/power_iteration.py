"""The largest eigenvalue of a matrix and its eigenvector."""

import numpy as np


def power_iteration(A: np.ndarray, start: np.ndarray, steps: int) -> tuple[float, np.ndarray]:
    v = start
    for _ in range(steps):
        w = A @ v
        v = w / np.linalg.norm(w)
    return v @ A @ v, v
