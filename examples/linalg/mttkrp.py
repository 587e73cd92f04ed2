"""Matricized tensor times Khatri-Rao product."""

import numpy as np


def mttkrp(X: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
    return np.einsum("ijk,jr,kr->ir", X, B, C)
