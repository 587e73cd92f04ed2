"""Spectral elements: the inverse of the Helmholtz operator by fast diagonalisation."""

import numpy as np


def inverse_helmholtz(S: np.ndarray, L: np.ndarray, u: np.ndarray) -> np.ndarray:
    t = np.einsum("ai,bj,ck,eabc->eijk", S, S, S, u, optimize=True)
    return np.einsum("ia,jb,kc,eabc->eijk", S, S, S, L * t, optimize=True)
