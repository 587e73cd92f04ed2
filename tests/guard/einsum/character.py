# Covers: a character that is no index.
import numpy as np

a = np.zeros((3, 5))
b = np.zeros((5, 2))
r = np.einsum("i1,jk->ik", a, b)
