"""NumPy, with its BLAS; results go into an array that is there already, where NumPy allows it."""

# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .. import sweep
from ..kernels import Array
from ..polybench import REFERENCES
from ..ported import NUMPY
from ..small import GROUPS, POOL, SMALL, WINDOWS, Window, zero_padded
from ..sweep import at_each_size
from . import Formulation, Formulations, Task, calls, strips

try:
    import opt_einsum
except ImportError:
    opt_einsum = None
try:
    from scipy.linalg import lapack
except ImportError:
    lapack = None

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
# About how many elements of an array are worked on at a time, so that what is in between stays in the cache.
_PIECE = 1 << 13


def _pieces(begin: int, end: int, each: int, whole: bool = False) -> Iterator[tuple[int, int]]:
    """Rows of so many elements, some at a time."""
    step = max(1, end - begin) if whole else max(1, _PIECE // max(1, each))
    for at in range(begin, end, step):
        yield at, min(at + step, end)


def _marched(step: Callable[..., None]) -> dict[str, Formulation]:
    """Steps from inputs to results and back to spare arrays; a step takes states, what is fixed, results, strips."""

    def formulation(whole: bool) -> Formulation:
        def make(task: Task) -> Callable[[], Any]:
            out = task.out if isinstance(task.out, tuple) else (task.out,)
            steps, spare = task.problem.sizes["steps"], tuple(map(np.empty_like, out))
            fixed = task.inputs[len(out) :]

            def run() -> Any:
                now = tuple(task.inputs[: len(out)])
                for left in range(steps, 0, -1):
                    new = out if left % 2 else spare
                    step(*now, *fixed, *new, whole)
                    now = new
                return task.out

            return run

        return make

    return {"whole": formulation(True), "strips": formulation(False)}


def _image_strips(function: Callable[..., None], halo: int) -> Callable[..., None]:
    def run(x: Array, out: Array) -> None:
        for a, b in _pieces(0, len(out), x.shape[1]):
            function(x[a : b + halo], out[a:b])

    return run


def _row_strips(function: Callable[..., None]) -> Callable[..., None]:
    """The first input and the result are cut."""

    def run(x: Array, *rest: Array) -> None:
        *fixed, out = rest
        for a, b in _pieces(0, len(x), x.shape[1]):
            function(x[a:b], *fixed, out[a:b])

    return run


def _border(u: Array, v: Array) -> None:
    for axis in range(u.ndim):
        for end in (0, -1):
            at: Any = (*[slice(None)] * axis, end)
            v[at] = u[at]


def _heat3d(u: Array, v: Array, whole: bool) -> None:
    _border(u, v)
    for a, b in _pieces(1, len(u) - 1, u[0].size, whole):
        t = u[a - 1 : b - 1, 1:-1, 1:-1] + u[a + 1 : b + 1, 1:-1, 1:-1]
        t += u[a:b, :-2, 1:-1]
        t += u[a:b, 2:, 1:-1]
        t += u[a:b, 1:-1, :-2]
        t += u[a:b, 1:-1, 2:]
        t *= sweep.HEAT
        new = v[a:b, 1:-1, 1:-1]
        np.multiply(u[a:b, 1:-1, 1:-1], 1 - 6 * sweep.HEAT, out=new)
        new += t


def _jacobi2d(u: Array, v: Array, whole: bool) -> None:
    _border(u, v)
    for a, b in _pieces(1, len(u) - 1, len(u[0]), whole):
        new = v[a:b, 1:-1]
        np.add(u[a:b, 1:-1], u[a - 1 : b - 1, 1:-1], out=new)
        new += u[a + 1 : b + 1, 1:-1]
        new += u[a:b, :-2]
        new += u[a:b, 2:]
        new *= 0.2


def _fdtd2d(e: Array, p: Array, q: Array, eps: Array, new_e: Array, new_p: Array, new_q: Array, whole: bool) -> None:
    for a, b in _pieces(0, len(e), len(e[0]), whole):
        t = e[a:b, 1:] - e[a:b, :-1]
        t *= sweep.COURANT
        np.subtract(p[a:b], t, out=new_p[a:b])
        c = min(b, len(q))
        t = e[a + 1 : c + 1] - e[a:c]
        t *= sweep.COURANT
        np.add(q[a:c], t, out=new_q[a:c])
    _border(e, new_e)
    for a, b in _pieces(1, len(e) - 1, len(e[0]), whole):
        t = new_q[a:b, 1:-1] - new_q[a - 1 : b - 1, 1:-1]
        t -= new_p[a:b, 1:]
        t += new_p[a:b, :-1]
        t *= sweep.COURANT
        t /= eps[a:b, 1:-1]
        np.add(e[a:b, 1:-1], t, out=new_e[a:b, 1:-1])


def _wave2d_step(a: Array, b: Array, new: Array, whole: bool) -> None:
    """`new` may be `a`."""
    for begin, end in _pieces(1, len(b) - 1, len(b[0]), whole):
        inside = b[begin:end, 1:-1]
        t = b[begin - 1 : end - 1, 1:-1] + b[begin + 1 : end + 1, 1:-1]
        t += b[begin:end, :-2]
        t += b[begin:end, 2:]
        t *= sweep.WAVE
        t -= a[begin:end, 1:-1]
        t += (2 - 4 * sweep.WAVE) * inside
        new[begin:end, 1:-1] = t
    _border(b, new)


def _wave2d(whole: bool) -> Formulation:
    def make(task: Task) -> Callable[[], Any]:
        steps = task.problem.sizes["steps"]

        def run() -> Any:
            a, b = task.inputs
            if steps == 1:
                task.out[0][...] = b
            for left in range(steps, 0, -1):
                new = task.out[left % 2]
                _wave2d_step(a, b, new, whole)
                a, b = b, new
            return task.out

        return run

    return make


def _shallow_water(h: Array, q: Array, new_h: Array, new_q: Array, whole: bool) -> None:
    def part(h: Array, q: Array, new_h: Array, new_q: Array) -> None:
        """Of two entries more than there are results."""
        f, g, k = sweep.CELL * q, q * q, h * h
        g /= h
        k *= 4.905
        g += k
        g *= sweep.CELL
        for new, x, flux in ((new_h, h, f), (new_q, q, g)):
            np.add(x[:-2], flux[:-2], out=new)
            new += x[2:]
            new -= flux[2:]
            new *= 0.5

    n = len(h)
    for a, b in _pieces(1, n - 1, 1, whole):
        part(h[a - 1 : b + 1], q[a - 1 : b + 1], new_h[a:b], new_q[a:b])
    for at in (0, n - 1):
        around = np.arange(at - 1, at + 2) % n
        part(h[around], q[around], new_h[at : at + 1], new_q[at : at + 1])


def _gray_scott(whole: bool) -> Formulation:
    """Fields have a frame with what is on the other side."""

    def framed(x: Array) -> None:
        x[0, 1:-1], x[-1, 1:-1], x[:, 0], x[:, -1] = x[-2, 1:-1], x[1, 1:-1], x[:, -2], x[:, 1]

    def around(x: Array, a: int, b: int) -> Array:
        t: Array = x[a - 1 : b - 1, 1:-1] + x[a + 1 : b + 1, 1:-1]
        t += x[a:b, :-2]
        t += x[a:b, 2:]
        return t

    def step(u: Array, v: Array, new_u: Array, new_v: Array) -> None:
        (du, dv), feed, kill = sweep.DIFFUSION, sweep.FEED, sweep.KILL
        for a, b in _pieces(1, len(u) - 1, len(u[0]), whole):
            x, y = u[a:b, 1:-1], v[a:b, 1:-1]
            reaction = y * y
            reaction *= x
            for old, new, rate, keep in ((u, new_u, du, 1 - 4 * du - feed), (v, new_v, dv, 1 - 4 * dv - feed - kill)):
                t = around(old, a, b)
                t *= rate
                t += keep * old[a:b, 1:-1]
                if new is new_u:
                    t -= reaction
                    t += feed
                else:
                    t += reaction
                new[a:b, 1:-1] = t

    def make(task: Task) -> Callable[[], Any]:
        h, w = task.out[0].shape
        one, other = ([np.empty((h + 2, w + 2), task.out[0].dtype) for _ in "uv"] for _ in range(2))

        def run() -> Any:
            now, new = one, other
            for field, given in zip(now, task.inputs, strict=True):
                field[1:-1, 1:-1] = given
            for _ in range(task.problem.sizes["steps"]):
                for field in now:
                    framed(field)
                step(*now, *new)
                now, new = new, now
            for result, field in zip(task.out, now, strict=True):
                result[...] = field[1:-1, 1:-1]
            return task.out

        return run

    return make


def _floyd_warshall(d: Array, out: Array) -> None:
    out[...] = d
    t = np.empty_like(d)
    for k in range(len(d)):
        np.add(out[:, k, None], out[k], out=t)
        np.minimum(out, t, out=out)


def _floyd_warshall_strips(d: Array, out: Array) -> None:
    out[...] = d
    for k in range(len(d)):
        row = out[k].copy()
        for a, b in _pieces(0, len(d), len(d)):
            np.minimum(out[a:b], out[a:b, k, None] + row, out=out[a:b])


def _eliminate(a: Array) -> None:
    """In place, a column at a time."""
    for k in range(a.shape[1]):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :]


def _lu_columns(a: Array, out: Array) -> None:
    out[...] = a
    _eliminate(out)


def _lu_blocks(a: Array, out: Array) -> None:
    out[...] = a
    n, width = len(a), 32
    for k in range(0, n, width):
        end = min(k + width, n)
        _eliminate(out[k:, k:end])
        lower = np.tril(out[k:end, k:end], -1) + np.eye(end - k, dtype=a.dtype)
        out[k:end, end:] = np.linalg.inv(lower) @ out[k:end, end:]
        out[end:, end:] -= out[end:, k:end] @ out[k:end, end:]


def _lu_lapack(a: Array, out: Array) -> None:
    """The diagonal dominates, so nothing is exchanged."""
    getrf = lapack.dgetrf if a.dtype == np.float64 else lapack.sgetrf
    out[...] = getrf(a)[0]


def _nbody(x: Array, mass: Array, out: Array) -> None:
    columns = x.T.copy()
    for a, b in _pieces(0, len(x), len(x)):
        r = np.full((b - a, len(x)), sweep.SOFTENING, x.dtype)
        for column in columns:
            d = column - column[a:b, None]
            d *= d
            r += d
        w = np.sqrt(r)
        w *= r
        np.divide(mass, w, out=w)
        np.matmul(w, x, out=out[a:b])
        out[a:b] -= x[a:b] * w.sum(axis=1, keepdims=True)


def _mandelbrot(re: Array, im: Array, out: Array) -> None:
    """Points that escaped go on, to infinity and to what is no number: neither counts."""
    out[...] = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for a, b in _pieces(0, len(im), len(re)):
            c, count = im[a:b, None], out[a:b]
            x, y = np.zeros_like(count), np.zeros_like(count)
            for _ in range(sweep.ITERATIONS):
                xx, yy = x * x, y * y
                y *= x
                y += y
                y += c
                np.subtract(xx, yy, out=x)
                x += re
                xx += yy
                count += xx <= 4


def _unsharp(x: Array, out: Array) -> None:
    rows = 2 * x[:, 1:-1]
    rows += x[:, :-2]
    rows += x[:, 2:]
    pixel = x[1:-1, 1:-1]
    t = 2 * rows[1:-1]
    t += rows[:-2]
    t += rows[2:]
    t *= -1 / 16
    t += pixel
    np.multiply(t, sweep.AMOUNT, out=out)
    out += pixel
    np.clip(out, 0, 1, out=out)
    np.copyto(out, pixel, where=np.abs(t) <= sweep.THRESHOLD)


def _harris(x: Array, out: Array) -> None:
    def windows(y: Array) -> Array:
        rows = y[:, :-2] + y[:, 1:-1]
        rows += y[:, 2:]
        t: Array = rows[:-2] + rows[1:-1]
        t += rows[2:]
        return t

    t = x[2:] - x[:-2]
    a = 2 * t[:, 1:-1]
    a += t[:, :-2]
    a += t[:, 2:]
    t = x[:, 2:] - x[:, :-2]
    b = 2 * t[1:-1]
    b += t[:-2]
    b += t[2:]
    ab = windows(a * b)
    a *= a
    b *= b
    aa, bb = windows(a), windows(b)
    np.multiply(aa, bb, out=out)
    ab *= ab
    out -= ab
    aa += bb
    aa *= aa
    aa *= sweep.HARRIS
    out -= aa


def _bilateral(x: Array, out: Array) -> None:
    (h, w), middle = out.shape, x[2:-2, 2:-2]
    weights = np.zeros_like(out)
    out[...] = 0
    for k in range(5):
        for m in range(5):
            part = x[k : h + k, m : w + m]
            t = part - middle
            t *= t
            t *= -sweep.VALUE
            t -= sweep.SPACE * ((k - 2) ** 2 + (m - 2) ** 2)
            np.exp(t, out=t)
            weights += t
            t *= part
            out += t
    out /= weights


def _pyramid(x: Array, out: Array, whole: bool = False) -> None:
    h, w = out.shape
    for a, b in _pieces(0, h, 2 * x.shape[1], whole):
        span = 2 * (b - a) - 1
        rows = x[2 * a : 2 * a + span : 2] + x[2 * a + 4 : 2 * a + 4 + span : 2]
        rows *= sweep.G[0]
        for weight, at in ((sweep.G[1], 1), (sweep.G[2], 2), (sweep.G[3], 3)):
            rows += weight * x[2 * a + at : 2 * a + at + span : 2]
        span, part = 2 * w - 1, out[a:b]
        np.add(rows[:, :span:2], rows[:, 4 : 4 + span : 2], out=part)
        part *= sweep.G[0]
        for weight, at in ((sweep.G[1], 1), (sweep.G[2], 2), (sweep.G[3], 3)):
            part += weight * rows[:, at : at + span : 2]


def _softmax(x: Array, out: Array) -> None:
    np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=-1, keepdims=True)


def _attention(q: Array, k: Array, v: Array, out: Array) -> None:
    scores = np.matmul(q, k.swapaxes(1, 2))
    scores *= q.shape[2] ** -0.5
    _softmax(scores, scores)
    np.matmul(scores, v, out=out)


def _attention_heads(q: Array, k: Array, v: Array, out: Array) -> None:
    for a, b, c, result in zip(q, k, v, out, strict=True):
        scores = a @ b.T
        scores *= q.shape[2] ** -0.5
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        np.matmul(scores, c, out=result)
        result /= scores.sum(axis=1, keepdims=True)


def _layer_norm(x: Array, gamma: Array, beta: Array, out: Array) -> None:
    np.subtract(x, x.mean(axis=1, keepdims=True), out=out)
    out /= np.sqrt(np.einsum("ij,ij->i", out, out) / x.shape[1] + sweep.EPSILON)[:, None]
    out *= gamma
    out += beta


def _batch_norm(x: Array, mu: Array, var: Array, gamma: Array, beta: Array, out: Array) -> None:
    scale = gamma / np.sqrt(var + sweep.EPSILON)
    np.multiply(x, scale[:, None, None], out=out)
    out += (beta - mu * scale)[:, None, None]


def _batch_norm_images(x: Array, mu: Array, var: Array, gamma: Array, beta: Array, out: Array) -> None:
    scale = gamma / np.sqrt(var + sweep.EPSILON)
    shift = (beta - mu * scale)[:, None, None]
    for image, result in zip(x, out, strict=True):
        np.multiply(image, scale[:, None, None], out=result)
        result += shift


def _group_norm(x: Array, gamma: Array, beta: Array, out: Array) -> None:
    n, g, c, h, w = x.shape
    groups, results = x.reshape(n, g, -1), out.reshape(n, g, -1)
    np.subtract(groups, groups.mean(axis=2, keepdims=True), out=results)
    deviation = np.sqrt(np.einsum("ngi,ngi->ng", results, results) / (c * h * w) + sweep.EPSILON)
    out *= (gamma / deviation[..., None])[..., None, None]
    out += beta[..., None, None]


def _group_norm_groups(x: Array, gamma: Array, beta: Array, out: Array) -> None:
    for image, result in zip(x, out, strict=True):
        for group in range(len(image)):
            at = slice(group, group + 1)
            _group_norm(image[None, at], gamma[at], beta[at], result[None, at])


def _gelu(t: Array) -> None:
    s = t * t
    s *= 0.044715
    s += 1
    s *= t
    s *= sweep.ROOT
    np.tanh(s, out=s)
    s += 1
    s *= 0.5
    t *= s


def _gelu_mlp(x: Array, u: Array, a: Array, v: Array, b: Array, out: Array) -> None:
    t = x @ u
    t += a
    _gelu(t)
    np.matmul(t, v, out=out)
    out += b


def _gelu_mlp_strips(x: Array, u: Array, a: Array, v: Array, b: Array, out: Array) -> None:
    t = x @ u
    for begin, end in _pieces(0, len(t), len(a)):
        part = t[begin:end]
        part += a
        _gelu(part)
    np.matmul(t, v, out=out)
    out += b


def _cross_entropy(logits: Array, targets: Array, out: Array, whole: bool = False) -> None:
    total = 0.0
    for a, b in _pieces(0, len(logits), logits.shape[1], whole):
        z = logits[a:b] - logits[a:b].max(axis=1, keepdims=True)
        z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
        total -= float(np.vdot(targets[a:b], z))
    out[...] = total / len(logits)


def _pairwise(x: Array, y: Array, out: Array) -> None:
    np.matmul(x, -2 * y.T, out=out)
    for a, b in _pieces(0, len(x), len(y)):
        part = out[a:b]
        part += np.einsum("ij,ij->i", x[a:b], x[a:b])[:, None]
        part += np.einsum("ij,ij->i", y, y)
        np.maximum(part, 0, out=part)
        np.sqrt(part, out=part)


def _pairwise_strips(x: Array, y: Array, out: Array) -> None:
    twice, squares = -2 * y.T, np.einsum("ij,ij->i", y, y)
    for a, b in _pieces(0, len(x), len(y) // 8):
        part = np.matmul(x[a:b], twice, out=out[a:b])
        part += np.einsum("ij,ij->i", x[a:b], x[a:b])[:, None]
        part += squares
        np.maximum(part, 0, out=part)
        np.sqrt(part, out=part)


def _cosine(x: Array, y: Array, out: Array) -> None:
    x, y = (a / np.sqrt(np.einsum("ij,ij->i", a, a))[:, None] for a in (x, y))
    np.matmul(x, y.T, out=out)


def _numpy_reductions() -> dict[str, dict[str, Callable[..., Any]]]:
    """Of all elements, and along each axis."""
    table: dict[str, dict[str, Callable[..., Any]]] = {
        "dot": {"dot": lambda x, y, out: np.dot(x, y, out=out)},
        "norm": {
            "dot": lambda x, out: np.sqrt(np.dot(x, x), out=out),
            "norm": lambda x, out: np.asarray(np.linalg.norm(x)),
        },
    }
    for name, reduce in {"sum": np.sum, "min": np.min, "max": np.max, "mean": np.mean, "variance": np.var}.items():
        for axis, suffix in ((None, ""), (0, "_axis0"), (1, "_axis1")):
            table[name + suffix] = {name: lambda x, out, of=reduce, axis=axis: of(x, axis=axis, out=out)}
    table["variance"]["dot"] = _variance
    table["sum_axis0"]["product"] = lambda x, out: np.matmul(np.ones(len(x), x.dtype), x, out=out)
    table["sum_axis1"]["product"] = lambda x, out: np.matmul(x, np.ones(x.shape[1], x.dtype), out=out)
    for axis, kept in ((0, "j"), (1, "i")):
        form = f"ij,ij->{kept}"
        table[f"dot_axis{axis}"] = {"einsum": lambda x, y, out, form=form: np.einsum(form, x, y, out=out)}
        table[f"norm_axis{axis}"] = {
            "einsum": lambda x, out, form=form: np.sqrt(np.einsum(form, x, x), out=out),
            "norm": lambda x, out, axis=axis: np.linalg.norm(x, axis=axis),
        }
    return table


def _variance(x: Array, out: Array) -> None:
    d = x - x.mean()
    out[...] = np.dot(d, d) / len(x)


_PROGRAMS: dict[str, dict[str, Callable[..., Any]]] = {
    "floyd_warshall": {"whole": _floyd_warshall, "strips": _floyd_warshall_strips},
    "lu": {"columns": _lu_columns, "blocks": _lu_blocks, **({"getrf": _lu_lapack} if lapack else {})},
    "nbody": {"product": _nbody},
    "mandelbrot": {"strips": _mandelbrot},
    "unsharp": {"whole": _unsharp, "strips": _image_strips(_unsharp, 2)},
    "harris": {"whole": _harris, "strips": _image_strips(_harris, 4)},
    "bilateral": {"whole": _bilateral, "strips": _image_strips(_bilateral, 4)},
    "pyramid": {"whole": lambda x, out: _pyramid(x, out, True), "strips": _pyramid},
    "attention": {"whole": _attention, "heads": _attention_heads},
    "softmax": {"whole": _softmax, "strips": strips(_softmax, 16)},
    "layer_norm": {"whole": _layer_norm, "strips": _row_strips(_layer_norm)},
    "batch_norm": {"whole": _batch_norm, "images": _batch_norm_images},
    "group_norm": {"whole": _group_norm, "groups": _group_norm_groups},
    "gelu_mlp": {"whole": _gelu_mlp, "strips": _gelu_mlp_strips},
    "cross_entropy": {"whole": lambda x, y, out: _cross_entropy(x, y, out, True), "strips": _cross_entropy},
    "pairwise": {"whole": _pairwise, "strips": _pairwise_strips},
    "cosine": {"normalised": _cosine},
    **_numpy_reductions(),
}
_STEPS: dict[str, dict[str, Formulation]] = {
    "heat3d": _marched(_heat3d),
    "jacobi2d": _marched(_jacobi2d),
    "fdtd2d": _marched(_fdtd2d),
    "wave2d": {"whole": _wave2d(True), "strips": _wave2d(False)},
    "shallow_water": _marched(_shallow_water),
    "gray_scott": {"whole": _gray_scott(True), "strips": _gray_scott(False)},
}
_SWEEP: dict[str, dict[str, Formulation]] = at_each_size(
    {
        **_STEPS,
        **{f"{name}_{sweep.MANY}": formulations for name, formulations in _STEPS.items()},
        **{
            program: {name: calls(function) for name, function in functions.items()}
            for program, functions in _PROGRAMS.items()
        },
    }
)
_TABLE: dict[str, dict[str, Formulation]] = {
    kernel: {name: calls(function) for name, function in functions.items()}
    for kernel, functions in (_FUNCTIONS | NUMPY | REFERENCES | _SMALL).items()
}
FORMULATIONS: dict[str, Formulations] = {"numpy": {**_TABLE, **_SWEEP, "contraction": {"einsum": _contraction}}}
