"""A step of the vorticity equation in two dimensions; the boundary stays."""

import numpy as np


def vorticity(omega: np.ndarray, psi: np.ndarray, nu: float, dx: float, dt: float) -> np.ndarray:
    u = (psi[1:-1, 2:] - psi[1:-1, :-2]) / (2 * dx)
    v = (psi[:-2, 1:-1] - psi[2:, 1:-1]) / (2 * dx)
    di = (omega[2:, 1:-1] - omega[:-2, 1:-1]) / (2 * dx)
    dj = (omega[1:-1, 2:] - omega[1:-1, :-2]) / (2 * dx)
    around = omega[2:, 1:-1] + omega[:-2, 1:-1] + omega[1:-1, 2:] + omega[1:-1, :-2]
    inner = omega[1:-1, 1:-1]
    result = omega.copy()
    result[1:-1, 1:-1] = inner + dt * (nu * (around - 4 * inner) / dx**2 - u * di - v * dj)
    return result
