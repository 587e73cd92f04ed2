# Covers: capital letters.
import numpy as np

a = np.zeros((3, 5))
b = np.zeros((5, 2))
r = np.einsum("Ab,bC->AC", a, b)
