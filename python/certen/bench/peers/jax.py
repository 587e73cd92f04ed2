"""JAX on the CPU, compiled before it is timed."""

# mypy: ignore-errors

import jax
import jax.numpy as jnp
from jax import lax

VERSION = jax.__version__
jax.config.update("jax_enable_x64", True)


def _convolution(x, w):
    n, g, c, a, b = x.shape
    _, f, _, p, q = w.shape
    out = lax.conv_general_dilated(
        x.reshape(n, g * c, a, b),
        w.reshape(g * f, c, p, q),
        (1, 1),
        "VALID",
        feature_group_count=g,
        dimension_numbers=("NCHW", "OIHW", "NCHW"),
    )
    return out.reshape(n, g, f, a - p + 1, b - q + 1)


def _shift(x, w):
    h, v = x.shape[3] - w.shape[3] + 1, x.shape[4] - w.shape[4] + 1
    windows = [(x[..., p : p + h, q : q + v], w[..., p, q]) for p in range(w.shape[3]) for q in range(w.shape[4])]
    if x.shape[2] == 1:
        return sum(window * weight[None, :, :, :, None] for window, weight in windows)
    return sum(jnp.einsum("ngchw,gfc->ngfhw", window, weight) for window, weight in windows)


def _einsum(p, u):
    return jnp.einsum("ia,jb,kc,eabc->eijk", p, p, p, u, optimize="optimal")


def _three_products(p, u):
    e, n = u.shape[0], p.shape[0]
    t = (u.reshape(-1, n) @ p.T).reshape(e * n, n, n)
    t = jnp.matmul(p, t).reshape(e, n, n * n)
    return jnp.matmul(p, t).reshape(u.shape)


def _kronecker_of_two(p, u):
    e, n = u.shape[0], p.shape[0]
    t = (u.reshape(-1, n * n) @ jnp.kron(p, p).T).reshape(e, n, n * n)
    return jnp.matmul(p, t).reshape(u.shape)


def _kronecker_of_three(p, u):
    n = p.shape[0]
    return (u.reshape(-1, n**3) @ jnp.kron(p, jnp.kron(p, p)).T).reshape(u.shape)


def _helm(modes):
    return lambda s, d, u: modes(s.T, modes(s, u) * d)


def _blur(x):
    third = x.dtype.type(1 / 3)
    rows = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) * third
    return (rows[:-2] + rows[1:-1] + rows[2:]) * third


def _coars(x, y):
    a, b, c = x * x, y * y, x * y
    t = a + b
    return a * b - c * c - 0.04 * t * t


def _compiled(function):
    def formulation(task):
        inputs = [jax.device_put(array) for array in task.inputs]
        run = jax.jit(function).lower(*inputs).compile()
        return lambda: run(*inputs).block_until_ready()

    return formulation


_INTERP = {"einsum": _einsum, "three products": _three_products, "Kronecker of two": _kronecker_of_two}

_FUNCTIONS = {
    "mm": {"matmul": lambda a, b: a @ b},
    "tmm": {"matmul": lambda a, b: a.T @ b},
    "bmm": {"matmul": lambda a, b: a @ b},
    "gconv": {"convolution": _convolution, "shift": _shift},
    "gconv_dw": {"convolution": _convolution, "shift": _shift},
    "mttkrp": {
        "einsum": lambda b, c, d: jnp.einsum("ikl,lj,kj->ij", b, d, c, optimize="optimal"),
        "Khatri-Rao": lambda b, c, d: b.reshape(b.shape[0], -1) @ (c[:, None, :] * d[None]).reshape(-1, c.shape[1]),
    },
    "sddmm": {"whole": lambda b, c, d: b * (c @ d)},
    "interp": {**_INTERP, "Kronecker of three": _kronecker_of_three},
    "helm": {name: _helm(modes) for name, modes in _INTERP.items()},
    "blur": {"whole": _blur},
    "coars": {"whole": _coars},
}
FORMULATIONS = {
    "jax": {
        kernel: {name: _compiled(function) for name, function in functions.items()}
        for kernel, functions in _FUNCTIONS.items()
    }
}
