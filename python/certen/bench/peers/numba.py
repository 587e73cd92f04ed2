"""Numba: loops as one writes them for it, unit stride innermost, threads outermost; sizes are constants."""

# mypy: ignore-errors

import numba
import numpy as np
from numba import njit, prange

from .. import sweep
from ..small import GROUPS, POOL, WINDOWS, Window
from ..sweep import at_each_size
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


# Functions that are made part of the loops that call them.
_part = njit(fastmath=True, inline="always")


def _marched(make, count):
    """Steps from inputs to results and back to spare arrays; states come first, then what is fixed."""

    def formulation(task):
        sizes = dict(task.problem.sizes)
        steps = sizes.pop("steps")
        step = make(**sizes)

        @njit
        def run(states, fixed, out, spare):
            now = states
            for left in range(steps, 0, -1):
                new = out if left % 2 else spare
                step(now, new, fixed)
                now = new

        out = task.out if isinstance(task.out, tuple) else (task.out,)
        spare = tuple(map(np.empty_like, out))
        # A tuple of arrays has to have an element, so that it has a type.
        states, fixed = tuple(task.inputs[:count]), tuple(task.inputs[count:] or task.inputs[:1])

        def call():
            run(states, fixed, out, spare)
            return task.out

        return call

    return formulation


def _heat3d(d, h, w):
    @_loops
    def step(now, new, fixed):
        u, v = now[0], new[0]
        c = u.dtype.type(sweep.HEAT)
        middle = u.dtype.type(6)
        for i in prange(d):
            for j in range(h):
                if i == 0 or i == d - 1 or j == 0 or j == h - 1:
                    for k in range(w):
                        v[i, j, k] = u[i, j, k]
                else:
                    v[i, j, 0], v[i, j, w - 1] = u[i, j, 0], u[i, j, w - 1]
                    for k in range(1, w - 1):
                        around = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
                        around += u[i, j, k - 1] + u[i, j, k + 1]
                        v[i, j, k] = u[i, j, k] + c * (around - middle * u[i, j, k])

    return step


def _jacobi2d(h, w):
    @_loops
    def step(now, new, fixed):
        u, v = now[0], new[0]
        c = u.dtype.type(0.2)
        for i in prange(h):
            if i == 0 or i == h - 1:
                v[i] = u[i]
            else:
                v[i, 0], v[i, w - 1] = u[i, 0], u[i, w - 1]
                for j in range(1, w - 1):
                    v[i, j] = c * (u[i, j] + u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])

    return step


def _fdtd2d(h, w):
    """Two functions: Numba makes one loop of both, although the second reads what other rows of the first give."""

    @_loops
    def magnetic(e, p, q, new_p, new_q):
        c = e.dtype.type(sweep.COURANT)
        for i in prange(h):
            for j in range(w - 1):
                new_p[i, j] = p[i, j] - c * (e[i, j + 1] - e[i, j])
            if i < h - 1:
                for j in range(w):
                    new_q[i, j] = q[i, j] + c * (e[i + 1, j] - e[i, j])

    @_loops
    def electric(e, p, q, eps, new_e):
        c = e.dtype.type(sweep.COURANT)
        for i in prange(h):
            if i == 0 or i == h - 1:
                new_e[i] = e[i]
            else:
                new_e[i, 0], new_e[i, w - 1] = e[i, 0], e[i, w - 1]
                for j in range(1, w - 1):
                    turn = q[i, j] - q[i - 1, j] - p[i, j] + p[i, j - 1]
                    new_e[i, j] = e[i, j] + c / eps[i, j] * turn

    @njit
    def step(now, new, fixed):
        magnetic(now[0], now[1], now[2], new[1], new[2])
        electric(now[0], new[1], new[2], fixed[0], new[0])

    return step


def _wave2d(task):
    """The state before the last is overwritten, element by element."""
    h, w, steps = (task.problem.sizes[name] for name in ("h", "w", "steps"))

    @_loops
    def step(a, b, new):
        c = b.dtype.type(sweep.WAVE)
        keep = b.dtype.type(2 - 4 * sweep.WAVE)
        for i in prange(h):
            if i == 0 or i == h - 1:
                new[i] = b[i]
            else:
                new[i, 0], new[i, w - 1] = b[i, 0], b[i, w - 1]
                for j in range(1, w - 1):
                    around = b[i - 1, j] + b[i + 1, j] + b[i, j - 1] + b[i, j + 1]
                    new[i, j] = keep * b[i, j] - a[i, j] + c * around

    @njit
    def run(a, b, before, now):
        if steps == 1:
            before[:] = b
        for left in range(steps, 0, -1):
            new = now if left % 2 else before
            step(a, b, new)
            a, b = b, new

    def call():
        run(*task.inputs, *task.out)
        return task.out

    return call


def _shallow_water(n):
    @_loops
    def step(now, new, fixed):
        (h, q), (new_h, new_q) = now, new
        c, g, half = h.dtype.type(sweep.CELL), h.dtype.type(4.905), h.dtype.type(0.5)
        for block in prange((n + 4095) // 4096):
            begin, end = block * 4096, min((block + 1) * 4096, n)
            for i in range(max(begin, 1), min(end, n - 1)):
                b, a = h[i - 1], h[i + 1]
                r, s = q[i - 1], q[i + 1]
                new_h[i] = half * (b + c * r + a - c * s)
                new_q[i] = half * (r + c * (r * r / b + g * b * b) + s - c * (s * s / a + g * a * a))
        for i in (0, n - 1):
            b, a = h[(i - 1) % n], h[(i + 1) % n]
            r, s = q[(i - 1) % n], q[(i + 1) % n]
            new_h[i] = half * (b + c * r + a - c * s)
            new_q[i] = half * (r + c * (r * r / b + g * b * b) + s - c * (s * s / a + g * a * a))

    return step


def _gray_scott(h, w):
    @_loops
    def step(now, new, fixed):
        (u, v), (new_u, new_v) = now, new
        du, dv = u.dtype.type(sweep.DIFFUSION[0]), u.dtype.type(sweep.DIFFUSION[1])
        feed, kill = u.dtype.type(sweep.FEED), u.dtype.type(sweep.FEED + sweep.KILL)
        one, four = u.dtype.type(1), u.dtype.type(4)
        for i in prange(h):
            up, down = (i - 1 if i > 0 else h - 1), (i + 1 if i < h - 1 else 0)
            for end in (0, w - 1):
                left, right = (end - 1 if end > 0 else w - 1), (end + 1 if end < w - 1 else 0)
                x, y = u[i, end], v[i, end]
                reaction = x * y * y
                around = u[up, end] + u[down, end] + u[i, left] + u[i, right] - four * x
                new_u[i, end] = x + du * around - reaction + feed * (one - x)
                around = v[up, end] + v[down, end] + v[i, left] + v[i, right] - four * y
                new_v[i, end] = y + dv * around + reaction - kill * y
            for j in range(1, w - 1):
                x, y = u[i, j], v[i, j]
                reaction = x * y * y
                around = u[up, j] + u[down, j] + u[i, j - 1] + u[i, j + 1] - four * x
                new_u[i, j] = x + du * around - reaction + feed * (one - x)
                around = v[up, j] + v[down, j] + v[i, j - 1] + v[i, j + 1] - four * y
                new_v[i, j] = y + dv * around + reaction - kill * y

    return step


def _floyd_warshall(n):
    @_loops
    def run(d, out):
        for i in prange(n):
            out[i] = d[i]
        for k in range(n):
            row = out[k].copy()
            for i in prange(n):
                x = out[i, k]
                for j in range(n):
                    out[i, j] = min(out[i, j], x + row[j])

    return run


def _lu(n):
    @_loops
    def run(a, out):
        for i in prange(n):
            out[i] = a[i]
        for k in range(n):
            row = out[k].copy()
            for i in prange(n - k - 1):
                at = k + 1 + i
                x = out[at, k] / row[k]
                out[at, k] = x
                for j in range(k + 1, n):
                    out[at, j] -= x * row[j]

    return run


def _lu_blocks(n, width=32):
    """Some columns, then the product of what they did to the rest."""

    @_loops
    def columns(out, begin, end):
        for k in range(begin, end):
            row = out[k, begin:end].copy()
            for i in prange(n - k - 1):
                at = k + 1 + i
                x = out[at, k] / row[k - begin]
                out[at, k] = x
                for j in range(k + 1, end):
                    out[at, j] -= x * row[j - begin]
        for k in range(begin, end):
            row = out[k, end:].copy()
            for i in range(k + 1, end):
                x = out[i, k]
                for j in range(n - end):
                    out[i, end + j] -= x * row[j]

    @njit
    def run(a, out):
        out[:] = a
        for begin in range(0, n, width):
            end = min(begin + width, n)
            columns(out, begin, end)
            if end < n:
                out[end:, end:] -= np.dot(out[end:, begin:end].copy(), out[begin:end, end:].copy())

    return run


def _nbody(n):
    @_loops
    def run(x, mass, out):
        soft = x.dtype.type(sweep.SOFTENING)
        columns = x.T.copy()
        for i in prange(n):
            p, q, r = x[i, 0], x[i, 1], x[i, 2]
            a, b, c = soft - soft, soft - soft, soft - soft
            for j in range(n):
                u, v, w = columns[0, j] - p, columns[1, j] - q, columns[2, j] - r
                square = u * u + v * v + w * w + soft
                weight = mass[j] / (square * np.sqrt(square))
                a += weight * u
                b += weight * v
                c += weight * w
            out[i, 0], out[i, 1], out[i, 2] = a, b, c

    return run


def _mandelbrot(h, w):
    """Until a point escapes."""
    iterations = sweep.ITERATIONS

    # What is faster with other rounding would give other counts.
    @njit(parallel=True)
    def run(re, im, out):
        zero = re.dtype.type(0)
        four = re.dtype.type(4)
        for i in prange(h):
            for j in range(w):
                x, y, count = zero, zero, 0
                while count < iterations:
                    xx, yy = x * x, y * y
                    if xx + yy > four:
                        break
                    y = x * y
                    y = y + y + im[i]
                    x = xx - yy + re[j]
                    count += 1
                out[i, j] = count

    return run


def _mandelbrot_lanes(h, w):
    """All iterations for some neighbours at a time, which vectors can do."""
    iterations, lanes = sweep.ITERATIONS, 32

    @njit(parallel=True)
    def run(re, im, out):
        four, one, zero = re.dtype.type(4), re.dtype.type(1), re.dtype.type(0)
        for i in prange(h):
            x, y, count = np.empty(lanes, re.dtype), np.empty(lanes, re.dtype), np.empty(lanes, re.dtype)
            for begin in range(0, w, lanes):
                length = min(lanes, w - begin)
                for at in range(lanes):
                    x[at], y[at], count[at] = zero, zero, zero
                for _ in range(iterations):
                    for at in range(length):
                        xx, yy, xy = x[at] * x[at], y[at] * y[at], x[at] * y[at]
                        inside = xx + yy <= four
                        count[at] += one if inside else zero
                        x[at] = xx - yy + re[begin + at] if inside else x[at]
                        y[at] = xy + xy + im[i] if inside else y[at]
                for at in range(length):
                    out[i, begin + at] = count[at]

    return run


def _unsharp(h, w):
    @_loops
    def run(x, out):
        amount, threshold = x.dtype.type(sweep.AMOUNT), x.dtype.type(sweep.THRESHOLD)
        two, weight = x.dtype.type(2), x.dtype.type(1 / 16)
        zero, one = x.dtype.type(0), x.dtype.type(1)
        for i in prange(h - 2):
            rows = np.empty(w, x.dtype)
            for j in range(w):
                rows[j] = x[i, j] + two * x[i + 1, j] + x[i + 2, j]
            for j in range(w - 2):
                pixel = x[i + 1, j + 1]
                detail = pixel - weight * (rows[j] + two * rows[j + 1] + rows[j + 2])
                sharp = min(max(pixel + amount * detail, zero), one)
                out[i, j] = sharp if abs(detail) > threshold else pixel

    return run


def _harris(h, w):
    height, width, strip = h - 4, w - 4, 32

    @_loops
    def run(x, out):
        two, k = x.dtype.type(2), x.dtype.type(sweep.HARRIS)
        for block in prange((height + strip - 1) // strip):
            begin = block * strip
            end = min(begin + strip, height)
            products = np.empty((3, strip + 2, w - 2), x.dtype)
            sums = np.empty((3, w - 2), x.dtype)
            for i in range(begin, end + 2):
                for j in range(w - 2):
                    a = x[i + 2, j] + two * x[i + 2, j + 1] + x[i + 2, j + 2]
                    a -= x[i, j] + two * x[i, j + 1] + x[i, j + 2]
                    b = x[i, j + 2] + two * x[i + 1, j + 2] + x[i + 2, j + 2]
                    b -= x[i, j] + two * x[i + 1, j] + x[i + 2, j]
                    at = i - begin
                    products[0, at, j], products[1, at, j], products[2, at, j] = a * a, b * b, a * b
            for i in range(end - begin):
                for which in range(3):
                    for j in range(w - 2):
                        sums[which, j] = products[which, i, j] + products[which, i + 1, j] + products[which, i + 2, j]
                for j in range(width):
                    aa = sums[0, j] + sums[0, j + 1] + sums[0, j + 2]
                    bb = sums[1, j] + sums[1, j + 1] + sums[1, j + 2]
                    ab = sums[2, j] + sums[2, j + 1] + sums[2, j + 2]
                    out[begin + i, j] = aa * bb - ab * ab - k * (aa + bb) * (aa + bb)

    return run


def _bilateral(h, w):
    @_loops
    def run(x, out):
        value = x.dtype.type(-sweep.VALUE)
        near = np.empty((5, 5), x.dtype)
        for k in range(5):
            for m in range(5):
                near[k, m] = -sweep.SPACE * ((k - 2) * (k - 2) + (m - 2) * (m - 2))
        for i in prange(h - 4):
            total, weights = np.zeros(w - 4, x.dtype), np.zeros(w - 4, x.dtype)
            for k in range(5):
                for m in range(5):
                    for j in range(w - 4):
                        y = x[i + k, j + m]
                        d = y - x[i + 2, j + 2]
                        weight = np.exp(near[k, m] + value * d * d)
                        total[j] += weight * y
                        weights[j] += weight
            for j in range(w - 4):
                out[i, j] = total[j] / weights[j]

    return run


def _pyramid(h, w):
    height, width = sweep.halves(h), sweep.halves(w)
    outer, inner, middle = sweep.G[:3]

    @_loops
    def run(x, out):
        a, b, c = x.dtype.type(outer), x.dtype.type(inner), x.dtype.type(middle)
        for i in prange(height):
            rows = np.empty(w, x.dtype)
            k = 2 * i
            for j in range(w):
                rows[j] = a * (x[k, j] + x[k + 4, j]) + b * (x[k + 1, j] + x[k + 3, j]) + c * x[k + 2, j]
            for j in range(width):
                m = 2 * j
                out[i, j] = a * (rows[m] + rows[m + 4]) + b * (rows[m + 1] + rows[m + 3]) + c * rows[m + 2]

    return run


@_part
def _exponentials(x, out):
    """Those of a row, without what is greatest, and their sum."""
    most = x[0]
    for j in range(1, len(x)):
        most = max(most, x[j])
    total = most - most
    for j in range(len(x)):
        t = np.exp(x[j] - most)
        out[j] = t
        total += t
    return total


def _softmax(t, n):
    @_loops
    def run(x, out):
        for i in prange(t):
            scale = x.dtype.type(1) / _exponentials(x[i], out[i])
            for j in range(n):
                out[i, j] *= scale

    return run


def _attention(h, t, d):
    @_loops
    def run(q, k, v, out):
        root = q.dtype.type(d**-0.5)
        for a in prange(h):
            scores = np.dot(q[a], k[a].T)
            for i in range(t):
                row = scores[i]
                for j in range(t):
                    row[j] *= root
                scale = q.dtype.type(1) / _exponentials(row, row)
                for j in range(t):
                    row[j] *= scale
            out[a] = np.dot(scores, v[a])

    return run


def _layer_norm(t, n):
    @_loops
    def run(x, gamma, beta, out):
        eps, one = x.dtype.type(sweep.EPSILON), x.dtype.type(1)
        for i in prange(t):
            total = eps - eps
            for j in range(n):
                total += x[i, j]
            mean = total / x.dtype.type(n)
            total = eps - eps
            for j in range(n):
                d = x[i, j] - mean
                total += d * d
            scale = one / np.sqrt(total / x.dtype.type(n) + eps)
            for j in range(n):
                out[i, j] = (x[i, j] - mean) * scale * gamma[j] + beta[j]

    return run


def _batch_norm(n, c, h, w):
    @_loops
    def loops(x, mu, var, gamma, beta, out):
        eps = x.dtype.type(sweep.EPSILON)
        for at in prange(n * c):
            b, k = at // c, at % c
            scale = gamma[k] / np.sqrt(var[k] + eps)
            shift = beta[k] - mu[k] * scale
            for i in range(h * w):
                out[b, k, i] = x[b, k, i] * scale + shift

    return lambda x, mu, var, gamma, beta, out: loops(
        x.reshape(n, c, h * w), mu, var, gamma, beta, out.reshape(n, c, h * w)
    )


def _group_norm(n, g, c, h, w):
    @_loops
    def loops(x, gamma, beta, out):
        eps, count = x.dtype.type(sweep.EPSILON), x.dtype.type(c * h * w)
        for at in prange(n * g):
            b, k = at // g, at % g
            total = eps - eps
            for i in range(c):
                for j in range(h * w):
                    total += x[b, k, i, j]
            mean = total / count
            total = eps - eps
            for i in range(c):
                for j in range(h * w):
                    d = x[b, k, i, j] - mean
                    total += d * d
            deviation = np.sqrt(total / count + eps)
            for i in range(c):
                scale = gamma[k, i] / deviation
                shift = beta[k, i] - mean * scale
                for j in range(h * w):
                    out[b, k, i, j] = x[b, k, i, j] * scale + shift

    return lambda x, gamma, beta, out: loops(x.reshape(n, g, c, h * w), gamma, beta, out.reshape(n, g, c, h * w))


def _gelu_mlp(t, d, m):
    @_loops
    def run(x, u, a, v, b, out):
        root, cubic = x.dtype.type(sweep.ROOT), x.dtype.type(0.044715)
        half, one = x.dtype.type(0.5), x.dtype.type(1)
        hidden = np.dot(x, u)
        for i in prange(t):
            for j in range(m):
                y = hidden[i, j] + a[j]
                hidden[i, j] = half * y * (one + np.tanh(root * (y + cubic * y * y * y)))
        np.dot(hidden, v, out)
        for i in prange(t):
            for j in range(d):
                out[i, j] += b[j]

    return run


def _cross_entropy(b, n):
    @_loops
    def run(logits, targets, out):
        losses = np.empty(b, logits.dtype)
        for i in prange(b):
            most = logits[i, 0]
            for j in range(1, n):
                most = max(most, logits[i, j])
            total, weight, mean = most - most, most - most, most - most
            for j in range(n):
                z = logits[i, j] - most
                total += np.exp(z)
                weight += targets[i, j]
                mean += targets[i, j] * z
            losses[i] = weight * np.log(total) - mean
        out[()] = losses.sum() / b

    return run


def _pairwise(m, n, d):
    @_loops
    def run(x, y, out):
        columns = y.T.copy()
        zero = x.dtype.type(0)
        for i in prange(m):
            row = out[i]
            row[:] = zero
            for k in range(d):
                t = x[i, k]
                for j in range(n):
                    s = t - columns[k, j]
                    row[j] += s * s
            for j in range(n):
                row[j] = np.sqrt(row[j])

    return run


def _pairwise_product(m, n, d):
    @_loops
    def run(x, y, out):
        zero, two = x.dtype.type(0), x.dtype.type(2)
        np.dot(x, y.T, out)
        squares = np.empty(n, x.dtype)
        for j in range(n):
            squares[j] = np.dot(y[j], y[j])
        for i in prange(m):
            square = zero
            for k in range(d):
                square += x[i, k] * x[i, k]
            for j in range(n):
                out[i, j] = np.sqrt(max(square + squares[j] - two * out[i, j], zero))

    return run


def _cosine(m, n, d):
    @_loops
    def normalised(x):
        out = np.empty_like(x)
        for i in prange(len(x)):
            total = x[i, 0] - x[i, 0]
            for k in range(d):
                total += x[i, k] * x[i, k]
            scale = x.dtype.type(1) / np.sqrt(total)
            for k in range(d):
                out[i, k] = x[i, k] * scale
        return out

    @njit
    def run(x, y, out):
        np.dot(normalised(x), normalised(y).T, out)

    return run


# What is reduced, how, and what is made of it in the end.
_TERMS = {
    "dot": _part(lambda x, y: x * y),
    "norm": _part(lambda x, y: x * x),
}
_FIRST = _part(lambda x, y: x)
_COMBINE = {"min": _part(lambda a, b: min(a, b)), "max": _part(lambda a, b: max(a, b))}
_ADD = _part(lambda a, b: a + b)
_ENDS = {"norm": _part(lambda a, count: np.sqrt(a)), "mean": _part(lambda a, count: a / count)}
_KEEP = _part(lambda a, count: a)
_STRIP = 4096


def _reduction(name, axis):
    term, combine, finish = _TERMS.get(name, _FIRST), _COMBINE.get(name, _ADD), _ENDS.get(name, _KEEP)

    @_part
    def reduced(x, y):
        found = term(x[0], y[0])
        for i in range(1, len(x)):
            found = combine(found, term(x[i], y[i]))
        return found

    def of_all(n):
        count = (n + _STRIP - 1) // _STRIP

        @_loops
        def run(x, y, out):
            parts = np.empty(count, x.dtype)
            for block in prange(count):
                at, end = block * _STRIP, min((block + 1) * _STRIP, n)
                parts[block] = reduced(x[at:end], y[at:end])
            found = parts[0]
            for block in range(1, count):
                found = combine(found, parts[block])
            out[()] = finish(found, x.dtype.type(n))

        return run

    def down(m, n):
        # Some columns for each thread, in a few pieces.
        width = min(n, 512)

        @_loops
        def run(x, y, out):
            for block in prange((n + width - 1) // width):
                at, end = block * width, min((block + 1) * width, n)
                for j in range(at, end):
                    out[j] = term(x[0, j], y[0, j])
                for i in range(1, m):
                    for j in range(at, end):
                        out[j] = combine(out[j], term(x[i, j], y[i, j]))
                for j in range(at, end):
                    out[j] = finish(out[j], x.dtype.type(m))

        return run

    def across(m, n):
        @_loops
        def run(x, y, out):
            for i in prange(m):
                out[i] = finish(reduced(x[i], y[i]), x.dtype.type(n))

        return run

    make = {None: of_all, 0: down, 1: across}[axis]

    def formulation(**sizes):
        run = make(**sizes)
        return run if name == "dot" else lambda x, out: run(x, x, out)

    return formulation


@_part
def _moments(x):
    """The mean, and the sum of the squares of what is away from it."""
    total = x[0] - x[0]
    for i in range(len(x)):
        total += x[i]
    mean = total / x.dtype.type(len(x))
    squares = x[0] - x[0]
    for i in range(len(x)):
        squares += (x[i] - mean) * (x[i] - mean)
    return mean, squares


def _variance(n):
    count = (n + _STRIP - 1) // _STRIP

    @_loops
    def run(x, out):
        means, squares = np.empty(count), np.empty(count)
        for block in prange(count):
            means[block], squares[block] = _moments(x[block * _STRIP : min((block + 1) * _STRIP, n)])
        mean, total, seen = 0.0, 0.0, 0
        for block in range(count):
            new = min(_STRIP, n - block * _STRIP)
            away = means[block] - mean
            total += squares[block] + away * away * seen * new / (seen + new)
            seen += new
            mean += away * new / seen
        out[()] = total / n

    return run


def _variance_axis0(m, n):
    """In one pass, around the first row."""
    width = min(n, 512)

    @_loops
    def run(x, out):
        count = x.dtype.type(m)
        for block in prange((n + width - 1) // width):
            at, end = block * width, min((block + 1) * width, n)
            totals, squares = np.zeros(end - at, x.dtype), np.zeros(end - at, x.dtype)
            for i in range(1, m):
                for j in range(end - at):
                    d = x[i, at + j] - x[0, at + j]
                    totals[j] += d
                    squares[j] += d * d
            for j in range(end - at):
                mean = totals[j] / count
                out[at + j] = squares[j] / count - mean * mean

    return run


def _variance_axis1(m, n):
    @_loops
    def run(x, out):
        for i in prange(m):
            _, squares = _moments(x[i])
            out[i] = squares / x.dtype.type(n)

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
# How many states there are.
_STEPS = {
    "heat3d": (_heat3d, 1),
    "jacobi2d": (_jacobi2d, 1),
    "fdtd2d": (_fdtd2d, 3),
    "shallow_water": (_shallow_water, 2),
    "gray_scott": (_gray_scott, 2),
}
_MARCHED = {"wave2d": _wave2d, **{name: _marched(make, count) for name, (make, count) in _STEPS.items()}}
_MADE = {
    "floyd_warshall": {"loops": _floyd_warshall},
    "lu": {"loops": _lu, "blocks": _lu_blocks},
    "nbody": {"loops": _nbody},
    "mandelbrot": {"until it escapes": _mandelbrot, "lanes": _mandelbrot_lanes},
    "unsharp": {"loops": _unsharp},
    "harris": {"strips": _harris},
    "bilateral": {"loops": _bilateral},
    "pyramid": {"loops": _pyramid},
    "attention": {"products": _attention},
    "softmax": {"loops": _softmax},
    "layer_norm": {"loops": _layer_norm},
    "batch_norm": {"loops": _batch_norm},
    "group_norm": {"loops": _group_norm},
    "gelu_mlp": {"products": _gelu_mlp},
    "cross_entropy": {"loops": _cross_entropy},
    "pairwise": {"loops": _pairwise, "product": _pairwise_product},
    "cosine": {"product": _cosine},
    **{
        name + suffix: {"loops": _reduction(name, axis)}
        for name in sweep.REDUCTIONS
        for axis, suffix in ((None, ""), (0, "_axis0"), (1, "_axis1"))
    },
    "variance": {"strips": _variance},
    "variance_axis0": {"one pass": _variance_axis0},
    "variance_axis1": {"loops": _variance_axis1},
}
_SWEEP = at_each_size(
    {
        **{name + suffix: {"loops": of} for name, of in _MARCHED.items() for suffix in ("", f"_{sweep.MANY}")},
        **{name: {of: _loops_of(make) for of, make in makes.items()} for name, makes in _MADE.items()},
    }
)
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
    | _SWEEP
}
