"""Batch normalisation at inference, per channel."""

import numpy as np


def batch_norm(
    x: np.ndarray, mu: np.ndarray, var: np.ndarray, gamma: np.ndarray, beta: np.ndarray, eps: float
) -> np.ndarray:
    scale = gamma / np.sqrt(var + eps)
    return (x - mu[:, None, None]) * scale[:, None, None] + beta[:, None, None]
