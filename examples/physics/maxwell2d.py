"""Maxwell's equations in two dimensions on Yee's grid."""

import numpy as np


def maxwell2d(
    E0: np.ndarray, Hx0: np.ndarray, Hy0: np.ndarray, eps: np.ndarray, c: float, steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    E, Hx, Hy = E0.copy(), Hx0, Hy0
    for _ in range(steps):
        Hx = Hx - c * np.diff(E, axis=1)
        Hy = Hy + c * np.diff(E, axis=0)
        curl = Hy[1:, 1:-1] - Hy[:-1, 1:-1] - Hx[1:-1, 1:] + Hx[1:-1, :-1]
        E[1:-1, 1:-1] += c / eps[1:-1, 1:-1] * curl
    return E, Hx, Hy
