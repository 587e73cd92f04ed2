# Covers: an ellipsis that is stretched.
import numpy as np

a = np.zeros((4, 2, 7))
b = np.zeros((2, 7))
r = np.einsum("...i,...i->...", a, b)
