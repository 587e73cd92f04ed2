"""Morphological opening with a 3 x 3 square."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def opening(x: np.ndarray) -> np.ndarray:
    eroded = sliding_window_view(x, (3, 3)).min(axis=(2, 3))
    return sliding_window_view(eroded, (3, 3)).max(axis=(2, 3))
