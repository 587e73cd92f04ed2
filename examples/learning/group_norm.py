"""Group normalisation of images with their channels in groups."""

import numpy as np


def group_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, eps: float) -> np.ndarray:
    mean = x.mean(axis=(2, 3, 4), keepdims=True)
    var = x.var(axis=(2, 3, 4), keepdims=True)
    z = (x - mean) / np.sqrt(var + eps)
    return z * gamma[:, :, None, None] + beta[:, :, None, None]
