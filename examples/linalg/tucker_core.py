"""The core of a Tucker decomposition: a tensor times a matrix along each dimension."""

import numpy as np


def tucker_core(X: np.ndarray, U: np.ndarray, V: np.ndarray, W: np.ndarray) -> np.ndarray:
    return np.einsum("ijk,ai,bj,ck->abc", X, U, V, W, optimize=True)
