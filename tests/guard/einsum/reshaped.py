# Covers: methods of arrays.
import numpy as np

a = np.arange(12).reshape(3, 4)
b = a.T
r = np.einsum("ij,jk->ik", a, b)
