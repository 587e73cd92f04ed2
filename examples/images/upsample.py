"""An image twice as large, bilinear with pixel centres kept."""

import numpy as np


def upsample(x: np.ndarray) -> np.ndarray:
    h, w = x.shape
    p = np.pad(x, ((1, 1), (0, 0)), mode="edge")
    rows = np.empty((2 * h, w))
    rows[0::2] = 0.75 * x + 0.25 * p[:-2]
    rows[1::2] = 0.75 * x + 0.25 * p[2:]
    q = np.pad(rows, ((0, 0), (1, 1)), mode="edge")
    result = np.empty((2 * h, 2 * w))
    result[:, 0::2] = 0.75 * rows + 0.25 * q[:, :-2]
    result[:, 1::2] = 0.75 * rows + 0.25 * q[:, 2:]
    return result
