"""The Helmholtz operator on spectral elements: into eigenvectors, divided by a diagonal, and back."""

import numpy as np


def helm_div(S: np.ndarray, D: np.ndarray, u: np.ndarray) -> np.ndarray:
    three = np.kron(np.kron(S, S), S)
    return ((u.reshape(len(u), -1) @ three.T / D.ravel()) @ three).reshape(u.shape)
