# Covers: sizes taken from another array.
import numpy as np

a = np.ones((3, 5))
m, k = a.shape
b = np.ones((k, 2))
r = np.einsum("ij,jk->ik", a, b)
