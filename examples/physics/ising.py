"""The energy of a periodic lattice of spins with a coupling and a field."""

import numpy as np


def ising(s: np.ndarray, coupling: float, field: float) -> float:
    bonds = s * (np.roll(s, -1, axis=0) + np.roll(s, -1, axis=1))
    return -coupling * np.sum(bonds) - field * np.sum(s)
