# Covers: an output index that stands twice.
import numpy as np

a = np.zeros((3, 5))
b = np.zeros((5, 2))
r = np.einsum("ij,jk->ii", a, b)
