"""Halide, compiled in memory: schedules by hand, and those of its automatic schedulers.

Dimensions are the other way round than NumPy's: A[i, k] is A(k, i) here. `v` is the number of lanes of a schedule by
hand, and 0 where a scheduler writes it. Schedules by hand run with the longest vectors and with half of them.
"""

# mypy: ignore-errors

import functools
import math
import operator
from importlib import metadata
from pathlib import Path

import halide as hl

from .. import machine, sweep
from ..kernels import DTYPES
from ..small import GROUPS, POOL, WINDOWS
from ..sweep import at_each_size

VERSION = metadata.version("halide")
_SCHEDULERS = ("Mullapudi2016", "Adams2019")
_LIMITED = "x86-64-linux-avx-avx2-f16c-fma-sse41"
# Rows of a register tile, and of what a thread takes at a time: AVX-512 has twice as many registers.
_ROWS, _BLOCK = {16: 4, 32: 6, 64: 8}, {16: 48, 32: 48, 64: 64}

for _name in _SCHEDULERS:
    hl.load_plugin(str(Path(hl.__file__).parent / "lib64" / f"libautoschedule_{_name.lower()}.so"))


class _Form:
    """What a definition is made of: the element type, the sizes, and the schedule's lanes."""

    def __init__(self, task, v):
        self.type = hl.Float(64 if task.problem.dtype == "f64" else 32)
        self.sizes, self.v = task.problem.sizes, v
        self.window = WINDOWS.get(task.problem.name)
        self.bytes = min(64, max(16, v * DTYPES[task.problem.dtype].itemsize))

    def value(self, x):
        return hl.cast(self.type, hl.f64(x))

    @property
    def zero(self):
        return self.value(0.0)

    def tiles(self, out, sums, j, i, r, columns=0, rows=0, block=0, parallel=True):
        """A register tile of rows and columns; threads take blocks of rows."""
        v = self.v
        columns, rows, block = columns or 2 * v, rows or _ROWS[self.bytes], block or _BLOCK[self.bytes]
        ji, ii, io, jo, it, iu = (hl.Var(name) for name in ("ji", "ii", "io", "jo", "it", "iu"))
        out.split(i, io, it, block).split(it, iu, ii, rows).split(j, jo, ji, columns)
        out.reorder(ji, ii, iu, jo, io).vectorize(ji, v).unroll(ji).unroll(ii)
        if parallel:
            out.parallel(io)
        sums.compute_at(out, iu).bound_extent(j, columns).vectorize(j, v).unroll(j).unroll(i)
        sums.update().reorder(j, i, r).vectorize(j, v).unroll(j).unroll(i)


def _mm(form, a, b, transposed=False):
    j, i, k = hl.Var("j"), hl.Var("i"), hl.Var("k")
    r = hl.RDom([(0, form.sizes["k"])], "r")
    sums, out = hl.Func("sums"), hl.Func("out")
    sums[j, i] = form.zero
    if not form.v:
        sums[j, i] += (a[i, r.x] if transposed else a[r.x, i]) * b[j, r.x]
        out[j, i] = sums[j, i]
        return out
    panel, width = _panels(form, b)
    if transposed:
        turned = hl.Func("turned")
        turned[k, i] = a[i, k]
        a = turned
    sums[j, i] += a[r.x, i] * panel[j % width, r.x, j // width]
    out[j, i] = sums[j, i]
    form.tiles(out, sums, j, i, r.x)
    if transposed:
        ko, ki, io, ii = hl.Var(), hl.Var(), hl.Var(), hl.Var()
        turned.compute_root().tile(k, i, ko, io, ki, ii, 8, 8).vectorize(ki, min(form.v, 8)).unroll(ki).unroll(ii)
        turned.parallel(io)
    return out


def _panels(form, matrix):
    """Columns packed by the width of a register tile."""
    p, q, k = hl.Var("p"), hl.Var("q"), hl.Var("k")
    panel, width = hl.Func("panel"), 2 * form.v
    panel[p, k, q] = matrix[q * width + p, k]
    panel.compute_root().bound_extent(p, width).vectorize(p, form.v).unroll(p).parallel(q)
    return panel, width


def _tmm(form, a, b):
    return _mm(form, a, b, transposed=True)


def _bmm(form, a, b):
    j, i, z = hl.Var("j"), hl.Var("i"), hl.Var("z")
    r = hl.RDom([(0, form.sizes["k"])], "r")
    sums, out = hl.Func("sums"), hl.Func("out")
    sums[j, i, z] = form.zero
    sums[j, i, z] += a[r.x, i, z] * b[j, r.x, z]
    out[j, i, z] = sums[j, i, z]
    if form.v:
        # 72 columns are no multiple of 16 lanes: vectors of 24, of which the compiler makes what there is.
        columns, rows = (24, 4) if form.bytes == 64 or form.v == 8 else (8, 6)
        form.v = columns if columns % form.v else form.v
        form.tiles(out, sums, j, i, r.x, columns, rows, block=72, parallel=False)
        out.parallel(z, 16)
    return out


def _sddmm(form, b, c, d):
    j, i = hl.Var("j"), hl.Var("i")
    r = hl.RDom([(0, form.sizes["k"])], "r")
    sums, out = hl.Func("sums"), hl.Func("out")
    sums[j, i] = form.zero
    if not form.v:
        sums[j, i] += c[r.x, i] * d[j, r.x]
        out[j, i] = b[j, i] * sums[j, i]
        return out
    panel, width = _panels(form, d)
    sums[j, i] += c[r.x, i] * panel[j % width, r.x, j // width]
    out[j, i] = b[j, i] * sums[j, i]
    form.tiles(out, sums, j, i, r.x, block=96)
    return out


def _mttkrp(form, b, c, d):
    k, n, v = form.sizes["k"], form.sizes["n"], form.v
    j, i, y, x = hl.Var("j"), hl.Var("i"), hl.Var("y"), hl.Var("x")
    rl, rk = hl.RDom([(0, form.sizes["p"])], "rl"), hl.RDom([(0, k)], "rk")
    t, sums, out = hl.Func("t"), hl.Func("sums"), hl.Func("out")
    t[j, y, i] = form.zero
    sums[j, i] = form.zero
    if not v:
        t[j, y, i] += b[rl.x, y, i] * d[j, rl.x]
        sums[j, i] += t[j, rk.x, i] * c[j, rk.x]
        out[j, i] = sums[j, i]
        return out
    width, p, q = 2 * v, hl.Var("p"), hl.Var("q")
    panels = []
    for name, matrix in (("dp", d), ("cp", c)):
        panel = hl.Func(name)
        column = q * width + p
        panel[p, x, q] = hl.select(column < n, matrix[hl.min(column, n - 1), x], form.zero)
        panels.append(panel)
    dp, cp = panels
    t[j, y, i] += b[rl.x, y, i] * dp[j % width, rl.x, j // width]
    sums[j, i] += t[j, rk.x, i] * cp[j % width, rk.x, j // width]
    out[j, i] = sums[j, i]
    jo, ji, ko, ki = hl.Var(), hl.Var(), hl.RVar("ko"), hl.RVar("ki")
    out.split(j, jo, ji, width, hl.TailStrategy.GuardWithIf).vectorize(ji, v).reorder(ji, jo, i).parallel(i)
    sums.compute_at(out, jo).bound_extent(j, width).vectorize(j, v).unroll(j)
    sums.update().split(rk.x, ko, ki, 5).reorder(j, ki, ko).vectorize(j, v).unroll(j).unroll(ki)
    t.compute_at(sums, ko).bound_extent(j, width).bound_extent(y, 5).vectorize(j, v).unroll(j).unroll(y)
    t.update().reorder(j, y, rl.x).vectorize(j, v).unroll(j).unroll(y)
    for panel in panels:
        panel.compute_root().bound_extent(p, width).vectorize(p, v)
    return out


def _gconv(form, image, weights):
    s, v = form.sizes, form.v
    x, y, f, g, n = (hl.Var(name) for name in "xyfgn")
    r = hl.RDom([(0, s["q"]), (0, s["p"]), (0, s["c"])], "r")
    sums, out = hl.Func("sums"), hl.Func("out")
    sums[x, y, f, g, n] = form.zero
    sums[x, y, f, g, n] += image[x + r.x, y + r.y, r.z, g, n] * weights[r.x, r.y, r.z, f, g]
    out[x, y, f, g, n] = sums[x, y, f, g, n]
    if not v:
        return out
    xo, xi, yo, yi, fo, fi, gn = (hl.Var() for _ in range(7))
    if s["f"] > 1:
        width = 2 * v
        out.split(x, xo, xi, width).split(f, fo, fi, 4).reorder(xi, fi, xo, y, fo, g, n)
        out.vectorize(xi, v).unroll(xi).unroll(fi)
        sums.compute_at(out, xo).bound_extent(x, width).bound_extent(f, 4).vectorize(x, v).unroll(x).unroll(f)
        sums.update().reorder(x, f, r.x, r.y, r.z).vectorize(x, v).unroll(x).unroll(f).unroll(r.x)
    else:
        width = min(4 * v, s["w"] - s["q"] + 1)
        out.split(x, xo, xi, width).split(y, yo, yi, 2).reorder(xi, yi, xo, yo, f, g, n)
        out.vectorize(xi, v).unroll(xi).unroll(yi)
        sums.compute_at(out, xo).bound_extent(x, width).bound_extent(y, 2).vectorize(x, v).unroll(x).unroll(y)
        sums.update().reorder(x, y, r.x, r.y, r.z).vectorize(x, v).unroll(x).unroll(y).unroll(r.x)
    out.fuse(g, n, gn).parallel(gn)
    return out


def _three_modes(form, name, matrices, source):
    """The variables, a function and its sum for each mode, and access to the last of them.

    A matrix for each mode, that of k first, gives the entry at a row and a column.
    """
    k, j, i, e = (hl.Var(letter) for letter in "kjie")
    stages = []
    for mode, matrix in enumerate(matrices):
        f, r = hl.Func(f"{name}{mode}"), hl.RDom([(0, form.sizes["n"])], f"{name}r{mode}")
        f[k, j, i, e] = form.zero
        at = [k, j, i]
        row, at[mode] = at[mode], r.x
        f[k, j, i, e] += matrix(row, r.x) * source(*at, e)
        source = lambda *at, f=f: f[at]  # noqa: E731
        stages.append((f, r))
    return (k, j, i, e), stages, source


def _in_elements(form, stages, variables, out, element, width):
    """Each mode of an element is computed where the element is; rows are padded to whole vectors."""
    k, j, i, e = variables
    for f, r in stages:
        f.compute_at(out, element).bound_extent(k, width).align_storage(k, form.v)
        f.vectorize(k, form.v).unroll(k)
        f.update().reorder(k, r.x, j, i, e).vectorize(k, form.v).unroll(k).unroll(r.x)


def _wide(form, name, width, entry):
    """A matrix whose rows are padded with zeros."""
    n, x, y = form.sizes["n"], hl.Var("x"), hl.Var("y")
    matrix = hl.Func(name)
    matrix[x, y] = hl.select(x < n, entry(hl.min(x, n - 1), y), form.zero)
    matrix.compute_root().bound_extent(x, width)
    return matrix


def _transposed(matrix):
    return lambda x, y: matrix[y, x]


def _interp(form, p, u):
    return _kron(form, p, p, p, u)


def _kron(form, a, b, c, u):
    n, out = form.sizes["n"], hl.Func("out")
    entries = [_transposed(matrix) for matrix in (c, b, a)]
    if not form.v:
        variables, _, last = _three_modes(form, "t", entries, lambda *at: u[at])
        out[variables] = last(*variables)
        return out
    # No vector is longer than what a row is padded to.
    form.v = min(form.v, 1 << (n - 1).bit_length())
    width = -(-n // form.v) * form.v
    ct = _wide(form, "ct", width, entries[0])
    entries[0] = lambda x, y: ct[x, y]
    variables, stages, last = _three_modes(form, "t", entries, lambda *at: u[at])
    k, j, i, e = variables
    out[variables] = last(*variables)
    out.vectorize(k, form.v, hl.TailStrategy.GuardWithIf).reorder(k, j, i, e).parallel(e, 50)
    _in_elements(form, stages, variables, out, e, width)
    return out


def _helm(form, s, d, u):
    n, width, scaled, out = form.sizes["n"], 16, hl.Func("scaled"), hl.Func("out")
    if form.v:
        st, sn = _wide(form, "st", width, lambda x, y: s[y, x]), _wide(form, "sn", width, lambda x, y: s[x, y])
        there, back = (lambda x, y: st[x, y]), (lambda x, y: sn[x, y])
    else:
        there, back = (lambda x, y: s[y, x]), (lambda x, y: s[x, y])
    before, first, t = _three_modes(form, "t", [there] * 3, lambda *at: u[at])
    k, j, i, e = before
    scaled[before] = t(*before) * d[hl.min(k, n - 1) if form.v else k, j, i]
    after, second, w = _three_modes(form, "w", [back] * 3, lambda *at: scaled[at])
    out[after] = w(*after)
    if form.v:
        k, j, i, e = after
        out.vectorize(k, form.v, hl.TailStrategy.GuardWithIf).reorder(k, j, i, e).parallel(e, 20)
        _in_elements(form, first, before, out, e, width)
        _in_elements(form, second, after, out, e, width)
        scaled.compute_at(out, e)
    return out


def _blur(form, image, inlined=False):
    x, y, yo, yi = (hl.Var() for _ in range(4))
    rows, out, third = hl.Func("rows"), hl.Func("out"), form.value(1 / 3)
    rows[x, y] = (image[x, y] + image[x + 1, y] + image[x + 2, y]) * third
    out[x, y] = (rows[x, y] + rows[x, y + 1] + rows[x, y + 2]) * third
    if form.v and inlined:
        out.vectorize(x, form.v).unroll(x, 2).parallel(y, 32)
    elif form.v:
        out.split(y, yo, yi, 64).vectorize(x, form.v).unroll(x, 2).parallel(yo)
        rows.store_at(out, yo).compute_at(out, yi).vectorize(x, form.v).unroll(x, 2)
    return out


def _blur_inlined(form, image):
    return _blur(form, image, inlined=True)


def _coars(form, one, other):
    x, y, out = hl.Var(), hl.Var(), hl.Func("out")
    a, b, c = one[x, y] * one[x, y], other[x, y] * other[x, y], one[x, y] * other[x, y]
    t = a + b
    out[x, y] = a * b - c * c - form.value(0.04) * t * t
    if form.v:
        out.vectorize(x, form.v).parallel(y, 32)
    return out


def _convolution(form, image, weights):
    s, window = form.sizes, form.window
    axes = [(size, taps) for size, taps in (("w", "q"), ("h", "p"), ("d", "r")) if size in s]
    depthwise = "f" not in s
    at, (f, n) = [hl.Var(size) for size, _ in axes], (hl.Var("f"), hl.Var("n"))
    r = hl.RDom([(0, s[taps]) for _, taps in axes] + ([] if depthwise else [(0, s["c"])]), "r")
    taps, channel = [r[axis] for axis in range(len(axes))], f if depthwise else r[len(axes)]
    if window.padding:
        everywhere = [(hl.Expr(), hl.Expr())] * 2
        image = hl.BoundaryConditions.constant_exterior(
            image, form.zero, [*((hl.i32(0), hl.i32(s[size])) for size, _ in axes), *everywhere]
        )
    places = [x * window.stride + tap * window.dilation - window.padding for x, tap in zip(at, taps, strict=True)]
    weight = weights[(*taps, f)] if depthwise else weights[(*taps, channel, f)]
    sums, out = hl.Func("sums"), hl.Func("out")
    sums[(*at, f, n)] = form.zero
    sums[(*at, f, n)] += image[(*places, channel, n)] * weight
    out[(*at, f, n)] = sums[(*at, f, n)]
    return out


def _max_pool(form, image):
    at, step = tuple(hl.Var(name) for name in "xycn"), form.window.stride
    x, y, c, n = at
    r = hl.RDom([(0, POOL), (0, POOL)], "r")
    most, out = hl.Func("most"), hl.Func("out")
    most[at] = form.type.min()
    most[at] = hl.max(most[at], image[x * step + r.x, y * step + r.y, c, n])
    out[at] = most[at]
    return out


def _variables(names):
    return [hl.Var(name) for name in names]


def _total(form, name, at, extents, term):
    """A sum for each index."""
    r, total = hl.RDom([(0, extent) for extent in extents], name + "_r"), hl.Func(name)
    total[at] = form.zero
    total[at] += term(*(r[axis] for axis in range(len(extents))))
    return total


def _most(form, name, at, extent, term, *, least=False):
    r, most = hl.RDom([(0, extent)], name + "_r"), hl.Func(name)
    most[at] = form.type.max() if least else form.type.min()
    most[at] = (hl.min if least else hl.max)(most[at], term(r.x))
    return most


def _near(index, size):
    return hl.clamp(index, 0, size - 1)


def _inside(*indices):
    return functools.reduce(operator.and_, ((index >= 1) & (index < size - 1) for index, size in indices))


def _heat3d(form, u):
    (k, j, i), s, out = _variables("kji"), form.sizes, hl.Func("out")
    extents = (s["w"], s["h"], s["d"])

    def at(*shift):
        return u[tuple(_near(index + by, size) for index, by, size in zip((k, j, i), shift, extents, strict=True))]

    around = at(-1, 0, 0) + at(1, 0, 0) + at(0, -1, 0) + at(0, 1, 0) + at(0, 0, -1) + at(0, 0, 1)
    new = u[k, j, i] + form.value(sweep.HEAT) * (around - form.value(6) * u[k, j, i])
    out[k, j, i] = hl.select(_inside(*zip((k, j, i), extents, strict=True)), new, u[k, j, i])
    return out


def _jacobi2d(form, u):
    (j, i), (w, h), out = _variables("ji"), (form.sizes["w"], form.sizes["h"]), hl.Func("out")
    new = u[j, i] + u[j, _near(i - 1, h)] + u[j, _near(i + 1, h)] + u[_near(j - 1, w), i] + u[_near(j + 1, w), i]
    out[j, i] = hl.select(_inside((j, w), (i, h)), form.value(0.2) * new, u[j, i])
    return out


def _fdtd2d(form, e, p, q, eps):
    (j, i), (w, h), c = _variables("ji"), (form.sizes["w"], form.sizes["h"]), form.value(sweep.COURANT)
    new_e, new_p, new_q = hl.Func("new_e"), hl.Func("new_p"), hl.Func("new_q")
    new_p[j, i] = p[j, i] - c * (e[j + 1, i] - e[j, i])
    new_q[j, i] = q[j, i] + c * (e[j, i + 1] - e[j, i])
    left, up = _near(j, w - 1), _near(i, h - 1)
    turn = new_q[j, up] - new_q[j, _near(i - 1, h - 1)] - new_p[left, i] + new_p[_near(j - 1, w - 1), i]
    new_e[j, i] = hl.select(_inside((j, w), (i, h)), e[j, i] + c / eps[j, i] * turn, e[j, i])
    return [new_e, new_p, new_q]


def _wave2d(form, a, b):
    """The new state alone."""
    (j, i), (w, h), out = _variables("ji"), (form.sizes["w"], form.sizes["h"]), hl.Func("out")
    around = b[j, _near(i - 1, h)] + b[j, _near(i + 1, h)] + b[_near(j - 1, w), i] + b[_near(j + 1, w), i]
    new = form.value(2) * b[j, i] - a[j, i] + form.value(sweep.WAVE) * (around - form.value(4) * b[j, i])
    out[j, i] = hl.select(_inside((j, w), (i, h)), new, b[j, i])
    return out


def _wrapped(image, *sizes):
    return hl.BoundaryConditions.repeat_image(image, [(hl.i32(0), hl.i32(size)) for size in sizes])


def _shallow_water(form, h, q):
    (i,), n, c = _variables("i"), form.sizes["n"], form.value(sweep.CELL)
    h, q = _wrapped(h, n), _wrapped(q, n)
    half, outs = form.value(0.5), []

    def g(at):
        return c * (q[at] * q[at] / h[at] + form.value(4.905) * h[at] * h[at])

    for name, x, flux in (("new_h", h, lambda at: c * q[at]), ("new_q", q, g)):
        outs.append(hl.Func(name))
        outs[-1][i] = half * (x[i - 1] + flux(i - 1) + x[i + 1] - flux(i + 1))
    return outs


def _gray_scott(form, u, v):
    (j, i), (w, h) = _variables("ji"), (form.sizes["w"], form.sizes["h"])
    reaction = u[j, i] * v[j, i] * v[j, i]
    du, dv = (form.value(rate) for rate in sweep.DIFFUSION)
    new_u, new_v = hl.Func("new_u"), hl.Func("new_v")

    def laplacian(x):
        y = _wrapped(x, w, h)
        return y[j, i - 1] + y[j, i + 1] + y[j - 1, i] + y[j + 1, i] - form.value(4) * x[j, i]

    feed, kill = form.value(sweep.FEED), form.value(sweep.FEED + sweep.KILL)
    new_u[j, i] = u[j, i] + du * laplacian(u) - reaction + feed * (form.value(1) - u[j, i])
    new_v[j, i] = v[j, i] + dv * laplacian(v) + reaction - kill * v[j, i]
    return [new_u, new_v]


def _floyd_warshall(form, d):
    (j, i), n, out = _variables("ji"), form.sizes["n"], hl.Func("out")
    shortest, r = hl.Func("shortest"), hl.RDom([(0, n)] * 3, "r")
    shortest[j, i] = d[j, i]
    shortest[r.x, r.y] = hl.min(shortest[r.x, r.y], shortest[r.z, r.y] + shortest[r.x, r.z])
    out[j, i] = shortest[j, i]
    return out


def _nbody(form, x, mass):
    (c, i), n, out, sums = _variables("ci"), form.sizes["n"], hl.Func("out"), hl.Func("sums")
    r = hl.RDom([(0, n)], "r")
    d = [x[axis, r.x] - x[axis, i] for axis in range(3)]
    square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + form.value(sweep.SOFTENING)
    weight = mass[r.x] / (square * hl.sqrt(square))
    sums[i] = (form.zero, form.zero, form.zero)
    sums[i] = tuple(sums[i][axis] + weight * d[axis] for axis in range(3))
    out[c, i] = hl.mux(c, [sums[i][axis] for axis in range(3)])
    return out


def _mandelbrot(form, re, im):
    (j, i), out, state = _variables("ji"), hl.Func("out"), hl.Func("state")
    r = hl.RDom([(0, sweep.ITERATIONS)], "r")
    state[j, i] = (form.zero, form.zero, form.zero)
    x, y, count = (state[j, i][at] for at in range(3))
    # Every iteration does the same, but an update has to name what it goes over.
    inside = (x * x + y * y <= form.value(4)) & (r.x >= 0)
    state[j, i] = (
        hl.select(inside, x * x - y * y + re[j], x),
        hl.select(inside, form.value(2) * x * y + im[i], y),
        hl.select(inside, count + form.value(1), count),
    )
    out[j, i] = state[j, i][2]
    return out


def _unsharp(form, x):
    (j, i), out, rows = _variables("ji"), hl.Func("out"), hl.Func("rows")
    two, pixel = form.value(2), x[j + 1, i + 1]
    rows[j, i] = x[j, i] + two * x[j, i + 1] + x[j, i + 2]
    detail = pixel - (rows[j, i] + two * rows[j + 1, i] + rows[j + 2, i]) * form.value(1 / 16)
    sharp = hl.clamp(pixel + form.value(sweep.AMOUNT) * detail, form.zero, form.value(1))
    out[j, i] = hl.select(hl.abs(detail) > form.value(sweep.THRESHOLD), sharp, pixel)
    return out


def _harris(form, x):
    (j, i), out, a, b = _variables("ji"), hl.Func("out"), hl.Func("a"), hl.Func("b")
    two = form.value(2)
    a[j, i] = x[j, i + 2] + two * x[j + 1, i + 2] + x[j + 2, i + 2] - x[j, i] - two * x[j + 1, i] - x[j + 2, i]
    b[j, i] = x[j + 2, i] + two * x[j + 2, i + 1] + x[j + 2, i + 2] - x[j, i] - two * x[j, i + 1] - x[j, i + 2]

    def windows(name, one, other):
        product, window = hl.Func(name), hl.Func(name + "_sum")
        product[j, i] = one[j, i] * other[j, i]
        terms = (product[j + m, i + k] for k in range(3) for m in range(3))
        window[j, i] = functools.reduce(operator.add, terms)
        return window[j, i]

    aa, bb, ab = windows("aa", a, a), windows("bb", b, b), windows("ab", a, b)
    out[j, i] = aa * bb - ab * ab - form.value(sweep.HARRIS) * (aa + bb) * (aa + bb)
    return out


def _bilateral(form, x):
    (j, i), out = _variables("ji"), hl.Func("out")
    total, weights = form.zero, form.zero
    for k in range(5):
        for m in range(5):
            y, d = x[j + m, i + k], x[j + m, i + k] - x[j + 2, i + 2]
            near = form.value(-sweep.SPACE * ((k - 2) ** 2 + (m - 2) ** 2))
            weight = hl.exp(near - form.value(sweep.VALUE) * d * d)
            total, weights = total + weight * y, weights + weight
    out[j, i] = total / weights
    return out


def _pyramid(form, x):
    (j, i), out, rows = _variables("ji"), hl.Func("out"), hl.Func("rows")
    g = [form.value(weight) for weight in sweep.G]
    rows[j, i] = functools.reduce(operator.add, (g[k] * x[j, 2 * i + k] for k in range(5)))
    out[j, i] = functools.reduce(operator.add, (g[k] * rows[2 * j + k, i] for k in range(5)))
    return out


def _attention(form, q, k, v):
    (e, j, i, a), s, out = _variables("edia"), form.sizes, hl.Func("out")
    t, d = s["t"], s["d"]
    scores = _total(form, "scores", (j, i, a), (d,), lambda c: q[c, i, a] * k[c, j, a])
    scaled, weights = hl.Func("scaled"), hl.Func("weights")
    scaled[j, i, a] = scores[j, i, a] * form.value(d**-0.5)
    most = _most(form, "most", (i, a), t, lambda m: scaled[m, i, a])
    weights[j, i, a] = hl.exp(scaled[j, i, a] - most[i, a])
    sums = _total(form, "sums", (i, a), (t,), lambda m: weights[m, i, a])
    values = _total(form, "values", (e, i, a), (t,), lambda m: weights[m, i, a] * v[e, m, a])
    out[e, i, a] = values[e, i, a] / sums[i, a]
    return out


def _softmax(form, x):
    (j, i), n, out, weights = _variables("ji"), form.sizes["n"], hl.Func("out"), hl.Func("weights")
    most = _most(form, "most", (i,), n, lambda m: x[m, i])
    weights[j, i] = hl.exp(x[j, i] - most[i])
    sums = _total(form, "sums", (i,), (n,), lambda m: weights[m, i])
    out[j, i] = weights[j, i] / sums[i]
    return out


def _spread(form, at, extents, entry):
    """The mean, and what to multiply with so that the variance is 1."""
    count, mean, scale = form.value(math.prod(extents)), hl.Func("mean"), hl.Func("scale")
    mean[at] = _total(form, "totals", at, extents, entry)[at] / count
    squares = _total(form, "squares", at, extents, lambda *r: (entry(*r) - mean[at]) * (entry(*r) - mean[at]))
    scale[at] = form.value(1) / hl.sqrt(squares[at] / count + form.value(sweep.EPSILON))
    return mean, scale


def _layer_norm(form, x, gamma, beta):
    (j, i), out = _variables("ji"), hl.Func("out")
    mean, scale = _spread(form, (i,), (form.sizes["n"],), lambda m: x[m, i])
    out[j, i] = (x[j, i] - mean[i]) * scale[i] * gamma[j] + beta[j]
    return out


def _batch_norm(form, x, mu, var, gamma, beta):
    (j, i, k, b), out, scale = _variables("jikb"), hl.Func("out"), hl.Func("scale")
    scale[k] = gamma[k] / hl.sqrt(var[k] + form.value(sweep.EPSILON))
    out[j, i, k, b] = (x[j, i, k, b] - mu[k]) * scale[k] + beta[k]
    return out


def _group_norm(form, x, gamma, beta):
    (j, i, c, g, b), s, out = _variables("jicgb"), form.sizes, hl.Func("out")
    mean, scale = _spread(form, (g, b), (s["w"], s["h"], s["c"]), lambda *r: x[(*r, g, b)])
    out[j, i, c, g, b] = (x[j, i, c, g, b] - mean[g, b]) * scale[g, b] * gamma[c, g] + beta[c, g]
    return out


def _gelu_mlp(form, x, u, a, v, b):
    (j, i), s, out, hidden = _variables("ji"), form.sizes, hl.Func("out"), hl.Func("hidden")
    first = _total(form, "first", (j, i), (s["d"],), lambda m: x[m, i] * u[j, m])
    y = first[j, i] + a[j]
    inner = form.value(sweep.ROOT) * (y + form.value(0.044715) * y * y * y)
    hidden[j, i] = form.value(0.5) * y * (form.value(1) + hl.tanh(inner))
    second = _total(form, "second", (j, i), (s["m"],), lambda m: hidden[m, i] * v[j, m])
    out[j, i] = second[j, i] + b[j]
    return out


def _cross_entropy(form, logits, targets):
    (i,), s, out = _variables("i"), form.sizes, hl.Func("out")
    n, losses = s["n"], hl.Func("losses")
    most = _most(form, "most", (i,), n, lambda m: logits[m, i])
    sums = _total(form, "sums", (i,), (n,), lambda m: hl.exp(logits[m, i] - most[i]))
    weights = _total(form, "weights", (i,), (n,), lambda m: targets[m, i])
    means = _total(form, "means", (i,), (n,), lambda m: targets[m, i] * (logits[m, i] - most[i]))
    losses[i] = weights[i] * hl.log(sums[i]) - means[i]
    out[()] = _total(form, "total", (), (s["b"],), lambda m: losses[m])[()] / form.value(s["b"])
    return out


def _pairwise(form, x, y):
    (j, i), out = _variables("ji"), hl.Func("out")
    squares = _total(form, "squares", (j, i), (form.sizes["d"],), lambda m: (x[m, i] - y[m, j]) * (x[m, i] - y[m, j]))
    out[j, i] = hl.sqrt(squares[j, i])
    return out


def _cosine(form, x, y):
    (m, j, i), d, out = _variables("mji"), form.sizes["d"], hl.Func("out")

    def normalised(name, a, at):
        unit = hl.Func(name)
        unit[m, at] = a[m, at] / hl.sqrt(_total(form, name + "_square", (at,), (d,), lambda k: a[k, at] * a[k, at])[at])
        return unit

    one, other = normalised("one", x, i), normalised("other", y, j)
    out[j, i] = _total(form, "product", (j, i), (d,), lambda k: one[k, i] * other[k, j])[j, i]
    return out


# Lanes and blocks of a sum of all elements: no scheduler makes them by itself.
_LANES, _BLOCKS = 16, 400


def _reduction(name, axis):
    def define(form, x, y=None):
        s, out, variables = form.sizes, hl.Func("out"), _variables("ji")
        kept = () if axis is None else (variables[axis],)
        square, product = name == "norm", name == "dot"

        def reduced(of, at, extent, term):
            if name in ("min", "max"):
                return _most(form, of, at, extent, term, least=name == "min")
            return _total(form, of, at, (extent,), term)

        def entry(*at):
            return x[at] * (y[at] if product else x[at]) if square or product else x[at]

        def finish(value, count):
            if name == "norm":
                return hl.sqrt(value)
            return value / form.value(count) if name in ("mean", "variance") else value

        def along(of, term):
            """Of all elements, in two stages; along an axis in one."""
            if axis is not None:
                if axis == 0:
                    return reduced(of, kept, s["m"], lambda m: term(*kept, m))[kept]
                return reduced(of, kept, s["n"], lambda m: term(m, *kept))[kept]
            blocks = math.gcd(s["n"] // _LANES, _BLOCKS)
            length, (lane, block) = s["n"] // _LANES // blocks, variables
            parts = reduced(of + "_parts", (lane, block), length, lambda m: term((block * length + m) * _LANES + lane))
            return reduced(of, (), _LANES * blocks, lambda m: parts[m % _LANES, m // _LANES])[()]

        count = s["n"] if axis is None else s["m" if axis == 0 else "n"]
        if name == "variance":
            mean = hl.Func("mean")
            mean[kept] = finish(along("total", entry), count)
            value = along("squares", lambda *at: (entry(*at) - mean[kept]) * (entry(*at) - mean[kept]))
        else:
            value = along("total", entry)
        out[kept] = finish(value, count)
        return out

    return define


_DEFINITIONS = {
    "mm": {"by hand": _mm},
    "tmm": {"by hand": _tmm},
    "bmm": {"by hand": _bmm},
    "gconv": {"by hand": _gconv},
    "gconv_dw": {"by hand": _gconv},
    "mttkrp": {"by hand": _mttkrp},
    "sddmm": {"by hand": _sddmm},
    "interp": {"by hand": _interp},
    "helm": {"by hand": _helm},
    "blur": {"by hand": _blur, "by hand, inlined": _blur_inlined},
    "coars": {"by hand": _coars},
    **dict.fromkeys(GROUPS["kron"], {"by hand": _kron}),
}
# Without a schedule by hand.
_PLAIN = {
    **dict.fromkeys(WINDOWS, _convolution),
    "max_pool": _max_pool,
    **at_each_size(
        {
            "floyd_warshall": _floyd_warshall,
            "nbody": _nbody,
            "mandelbrot": _mandelbrot,
            "unsharp": _unsharp,
            "harris": _harris,
            "bilateral": _bilateral,
            "pyramid": _pyramid,
            "attention": _attention,
            "softmax": _softmax,
            "layer_norm": _layer_norm,
            "batch_norm": _batch_norm,
            "group_norm": _group_norm,
            "gelu_mlp": _gelu_mlp,
            "cross_entropy": _cross_entropy,
            "pairwise": _pairwise,
            "cosine": _cosine,
            **{
                name + suffix: _reduction(name, axis)
                for name in sweep.REDUCTIONS
                for axis, suffix in ((None, ""), (0, "_axis0"), (1, "_axis1"))
            },
        }
    ),
}


def _bound(buffer, shape):
    stride = 1
    for at, extent in enumerate(reversed(shape)):
        buffer.dim(at).set_bounds(0, extent).set_stride(stride).set_estimate(0, extent)
        stride *= extent


def _pipeline(task, define, lanes, scheduler, shapes):
    """For arrays of these sizes, with its parameters."""
    form = _Form(task, lanes)
    parameters = []
    for at, array in enumerate(task.inputs):
        parameters.append(hl.ImageParam(form.type, array.ndim, f"in{at}"))
        _bound(parameters[-1], array.shape)
    found = define(form, *parameters)
    outs = found if isinstance(found, list) else [found]
    for out, shape in zip(outs, shapes, strict=True):
        _bound(out.output_buffer(), shape)
        for variable, extent in zip(out.args(), reversed(shape), strict=True):
            out.set_estimate(variable, 0, extent)
    is_limited = task.vector_bytes < machine.CPUS[machine.widest()]
    target = hl.Target(_LIMITED) if is_limited else hl.get_host_target()
    pipeline = hl.Pipeline(outs)
    if scheduler:
        pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(scheduler, {"parallelism": str(task.threads)}))
    pipeline.compile_jit(target)
    for parameter, array in zip(parameters, task.inputs, strict=True):
        parameter.set(hl.Buffer(array))
    return pipeline, parameters


def _build(task, define, lanes, scheduler=None):
    pipeline, _ = _pipeline(task, define, lanes, scheduler, [task.out.shape])
    result = hl.Buffer(task.out)

    def run():
        pipeline.realize(result)
        return task.out

    return run


def _like(array):
    """Memory of Halide's own: it does not keep what NumPy has."""
    return hl.Buffer(hl.Float(8 * array.itemsize), list(reversed(array.shape)))


def _marched(define):
    """A step as a pipeline, from inputs to results and back to spare arrays."""

    def make(task, scheduler):
        outs = task.out if isinstance(task.out, tuple) else (task.out,)
        pipeline, parameters = _pipeline(task, define, 0, scheduler, [out.shape for out in outs])
        first, results = ([hl.Buffer(array) for array in arrays] for arrays in (task.inputs[: len(outs)], outs))
        spare = [_like(out) for out in outs]

        def run():
            now = first
            for left in range(task.problem.sizes["steps"], 0, -1):
                for parameter, state in zip(parameters, now, strict=False):
                    parameter.set(state)
                now = results if left % 2 else spare
                pipeline.realize(now if len(now) > 1 else now[0])
            return task.out

        return run

    return make


def _waves(task, scheduler):
    """Only the new state is computed, into one of three arrays in turns."""
    before, now = task.out
    pipeline, parameters = _pipeline(task, _wave2d, 0, scheduler, [now.shape])
    given = [hl.Buffer(array) for array in task.inputs]
    turns = [_like(now), *(hl.Buffer(array) for array in (now, before))]

    def run():
        states = given
        if task.problem.sizes["steps"] == 1:
            before[...] = task.inputs[1]
        for left in range(task.problem.sizes["steps"], 0, -1):
            for parameter, state in zip(parameters, states, strict=True):
                parameter.set(state)
            new = turns[left % 3]
            pipeline.realize(new)
            states = [states[1], new]
        return task.out

    return run


def _stepped(make, scheduler):
    return lambda task: make(task, scheduler)


def _by_hand(define, part):
    return lambda task: _build(task, define, task.lanes // part)


def _automatic(define, scheduler):
    return lambda task: _build(task, define, 0, scheduler)


_STEPS = {
    "heat3d": _marched(_heat3d),
    "jacobi2d": _marched(_jacobi2d),
    "fdtd2d": _marched(_fdtd2d),
    "wave2d": _waves,
    "shallow_water": _marched(_shallow_water),
    "gray_scott": _marched(_gray_scott),
}
_LOOPS = at_each_size({name + suffix: make for name, make in _STEPS.items() for suffix in ("", f"_{sweep.MANY}")})
FORMULATIONS = {
    "halide": {
        kernel: {
            name + suffix: _by_hand(define, part)
            for name, define in definitions.items()
            for part, suffix in ((1, ""), (2, ", half vectors"))
        }
        for kernel, definitions in _DEFINITIONS.items()
    },
    "halide-auto": {
        kernel: {scheduler: _automatic(define, scheduler) for scheduler in _SCHEDULERS}
        for kernel, define in (
            {name: definitions["by hand"] for name, definitions in _DEFINITIONS.items()} | _PLAIN
        ).items()
    }
    | {kernel: {scheduler: _stepped(make, scheduler) for scheduler in _SCHEDULERS} for kernel, make in _LOOPS.items()},
}
