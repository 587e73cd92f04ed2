"""Programs of all kinds, each at two sizes: in the L2 cache (`_l2`), and far larger than any cache (`_mem`).

Time loops are there with one step and with 100 (`_100`). `GROUPS` gives several rows a name, `PROGRAMS` those of one
program. Sizes are such that arrays of f64 take about 1 MiB in all, or 256 MiB. Loops of 100 steps and what does much
with each element are smaller: the slowest peer should take no more than some 10 s. These are `floyd_warshall`, `lu`,
`nbody`, `mandelbrot` and `gelu_mlp`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np

from .kernels import Array, Kernel, Sizes

_States: TypeAlias = tuple[Array, ...]
_Value = TypeVar("_Value")

MANY = 100
# What stands in the programs as numbers.
HEAT, COURANT, WAVE, CELL = 0.1, 0.5, 0.25, 0.05
FEED, KILL, DIFFUSION = 0.055, 0.062, (0.16, 0.08)
SOFTENING, ITERATIONS = 0.01, 50
AMOUNT, THRESHOLD, HARRIS, SPACE, VALUE = 1.5, 0.02, 0.04, 0.1, 5.0
G = (0.0625, 0.25, 0.375, 0.25, 0.0625)
EPSILON = 1e-5


def _rows(name: str, l2: Sizes, mem: Sizes, quick: Sizes, **rest: Any) -> list[Kernel]:
    return [Kernel(f"{name}_{where}", sizes, quick, **rest) for where, sizes in (("l2", l2), ("mem", mem))]


def _marched(
    name: str,
    sizes: tuple[Sizes, Sizes, Sizes, Sizes],
    states: list[str],
    step: Callable[..., _States],
    flops: Callable[..., int],
    output: Callable[..., Any],
    text: str,
    fixed: list[str] | None = None,
    **rest: Any,
) -> list[list[Kernel]]:
    """One step and many; sizes are in the cache, in memory, in memory for many steps, and quick ones.

    `MARCH` in the text is the call of `step`, once or often. It takes states and what is `fixed`.
    """
    l2, mem, less, quick = sizes
    fixed = fixed or []

    def march(steps: int) -> str:
        if steps == 1:
            return f"step({', '.join([*(state + '0' for state in states), *fixed])})"
        begin = ", ".join(f"{state} = {state}0" for state in states)
        if len(states) > 1:
            begin = f"({begin})"
        return f"iterate {steps} times {begin} {{ step({', '.join([*states, *fixed])}) }}"

    def rows(steps: int) -> list[Kernel]:
        def reference(*arrays: Array) -> Any:
            now, others = arrays[: len(states)], arrays[len(states) :]
            for _ in range(steps):
                now = step(*now, *others)
            return now if len(now) > 1 else now[0]

        return _rows(
            name if steps == 1 else f"{name}_{steps}",
            {**l2, "steps": steps},
            {**(mem if steps == 1 else less), "steps": steps},
            {**quick, "steps": steps},
            reference=reference,
            flops=lambda steps, **s: steps * flops(**s),
            output=lambda steps, **s: output(**s),
            text=text.replace("MARCH", march(steps)),
            **rest,
        )

    return [rows(1), rows(MANY)]


def _square(size: int, other: int | None = None) -> Sizes:
    return {"h": size, "w": other or size}


def _heat3d(u: Array) -> _States:
    v = u.copy()
    inside = u[1:-1, 1:-1, 1:-1]
    around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1]
    around += u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
    around += u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
    v[1:-1, 1:-1, 1:-1] = inside + HEAT * (around - 6 * inside)
    return (v,)


def _jacobi2d(u: Array) -> _States:
    v = u.copy()
    v[1:-1, 1:-1] = 0.2 * (u[1:-1, 1:-1] + u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return (v,)


def _fdtd2d(e: Array, p: Array, q: Array, eps: Array) -> _States:
    p, q, e = p - COURANT * np.diff(e, axis=1), q + COURANT * np.diff(e, axis=0), e.copy()
    e[1:-1, 1:-1] += COURANT / eps[1:-1, 1:-1] * (np.diff(q, axis=0)[:, 1:-1] - np.diff(p, axis=1)[1:-1])
    return e, p, q


def _wave2d(a: Array, b: Array) -> _States:
    c, inside = b.copy(), b[1:-1, 1:-1]
    around = b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:]
    c[1:-1, 1:-1] = 2 * inside - a[1:-1, 1:-1] + WAVE * (around - 4 * inside)
    return b, c


def _shallow_water(h: Array, q: Array) -> _States:
    f, g = CELL * q, CELL * (q * q / h + 4.905 * h * h)
    return (np.roll(h + f, 1) + np.roll(h - f, -1)) / 2, (np.roll(q + g, 1) + np.roll(q - g, -1)) / 2


def _gray_scott(u: Array, v: Array) -> _States:
    def laplacian(x: Array) -> Any:
        return np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1) - 4 * x

    reaction = u * v * v
    return (
        u + DIFFUSION[0] * laplacian(u) - reaction + FEED * (1 - u),
        v + DIFFUSION[1] * laplacian(v) + reaction - (FEED + KILL) * v,
    )


_STENCILS = [
    *_marched(
        "heat3d",
        (
            {"d": 40, "h": 40, "w": 40},
            {"d": 256, "h": 260, "w": 264},
            {"d": 200, "h": 208, "w": 208},
            {"d": 9, "h": 10, "w": 21},
        ),
        ["u"],
        _heat3d,
        flops=lambda d, h, w: 8 * (d - 2) * (h - 2) * (w - 2),
        inputs=lambda d, h, w, steps: [(d, h, w)],
        output=lambda d, h, w: (d, h, w),
        text="""
fn step(u: $T[$d, $h, $w]) -> $T[$d, $h, $w] {
    {
        [i, j, k] -> u[i, j, k] + 0.1 * (
            u[i-1, j, k] + u[i+1, j, k] + u[i, j-1, k] + u[i, j+1, k] + u[i, j, k-1] + u[i, j, k+1] - 6 * u[i, j, k]
        ) | 1 <= i < $d - 1, 1 <= j < $h - 1, 1 <= k < $w - 1;
        iv -> u[iv]
    }
}

fn kernel(u0: $T[$d, $h, $w]) -> $T[$d, $h, $w] {
    MARCH
}""",
    ),
    *_marched(
        "jacobi2d",
        (_square(248, 264), _square(4104), _square(2904), _square(30, 41)),
        ["u"],
        _jacobi2d,
        flops=lambda h, w: 5 * (h - 2) * (w - 2),
        inputs=lambda h, w, steps: [(h, w)],
        output=lambda h, w: (h, w),
        text="""
fn step(u: $T[$h, $w]) -> $T[$h, $w] {
    {
        [i, j] -> 0.2 * (u[i, j] + u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1])
            | 1 <= i < $h - 1, 1 <= j < $w - 1;
        iv -> u[iv]
    }
}

fn kernel(u0: $T[$h, $w]) -> $T[$h, $w] {
    MARCH
}""",
    ),
    *_marched(
        "fdtd2d",
        (_square(128, 144), _square(2200), _square(1552), _square(30, 41)),
        ["E", "Hx", "Hy"],
        _fdtd2d,
        flops=lambda h, w: 3 * h * (w - 1) + 3 * (h - 1) * w + 5 * (h - 2) * (w - 2),
        inputs=lambda h, w, steps: [(h, w), (h, w - 1), (h - 1, w), (h, w)],
        output=lambda h, w: [(h, w), (h, w - 1), (h - 1, w)],
        made=lambda e, p, q, eps: [e - 0.5, p - 0.5, q - 0.5, 1 + eps],
        cancels=True,
        fixed=["eps"],
        text="""
fn step(E: $T[$h, $w], Hx: $T[$h, $w-1], Hy: $T[$h-1, $w], eps: $T[$h, $w])
    -> (E1: $T[$h, $w], Hx1: $T[$h, $w-1], Hy1: $T[$h-1, $w])
{
    let p = Hx - 0.5 * diff_on(1, E);
    let q = Hy + 0.5 * diff(E);
    (
        {
            [i, j] -> E[i, j] + 0.5 / eps[i, j] * (q[i, j] - q[i-1, j] - p[i, j] + p[i, j-1]) | 1 <= i, 1 <= j;
            iv -> E[iv]
        },
        p,
        q
    )
}

fn kernel(E0: $T[$h, $w], Hx0: $T[$h, $w-1], Hy0: $T[$h-1, $w], eps: $T[$h, $w])
    -> (E: $T[$h, $w], Hx: $T[$h, $w-1], Hy: $T[$h-1, $w])
{
    MARCH
}""",
    ),
    *_marched(
        "wave2d",
        (_square(176, 184), _square(2904), _square(2056), _square(30, 41)),
        ["a", "b"],
        _wave2d,
        flops=lambda h, w: 7 * (h - 2) * (w - 2),
        inputs=lambda h, w, steps: [(h, w), (h, w)],
        output=lambda h, w: [(h, w), (h, w)],
        cancels=True,
        text="""
fn step(a: $T[$h, $w], b: $T[$h, $w]) -> (before: $T[$h, $w], now: $T[$h, $w]) {
    let next = {
        [i, j] -> 2 * b[i, j] - a[i, j] + 0.25 * (b[i-1, j] + b[i+1, j] + b[i, j-1] + b[i, j+1] - 4 * b[i, j])
            | 1 <= i < $h - 1, 1 <= j < $w - 1;
        iv -> b[iv]
    };
    (b, next)
}

fn kernel(a0: $T[$h, $w], b0: $T[$h, $w]) -> (before: $T[$h, $w], now: $T[$h, $w]) {
    MARCH
}""",
    ),
    *_marched(
        "shallow_water",
        ({"n": 32_768}, {"n": 8_400_000}, {"n": 4_200_000}, {"n": 1000}),
        ["h", "q"],
        _shallow_water,
        flops=lambda n: 14 * n,
        inputs=lambda n, steps: [(n,), (n,)],
        output=lambda n: [(n,), (n,)],
        text="""
fn step(h: $T[$n], q: $T[$n]) -> (depth: $T[$n], momentum: $T[$n]) where $n >= 1 {
    let f = 0.05 * q;
    let g = 0.05 * (q^2 / h + 4.905 * h^2);
    ((rotate(1, h + f) + rotate(-1, h - f)) / 2, (rotate(1, q + g) + rotate(-1, q - g)) / 2)
}

fn kernel(h0: $T[$n], q0: $T[$n]) -> (depth: $T[$n], momentum: $T[$n]) where $n >= 1 {
    MARCH
}""",
    ),
    *_marched(
        "gray_scott",
        (_square(176, 184), _square(2904), _square(2056), _square(30, 41)),
        ["u", "v"],
        _gray_scott,
        flops=lambda h, w: 20 * h * w,
        inputs=lambda h, w, steps: [(h, w), (h, w)],
        output=lambda h, w: [(h, w), (h, w)],
        # Where v is large, a step is too long for the reaction.
        made=lambda u, v: [0.5 + 0.5 * u, 0.1 + 0.4 * v],
        text="""
fn laplacian(x: $T[$h, $w]) -> $T[$h, $w] where $h >= 1, $w >= 1 {
    rotate(1, x) + rotate(-1, x) + rotate_on(1, 1, x) + rotate_on(1, -1, x) - 4 * x
}

fn step(u: $T[$h, $w], v: $T[$h, $w]) -> (u1: $T[$h, $w], v1: $T[$h, $w]) where $h >= 1, $w >= 1 {
    let reaction = u * v^2;
    (
        u + 0.16 * laplacian(u) - reaction + 0.055 * (1 - u),
        v + 0.08 * laplacian(v) + reaction - (0.055 + 0.062) * v
    )
}

fn kernel(u0: $T[$h, $w], v0: $T[$h, $w]) -> (u: $T[$h, $w], v: $T[$h, $w]) where $h >= 1, $w >= 1 {
    MARCH
}""",
    ),
]


def _floyd_warshall(d: Array) -> Array:
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[k])
    return d


def _lu(a: Array) -> Array:
    a = a.copy()
    for k in range(len(a)):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :]
    return a


def _nbody(x: Array, mass: Array) -> Array:
    out = np.empty_like(x)
    for i, place in enumerate(x):
        d = x - place
        r = np.einsum("jd,jd->j", d, d) + SOFTENING
        out[i] = (mass / (r * np.sqrt(r))) @ d
    return out


def _mandelbrot(re: Array, im: Array) -> Array:
    out = np.zeros((len(im), len(re)))
    for row, c in zip(out, im, strict=True):
        x, y = np.zeros_like(re), np.zeros_like(re)
        for _ in range(ITERATIONS):
            inside = x * x + y * y <= 4
            row += inside
            x, y = np.where(inside, x * x - y * y + re, x), np.where(inside, 2 * x * y + c, y)
    return out


_LOOPS = [
    _rows(
        "floyd_warshall",
        {"n": 256},
        {"n": 1024},
        {"n": 40},
        inputs=lambda n: [(n, n)],
        output=lambda n: (n, n),
        flops=lambda n: 2 * n**3,
        reference=_floyd_warshall,
        text="""
fn kernel(D0: $T[$n, $n]) -> $T[$n, $n] {
    iterate k < $n D = D0 {
        { [i, j] -> min(D[i, j], D[i, k] + D[k, j]) }
    }
}""",
    ),
    _rows(
        "lu",
        {"n": 256},
        {"n": 1024},
        {"n": 40},
        inputs=lambda n: [(n, n)],
        output=lambda n: (n, n),
        flops=lambda n: 2 * n**3 // 3,
        reference=_lu,
        # Without pivots, the diagonal has to dominate.
        made=lambda a: [a + len(a) * np.eye(len(a))],
        cancels=True,
        text="""
fn kernel(A0: $T[$n, $n]) -> $T[$n, $n] {
    iterate k < $n A = A0 {
        {
            [i, j] -> A[i, j] - A[i, k] / A[k, k] * A[k, j] | k < i, k < j;
            [i, j] -> A[i, j] / A[k, k] | k < i, k <= j <= k;
            iv -> A[iv]
        }
    }
}""",
    ),
    _rows(
        "nbody",
        {"n": 4096},
        {"n": 16_384},
        {"n": 100},
        inputs=lambda n: [(n, 3), (n,)],
        output=lambda n: (n, 3),
        flops=lambda n: 19 * n * n,
        reference=_nbody,
        made=lambda x, mass: [x - 0.5, 0.1 + mass],
        cancels=True,
        text="""
fn kernel(x: $T[$n, 3], mass: $T[$n]) -> $T[$n, 3] {
    { [i] -> sum({ [j] -> {
        let d = x[j] - x[i];
        let r = d @ d + 0.01;
        mass[j] * d / (r * sqrt(r))
    } }, axis = 0) }
}""",
    ),
    _rows(
        "mandelbrot",
        _square(360, 364),
        _square(4104),
        _square(60, 71),
        inputs=lambda h, w: [(w,), (h,)],
        output=lambda h, w: (h, w),
        flops=lambda h, w: 9 * ITERATIONS * h * w,
        reference=_mandelbrot,
        made=lambda re, im: [np.sort(2.5 * re - 2), np.sort(2.5 * im - 1.25)],
        cancels=True,
        jumps=0.01,
        text="""
fn kernel(re: $T[$w], im: $T[$h]) -> $T[$h, $w] {
    { [i, j] -> {
        let (x, y, n) = iterate 50 times (x = 0, y = 0, n = 0) {
            let inside = x^2 + y^2 <= 4;
            (
                select(inside, x^2 - y^2 + re[j], x),
                select(inside, 2 * x * y + im[i], y),
                select(inside, n + 1, n)
            )
        };
        n
    } }
}""",
    ),
]


def _unsharp(x: Array) -> Array:
    rows = x[:, :-2] + 2 * x[:, 1:-1] + x[:, 2:]
    pixel = x[1:-1, 1:-1]
    detail = pixel - (rows[:-2] + 2 * rows[1:-1] + rows[2:]) / 16
    return np.asarray(np.where(np.abs(detail) > THRESHOLD, np.clip(pixel + AMOUNT * detail, 0, 1), pixel))


def _harris(x: Array) -> Array:
    def windows(y: Array) -> Any:
        rows = y[:, :-2] + y[:, 1:-1] + y[:, 2:]
        return rows[:-2] + rows[1:-1] + rows[2:]

    t = x[2:] - x[:-2]
    a = t[:, :-2] + 2 * t[:, 1:-1] + t[:, 2:]
    t = x[:, 2:] - x[:, :-2]
    b = t[:-2] + 2 * t[1:-1] + t[2:]
    aa, bb, ab = windows(a * a), windows(b * b), windows(a * b)
    return np.asarray(aa * bb - ab**2 - HARRIS * (aa + bb) ** 2)


def _bilateral(x: Array) -> Array:
    h, w = x.shape
    total, weights = np.zeros((h - 4, w - 4)), np.zeros((h - 4, w - 4))
    for k in range(5):
        for m in range(5):
            part = x[k : h - 4 + k, m : w - 4 + m]
            weight = np.exp(-SPACE * ((k - 2) ** 2 + (m - 2) ** 2) - VALUE * (part - x[2:-2, 2:-2]) ** 2)
            total += weight * part
            weights += weight
    return np.asarray(total / weights)


def halves(size: int) -> int:
    """How many windows of five there are at every second place."""
    return (size - 5) // 2 + 1


def _pyramid(x: Array) -> Array:
    h, w = halves(x.shape[0]), halves(x.shape[1])
    rows, out = np.zeros((h, x.shape[1])), np.zeros((h, w))
    for at, weight in enumerate(G):
        rows += weight * x[at : at + 2 * h - 1 : 2]
    for at, weight in enumerate(G):
        out += weight * rows[:, at : at + 2 * w - 1 : 2]
    return out


_IMAGES = [
    _rows(
        "unsharp",
        _square(248, 264),
        _square(4104),
        _square(30, 41),
        inputs=lambda h, w: [(h, w)],
        output=lambda h, w: (h - 2, w - 2),
        flops=lambda h, w: 10 * (h - 2) * (w - 2),
        reference=_unsharp,
        made=lambda x: [x],
        cancels=True,
        jumps=1e-4,
        text="""
const K = [[1.0, 2, 1], [2, 4, 2], [1, 2, 1]];

fn kernel(x: $T[$h, $w]) {
    { [i, j] -> {
        let pixel = x[i+1, j+1];
        let detail = pixel - sum(K * x[i..i+3, j..j+3]) / 16;
        let sharp = min(max(pixel + 1.5 * detail, 0), 1);
        select(abs(detail) > 0.02, sharp, pixel)
    } | i < $h - 2, j < $w - 2 }
}""",
    ),
    _rows(
        "harris",
        _square(248, 264),
        _square(4104),
        _square(30, 41),
        inputs=lambda h, w: [(h, w)],
        output=lambda h, w: (h - 4, w - 4),
        flops=lambda h, w: 30 * (h - 4) * (w - 4),
        reference=_harris,
        cancels=True,
        text="""
fn kernel(x: $T[$h, $w]) {
    let a = { [i, j] -> x[i+2, j] + 2 * x[i+2, j+1] + x[i+2, j+2] - x[i, j] - 2 * x[i, j+1] - x[i, j+2] };
    let b = { [i, j] -> x[i, j+2] + 2 * x[i+1, j+2] + x[i+2, j+2] - x[i, j] - 2 * x[i+1, j] - x[i+2, j] };
    let aa = windows(a * a);
    let bb = windows(b * b);
    aa * bb - windows(a * b)^2 - 0.04 * (aa + bb)^2
}

fn windows(y: $T[m, n]) {
    { [i, j] -> sum(y[i..i+3, j..j+3]) | i < m - 2, j < n - 2 }
}""",
    ),
    _rows(
        "bilateral",
        _square(248, 264),
        _square(4104),
        _square(30, 41),
        inputs=lambda h, w: [(h, w)],
        output=lambda h, w: (h - 4, w - 4),
        flops=lambda h, w: 24 * 8 * (h - 4) * (w - 4),
        reference=_bilateral,
        text="""
fn kernel(x: $T[$h, $w]) -> $T[$h-4, $w-4] where $h >= 4, $w >= 4 {
    { [i, j] -> {
        let square = x[i..i+5, j..j+5];
        let near = { [k, l] -> exp($T(-0.1) * ((k - 2) * (k - 2) + (l - 2) * (l - 2))) | k < 5, l < 5 };
        let weight = near * exp(-5.0 * (square - square[2, 2])^2);
        sum(weight * square) / sum(weight)
    } }
}""",
    ),
    _rows(
        "pyramid",
        _square(320, 328),
        _square(5200),
        _square(30, 41),
        inputs=lambda h, w: [(h, w)],
        output=lambda h, w: (halves(h), halves(w)),
        flops=lambda h, w: 7 * halves(h) * (w + halves(w)),
        reference=_pyramid,
        text="""
const G = [0.0625, 0.25, 0.375, 0.25, 0.0625];

fn kernel(x: $T[$h, $w]) where $h >= 5, $w >= 5 {
    let rows = { [i] -> G @ x[2*i..2*i+5] };
    { [., j] -> rows[., 2*j..2*j+5] @ G | j <= floor_div($w - 5, 2) }
}""",
    ),
]


def _softmax(x: Array) -> Array:
    y = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(y / y.sum(axis=-1, keepdims=True))


def _attention(q: Array, k: Array, v: Array) -> Array:
    return np.stack([_softmax(a @ b.T / np.sqrt(q.shape[2])) @ c for a, b, c in zip(q, k, v, strict=True)])


def _layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
    z = x - x.mean(axis=1, keepdims=True)
    return np.asarray(z / np.sqrt((z * z).mean(axis=1, keepdims=True) + EPSILON) * gamma + beta)


def _batch_norm(x: Array, mu: Array, var: Array, gamma: Array, beta: Array) -> Array:
    def channels(v: Array) -> Array:
        return v[:, None, None]

    scale = channels(gamma / np.sqrt(var + EPSILON))
    return np.asarray((x - channels(mu)) * scale + channels(beta))


def _group_norm(x: Array, gamma: Array, beta: Array) -> Array:
    z = x - x.mean(axis=(2, 3, 4), keepdims=True)
    z /= np.sqrt((z * z).mean(axis=(2, 3, 4), keepdims=True) + EPSILON)
    return np.asarray(z * gamma[..., None, None] + beta[..., None, None])


ROOT = 0.7978845608028654


def _gelu_mlp(x: Array, u: Array, a: Array, v: Array, b: Array) -> Array:
    t = x @ u + a
    return np.asarray((0.5 * t * (1 + np.tanh(ROOT * (t + 0.044715 * t * t * t)))) @ v + b)


def _cross_entropy(logits: Array, targets: Array) -> Array:
    z = logits - logits.max(axis=1, keepdims=True)
    z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
    return np.asarray(-np.vdot(targets, z) / len(z))


def _pairwise(x: Array, y: Array) -> Array:
    return np.stack([np.sqrt(((row - y) ** 2).sum(axis=1)) for row in x])


def _cosine(x: Array, y: Array) -> Array:
    x, y = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (x, y))
    return np.asarray(x @ y.T)


_FEW_IMAGES = {"n": 2, "g": 3, "c": 2, "h": 5, "w": 9}
_LEARNING = [
    _rows(
        "attention",
        {"h": 4, "t": 128, "d": 64},
        {"h": 128, "t": 1024, "d": 64},
        {"h": 2, "t": 20, "d": 10},
        inputs=lambda h, t, d: [(h, t, d)] * 3,
        output=lambda h, t, d: (h, t, d),
        flops=lambda h, t, d: h * (4 * t * t * d + 4 * t * t),
        reference=_attention,
        cancels=True,
        text="""
fn kernel(Q: $T[$h, $t, $d], K: $T[$h, $t, $d], V: $T[$h, $t, $d]) -> $T[$h, $t, $d] where $t >= 1 {
    { [a] -> softmax(Q[a] @ transpose(K[a]) / sqrt($T($d))) @ V[a] }
}""",
    ),
    _rows(
        "softmax",
        {"t": 64, "n": 1000},
        {"t": 16_800, "n": 1000},
        {"t": 12, "n": 50},
        inputs=lambda t, n: [(t, n)],
        output=lambda t, n: (t, n),
        flops=lambda t, n: 5 * t * n,
        reference=_softmax,
        text="""
fn kernel(x: $T[$t, $n]) -> $T[$t, $n] where $n >= 1 {
    softmax(x)
}""",
    ),
    _rows(
        "layer_norm",
        {"t": 64, "n": 1000},
        {"t": 16_800, "n": 1000},
        {"t": 12, "n": 50},
        inputs=lambda t, n: [(t, n), (n,), (n,)],
        output=lambda t, n: (t, n),
        flops=lambda t, n: 7 * t * n,
        reference=_layer_norm,
        cancels=True,
        text="""
fn kernel(x: $T[$t, $n], gamma: $T[$n], beta: $T[$n]) -> $T[$t, $n] {
    { [i] -> (x[i] - mean(x[i])) / sqrt(variance(x[i]) + 1e-5) * gamma + beta }
}""",
    ),
    _rows(
        "batch_norm",
        {"n": 1, "c": 20, "h": 56, "w": 56},
        {"n": 84, "c": 64, "h": 56, "w": 56},
        {"n": 2, "c": 3, "h": 5, "w": 9},
        inputs=lambda n, c, h, w: [(n, c, h, w), (c,), (c,), (c,), (c,)],
        output=lambda n, c, h, w: (n, c, h, w),
        flops=lambda n, c, h, w: 2 * n * c * h * w,
        reference=_batch_norm,
        made=lambda x, mu, var, gamma, beta: [x, mu, 0.1 + var, gamma, beta],
        cancels=True,
        text="""
fn kernel(
    x: $T[$n, $c, $h, $w], mu: $T[$c], var: $T[$c], gamma: $T[$c], beta: $T[$c]
) -> $T[$n, $c, $h, $w] {
    let scale = gamma / sqrt(var + 1e-5);
    { [b, k] -> (x[b, k] - mu[k]) * scale[k] + beta[k] }
}""",
    ),
    _rows(
        "group_norm",
        {"n": 1, "g": 4, "c": 5, "h": 56, "w": 56},
        {"n": 84, "g": 8, "c": 8, "h": 56, "w": 56},
        _FEW_IMAGES,
        inputs=lambda n, g, c, h, w: [(n, g, c, h, w), (g, c), (g, c)],
        output=lambda n, g, c, h, w: (n, g, c, h, w),
        flops=lambda n, g, c, h, w: 6 * n * g * c * h * w,
        reference=_group_norm,
        cancels=True,
        text="""
fn kernel(x: $T[$n, $g, $c, $h, $w], gamma: $T[$g, $c], beta: $T[$g, $c]) -> $T[$n, $g, $c, $h, $w] {
    { [b, k] -> {
        let z = (x[b, k] - mean(x[b, k])) / sqrt(variance(x[b, k]) + 1e-5);
        { [i] -> z[i] * gamma[k, i] + beta[k, i] }
    } }
}""",
    ),
    _rows(
        "gelu_mlp",
        {"t": 128, "d": 128, "m": 320},
        {"t": 4096, "d": 1024, "m": 4096},
        {"t": 12, "d": 20, "m": 30},
        inputs=lambda t, d, m: [(t, d), (d, m), (m,), (m, d), (d,)],
        output=lambda t, d, m: (t, d),
        flops=lambda t, d, m: 4 * t * d * m + 9 * t * m + t * d,
        reference=_gelu_mlp,
        # As a network begins: sums have about the size of what is added.
        made=lambda x, u, a, v, b: [x - 0.5, (u - 0.5) / len(u) ** 0.5, a - 0.5, (v - 0.5) / len(v) ** 0.5, b - 0.5],
        cancels=True,
        text="""
const ROOT = 0.7978845608028654;  // sqrt(2 / pi)

fn gelu(x: $T[s...]) {
    0.5 * x * (1 + tanh(ROOT * (x + 0.044715 * x^3)))
}

fn kernel(x: $T[$t, $d], U: $T[$d, $m], u: $T[$m], V: $T[$m, $d], v: $T[$d]) -> $T[$t, $d] {
    { [i] -> gelu(x[i] @ U + u) @ V + v }
}""",
    ),
    _rows(
        "cross_entropy",
        {"b": 64, "n": 1000},
        {"b": 16_800, "n": 1000},
        {"b": 12, "n": 50},
        inputs=lambda b, n: [(b, n), (b, n)],
        output=lambda b, n: (),
        flops=lambda b, n: 5 * b * n,
        reference=_cross_entropy,
        text="""
fn kernel(logits: $T[$b, $n], targets: $T[$b, $n]) -> $T where $n >= 1 {
    -sum({ [i] -> {
        let z = logits[i] - max(logits[i]);
        targets[i] @ (z - log(sum(exp(z))))
    } }) / $b
}""",
    ),
    _rows(
        "pairwise",
        {"m": 300, "n": 320, "d": 32},
        {"m": 5800, "n": 5800, "d": 32},
        {"m": 21, "n": 30, "d": 16},
        inputs=lambda m, n, d: [(m, d), (n, d)],
        output=lambda m, n, d: (m, n),
        flops=lambda m, n, d: 2 * m * n * d + 4 * m * n,
        reference=_pairwise,
        text="""
fn kernel(X: $T[$m, $d], Y: $T[$n, $d]) -> $T[$m, $n] {
    { [i, j] -> norm(X[i] - Y[j]) }
}""",
    ),
    _rows(
        "cosine",
        {"m": 300, "n": 320, "d": 32},
        {"m": 5800, "n": 5800, "d": 32},
        {"m": 21, "n": 30, "d": 16},
        inputs=lambda m, n, d: [(m, d), (n, d)],
        output=lambda m, n, d: (m, n),
        flops=lambda m, n, d: 2 * m * n * d + 3 * (m + n) * d,
        reference=_cosine,
        text="""
fn kernel(X: $T[$m, $d], Y: $T[$n, $d]) -> $T[$m, $n] {
    { [i, j] -> X[i] @ Y[j] / (norm(X[i]) * norm(Y[j])) }
}""",
    ),
]

# More digits than any entrant has, where the system has them.
_EXACT = np.longdouble


def _precise(name: str, axis: int | None) -> Callable[..., Array]:
    """The reductions, so that the errors of all can be seen."""
    found: dict[str, Callable[..., Any]] = {
        "sum": lambda x: x.sum(axis, _EXACT),
        "min": lambda x: x.min(axis),
        "max": lambda x: x.max(axis),
        "dot": lambda x, y: (x.astype(_EXACT) * y).sum(axis),
        "norm": lambda x: np.sqrt((x.astype(_EXACT) ** 2).sum(axis)),
        "mean": lambda x: x.mean(axis, _EXACT),
        "variance": lambda x: ((x - x.mean(axis, _EXACT, keepdims=True)) ** 2).mean(axis),
    }
    return lambda *arrays: np.asarray(found[name](*arrays))


# Of all elements, and along an axis; operations of each element.
REDUCTIONS = {
    "sum": ("sum(x)", "sum(x, axis = {axis})", 1),
    "min": ("min(x)", "min(x, axis = {axis})", 1),
    "max": ("max(x)", "max(x, axis = {axis})", 1),
    "dot": ("x @ y", "sum(x * y, axis = {axis})", 2),
    "norm": ("norm(x)", "sqrt(sum(x^2, axis = {axis}))", 2),
    "mean": ("mean(x)", "mean_on({axis}, x)", 1),
    "variance": ("variance(x)", "variance_on({axis}, x)", 4),
}
_MILLION = "million"


def _of_all(name: str) -> list[Kernel]:
    whole, _, each = REDUCTIONS[name]
    count = 2 if name == "dot" else 1
    parameters = ", ".join(f"{x}: $T[$n]" for x in "xy"[:count])
    rest: dict[str, Any] = {
        "inputs": lambda n: [(n,)] * count,
        "output": lambda n: (),
        "flops": lambda n: each * n,
        "reference": _precise(name, None),
        "text": f"\nfn kernel({parameters}) -> $T where $n >= 1 {{\n    {whole}\n}}",
    }
    l2, mem, quick = {"n": 131_072 // count}, {"n": 33_554_432 // count}, {"n": 10_000}
    return [*_rows(name, l2, mem, quick, **rest), Kernel(f"{name}_{_MILLION}", {"n": 1_000_000}, quick, **rest)]


def _along(name: str, axis: int) -> list[Kernel]:
    _, along, each = REDUCTIONS[name]
    count = 2 if name == "dot" else 1
    parameters = ", ".join(f"{x}: $T[$m, $n]" for x in "xy"[:count])
    kept = "$n" if axis == 0 else "$m"
    body = along.format(axis=axis)
    return _rows(
        f"{name}_axis{axis}",
        {"m": 360 // count, "n": 364},
        {"m": 5800 // count, "n": 5800},
        {"m": 90, "n": 110},
        inputs=lambda m, n: [(m, n)] * count,
        output=lambda m, n: (n if axis == 0 else m,),
        flops=lambda m, n: each * m * n,
        reference=_precise(name, axis),
        text=f"\nfn kernel({parameters}) -> $T[{kept}] where $m >= 1, $n >= 1 {{\n    {body}\n}}",
    )


_REDUCED = [rows for name in REDUCTIONS for rows in (_of_all(name), _along(name, 0), _along(name, 1))]

_GROUPS = {"time": [*_STENCILS, *_LOOPS], "images": _IMAGES, "learning": _LEARNING, "reductions": _REDUCED}
SWEEP = {kernel.name: kernel for programs in _GROUPS.values() for rows in programs for kernel in rows}
# Names for several rows.
GROUPS = {group: [kernel.name for rows in programs for kernel in rows] for group, programs in _GROUPS.items()}
# The rows of each program, which differ in size only.
PROGRAMS = {
    rows[0].name.removesuffix("_l2"): [kernel.name for kernel in rows]
    for programs in _GROUPS.values()
    for rows in programs
}


def at_each_size(programs: Mapping[str, _Value]) -> dict[str, _Value]:
    """What is there for programs, for their rows."""
    return {row: value for program, value in programs.items() for row in PROGRAMS[program]}
