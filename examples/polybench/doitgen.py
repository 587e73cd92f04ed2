"""A tensor times a matrix along its last dimension."""

import numpy as np


def doitgen(A: np.ndarray, C: np.ndarray) -> np.ndarray:
    return A @ C
