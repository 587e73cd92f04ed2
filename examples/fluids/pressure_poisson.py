"""Jacobi steps for the pressure of an incompressible flow; the boundary stays."""

import numpy as np


def pressure_poisson(p0: np.ndarray, rhs: np.ndarray, dx: float, steps: int) -> np.ndarray:
    p = p0.copy()
    for _ in range(steps):
        neighbours = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        p[1:-1, 1:-1] = (neighbours - dx**2 * rhs[1:-1, 1:-1]) / 4
    return p
