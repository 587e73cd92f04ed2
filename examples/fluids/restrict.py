"""Full weighting: the residual on the next coarser grid."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

K = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]])


def restrict(r: np.ndarray) -> np.ndarray:
    windows = sliding_window_view(r, (3, 3))[::2, ::2]
    return np.einsum("ijpq,pq->ij", windows, K) / 16
