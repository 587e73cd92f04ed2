"""NumPy, with its BLAS; results go into an array that is there already, where NumPy allows it."""

# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..kernels import Array
from ..ported import NUMPY
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


def _three_products(p: Array, u: Array, out: Array) -> None:
    e, n = u.shape[0], p.shape[0]
    t = u.reshape(-1, n) @ p.T
    t = np.matmul(p, t.reshape(-1, n, n))
    np.matmul(p, t.reshape(e, n, n * n), out=out.reshape(e, n, n * n))


def _kronecker_of_two(p: Array, u: Array, out: Array) -> None:
    e, n = u.shape[0], p.shape[0]
    t = u.reshape(-1, n * n) @ np.kron(p, p).T
    np.matmul(p, t.reshape(e, n, n * n), out=out.reshape(e, n, n * n))


def _kronecker_of_three(p: Array, u: Array, out: Array) -> None:
    n = p.shape[0]
    np.matmul(u.reshape(-1, n**3), np.kron(p, np.kron(p, p)).T, out=out.reshape(-1, n**3))


def _tensordot(p: Array, u: Array, out: Array) -> None:
    t = u
    for _ in range(3):
        t = np.tensordot(t, p, axes=([1], [1]))
    out[...] = t


_MODES = "ia,jb,kc,eabc->eijk"


def _einsum(p: Array, u: Array, out: Array) -> None:
    np.einsum(_MODES, p, p, p, u, out=out, optimize=True)


def _opt_einsum(p: Array, u: Array, out: Array) -> None:
    out[...] = opt_einsum.contract(_MODES, p, p, p, u)


_INTERP: dict[str, Callable[..., Any]] = {
    "three products": _three_products,
    "Kronecker of two": _kronecker_of_two,
    "Kronecker of three": _kronecker_of_three,
    "tensordot": _tensordot,
    "einsum": _einsum,
    **({"opt_einsum": _opt_einsum} if opt_einsum else {}),
}


def _helm(modes: Callable[..., Any]) -> Callable[..., Any]:
    def run(s: Array, d: Array, u: Array, out: Array) -> None:
        modes(s, u, out)
        np.multiply(out, d, out=out)
        modes(s.T.copy(), out.copy(), out)

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
    "interp": _INTERP,
    "helm": {name: _helm(modes) for name, modes in _INTERP.items() if modes is not _kronecker_of_three},
    "blur": {"whole": _blur, "strips": strips(_blur, 32, halo=2)},
    "coars": {"whole": _coars, "strips": strips(_coars, 16)},
}
_TABLE: dict[str, dict[str, Formulation]] = {
    kernel: {name: calls(function) for name, function in functions.items()}
    for kernel, functions in (_FUNCTIONS | NUMPY).items()
}
FORMULATIONS: dict[str, Formulations] = {"numpy": {**_TABLE, "contraction": {"einsum": _contraction}}}
