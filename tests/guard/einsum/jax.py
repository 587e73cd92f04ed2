# Covers: JAX.
import numpy as np

import jax.numpy as jnp

a = jnp.ones((3, 5))
b = jnp.ones((5, 2))
r = jnp.einsum("ij,jk->ik", a, b)
