"""Numba: loops as one writes them for it, unit stride innermost, threads outermost; sizes are constants."""

# mypy: ignore-errors

import numba
import numpy as np
from numba import njit, prange

from ..small import GROUPS, POOL, WINDOWS, Window
from . import calls, polybench_numba

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
    """All three modes of an element; matrices are transposed, so that k has unit stride everywhere."""

    @njit(fastmath=True, inline="always")
    def apply(at, bt, ct, u, t1, t2, out):
        for ab in range(n * n):
            for k in range(n):
                t1[ab * n + k] = 0
            for c in range(n):
                x = u[ab * n + c]
                for k in range(n):
                    t1[ab * n + k] += x * ct[c, k]
        for a in range(n):
            for j in range(n):
                for k in range(n):
                    t2[(a * n + j) * n + k] = 0
                for b in range(n):
                    x = bt[b, j]
                    for k in range(n):
                        t2[(a * n + j) * n + k] += x * t1[(a * n + b) * n + k]
        for i in range(n):
            for jk in range(n * n):
                out[i * n * n + jk] = 0
            for a in range(n):
                x = at[a, i]
                for jk in range(n * n):
                    out[i * n * n + jk] += x * t2[a * n * n + jk]

    return apply


# Elements that a thread takes at a time.
_BATCH = 50


def _kron(e, n):
    apply, cube = _modes(n), n**3

    @_loops
    def elements(at, bt, ct, u, out):
        for block in prange((e + _BATCH - 1) // _BATCH):
            t1, t2 = np.empty(cube, out.dtype), np.empty(cube, out.dtype)
            for z in range(block * _BATCH, min((block + 1) * _BATCH, e)):
                apply(at, bt, ct, u[z], t1, t2, out[z])

    def run(a, b, c, u, out):
        elements(a.T.copy(), b.T.copy(), c.T.copy(), u.reshape(e, cube), out.reshape(e, cube))

    return run


def _interp(e, n):
    run = _kron(e, n)
    return lambda p, u, out: run(p, p, p, u, out)


def _helm(e, n):
    apply, cube = _modes(n), n**3

    @_loops
    def elements(s, st, d, u, out):
        for block in prange((e + _BATCH - 1) // _BATCH):
            t1, t2, t3 = np.empty(cube, out.dtype), np.empty(cube, out.dtype), np.empty(cube, out.dtype)
            for z in range(block * _BATCH, min((block + 1) * _BATCH, e)):
                apply(st, st, st, u[z], t1, t2, t3)
                for i in range(cube):
                    t3[i] *= d[i]
                apply(s, s, s, t3, t1, t2, out[z])

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


_SPACE, _TAPS = ("d", "h", "w"), ("r", "p", "q")


def _convolution(window):
    """Any of them, as one with three axes: an axis that is not there has one place and one tap."""

    def make(**sizes):
        depthwise = "f" not in sizes
        results, channels = (sizes["c"], 1) if depthwise else (sizes["f"], sizes["c"])
        count = sizes["n"] * results
        space, taps = [sizes.get(axis, 1) for axis in _SPACE], [sizes.get(axis, 1) for axis in _TAPS]
        windows = [window if axis in sizes else Window() for axis in _SPACE]
        places = [one.places(*of) for one, of in zip(windows, zip(space, taps, strict=True), strict=True)]
        (d, h, w), (r, p, q), (depth, height, width) = space, taps, places
        step, step_y, step_x = (one.stride for one in windows)
        away, away_y, away_x = (one.dilation for one in windows)
        pad, pad_y, pad_x = (one.padding for one in windows)

        @_loops
        def loops(x, weights, out):
            for at in prange(count):
                z, o = at // results, at % results
                for k in range(depth):
                    for y in range(height):
                        row = out[z, o, k, y]
                        row[:] = 0
                        for channel in range(channels):
                            for t in range(r):
                                a = k * step + t * away - pad
                                if a < 0 or a >= d:
                                    continue
                                for u in range(p):
                                    b = y * step_y + u * away_y - pad_y
                                    if b < 0 or b >= h:
                                        continue
                                    for v in range(q):
                                        shift = v * away_x - pad_x
                                        begin = max(0, -(shift // step_x))
                                        end = min(width, (w - 1 - shift) // step_x + 1)
                                        weight = weights[o, channel, t, u, v]
                                        image = x[z, o if depthwise else channel, a, b, begin * step_x + shift :]
                                        for i in range(end - begin):
                                            row[begin + i] += image[step_x * i] * weight

        def run(x, weights, out):
            loops(
                x.reshape(-1, x.shape[1], *space),
                weights.reshape(results, channels, *taps),
                out.reshape(-1, results, *places),
            )

        return run

    return make


def _max_pool(n, c, h, w):
    window = WINDOWS["max_pool"]
    step, height, width = window.stride, window.places(h, POOL), window.places(w, POOL)

    @_loops
    def run(x, out):
        for at in prange(n * c):
            z, k = at // c, at % c
            for y in range(height):
                for i in range(width):
                    most = x[z, k, step * y, step * i]
                    for u in range(POOL):
                        for v in range(POOL):
                            most = max(most, x[z, k, step * y + u, step * i + v])
                    out[z, k, y, i] = most

    return run


def _small_products(b, n):
    @_loops
    def run(x, y, out):
        for z in prange(b):
            for i in range(n):
                for j in range(n):
                    t = x[z, i, 0] * y[z, 0, j]
                    for k in range(1, n):
                        t += x[z, i, k] * y[z, k, j]
                    out[z, i, j] = t

    return run


def _kalman(b, n):
    @_loops
    def loops(f, q, x, p, states, covariances):
        for block in prange((b + _BATCH - 1) // _BATCH):
            t = np.empty((n, n), p.dtype)
            for z in range(block * _BATCH, min((block + 1) * _BATCH, b)):
                for i in range(n):
                    s = f[i, 0] * x[z, 0]
                    for k in range(1, n):
                        s += f[i, k] * x[z, k]
                    states[z, i] = s
                    for j in range(n):
                        s = f[i, 0] * p[z, 0, j]
                        for k in range(1, n):
                            s += f[i, k] * p[z, k, j]
                        t[i, j] = s
                for i in range(n):
                    for j in range(n):
                        s = q[i, j]
                        for k in range(n):
                            s += t[i, k] * f[j, k]
                        covariances[z, i, j] = s

    return lambda f, q, x, p, out: loops(f, q, x, p, *out)


def _rotation(b):
    @_loops
    def run(q, v, out):
        for i in prange(len(q)):
            w, x, y, z = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
            a, b, c = v[i, 0], v[i, 1], v[i, 2]
            r, s, t = y * c - z * b, z * a - x * c, x * b - y * a
            r, s, t = r + r, s + s, t + t
            out[i, 0] = a + w * r + (y * t - z * s)
            out[i, 1] = b + w * s + (z * r - x * t)
            out[i, 2] = c + w * t + (x * s - y * r)

    return run


def _loops_of(make):
    return lambda task: calls(make(**task.problem.sizes))(task)


_SMALL = {
    **dict.fromkeys(GROUPS["kron"], _kron),
    **{name: _convolution(window) for name, window in WINDOWS.items()},
    "max_pool": _max_pool,
    "bmm3": _small_products,
    "bmm4": _small_products,
    "kalman": _kalman,
    "rotation": _rotation,
}
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
            **_SMALL,
        }.items()
    }
    | polybench_numba.TABLE
}
