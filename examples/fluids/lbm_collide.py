"""The collision of the lattice Boltzmann method (D2Q9, BGK)."""

import numpy as np

E = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])


def lbm_collide(f: np.ndarray, weight: np.ndarray, omega: float) -> np.ndarray:
    rho = f.sum(axis=0)
    u = np.einsum("qd,qij->dij", E, f) / rho
    c = np.einsum("qd,dij->qij", E, u)
    equilibrium = weight[:, None, None] * rho * (1 + 3 * c + 4.5 * c**2 - 1.5 * np.sum(u**2, axis=0))
    return f + omega * (equilibrium - f)
