"""Halide, compiled in memory: schedules by hand, and those of its automatic schedulers.

Dimensions are the other way round than NumPy's: A[i, k] is A(k, i) here. `v` is the number of lanes of a schedule by
hand, and 0 where a scheduler writes it. Schedules by hand run with the longest vectors and with half of them.
"""

# mypy: ignore-errors

from importlib import metadata
from pathlib import Path

import halide as hl

from .. import machine
from ..kernels import DTYPES
from ..small import GROUPS, POOL, WINDOWS

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
_PLAIN = {**dict.fromkeys(WINDOWS, _convolution), "max_pool": _max_pool}


def _bound(buffer, shape):
    stride = 1
    for at, extent in enumerate(reversed(shape)):
        buffer.dim(at).set_bounds(0, extent).set_stride(stride).set_estimate(0, extent)
        stride *= extent


def _build(task, define, lanes, scheduler=None):
    """The pipeline, for arrays of these sizes."""
    form = _Form(task, lanes)
    parameters = []
    for at, array in enumerate(task.inputs):
        parameters.append(hl.ImageParam(form.type, array.ndim, f"in{at}"))
        _bound(parameters[-1], array.shape)
    out = define(form, *parameters)
    _bound(out.output_buffer(), task.out.shape)
    for variable, extent in zip(out.args(), reversed(task.out.shape), strict=True):
        out.set_estimate(variable, 0, extent)
    is_limited = task.vector_bytes < machine.CPUS[machine.widest()]
    target = hl.Target(_LIMITED) if is_limited else hl.get_host_target()
    pipeline = hl.Pipeline(out)
    if scheduler:
        pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(scheduler, {"parallelism": str(task.threads)}))
    pipeline.compile_jit(target)
    for parameter, array in zip(parameters, task.inputs, strict=True):
        parameter.set(hl.Buffer(array))
    result = hl.Buffer(task.out)

    def run():
        pipeline.realize(result)
        return task.out

    return run


def _by_hand(define, part):
    return lambda task: _build(task, define, task.lanes // part)


def _automatic(define, scheduler):
    return lambda task: _build(task, define, 0, scheduler)


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
    },
}
