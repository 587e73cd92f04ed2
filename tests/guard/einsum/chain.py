# Covers: a chain of four.
import numpy as np

a = np.zeros((2, 3))
b = np.zeros((3, 4))
c = np.zeros((4, 5))
d = np.zeros((5, 2))
r = np.einsum("ij,jk,kl,lm->im", a, b, c, d)
