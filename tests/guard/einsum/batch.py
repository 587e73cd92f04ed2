# Covers: a batch of products.
import numpy as np

a = np.zeros((2, 3, 5))
b = np.zeros((2, 5, 4))
r = np.einsum("bij,bjk->bik", a, b)
