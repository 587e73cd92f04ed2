"""A step of Adam."""

import numpy as np


def adam(
    w: np.ndarray, g: np.ndarray, m: np.ndarray, v: np.ndarray, t: float, rate: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    m1 = 0.9 * m + 0.1 * g
    v1 = 0.999 * v + 0.001 * g**2
    m_hat = m1 / (1 - 0.9**t)
    v_hat = v1 / (1 - 0.999**t)
    return w - rate * m_hat / (np.sqrt(v_hat) + 1e-8), m1, v1
