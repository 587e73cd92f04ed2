"""Spectral elements: the gradient in physical coordinates."""

import numpy as np


def sem_gradient(D: np.ndarray, J: np.ndarray, u: np.ndarray) -> np.ndarray:
    dr = np.einsum("ia,eajk->eijk", D, u)
    ds = np.einsum("ja,eiak->eijk", D, u)
    dt = np.einsum("ka,eija->eijk", D, u)
    return np.einsum("edaijk,aeijk->edijk", J, np.stack([dr, ds, dt]))
