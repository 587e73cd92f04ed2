"""Matricized tensor times Khatri-Rao product."""

import numpy as np


def mttkrp(B: np.ndarray, C: np.ndarray, D: np.ndarray) -> np.ndarray:
    khatri_rao = C[:, None, :] * D[None, :, :]
    return B.reshape(B.shape[0], -1) @ khatri_rao.reshape(-1, C.shape[1])
