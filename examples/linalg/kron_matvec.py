"""The Kronecker product of two matrices times a vector, without forming the product."""

import numpy as np


def kron_matvec(A: np.ndarray, B: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (A @ x.reshape(A.shape[1], B.shape[1]) @ B.T).ravel()
