"""Matrix product."""

import numpy as np


def mm(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return A @ B
