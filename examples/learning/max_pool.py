"""The largest of each block of 2 x 2."""

import numpy as np


def max_pool(x: np.ndarray) -> np.ndarray:
    n, c, h, w = x.shape
    even = x[:, :, : h // 2 * 2, : w // 2 * 2]
    return even.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))
