"""Anisotropic diffusion (Perona and Malik)."""

import numpy as np


def perona_malik(x0: np.ndarray, k: float, rate: float, steps: int) -> np.ndarray:
    x = x0
    for _ in range(steps):
        p = np.pad(x, 1, mode="edge")
        around = np.stack([p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]])
        d = around - x
        x = x + rate * np.sum(d * np.exp(-((d / k) ** 2)), axis=0)
    return x
