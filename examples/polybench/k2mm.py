"""Two matrix products, alpha A B C + beta D."""

import numpy as np


def k2mm(alpha: float, A: np.ndarray, B: np.ndarray, C: np.ndarray, beta: float, D: np.ndarray) -> np.ndarray:
    return alpha * (A @ B) @ C + beta * D
