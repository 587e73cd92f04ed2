"""PolyBench for Numba: the loops of `polybench.c`, threads on the outermost loop that may have them."""

# mypy: ignore-errors

import numpy as np
from numba import njit, prange

from ..polybench import STEPS
from ..ported import ALPHA, BETA
from . import calls

_loops = njit(parallel=True, fastmath=True)
_alone = njit(fastmath=True)
_SMOOTHING = 0.25


@_loops
def _scaled(x, y, factor, scale, out):
    """out = factor x y + scale out."""
    for i in prange(len(out)):
        for j in range(out.shape[1]):
            out[i, j] *= scale
        for k in range(len(y)):
            a = factor * x[i, k]
            for j in range(out.shape[1]):
                out[i, j] += a * y[k, j]


def _gemm(a, b, c, out):
    out[...] = c
    _scaled(a, b, out.dtype.type(ALPHA), out.dtype.type(BETA), out)


def _k2mm(a, b, c, d, out):
    one, t = out.dtype.type, np.zeros((len(a), b.shape[1]), out.dtype)
    _scaled(a, b, one(ALPHA), one(0), t)
    out[...] = d
    _scaled(t, c, one(1), one(BETA), out)


def _k3mm(a, b, c, d, out):
    one = out.dtype.type
    e, f = (np.zeros((len(x), y.shape[1]), out.dtype) for x, y in ((a, b), (c, d)))
    _scaled(a, b, one(1), one(0), e)
    _scaled(c, d, one(1), one(0), f)
    out[...] = 0
    _scaled(e, f, one(1), one(0), out)


@_loops
def _rows(a, x, out):
    for i in prange(len(a)):
        t = a[i, 0] * x[0]
        for j in range(1, len(x)):
            t += a[i, j] * x[j]
        out[i] = t


@_loops
def _columns(a, x, out):
    """out += x a, in blocks of columns."""
    width = 64
    for block in prange((len(out) + width - 1) // width):
        begin = block * width
        end = min(begin + width, len(out))
        for i in range(len(a)):
            t = x[i]
            for j in range(begin, end):
                out[j] += t * a[i, j]


def _atax(a, x, out):
    t = np.empty(len(a), a.dtype)
    _rows(a, x, t)
    out[...] = 0
    _columns(a, t, out)


def _bicg(a, p, r, s, q):
    s[...] = 0
    _columns(a, r, s)
    _rows(a, p, q)


@_loops
def _doitgen(a, c, out):
    for i in prange(len(a)):
        for j in range(a.shape[1]):
            out[i, j, :] = 0
            for s in range(len(c)):
                t = a[i, j, s]
                for k in range(c.shape[1]):
                    out[i, j, k] += t * c[s, k]


@_loops
def _updated(a, u1, v1, u2, v2, b):
    for i in prange(len(a)):
        for j in range(a.shape[1]):
            b[i, j] = a[i, j] + u1[i] * v1[j] + u2[i] * v2[j]


def _gemver(a, u1, v1, u2, v2, y, z, b, x, w):
    one = a.dtype.type
    _updated(a, u1, v1, u2, v2, b)
    x[...] = 0
    _columns(b, y, x)
    x *= one(BETA)
    x += z
    _rows(b, x, w)
    w *= one(ALPHA)


@_loops
def _gesummv(a, b, x, out):
    for i in prange(len(a)):
        s, t = a[i, 0] * x[0], b[i, 0] * x[0]
        for j in range(1, len(x)):
            s += a[i, j] * x[j]
            t += b[i, j] * x[j]
        out[i] = ALPHA * s + BETA * t


def _mvt(x1, x2, y1, y2, a, out1, out2):
    _rows(a, y1, out1)
    out1 += x1
    out2[...] = x2
    _columns(a, y2, out2)


@_loops
def _symmetric(a, b, alpha, out):
    for i in prange(len(a)):
        for k in range(len(a)):
            t = alpha * (a[i, k] if k <= i else a[k, i])
            for j in range(b.shape[1]):
                out[i, j] += t * b[k, j]


def _symm(a, b, c, out):
    out[...] = out.dtype.type(BETA) * c
    _symmetric(a, b, out.dtype.type(ALPHA), out)


@_loops
def _syrk(a, c, out):
    for i in prange(len(c)):
        for j in range(i + 1):
            t = a[i, 0] * a[j, 0]
            for k in range(1, a.shape[1]):
                t += a[i, k] * a[j, k]
            out[i, j] = ALPHA * t + BETA * c[i, j]
        for j in range(i + 1, len(c)):
            out[i, j] = c[i, j]


@_loops
def _syr2k(a, b, c, out):
    for i in prange(len(c)):
        for j in range(i + 1):
            t = a[i, 0] * b[j, 0] + b[i, 0] * a[j, 0]
            for k in range(1, a.shape[1]):
                t += a[i, k] * b[j, k] + b[i, k] * a[j, k]
            out[i, j] = ALPHA * t + BETA * c[i, j]
        for j in range(i + 1, len(c)):
            out[i, j] = c[i, j]


@_loops
def _trmm(a, b, out):
    for i in prange(len(a)):
        for j in range(b.shape[1]):
            out[i, j] = b[i, j]
        for k in range(i + 1, len(a)):
            t = a[k, i]
            for j in range(b.shape[1]):
                out[i, j] += t * b[k, j]
        for j in range(b.shape[1]):
            out[i, j] *= ALPHA


@_loops
def _products_of_columns(x, scale, out):
    n, m = x.shape
    for i in prange(m):
        for j in range(i, m):
            out[i, j] = 0
        for k in range(n):
            t = x[k, i]
            for j in range(i, m):
                out[i, j] += t * x[k, j]
        for j in range(i, m):
            out[i, j] *= scale
    for i in prange(m):
        for j in range(i):
            out[i, j] = out[j, i]


def _covariance(data, out):
    x = data - data.mean(axis=0)
    _products_of_columns(x, out.dtype.type(1 / (len(data) - 1)), out)


def _correlation(data, out):
    x, deviation = data - data.mean(axis=0), data.std(axis=0)
    deviation[deviation <= 0.1] = 1
    x /= np.sqrt(len(data)).astype(data.dtype) * deviation
    _products_of_columns(x, out.dtype.type(1), out)
    np.fill_diagonal(out, 1)


@_loops
def _cholesky(a, out):
    out[...] = 0
    for j in range(len(a)):
        d = a[j, j]
        for k in range(j):
            d -= out[j, k] * out[j, k]
        d = np.sqrt(d)
        out[j, j] = d
        for i in prange(j + 1, len(a)):
            t = a[i, j]
            for k in range(j):
                t -= out[i, k] * out[j, k]
            out[i, j] = t / d


@_loops
def _lu(a, out):
    out[...] = a
    for k in range(len(a)):
        for i in prange(k + 1, len(a)):
            out[i, k] /= out[k, k]
            t = out[i, k]
            for j in range(k + 1, len(a)):
                out[i, j] -= t * out[k, j]


@_alone
def _substituted(f, b, x):
    n = len(b)
    for i in range(n):
        t = b[i]
        for j in range(i):
            t -= f[i, j] * x[j]
        x[i] = t
    for i in range(n - 1, -1, -1):
        t = x[i]
        for j in range(i + 1, n):
            t -= f[i, j] * x[j]
        x[i] = t / f[i, i]


def _ludcmp(a, b, out):
    f = np.empty_like(a)
    _lu(a, f)
    _substituted(f, b, out)


@_alone
def _trisolv(a, b, out):
    for i in range(len(b)):
        t = b[i]
        for j in range(i):
            t -= a[i, j] * out[j]
        out[i] = t / a[i, i]


@_alone
def _durbin(r, out):
    z = np.empty_like(r)
    alpha, beta = r.dtype.type(0), r.dtype.type(1)
    for k in range(len(r)):
        beta *= 1 - alpha * alpha
        t = r[k]
        for i in range(k):
            t += r[k - 1 - i] * out[i]
        alpha = -t / beta
        for i in range(k):
            z[i] = out[i] + alpha * out[k - 1 - i]
        for i in range(k):
            out[i] = z[i]
        out[k] = alpha


@_loops
def _gramschmidt(a, q, r):
    m, n = a.shape
    q[...] = a
    r[...] = 0
    for k in range(n):
        t = q[0, k] * q[0, k]
        for i in range(1, m):
            t += q[i, k] * q[i, k]
        length = np.sqrt(t)
        r[k, k] = length
        for i in range(m):
            q[i, k] /= length
        for j in prange(k + 1, n):
            s = q[0, k] * q[0, j]
            for i in range(1, m):
                s += q[i, k] * q[i, j]
            r[k, j] = s
            for i in range(m):
                q[i, j] -= q[i, k] * s


@_loops
def _recursive(x, a1, a2, a3, a4, b1, b2, out):
    """Along rows, from the left and from the right."""
    h, w = x.shape
    for i in prange(h):
        before = y1 = y2 = x[i, 0] * 0
        for j in range(w):
            y = a1 * x[i, j] + a2 * before + b1 * y1 + b2 * y2
            out[i, j] = y
            before, y2, y1 = x[i, j], y1, y
        x1 = x2 = y1 = y2 = x[i, 0] * 0
        for j in range(w - 1, -1, -1):
            y = a3 * x1 + a4 * x2 + b1 * y1 + b2 * y2
            out[i, j] += y
            x2, x1, y2, y1 = x1, x[i, j], y1, y


def _deriche(x, out):
    e = np.exp(-_SMOOTHING)
    k = (1 - e) ** 2 / (1 + 2 * _SMOOTHING * e - np.exp(2 * _SMOOTHING))
    given = k, k * e * (_SMOOTHING - 1), k * e * (_SMOOTHING + 1), -k * e * e, 2**-_SMOOTHING, -e * e
    given = [x.dtype.type(one) for one in given]
    t = np.empty_like(x).T
    _recursive(x.T, *given, t)
    _recursive(t.T, *given, out)


@_loops
def _floyd_warshall(d, out):
    out[...] = d
    for k in range(len(d)):
        for i in prange(len(d)):
            t = out[i, k]
            for j in range(len(d)):
                out[i, j] = min(out[i, j], t + out[k, j])


@_loops
def _nussinov(bases, out):
    n = len(bases)
    out[...] = 0
    for d in range(1, n):
        for i in prange(n - d):
            j = i + d
            most = out[i + 1, j - 1]
            if d > 1 and bases[i] + bases[j] == 3:
                most += 1
            for k in range(i, j):
                most = max(most, out[i, k] + out[k + 1, j])
            out[i, j] = most


@_loops
def _half(u, a, d, v):
    m, n = u.shape
    b = 1 - 2 * a
    p = np.empty(m, u.dtype)
    p[0] = 0
    for j in range(1, m - 1):
        p[j] = -a / (a * p[j - 1] + b)
    v[...] = 1
    for i in prange(1, n - 1):
        q = np.empty(m, u.dtype)
        q[0] = 1
        for j in range(1, m - 1):
            t = (1 + 2 * d) * u[j, i] - d * (u[j, i - 1] + u[j, i + 1])
            q[j] = (t - a * q[j - 1]) / (a * p[j - 1] + b)
        for j in range(m - 2, 0, -1):
            v[j, i] = p[j] * v[j + 1, i] + q[j]


def _adi(u, out):
    one = u.dtype.type
    a, d, v = one(-0.75), one(-0.5), np.empty_like(u)
    for step in range(STEPS):
        _half(out if step else u, a, d, v)
        _half(v.T, d, a, out.T)


@_loops
def _fdtd_2d(ex0, ey0, hz0, border, ex, ey, hz):
    ex[...], ey[...], hz[...] = ex0, ey0, hz0
    h, w = ex.shape
    for s in range(len(border)):
        ey[0, :] = border[s]
        for i in prange(1, h):
            for j in range(w):
                ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in prange(h):
            for j in range(1, w):
                ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in prange(h - 1):
            for j in range(w - 1):
                hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


@_loops
def _heat_3d_sweep(u, v):
    d, h, w = u.shape
    for i in prange(1, d - 1):
        for j in range(1, h - 1):
            for k in range(1, w - 1):
                around = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
                around += u[i, j, k - 1] + u[i, j, k + 1]
                v[i, j, k] = u[i, j, k] + 0.125 * (around - 6 * u[i, j, k])


@_loops
def _jacobi_1d_sweep(x, y):
    for i in prange(1, len(x) - 1):
        y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3


@_loops
def _jacobi_2d_sweep(x, y):
    h, w = x.shape
    for i in prange(1, h - 1):
        for j in range(1, w - 1):
            y[i, j] = 0.2 * (x[i, j] + x[i, j - 1] + x[i, j + 1] + x[i + 1, j] + x[i - 1, j])


def _swept(sweep):
    def run(x, out):
        other = x.copy()
        out[...] = x
        for _ in range(STEPS // 2):
            sweep(out, other)
            sweep(other, out)

    return run


@_alone
def _seidel_2d(x, out):
    out[...] = x
    h, w = x.shape
    for _ in range(STEPS):
        for i in range(1, h - 1):
            for j in range(1, w - 1):
                t = out[i - 1, j - 1] + out[i - 1, j] + out[i - 1, j + 1] + out[i, j - 1] + out[i, j] + out[i, j + 1]
                out[i, j] = (t + out[i + 1, j - 1] + out[i + 1, j] + out[i + 1, j + 1]) / 9


def _spread(function):
    """Several results as arguments of their own."""
    return lambda *arrays: function(*arrays[:-1], *arrays[-1]) if isinstance(arrays[-1], tuple) else function(*arrays)


TABLE = {
    name: {"loops": calls(_spread(function))}
    for name, function in {
        "gemm": _gemm,
        "2mm": _k2mm,
        "3mm": _k3mm,
        "atax": _atax,
        "bicg": _bicg,
        "doitgen": _doitgen,
        "gemver": _gemver,
        "gesummv": _gesummv,
        "mvt": _mvt,
        "symm": _symm,
        "syrk": _syrk,
        "syr2k": _syr2k,
        "trmm": _trmm,
        "covariance": _covariance,
        "correlation": _correlation,
        "cholesky": _cholesky,
        "lu": _lu,
        "ludcmp": _ludcmp,
        "trisolv": _trisolv,
        "durbin": _durbin,
        "gramschmidt": _gramschmidt,
        "deriche": _deriche,
        "floyd-warshall": _floyd_warshall,
        "nussinov": _nussinov,
        "adi": _adi,
        "fdtd-2d": _fdtd_2d,
        "heat-3d": _swept(_heat_3d_sweep),
        "jacobi-1d": _swept(_jacobi_1d_sweep),
        "jacobi-2d": _swept(_jacobi_2d_sweep),
        "seidel-2d": _seidel_2d,
    }.items()
}
