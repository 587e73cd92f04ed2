"""Heat in two dimensions by alternating directions."""

import numpy as np


def half(u: np.ndarray, a: float, d: float) -> np.ndarray:
    b = 1 - 2 * a
    p, q, v = np.zeros(len(u)), np.ones_like(u), np.ones_like(u)
    for j in range(1, len(u) - 1):
        w = a * p[j - 1] + b
        p[j] = -a / w
        q[j, 1:-1] = ((1 + 2 * d) * u[j, 1:-1] - d * (u[j, :-2] + u[j, 2:]) - a * q[j - 1, 1:-1]) / w
    for j in range(len(u) - 2, 0, -1):
        v[j, 1:-1] = p[j] * v[j + 1, 1:-1] + q[j, 1:-1]
    return v


def adi(u0: np.ndarray, a: float, d: float, steps: int) -> np.ndarray:
    u = u0
    for _ in range(steps):
        u = half(half(u, a, d).T, d, a).T
    return u
