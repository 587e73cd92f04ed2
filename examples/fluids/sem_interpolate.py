"""Spectral elements: values at other points, by interpolation along each direction."""

import numpy as np


def sem_interpolate(P: np.ndarray, u: np.ndarray) -> np.ndarray:
    return np.einsum("ia,jb,kc,eabc->eijk", P, P, P, u, optimize=True)
