"""Coarsity: how much of a corner each pixel is, from the gradient of an image."""

import numpy as np


def coars(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    a, b, c = x * x, y * y, x * y
    return a * b - c * c - 0.04 * (a + b) ** 2
