"""Heat in a box whose boundary keeps its temperature."""

import numpy as np


def heat3d(u0: np.ndarray, c: float, steps: int) -> np.ndarray:
    u = u0.copy()
    for _ in range(steps):
        inner = u[1:-1, 1:-1, 1:-1]
        around = (
            u[:-2, 1:-1, 1:-1]
            + u[2:, 1:-1, 1:-1]
            + u[1:-1, :-2, 1:-1]
            + u[1:-1, 2:, 1:-1]
            + u[1:-1, 1:-1, :-2]
            + u[1:-1, 1:-1, 2:]
        )
        u[1:-1, 1:-1, 1:-1] = inner + c * (around - 6 * inner)
    return u
