# Covers: random numbers.
import numpy as np

rng = np.random.default_rng(0)
a = rng.random((3, 5))
b = np.random.randn(5, 2)
r = np.einsum("ij,jk->ik", a, b)
