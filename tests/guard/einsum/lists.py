# Covers: lists of numbers.
import numpy as np

a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
b = np.ones_like(a)
r = np.einsum("ij,ij->", a, b)
