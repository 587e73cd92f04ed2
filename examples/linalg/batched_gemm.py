"""A batch of products alpha A B^T + beta C."""

import numpy as np


def batched_gemm(alpha: float, A: np.ndarray, B: np.ndarray, beta: float, C: np.ndarray) -> np.ndarray:
    return alpha * (A @ B.transpose(0, 2, 1)) + beta * C
