"""JAX on the CPU, compiled before it is timed."""

# mypy: ignore-errors

import functools

import jax
import jax.numpy as jnp
from jax import lax

from ..small import GROUPS, POOL, SMALL, WINDOWS

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


def _einsum(a, b, c, u):
    return jnp.einsum("ia,jb,kc,eabc->eijk", a, b, c, u, optimize="optimal")


def _three_products(a, b, c, u):
    e, n = u.shape[:2]
    t = (u.reshape(-1, n) @ c.T).reshape(e * n, n, n)
    t = jnp.matmul(b, t).reshape(e, n, n * n)
    return jnp.matmul(a, t).reshape(u.shape)


def _kronecker_of_two(a, b, c, u):
    e, n = u.shape[:2]
    t = (u.reshape(-1, n * n) @ jnp.kron(b, c).T).reshape(e, n, n * n)
    return jnp.matmul(a, t).reshape(u.shape)


def _kronecker_of_three(a, b, c, u):
    n = u.shape[1]
    return (u.reshape(-1, n**3) @ jnp.kron(a, jnp.kron(b, c)).T).reshape(u.shape)


def _fused_sums(a, b, c, u):
    """No products of matrices, but loops that XLA makes itself."""
    t = (u[:, :, :, None, :] * c).sum(4)
    t = (t[:, :, None, :, :] * b[:, :, None]).sum(3)
    return (t[:, None, :, :, :] * a[:, :, None, None]).sum(2)


def _interp(modes):
    return lambda p, u: modes(p, p, p, u)


def _helm(modes):
    return lambda s, d, u: modes(s.T, s.T, s.T, modes(s, s, s, u) * d)


def _blur(x):
    third = x.dtype.type(1 / 3)
    rows = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) * third
    return (rows[:-2] + rows[1:-1] + rows[2:]) * third


def _coars(x, y):
    a, b, c = x * x, y * y, x * y
    t = a + b
    return a * b - c * c - 0.04 * t * t


def _library_convolution(window):
    def run(x, w):
        rank = x.ndim - 2
        depthwise, axes = w.ndim < x.ndim, "DHW"[-rank:]
        return lax.conv_general_dilated(
            x,
            w[:, None] if depthwise else w,
            (window.stride,) * rank,
            ((window.padding, window.padding),) * rank,
            rhs_dilation=(window.dilation,) * rank,
            feature_group_count=x.shape[1] if depthwise else 1,
            dimension_numbers=(f"NC{axes}", f"OI{axes}", f"NC{axes}"),
        )

    return run


def _taps(window):
    """The image, shifted and weighted, for each tap."""

    def run(x, w):
        depthwise, rank = w.ndim < x.ndim, x.ndim - 2
        padding = [(0, 0), (0, 0), *[(window.padding, window.padding)] * rank]
        parts = window.shifted(jnp.pad(x, padding), w.shape[-rank:])
        if depthwise:
            return sum(part * w[(..., *tap)].reshape(-1, *[1] * rank) for tap, part in parts)
        return sum(jnp.einsum("nc...,fc->nf...", part, w[(..., *tap)]) for tap, part in parts)

    return run


def _max_pool_window(x):
    stride = WINDOWS["max_pool"].stride
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, POOL, POOL), (1, 1, stride, stride), "VALID")


def _max_pool_taps(x):
    return functools.reduce(jnp.maximum, (part for _, part in WINDOWS["max_pool"].shifted(x, (POOL, POOL))))


def _kalman_products(f, q, x, p):
    n = f.shape[0]
    return x @ f.T, (jnp.matmul(f, p).reshape(-1, n) @ f.T).reshape(p.shape) + q


def _kalman_kronecker(f, q, x, p):
    n = f.shape[0]
    return x @ f.T, (p.reshape(-1, n * n) @ jnp.kron(f, f).T).reshape(p.shape) + q


def _kalman_sums(f, q, x, p):
    t = (f[:, :, None] * p[:, None]).sum(2)
    return (f * x[:, None]).sum(2), (t[:, :, None] * f).sum(3) + q


def _rotation_cross(q, v):
    t = 2 * jnp.cross(q[:, 1:], v)
    return v + q[:, :1] * t + jnp.cross(q[:, 1:], t)


def _rotation_components(q, v):
    w, x, y, z = q.T
    a, b, c = v.T
    r, s, t = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    parts = (a + w * r + (y * t - z * s), b + w * s + (z * r - x * t), c + w * t + (x * s - y * r))
    return jnp.stack(parts, axis=1)


def _compiled(function):
    def formulation(task):
        inputs = [jax.device_put(array) for array in task.inputs]
        run = jax.jit(function).lower(*inputs).compile()
        return lambda: jax.block_until_ready(run(*inputs))

    return formulation


_MODES = {"einsum": _einsum, "three products": _three_products, "Kronecker of two": _kronecker_of_two}
_OF_THREE = {"Kronecker of three": _kronecker_of_three}
# The product of three matrices takes n^4 / 3 times the least work.
_MOST_OF_THREE = 8

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
    "interp": {name: _interp(modes) for name, modes in (_MODES | _OF_THREE).items()},
    "helm": {name: _helm(modes) for name, modes in _MODES.items()},
    "blur": {"whole": _blur},
    "coars": {"whole": _coars},
}


def _kron(n):
    return {**_MODES, "fused sums": _fused_sums, **(_OF_THREE if n <= _MOST_OF_THREE else {})}


_BMM = {
    "matmul": jnp.matmul,
    "fused sums": lambda a, b: (a[:, :, :, None] * b[:, None]).sum(2),
}
_SMALL = {
    **{name: _kron(SMALL[name].sizes["n"]) for name in GROUPS["kron"]},
    **{name: {"convolution": _library_convolution(window), "taps": _taps(window)} for name, window in WINDOWS.items()},
    "max_pool": {"reduce_window": _max_pool_window, "taps": _max_pool_taps},
    "bmm3": _BMM,
    "bmm4": _BMM,
    "kalman": {"products": _kalman_products, "Kronecker": _kalman_kronecker, "fused sums": _kalman_sums},
    "rotation": {"cross": _rotation_cross, "components": _rotation_components},
}
FORMULATIONS = {
    "jax": {
        kernel: {name: _compiled(function) for name, function in functions.items()}
        for kernel, functions in (_FUNCTIONS | _SMALL).items()
    }
}
