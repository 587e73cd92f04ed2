"""Unsharp masking with a 3 x 3 blur and a threshold."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

K = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16


def unsharp_mask(x: np.ndarray, amount: float, threshold: float) -> np.ndarray:
    inner = x[1:-1, 1:-1]
    detail = inner - np.einsum("ijpq,pq->ij", sliding_window_view(x, (3, 3)), K)
    sharp = np.clip(inner + amount * detail, 0, 1)
    return np.where(np.abs(detail) > threshold, sharp, inner)
