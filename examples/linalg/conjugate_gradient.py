"""Steps of the conjugate gradient method for A x = b, from x = 0."""

import numpy as np


def conjugate_gradient(A: np.ndarray, b: np.ndarray, steps: int) -> np.ndarray:
    x = np.zeros_like(b)
    r = b
    p = b
    for _ in range(steps):
        Ap = A @ p
        alpha = r @ r / (p @ Ap)
        s = r - alpha * Ap
        x = x + alpha * p
        p = s + s @ s / (r @ r) * p
        r = s
    return x
