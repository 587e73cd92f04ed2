"""Means of three neighbours on a line, step by step."""

import numpy as np


def jacobi_1d(x0: np.ndarray, steps: int) -> np.ndarray:
    x = x0.copy()
    for _ in range(steps):
        x[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    return x
