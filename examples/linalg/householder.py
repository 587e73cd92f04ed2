"""A Householder reflection applied to a matrix."""

import numpy as np


def householder(v: np.ndarray, A: np.ndarray) -> np.ndarray:
    w = v @ A * (2 / (v @ v))
    return A - np.outer(v, w)
