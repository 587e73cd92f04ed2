"""Scaled dot-product attention with several heads and a mask."""

import numpy as np


def attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray) -> np.ndarray:
    S = np.where(mask, Q @ K.transpose(0, 2, 1) / np.sqrt(Q.shape[-1]), -1e30)
    P = np.exp(S - S.max(axis=-1, keepdims=True))
    return P @ V / P.sum(axis=-1, keepdims=True)
