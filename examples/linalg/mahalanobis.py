"""The Mahalanobis distance of each point from a mean."""

import numpy as np


def mahalanobis(X: np.ndarray, mu: np.ndarray, P: np.ndarray) -> np.ndarray:
    Y = X - mu
    return np.sqrt(np.einsum("ni,ij,nj->n", Y, P, Y))
