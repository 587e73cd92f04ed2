# Covers: three operands and two sums.
import numpy as np

a = np.zeros((2, 3, 5))
b = np.zeros((5, 4))
c = np.zeros((3, 4))
r = np.einsum("ikl,lj,kj->ij", a, b, c)
