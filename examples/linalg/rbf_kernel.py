"""The Gaussian kernel matrix of two sets of points."""

import numpy as np


def rbf_kernel(X: np.ndarray, Y: np.ndarray, gamma: float) -> np.ndarray:
    return np.exp(-gamma * np.sum((X[:, None, :] - Y[None, :, :]) ** 2, axis=-1))
