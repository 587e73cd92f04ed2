"""A step of advection in two dimensions, first order upwind; the boundary stays."""

import numpy as np


def upwind(q: np.ndarray, u: np.ndarray, v: np.ndarray, c: float) -> np.ndarray:
    inner = q[1:-1, 1:-1]
    a = u[1:-1, 1:-1]
    b = v[1:-1, 1:-1]
    rows = np.maximum(a, 0) * (inner - q[:-2, 1:-1]) + np.minimum(a, 0) * (q[2:, 1:-1] - inner)
    columns = np.maximum(b, 0) * (inner - q[1:-1, :-2]) + np.minimum(b, 0) * (q[1:-1, 2:] - inner)
    result = q.copy()
    result[1:-1, 1:-1] = inner - c * (rows + columns)
    return result
