"""The correlations of the columns of a table."""

import numpy as np


def correlation(data: np.ndarray) -> np.ndarray:
    deviation = data.std(axis=0)
    scale = np.where(deviation <= 0.1, 1, deviation)
    x = (data - data.mean(axis=0)) / (np.sqrt(len(data)) * scale)
    out = x.T @ x
    np.fill_diagonal(out, 1)
    return out
