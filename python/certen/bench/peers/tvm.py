"""TVM: tensor expressions with schedules by hand, for the kernels that are products of matrices."""

# mypy: ignore-errors

import tvm
from tvm import s_tir, te

from .. import machine
from ..kernels import DTYPES

VERSION = tvm.__version__
# The processor that code is made for, by the bytes of its vectors: of AMD, and of all others.
_CPUS = {16: ("x86-64-v2", "x86-64-v2"), 32: ("znver3", "haswell"), 64: ("znver4", "sapphirerapids")}


def _real(task):
    return DTYPES[task.problem.dtype].name


def _mm(task, transposed=False):
    m, n, k = (task.problem.sizes[name] for name in "mnk")
    a = te.placeholder((k, m) if transposed else (m, k), _real(task), "A")
    b = te.placeholder((k, n), _real(task), "B")
    r = te.reduce_axis((0, k), "r")
    c = te.compute((m, n), lambda i, j: te.sum((a[r, i] if transposed else a[i, r]) * b[r, j], axis=r), name="C")
    s = s_tir.Schedule(te.create_prim_func([a, b, c]))
    width, rows = 2 * task.lanes, 8 if task.vector_bytes == 64 else 4
    block = s.get_sblock("C")
    i, j, r = s.get_loops(block)
    packed = s.cache_read(block, 1, "global")
    s.transform_layout(packed, ("write", 0), lambda r, j: (j // width, r, j % width))
    s.parallel(s.get_loops(packed)[0])
    if transposed:
        packed = s.cache_read(block, 0, "global")
        s.transform_layout(packed, ("write", 0), lambda r, i: (i // rows, r, i % rows))
        s.parallel(s.get_loops(packed)[0])
    io, iu, ii = s.split(i, [None, min(16, m // rows), rows])
    jo, ji = s.split(j, [None, width])
    ro, ri = s.split(r, [None, min(256, k)])
    s.reorder(io, jo, iu, ro, ri, ii, ji)
    write = s.cache_write(block, 0, "global")
    s.reverse_compute_at(write, iu)
    s.parallel(io)
    s.vectorize(ji)
    s.unroll(ii)
    _begin(s, block, ro)
    s.vectorize(s.get_loops(write)[-1])
    return s


def _begin(s, block, loop):
    """The accumulators are set before the loop, in vectors."""
    loops = s.get_loops(s.decompose_reduction(block, loop))
    s.vectorize(loops[-1])
    s.unroll(loops[-2])


def _tmm(task):
    return _mm(task, transposed=True)


def _bmm(task):
    batch, m, n, k = (task.problem.sizes[name] for name in "bmnk")
    a = te.placeholder((batch, m, k), _real(task), "A")
    b = te.placeholder((batch, k, n), _real(task), "B")
    r = te.reduce_axis((0, k), "r")
    c = te.compute((batch, m, n), lambda z, i, j: te.sum(a[z, i, r] * b[z, r, j], axis=r), name="C")
    s = s_tir.Schedule(te.create_prim_func([a, b, c]))
    block = s.get_sblock("C")
    z, i, j, r = s.get_loops(block)
    io, ii = s.split(i, [None, 8 if task.vector_bytes == 64 else 6])
    jo, ji = s.split(j, [None, 8])
    s.reorder(z, jo, io, r, ii, ji)
    write = s.cache_write(block, 0, "global")
    s.reverse_compute_at(write, io)
    s.parallel(z)
    s.vectorize(ji)
    s.unroll(ii)
    _begin(s, block, r)
    s.vectorize(s.get_loops(write)[-1])
    return s


def _mttkrp(task):
    m, k, r, n = (task.problem.sizes[name] for name in "mkpn")
    width = 2 * task.lanes
    panels = -(-n // width)
    b = te.placeholder((m, k, r), _real(task), "B")
    c, d = te.placeholder((k, n), _real(task), "C"), te.placeholder((r, n), _real(task), "D")
    rl, rk = te.reduce_axis((0, r), "rl"), te.reduce_axis((0, k), "rk")

    def padded(x):
        zero = te.const(0.0, _real(task))
        return lambda q, y, p: te.if_then_else(q * width + p < n, x[y, q * width + p], zero)

    dp = te.compute((panels, r, width), padded(d), name="Dp")
    cp = te.compute((panels, k, width), padded(c), name="Cp")
    shape = (m, panels, k, width)
    t = te.compute(shape, lambda i, q, y, p: te.sum(b[i, y, rl] * dp[q, rl, p], axis=rl), name="T")
    sums = te.compute((m, panels, width), lambda i, q, p: te.sum(t[i, q, rk, p] * cp[q, rk, p], axis=rk), name="S")
    out = te.compute((m, n), lambda i, j: sums[i, j // width, j % width], name="A")
    s = s_tir.Schedule(te.create_prim_func([b, c, d, out]))
    t, sums = s.get_sblock("T"), s.get_sblock("S")
    i, q, p, y = s.get_loops(sums)
    yo, yi = s.split(y, [None, 5])
    s.reorder(i, q, yo, yi, p)
    s.parallel(i)
    s.compute_at(t, yo)
    *_, ty, tp, tl = s.get_loops(t)
    s.reorder(tl, ty, tp)
    s.vectorize(tp)
    s.unroll(ty)
    _begin(s, t, tl)
    s.vectorize(p)
    s.unroll(yi)
    s.vectorize(s.get_loops(s.decompose_reduction(sums, yo))[-1])
    return s


def _compiled(schedule):
    def formulation(task):
        amd, other = _CPUS[task.vector_bytes]
        cpu = amd if "AMD" in machine.model() else other
        target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": task.threads})
        function = tvm.compile(schedule(task).mod, target=target)["main"]
        arrays = [tvm.runtime.from_dlpack(array) for array in [*task.inputs, task.out]]

        def run():
            function(*arrays)
            return task.out

        return run

    return formulation


FORMULATIONS = {
    "tvm": {
        kernel: {"by hand": _compiled(schedule)}
        for kernel, schedule in {"mm": _mm, "tmm": _tmm, "bmm": _bmm, "mttkrp": _mttkrp}.items()
    }
}
