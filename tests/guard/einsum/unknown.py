# Covers: operands of which nothing is known.
import numpy as np

def f(a, b):
    return np.einsum("ij,jk->ik", a, b)
