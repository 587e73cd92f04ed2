"""Numba: loops as one writes them for it, unit stride innermost, threads outermost; sizes are constants."""

# mypy: ignore-errors

import numba
import numpy as np
from numba import njit, prange

from . import calls

VERSION = numba.__version__
_loops = njit(parallel=True, fastmath=True)


def _mm(m, n, k):
    @_loops
    def run(a, b, out):
        for i in prange(m):
            out[i, :] = 0
            for r in range(k):
                x = a[i, r]
                for j in range(n):
                    out[i, j] += x * b[r, j]

    return run


def _tmm(m, n, k):
    @_loops
    def run(a, b, out):
        for i in prange(m):
            out[i, :] = 0
            for r in range(k):
                x = a[r, i]
                for j in range(n):
                    out[i, j] += x * b[r, j]

    return run


def _bmm(b, m, n, k):
    @_loops
    def run(x, y, out):
        for z in prange(b):
            for i in range(m):
                for j in range(n):
                    out[z, i, j] = 0
                for r in range(k):
                    t = x[z, i, r]
                    for j in range(n):
                        out[z, i, j] += t * y[z, r, j]

    return run


def _gconv(n, g, f, c, h, w, p, q):
    height, width = h - p + 1, w - q + 1

    @_loops
    def run(image, weights, out):
        for at in prange(n * g):
            z, s = at // g, at % g
            for o in range(f):
                for y in range(height):
                    for x in range(width):
                        out[z, s, o, y, x] = 0
                    for k in range(c):
                        for u in range(p):
                            for v in range(q):
                                t = weights[s, o, k, u, v]
                                for x in range(width):
                                    out[z, s, o, y, x] += image[z, s, k, y + u, x + v] * t

    return run


def _mttkrp(m, k, p, n):
    @_loops
    def run(b, c, d, out):
        for i in prange(m):
            t = np.empty(n, out.dtype)
            for j in range(n):
                out[i, j] = 0
            for y in range(k):
                for j in range(n):
                    t[j] = 0
                for q in range(p):
                    x = b[i, y, q]
                    for j in range(n):
                        t[j] += x * d[q, j]
                for j in range(n):
                    out[i, j] += t[j] * c[y, j]

    return run


def _sddmm(m, n, k):
    block = min(n, 512)

    @_loops
    def run(b, c, d, out):
        for i in prange(m):
            for begin in range(0, n, block):
                end = min(begin + block, n)
                for j in range(begin, end):
                    out[i, j] = 0
                for r in range(k):
                    x = c[i, r]
                    for j in range(begin, end):
                        out[i, j] += x * d[r, j]
                for j in range(begin, end):
                    out[i, j] *= b[i, j]

    return run


def _modes(n):
    """All three modes of an element; the matrix is transposed, so that k has unit stride everywhere."""

    @njit(fastmath=True, inline="always")
    def apply(pt, u, t1, t2, out):
        for ab in range(n * n):
            for k in range(n):
                t1[ab * n + k] = 0
            for c in range(n):
                x = u[ab * n + c]
                for k in range(n):
                    t1[ab * n + k] += x * pt[c, k]
        for a in range(n):
            for j in range(n):
                for k in range(n):
                    t2[(a * n + j) * n + k] = 0
                for b in range(n):
                    x = pt[b, j]
                    for k in range(n):
                        t2[(a * n + j) * n + k] += x * t1[(a * n + b) * n + k]
        for i in range(n):
            for jk in range(n * n):
                out[i * n * n + jk] = 0
            for a in range(n):
                x = pt[a, i]
                for jk in range(n * n):
                    out[i * n * n + jk] += x * t2[a * n * n + jk]

    return apply


# Elements that a thread takes at a time.
_BATCH = 50


def _interp(e, n):
    apply, cube = _modes(n), n**3

    @_loops
    def elements(pt, u, out):
        for block in prange((e + _BATCH - 1) // _BATCH):
            t1, t2 = np.empty(cube, out.dtype), np.empty(cube, out.dtype)
            for z in range(block * _BATCH, min((block + 1) * _BATCH, e)):
                apply(pt, u[z], t1, t2, out[z])

    def run(p, u, out):
        elements(p.T.copy(), u.reshape(e, cube), out.reshape(e, cube))

    return run


def _helm(e, n):
    apply, cube = _modes(n), n**3

    @_loops
    def elements(s, st, d, u, out):
        for block in prange((e + _BATCH - 1) // _BATCH):
            t1, t2, t3 = np.empty(cube, out.dtype), np.empty(cube, out.dtype), np.empty(cube, out.dtype)
            for z in range(block * _BATCH, min((block + 1) * _BATCH, e)):
                apply(st, u[z], t1, t2, t3)
                for i in range(cube):
                    t3[i] *= d[i]
                apply(s, t3, t1, t2, out[z])

    def run(s, d, u, out):
        elements(s, s.T.copy(), d.reshape(cube), u.reshape(e, cube), out.reshape(e, cube))

    return run


def _blur(h, w):
    height, width, strip = h - 2, w - 2, 32

    @_loops
    def run(x, out):
        third = x.dtype.type(1 / 3)
        for block in prange((height + strip - 1) // strip):
            begin = block * strip
            end = min(begin + strip, height)
            rows = np.empty((strip + 2, width), x.dtype)
            for i in range(begin, end + 2):
                for j in range(width):
                    rows[i - begin, j] = (x[i, j] + x[i, j + 1] + x[i, j + 2]) * third
            for i in range(begin, end):
                for j in range(width):
                    out[i, j] = (rows[i - begin, j] + rows[i - begin + 1, j] + rows[i - begin + 2, j]) * third

    return run


def _coars(h, w):
    @_loops
    def run(x, y, out):
        weight = x.dtype.type(0.04)
        for i in prange(h):
            for j in range(w):
                a, b, c = x[i, j] * x[i, j], y[i, j] * y[i, j], x[i, j] * y[i, j]
                t = a + b
                out[i, j] = a * b - c * c - weight * t * t

    return run


def _loops_of(make):
    return lambda task: calls(make(**task.problem.sizes))(task)


FORMULATIONS = {
    "numba": {
        kernel: {"loops": _loops_of(make)}
        for kernel, make in {
            "mm": _mm,
            "tmm": _tmm,
            "bmm": _bmm,
            "gconv": _gconv,
            "gconv_dw": _gconv,
            "mttkrp": _mttkrp,
            "sddmm": _sddmm,
            "interp": _interp,
            "helm": _helm,
            "blur": _blur,
            "coars": _coars,
        }.items()
    }
}
