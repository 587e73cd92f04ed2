"""The accelerations of bodies that attract each other, softened at short distances."""

import numpy as np


def nbody(x: np.ndarray, mass: np.ndarray, eps: float) -> np.ndarray:
    d = x[None, :, :] - x[:, None, :]
    r2 = np.sum(d**2, axis=-1) + eps**2
    return np.einsum("j,ijd,ij->id", mass, d, r2**-1.5)
