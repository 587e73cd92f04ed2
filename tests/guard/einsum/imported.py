# Covers: a function that is imported by its name.
import numpy as np

from numpy import einsum as es, einsum

a = np.ones((3, 5))
b = np.ones((4, 2))
r = einsum("ij,jk->ik", a, b)
