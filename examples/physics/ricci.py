"""The Ricci tensor from the Christoffel symbols and their derivatives."""

import numpy as np


def ricci(C: np.ndarray, dC: np.ndarray) -> np.ndarray:
    derivatives = np.einsum("ijki->jk", dC) - np.einsum("ijik->jk", dC)
    return derivatives + np.einsum("iip,pjk->jk", C, C) - np.einsum("ikp,pij->jk", C, C)
