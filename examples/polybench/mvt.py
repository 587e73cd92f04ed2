"""Two vectors, to which products of a matrix and of its transpose are added."""

import numpy as np


def mvt(
    x1: np.ndarray, x2: np.ndarray, y1: np.ndarray, y2: np.ndarray, A: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    return x1 + A @ y1, x2 + y2 @ A
