"""A convolution with stride 2 and zero padding 1, a bias, and a rectifier."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def conv2d(x: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    windows = sliding_window_view(padded, kernel.shape[1:3], axis=(0, 1))[::2, ::2]
    return np.maximum(np.einsum("ijcpq,opqc->ijo", windows, kernel) + bias, 0)
