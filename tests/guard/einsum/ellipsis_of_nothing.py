# Covers: an ellipsis of no dimensions.
import numpy as np

a = np.zeros((7,))
b = np.zeros((7,))
r = np.einsum("i...,...i->i", a, b)
