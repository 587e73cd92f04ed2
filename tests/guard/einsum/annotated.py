# Covers: sizes in annotations.
import numpy as np

from jaxtyping import Float

def f(a: Float[np.ndarray, "m k"], b: Float[np.ndarray, "k n"]):
    return np.einsum("ij,jk->ik", a, b)
