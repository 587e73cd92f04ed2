"""JAX on the CPU, compiled before it is timed."""

# mypy: ignore-errors

import functools

import jax
import jax.numpy as jnp
from jax import lax

from .. import sweep
from ..small import GROUPS, POOL, SMALL, WINDOWS
from ..sweep import at_each_size

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


def _heat3d(u):
    inside = u[1:-1, 1:-1, 1:-1]
    around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
    around = around + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
    return (u.at[1:-1, 1:-1, 1:-1].set(inside + sweep.HEAT * (around - 6 * inside)),)


def _jacobi2d(u):
    new = 0.2 * (u[1:-1, 1:-1] + u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return (u.at[1:-1, 1:-1].set(new),)


def _fdtd2d(e, p, q, eps):
    p, q = p - sweep.COURANT * (e[:, 1:] - e[:, :-1]), q + sweep.COURANT * (e[1:] - e[:-1])
    turn = q[1:, 1:-1] - q[:-1, 1:-1] - p[1:-1, 1:] + p[1:-1, :-1]
    return e.at[1:-1, 1:-1].add(sweep.COURANT / eps[1:-1, 1:-1] * turn), p, q


def _wave2d(a, b):
    around = b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:]
    inside = b[1:-1, 1:-1]
    return b, b.at[1:-1, 1:-1].set(2 * inside - a[1:-1, 1:-1] + sweep.WAVE * (around - 4 * inside))


def _shallow_water(h, q):
    f, g = sweep.CELL * q, sweep.CELL * (q * q / h + 4.905 * h * h)
    return (jnp.roll(h + f, 1) + jnp.roll(h - f, -1)) / 2, (jnp.roll(q + g, 1) + jnp.roll(q - g, -1)) / 2


def _shallow_water_framed(h, q):
    """Both fields with what is on the other side, so that one loop reads them."""
    h, q = (jnp.concatenate([x[-1:], x, x[:1]]) for x in (h, q))
    f, g = sweep.CELL * q, sweep.CELL * (q * q / h + 4.905 * h * h)
    return tuple((x[:-2] + flux[:-2] + x[2:] - flux[2:]) / 2 for x, flux in ((h, f), (q, g)))


def _gray_scott(u, v):
    def laplacian(x):
        return jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1) - 4 * x

    return _reacted(u, v, laplacian(u), laplacian(v))


def _gray_scott_framed(u, v):
    def laplacian(x):
        y = jnp.pad(x, 1, mode="wrap")
        return y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:] - 4 * x

    return _reacted(u, v, laplacian(u), laplacian(v))


def _reacted(u, v, around_u, around_v):
    (du, dv), feed, kill = sweep.DIFFUSION, sweep.FEED, sweep.KILL
    reaction = u * v * v
    return u + du * around_u - reaction + feed * (1 - u), v + dv * around_v + reaction - (feed + kill) * v


def _marched(step, count, steps):
    """States come first, then what is fixed."""

    def run(*arrays):
        fixed = arrays[count:]
        if steps == 1:
            last = step(*arrays)
        else:
            last = lax.fori_loop(0, steps, lambda _, now: step(*now, *fixed), arrays[:count])
        return last if count > 1 else last[0]

    return run


def _floyd_warshall(d):
    return lax.fori_loop(0, len(d), lambda k, d: jnp.minimum(d, d[:, k, None] + d[k]), d)


def _lu_columns(a):
    places = jnp.arange(len(a))

    def step(k, a):
        below = jnp.where(places > k, a[:, k] / a[k, k], 0)
        right = jnp.where(places > k, a[k], 0)
        return jnp.where((places[:, None] > k) & (places == k), below[:, None], a - below[:, None] * right)

    return lax.fori_loop(0, len(a), step, a)


def _nbody(x, mass):
    def of(place):
        d = x - place
        r = (d * d).sum(1) + sweep.SOFTENING
        return (mass / (r * jnp.sqrt(r))) @ d

    return lax.map(of, x)


def _nbody_blocks(x, mass):
    """The differences are fused into sums, for some bodies at a time."""
    block = next(size for size in range(min(64, len(x)), 0, -1) if len(x) % size == 0)
    columns = x.T

    def of(some):
        differences = [column - place[:, None] for column, place in zip(columns, some.T, strict=True)]
        r = sum(d * d for d in differences) + sweep.SOFTENING
        w = mass / (r * jnp.sqrt(r))
        return jnp.stack([(w * d).sum(1) for d in differences], axis=1)

    return lax.map(of, x.reshape(-1, block, 3)).reshape(x.shape)


def _mandelbrot(points):
    """An iteration for all points, or all of them for some rows."""

    def rows(re, im):
        def step(_, state):
            x, y, n = state
            inside = x * x + y * y <= 4
            return (
                jnp.where(inside, x * x - y * y + re, x),
                jnp.where(inside, 2 * x * y + im, y),
                jnp.where(inside, n + 1, n),
            )

        zero = jnp.zeros(jnp.broadcast_shapes(re.shape, im.shape), re.dtype)
        if points == "unrolled":
            state = (zero, zero, zero)
            for at in range(sweep.ITERATIONS):
                state = step(at, state)
            return state[2]
        return lax.fori_loop(0, sweep.ITERATIONS, step, (zero, zero, zero))[2]

    if points == "rows":
        return lambda re, im: lax.map(lambda c: rows(re, c), im)
    return lambda re, im: rows(re, im[:, None])


def _unsharp(x):
    rows = x[:, :-2] + 2 * x[:, 1:-1] + x[:, 2:]
    pixel = x[1:-1, 1:-1]
    detail = pixel - (rows[:-2] + 2 * rows[1:-1] + rows[2:]) / 16
    return jnp.where(jnp.abs(detail) > sweep.THRESHOLD, jnp.clip(pixel + sweep.AMOUNT * detail, 0, 1), pixel)


def _harris(x):
    def windows(y):
        rows = y[:, :-2] + y[:, 1:-1] + y[:, 2:]
        return rows[:-2] + rows[1:-1] + rows[2:]

    t = x[2:] - x[:-2]
    a = t[:, :-2] + 2 * t[:, 1:-1] + t[:, 2:]
    t = x[:, 2:] - x[:, :-2]
    b = t[:-2] + 2 * t[1:-1] + t[2:]
    aa, bb, ab = windows(a * a), windows(b * b), windows(a * b)
    return aa * bb - ab * ab - sweep.HARRIS * (aa + bb) ** 2


def _bilateral(x):
    h, w = x.shape[0] - 4, x.shape[1] - 4
    total, weights = 0, 0
    for k in range(5):
        for m in range(5):
            part = x[k : h + k, m : w + m]
            near = -sweep.SPACE * ((k - 2) ** 2 + (m - 2) ** 2)
            weight = jnp.exp(near - sweep.VALUE * (part - x[2:-2, 2:-2]) ** 2)
            total, weights = total + weight * part, weights + weight
    return total / weights


def _pyramid(x):
    h, w = (sweep.halves(size) for size in x.shape)
    rows = sum(weight * x[at : at + 2 * h - 1 : 2] for at, weight in enumerate(sweep.G))
    return sum(weight * rows[:, at : at + 2 * w - 1 : 2] for at, weight in enumerate(sweep.G))


def _pyramid_convolution(x):
    weights = jnp.asarray(sweep.G, x.dtype)
    form = ("NCHW", "OIHW", "NCHW")
    x = lax.conv_general_dilated(x[None, None], weights[None, None, :, None], (2, 1), "VALID", dimension_numbers=form)
    x = lax.conv_general_dilated(x, weights[None, None, None], (1, 2), "VALID", dimension_numbers=form)
    return x[0, 0]


def _attention(q, k, v):
    scores = jnp.einsum("hqd,hkd->hqk", q, k) * q.shape[2] ** -0.5
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), v)


def _attention_head(heads):
    q, k, v = heads
    return jax.nn.softmax(q @ k.T * q.shape[1] ** -0.5) @ v


def _layer_norm(x, gamma, beta):
    z = x - x.mean(1, keepdims=True)
    return z * lax.rsqrt((z * z).mean(1, keepdims=True) + sweep.EPSILON) * gamma + beta


def _batch_norm(x, mu, var, gamma, beta):
    scale = gamma * lax.rsqrt(var + sweep.EPSILON)
    return x * scale[:, None, None] + (beta - mu * scale)[:, None, None]


def _group_norm(x, gamma, beta):
    z = x - x.mean((2, 3, 4), keepdims=True)
    z = z * lax.rsqrt((z * z).mean((2, 3, 4), keepdims=True) + sweep.EPSILON)
    return z * gamma[..., None, None] + beta[..., None, None]


def _gelu_mlp(x, u, a, v, b):
    return jax.nn.gelu(x @ u + a, approximate=True) @ v + b


def _cross_entropy(logits, targets):
    return -(targets * jax.nn.log_softmax(logits)).sum() / len(logits)


def _cross_entropy_sums(logits, targets):
    """The logarithm of the sum once for each row."""
    most = logits.max(1, keepdims=True)
    logarithm = jnp.log(jnp.exp(logits - most).sum(1)) + most[:, 0]
    return ((targets.sum(1) * logarithm) - (targets * logits).sum(1)).sum() / len(logits)


def _pairwise(x, y):
    squares = (x * x).sum(1)[:, None] + (y * y).sum(1)
    return jnp.sqrt(jnp.maximum(squares - 2 * x @ y.T, 0))


def _pairwise_sums(x, y):
    return jnp.sqrt(((x[:, None] - y) ** 2).sum(2))


def _cosine(x, y):
    x, y = (a / jnp.sqrt((a * a).sum(1, keepdims=True)) for a in (x, y))
    return x @ y.T


def _cosine_after(x, y):
    one, other = (lax.rsqrt((a * a).sum(1)) for a in (x, y))
    return (x @ y.T) * one[:, None] * other


def _reductions():
    """Of all elements, and along each axis."""
    table = {}
    for axis, suffix in ((None, ""), (0, "_axis0"), (1, "_axis1")):
        found = {
            "sum": jnp.sum,
            "min": jnp.min,
            "max": jnp.max,
            "dot": lambda x, y, axis: jnp.sum(x * y, axis),
            "norm": lambda x, axis: jnp.sqrt(jnp.sum(x * x, axis)),
            "mean": jnp.mean,
            "variance": jnp.var,
        }
        for name, reduce in found.items():
            table[name + suffix] = {name: functools.partial(reduce, axis=axis)}
    table["dot"]["product"] = jnp.dot
    table["norm"]["product"] = lambda x: jnp.sqrt(jnp.dot(x, x))
    table["sum_axis0"]["product"] = lambda x: jnp.ones(len(x), x.dtype) @ x
    table["sum_axis1"]["product"] = lambda x: x @ jnp.ones(x.shape[1], x.dtype)
    return table


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
# How many states there are, and the steps.
_STEPS = {
    "heat3d": (1, {"slices": _heat3d}),
    "jacobi2d": (1, {"slices": _jacobi2d}),
    "fdtd2d": (3, {"slices": _fdtd2d}),
    "wave2d": (2, {"slices": _wave2d}),
    "shallow_water": (2, {"roll": _shallow_water, "frame": _shallow_water_framed}),
    "gray_scott": (2, {"roll": _gray_scott, "frame": _gray_scott_framed}),
}
_PROGRAMS = {
    **{
        name + suffix: {of: _marched(step, count, steps) for of, step in table.items()}
        for name, (count, table) in _STEPS.items()
        for steps, suffix in ((1, ""), (sweep.MANY, f"_{sweep.MANY}"))
    },
    "floyd_warshall": {"loop": _floyd_warshall},
    "lu": {"columns": _lu_columns, "library": lambda a: lax.linalg.lu(a)[0]},
    "nbody": {"a body at a time": _nbody, "blocks": _nbody_blocks},
    "mandelbrot": {points: _mandelbrot(points) for points in ("all", "rows", "unrolled")},
    "unsharp": {"slices": _unsharp},
    "harris": {"slices": _harris},
    "bilateral": {"slices": _bilateral},
    "pyramid": {"slices": _pyramid, "convolution": _pyramid_convolution},
    "attention": {"whole": _attention, "heads": lambda *heads: lax.map(_attention_head, heads)},
    "softmax": {"softmax": jax.nn.softmax},
    "layer_norm": {"whole": _layer_norm},
    "batch_norm": {"whole": _batch_norm},
    "group_norm": {"whole": _group_norm},
    "gelu_mlp": {"gelu": _gelu_mlp},
    "cross_entropy": {"log_softmax": _cross_entropy, "sums": _cross_entropy_sums},
    "pairwise": {"product": _pairwise, "sums": _pairwise_sums},
    "cosine": {"normalised": _cosine, "normalised after": _cosine_after},
    **_reductions(),
}
FORMULATIONS = {
    "jax": {
        kernel: {name: _compiled(function) for name, function in functions.items()}
        for kernel, functions in (_FUNCTIONS | _SMALL | at_each_size(_PROGRAMS)).items()
    }
}
