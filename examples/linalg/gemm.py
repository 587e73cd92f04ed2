"""General matrix product: alpha A B + beta C."""

import numpy as np


def gemm(alpha: float, A: np.ndarray, B: np.ndarray, beta: float, C: np.ndarray) -> np.ndarray:
    return alpha * (A @ B) + beta * C
