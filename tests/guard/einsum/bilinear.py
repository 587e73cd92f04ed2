# Covers: three operands.
import numpy as np

a = np.zeros((3,))
b = np.zeros((3, 5))
c = np.zeros((5,))
r = np.einsum("i,ij,j->", a, b, c)
