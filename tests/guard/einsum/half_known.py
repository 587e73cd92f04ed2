# Covers: an operand of which nothing is known.
import numpy as np

def f(a):
    b = np.ones((5, 2))
    return np.einsum("ij,jk->ik", a, b)
