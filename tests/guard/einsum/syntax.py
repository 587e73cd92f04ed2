# Covers: a file that is not Python.
import numpy as np

r = np.einsum("ij,jk->ik", a, b
