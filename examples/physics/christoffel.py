"""Christoffel symbols from the inverse metric and the derivatives of the metric."""

import numpy as np


def christoffel(inverse: np.ndarray, dg: np.ndarray) -> np.ndarray:
    lowered = dg + dg.transpose(0, 2, 1) - dg.transpose(2, 0, 1)
    return np.einsum("im,mkl->ikl", inverse, lowered) / 2
