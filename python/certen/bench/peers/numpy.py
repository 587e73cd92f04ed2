"""NumPy, with its BLAS; results go into an array that is there already, where NumPy allows it."""

# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..kernels import Array
from ..polybench import REFERENCES
from ..ported import NUMPY
from ..small import GROUPS, POOL, SMALL, WINDOWS, Window, zero_padded
from . import Formulation, Formulations, Task, calls, strips

try:
    import opt_einsum
except ImportError:
    opt_einsum = None

VERSION = np.__version__


def _im2col(x: Array, w: Array, out: Array) -> None:
    n, g, c, _, _ = x.shape
    _, f, _, p, q = w.shape
    windows = sliding_window_view(x, (p, q), axis=(3, 4)).transpose(0, 1, 2, 5, 6, 3, 4)
    columns = windows.reshape(n, g, c * p * q, -1)
    np.matmul(w.reshape(g, f, c * p * q)[None], columns, out=out.reshape(n, g, f, -1))


def _shift(x: Array, w: Array, out: Array) -> None:
    h, v = out.shape[3:]
    out[...] = 0
    for p in range(w.shape[3]):
        for q in range(w.shape[4]):
            window = x[..., p : p + h, q : q + v]
            if x.shape[2] == 1:
                out += window * w[None, :, :, :, p, q, None]
            else:
                out += np.einsum("ngchw,gfc->ngfhw", window, w[..., p, q], optimize=True)


def _three_products(a: Array, b: Array, c: Array, u: Array, out: Array) -> None:
    e, n = u.shape[:2]
    t = u.reshape(-1, n) @ c.T
    t = np.matmul(b, t.reshape(-1, n, n))
    np.matmul(a, t.reshape(e, n, n * n), out=out.reshape(e, n, n * n))


def _kronecker_of_two(a: Array, b: Array, c: Array, u: Array, out: Array) -> None:
    e, n = u.shape[:2]
    t = u.reshape(-1, n * n) @ np.kron(b, c).T
    np.matmul(a, t.reshape(e, n, n * n), out=out.reshape(e, n, n * n))


def _kronecker_of_three(a: Array, b: Array, c: Array, u: Array, out: Array) -> None:
    n = u.shape[1]
    np.matmul(u.reshape(-1, n**3), np.kron(a, np.kron(b, c)).T, out=out.reshape(-1, n**3))


def _tensordot(a: Array, b: Array, c: Array, u: Array, out: Array) -> None:
    t = u
    for matrix in (a, b, c):
        t = np.tensordot(t, matrix, axes=([1], [1]))
    out[...] = t


_MODES = "ia,jb,kc,eabc->eijk"


def _einsum(a: Array, b: Array, c: Array, u: Array, out: Array) -> None:
    np.einsum(_MODES, a, b, c, u, out=out, optimize=True)


def _opt_einsum(a: Array, b: Array, c: Array, u: Array, out: Array) -> None:
    out[...] = opt_einsum.contract(_MODES, a, b, c, u)


_KRON: dict[str, Callable[..., Any]] = {
    "three products": _three_products,
    "Kronecker of two": _kronecker_of_two,
    "Kronecker of three": _kronecker_of_three,
    "tensordot": _tensordot,
    "einsum": _einsum,
    **({"opt_einsum": _opt_einsum} if opt_einsum else {}),
}


def _interp(modes: Callable[..., Any]) -> Callable[..., Any]:
    return lambda p, u, out: modes(p, p, p, u, out)


def _helm(modes: Callable[..., Any]) -> Callable[..., Any]:
    def run(s: Array, d: Array, u: Array, out: Array) -> None:
        modes(s, s, s, u, out)
        np.multiply(out, d, out=out)
        t = s.T.copy()
        modes(t, t, t, out.copy(), out)

    return run


def _blur(x: Array, out: Array) -> None:
    third = x.dtype.type(1 / 3)
    rows = x[:, :-2] + x[:, 1:-1]
    rows += x[:, 2:]
    rows *= third
    np.add(rows[:-2], rows[1:-1], out=out)
    out += rows[2:]
    out *= third


def _coars(x: Array, y: Array, out: Array) -> None:
    a, b, c = x * x, y * y, x * y
    t = a + b
    np.multiply(a, b, out=out)
    c *= c
    out -= c
    t *= t
    t *= 0.04
    out -= t


def _mttkrp_product(b: Array, c: Array, d: Array, out: Array) -> None:
    t = (b.reshape(-1, b.shape[2]) @ d).reshape(b.shape[0], b.shape[1], -1)
    np.einsum("ikj,kj->ij", t, c, out=out)


def _mttkrp_khatri_rao(b: Array, c: Array, d: Array, out: Array) -> None:
    np.matmul(b.reshape(b.shape[0], -1), (c[:, None, :] * d[None]).reshape(-1, c.shape[1]), out=out)


def _mttkrp_slices(b: Array, c: Array, d: Array, out: Array) -> None:
    for i in range(b.shape[0]):
        np.einsum("kj,kj->j", b[i] @ d, c, out=out[i])


def _sddmm(b: Array, c: Array, d: Array, out: Array) -> None:
    np.matmul(c, d, out=out)
    out *= b


def _sddmm_strips(b: Array, c: Array, d: Array, out: Array) -> None:
    for at in range(0, len(out), 256):
        _sddmm(b[at : at + 256], c[at : at + 256], d, out[at : at + 256])


def _windows(x: Array, w: Array, window: Window) -> Array:
    """All windows of an image, as a view: channels, places, taps."""
    taps = w.shape[-(x.ndim - 2) :]
    axes = tuple(range(2, x.ndim))
    reached = tuple(window.dilation * (count - 1) + 1 for count in taps)
    places = sliding_window_view(zero_padded(x, window.padding), reached, axis=axes)
    steps = [slice(None, None, window.stride)] * len(taps)
    return np.asarray(places[(slice(None), slice(None), *steps, *[slice(None, None, window.dilation)] * len(taps))])


def _windows_einsum(window: Window) -> Callable[..., Any]:
    def run(x: Array, w: Array, out: Array) -> None:
        taps, places = "uvt"[: x.ndim - 2], "xyz"[: x.ndim - 2]
        if w.ndim < x.ndim:
            np.einsum(f"nc{places}{taps},c{taps}->nc{places}", _windows(x, w, window), w, out=out)
        else:
            subscripts = f"nc{places}{taps},fc{taps}->nf{places}"
            np.einsum(subscripts, _windows(x, w, window), w, out=out, optimize=True)

    return run


def _windows_matmul(window: Window) -> Callable[..., Any]:
    def run(x: Array, w: Array, out: Array) -> None:
        rank, view = x.ndim - 2, _windows(x, w, window)
        order = (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))
        columns = view.transpose(order).reshape(len(x), w[0].size, -1)
        np.matmul(w.reshape(len(w), -1), columns, out=out.reshape(*out.shape[:2], -1))

    return run


def _taps(window: Window) -> Callable[..., Any]:
    """Channels stay apart: the image, shifted and weighted, for each tap."""

    def run(x: Array, w: Array, out: Array) -> None:
        shape = w.shape[1:]
        term = np.empty_like(out)
        out[...] = 0
        for tap, part in window.shifted(zero_padded(x, window.padding), shape):
            at: Any = (..., *tap)
            np.multiply(part, w[at].reshape(-1, *[1] * len(shape)), out=term)
            out += term

    return run


def _convolutions() -> dict[str, dict[str, Callable[..., Any]]]:
    table: dict[str, dict[str, Callable[..., Any]]] = {}
    for name, window in WINDOWS.items():
        if name.startswith("depthwise"):
            table[name] = {"windows, einsum": _windows_einsum(window), "taps": _taps(window)}
        elif name != "max_pool":
            table[name] = {"windows, einsum": _windows_einsum(window), "windows, matmul": _windows_matmul(window)}
    return table


def _max_pool_taps(x: Array, out: Array) -> None:
    out[...] = -np.inf
    for _, part in WINDOWS["max_pool"].shifted(x, (POOL, POOL)):
        np.maximum(out, part, out=out)


def _max_pool_apart(x: Array, out: Array) -> None:
    """Along rows, then along columns."""
    step, (height, width) = WINDOWS["max_pool"].stride, out.shape[2:]
    rows = [x[:, :, begin : begin + step * (height - 1) + 1 : step] for begin in range(POOL)]
    t = np.maximum(rows[0], rows[1])
    np.maximum(t, rows[2], out=t)
    columns = [t[..., begin : begin + step * (width - 1) + 1 : step] for begin in range(POOL)]
    np.maximum(columns[0], columns[1], out=out)
    np.maximum(out, columns[2], out=out)


def _components_of_product(a: Array, b: Array, out: Array) -> None:
    n = a.shape[1]
    for i in range(n):
        for j in range(n):
            np.multiply(a[:, i, 0], b[:, 0, j], out=out[:, i, j])
            for k in range(1, n):
                out[:, i, j] += a[:, i, k] * b[:, k, j]


def _kalman_products(f: Array, q: Array, x: Array, p: Array, out: tuple[Array, Array]) -> None:
    n = len(f)
    np.matmul(x, f.T, out=out[0])
    np.matmul(np.matmul(f, p).reshape(-1, n), f.T, out=out[1].reshape(-1, n))
    out[1][...] += q


def _kalman_kronecker(f: Array, q: Array, x: Array, p: Array, out: tuple[Array, Array]) -> None:
    n = len(f)
    np.matmul(x, f.T, out=out[0])
    np.matmul(p.reshape(-1, n * n), np.kron(f, f).T, out=out[1].reshape(-1, n * n))
    out[1][...] += q


def _kalman_einsum(f: Array, q: Array, x: Array, p: Array, out: tuple[Array, Array]) -> None:
    np.einsum("ij,bj->bi", f, x, out=out[0], optimize=True)
    np.einsum("ik,bkl,jl->bij", f, p, f, out=out[1], optimize=True)
    out[1][...] += q


def _rotation_cross(q: Array, v: Array, out: Array) -> None:
    t = np.cross(q[:, 1:], v)
    t *= 2
    np.multiply(q[:, :1], t, out=out)
    out += v
    out += np.cross(q[:, 1:], t)


def _rotation_components(q: Array, v: Array, out: Array) -> None:
    w, x, y, z = q.T
    a, b, c = v.T
    r, s, t = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    out[:, 0] = a + w * r + (y * t - z * s)
    out[:, 1] = b + w * s + (z * r - x * t)
    out[:, 2] = c + w * t + (x * s - y * r)


_BMM: dict[str, Callable[..., Any]] = {
    "matmul": lambda a, b, out: np.matmul(a, b, out=out),
    "einsum": lambda a, b, out: np.einsum("bik,bkj->bij", a, b, out=out),
    "components": _components_of_product,
}
# The product of three matrices takes n^4 / 3 times the least work.
_MOST_OF_THREE = 8


def _kron(n: int) -> dict[str, Callable[..., Any]]:
    return {name: modes for name, modes in _KRON.items() if n <= _MOST_OF_THREE or modes is not _kronecker_of_three}


_SMALL: dict[str, dict[str, Callable[..., Any]]] = {
    **{name: _kron(SMALL[name].sizes["n"]) for name in GROUPS["kron"]},
    **_convolutions(),
    "max_pool": {"taps": _max_pool_taps, "rows, then columns": _max_pool_apart},
    "bmm3": _BMM,
    "bmm4": _BMM,
    "kalman": {"products": _kalman_products, "Kronecker": _kalman_kronecker, "einsum": _kalman_einsum},
    "rotation": {"cross": _rotation_cross, "components": _rotation_components},
}


def _contraction(task: Task) -> Callable[[], Any]:
    subscripts = task.problem.kernel.subscripts
    return lambda: np.einsum(subscripts, *task.inputs, optimize=True)


_FUNCTIONS: dict[str, dict[str, Callable[..., Any]]] = {
    "mm": {
        "matmul": lambda a, b, out: np.matmul(a, b, out=out),
        "einsum": lambda a, b, out: np.einsum("ik,kj->ij", a, b, out=out, optimize=True),
    },
    "tmm": {"matmul": lambda a, b, out: np.matmul(a.T, b, out=out)},
    "bmm": {
        "matmul": lambda a, b, out: np.matmul(a, b, out=out),
        "einsum": lambda a, b, out: np.einsum("bik,bkj->bij", a, b, out=out, optimize=True),
    },
    "gconv": {"im2col": _im2col, "shift": _shift},
    "gconv_dw": {"im2col": _im2col, "shift": _shift},
    "mttkrp": {"product": _mttkrp_product, "Khatri-Rao": _mttkrp_khatri_rao, "slices": _mttkrp_slices},
    "sddmm": {"whole": _sddmm, "strips": _sddmm_strips},
    "interp": {name: _interp(modes) for name, modes in _KRON.items()},
    "helm": {name: _helm(modes) for name, modes in _KRON.items() if modes is not _kronecker_of_three},
    "blur": {"whole": _blur, "strips": strips(_blur, 32, halo=2)},
    "coars": {"whole": _coars, "strips": strips(_coars, 16)},
}
_TABLE: dict[str, dict[str, Formulation]] = {
    kernel: {name: calls(function) for name, function in functions.items()}
    for kernel, functions in (_FUNCTIONS | NUMPY | REFERENCES | _SMALL).items()
}
FORMULATIONS: dict[str, Formulations] = {"numpy": {**_TABLE, "contraction": {"einsum": _contraction}}}
