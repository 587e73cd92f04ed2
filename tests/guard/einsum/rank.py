# Covers: an operand with more dimensions.
import numpy as np

a = np.zeros((3, 5, 2))
b = np.zeros((5, 2))
r = np.einsum("ij,jk->ik", a, b)
