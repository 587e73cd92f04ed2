# Covers: a dimension of size 1 is stretched.
import numpy as np

a = np.zeros((3, 1))
b = np.zeros((3, 5))
r = np.einsum("ij,ij->ij", a, b)
