"""A step of Maxwell's equations in two dimensions on Yee's grid."""

import numpy as np


def maxwell2d(
    E: np.ndarray, Hx: np.ndarray, Hy: np.ndarray, eps: np.ndarray, c: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    Hx1 = Hx - c * (E[:, 1:] - E[:, :-1])
    Hy1 = Hy + c * (E[1:, :] - E[:-1, :])
    curl = Hy1[1:, 1:-1] - Hy1[:-1, 1:-1] - Hx1[1:-1, 1:] + Hx1[1:-1, :-1]
    E1 = E.copy()
    E1[1:-1, 1:-1] += c / eps[1:-1, 1:-1] * curl
    return E1, Hx1, Hy1
