"""A matrix with two rank-one updates, and two products of it with vectors."""

import numpy as np


def gemver(
    alpha: float,
    beta: float,
    A: np.ndarray,
    u1: np.ndarray,
    v1: np.ndarray,
    u2: np.ndarray,
    v2: np.ndarray,
    y: np.ndarray,
    z: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    B = A + np.outer(u1, v1) + np.outer(u2, v2)
    x = beta * (y @ B) + z
    return B, x, alpha * (B @ x)
