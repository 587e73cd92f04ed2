"""Three matrix products, (A B) (C D)."""

import numpy as np


def k3mm(A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray) -> np.ndarray:
    return (A @ B) @ (C @ D)
