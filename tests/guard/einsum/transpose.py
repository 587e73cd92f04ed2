# Covers: a transposition.
import numpy as np

a = np.zeros((2, 3, 5))
r = np.einsum("ijk->kij", a)
