"""A step of classical Gram-Schmidt, twice for stability."""

import numpy as np


def gram_schmidt(Q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a = Q.T @ v
    u = v - Q @ a
    b = Q.T @ u
    w = u - Q @ b
    return w / np.linalg.norm(w), a + b
