# Covers: another number of operands.
import numpy as np

a = np.zeros((3, 5))
r = np.einsum("ij,jk->ik", a)
