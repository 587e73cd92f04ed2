"""A matrix and its transpose times a vector."""

import numpy as np


def atax(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (A @ x) @ A
