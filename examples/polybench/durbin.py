"""Durbin's algorithm for the Yule-Walker equations."""

import numpy as np


def durbin(r: np.ndarray) -> np.ndarray:
    y = np.zeros_like(r)
    alpha, beta = 0.0, 1.0
    for k in range(len(r)):
        beta *= 1 - alpha * alpha
        alpha = -(r[k] + r[:k][::-1] @ y[:k]) / beta
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    return y
