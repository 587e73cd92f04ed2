# Covers: an outer product.
import numpy as np

a = np.zeros((3,))
b = np.zeros((5,))
r = np.einsum("i,j->ij", a, b)
