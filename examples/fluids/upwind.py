"""A step of advection in two dimensions, periodic, first order upwind."""

import numpy as np


def upwind(q: np.ndarray, u: np.ndarray, v: np.ndarray, c: float) -> np.ndarray:
    north = q - np.roll(q, 1, axis=0)
    south = np.roll(q, -1, axis=0) - q
    west = q - np.roll(q, 1, axis=1)
    east = np.roll(q, -1, axis=1) - q
    rows = np.maximum(u, 0) * north + np.minimum(u, 0) * south
    columns = np.maximum(v, 0) * west + np.minimum(v, 0) * east
    return q - c * (rows + columns)
