# Covers: an implicit output, in the order of the alphabet.
import numpy as np

a = np.zeros((5, 3))
b = np.zeros((2, 5))
r = np.einsum("kj,ik", a, b)
