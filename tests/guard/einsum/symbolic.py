# Covers: sizes that are variables.
import numpy as np

def f(m, n, k):
    a = np.ones((m, k))
    b = np.ones((k, n))
    return np.einsum("ij,jk->ik", a, b, optimize=True)
