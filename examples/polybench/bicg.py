"""The two products in a step of the biconjugate gradient method."""

import numpy as np


def bicg(A: np.ndarray, p: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return r @ A, A @ p
