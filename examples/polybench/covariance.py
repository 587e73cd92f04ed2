"""The covariances of the columns of a table."""

import numpy as np


def covariance(data: np.ndarray) -> np.ndarray:
    x = data - data.mean(axis=0)
    return x.T @ x / (len(data) - 1)
