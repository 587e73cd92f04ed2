# Covers: sizes in comments that differ.
import numpy as np

a = load("a")  # (3, 5)
b = load("b")  # (4, 2)
r = np.einsum("ij,jk->ik", a, b)
