# Covers: sizes that differ.
import numpy as np

a = np.zeros((3, 5))
b = np.zeros((4, 2))
r = np.einsum("ij,jk->ik", a, b)
