"""The length of the gradient of an image, by Sobel's differences."""

import numpy as np


def sobel(x: np.ndarray) -> np.ndarray:
    down = x[2:, :-2] + 2 * x[2:, 1:-1] + x[2:, 2:] - x[:-2, :-2] - 2 * x[:-2, 1:-1] - x[:-2, 2:]
    right = x[:-2, 2:] + 2 * x[1:-1, 2:] + x[2:, 2:] - x[:-2, :-2] - 2 * x[1:-1, :-2] - x[2:, :-2]
    return np.sqrt(down**2 + right**2)
