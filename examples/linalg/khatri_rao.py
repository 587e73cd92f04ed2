"""The Khatri-Rao product: the Kronecker product column by column."""

import numpy as np


def khatri_rao(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return (A[:, None, :] * B[None, :, :]).reshape(-1, A.shape[1])
