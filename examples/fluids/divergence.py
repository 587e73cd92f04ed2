"""The divergence of a velocity field inside a box, by central differences."""

import numpy as np


def divergence(u: np.ndarray, v: np.ndarray, w: np.ndarray, dx: float) -> np.ndarray:
    du = u[2:, 1:-1, 1:-1] - u[:-2, 1:-1, 1:-1]
    dv = v[1:-1, 2:, 1:-1] - v[1:-1, :-2, 1:-1]
    dw = w[1:-1, 1:-1, 2:] - w[1:-1, 1:-1, :-2]
    return (du + dv + dw) / (2 * dx)
