# Covers: a diagonal of a matrix that is not square.
import numpy as np

a = np.zeros((3, 5))
r = np.einsum("ii->i", a)
