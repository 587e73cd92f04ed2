"""Deriche's recursive filter, which smooths an image."""

import numpy as np


def down(x: np.ndarray, a: float, b: float, c: float, d: float) -> np.ndarray:
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = a * x[i]
        if i >= 1:
            y[i] += b * x[i - 1] + c * y[i - 1]
        if i >= 2:
            y[i] += d * y[i - 2]
    return y


def both(x: np.ndarray, alpha: float) -> np.ndarray:
    e = np.exp(-alpha)
    k = (1 - e) ** 2 / (1 + 2 * alpha * e - np.exp(2 * alpha))
    c, d = 2.0**-alpha, -e * e
    late = np.concatenate([np.zeros_like(x[:1]), x[:0:-1]])
    up = down(late, k * e * (alpha + 1), -k * e * e, c, d)
    return down(x, k, k * e * (alpha - 1), c, d) + up[::-1]


def deriche(x: np.ndarray, alpha: float) -> np.ndarray:
    return both(both(x, alpha).T, alpha).T
