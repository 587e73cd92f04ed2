"""Harris' corner response with Sobel's differences and 3 x 3 windows."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def harris(x: np.ndarray, k: float) -> np.ndarray:
    a = x[2:, :-2] + 2 * x[2:, 1:-1] + x[2:, 2:] - x[:-2, :-2] - 2 * x[:-2, 1:-1] - x[:-2, 2:]
    b = x[:-2, 2:] + 2 * x[1:-1, 2:] + x[2:, 2:] - x[:-2, :-2] - 2 * x[1:-1, :-2] - x[2:, :-2]
    aa = windows(a * a)
    bb = windows(b * b)
    return aa * bb - windows(a * b) ** 2 - k * (aa + bb) ** 2


def windows(y: np.ndarray) -> np.ndarray:
    return sliding_window_view(y, (3, 3)).sum(axis=(2, 3))
