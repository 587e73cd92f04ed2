# Covers: blanks.
import numpy as np

a = np.zeros((3, 5))
b = np.zeros((5, 2))
r = np.einsum("i j , j k -> i k", a, b)
