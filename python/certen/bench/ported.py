"""Kernels of PolyBench and NPBench as a new user would port them: the mathematics, without a schedule.

Each has its NumPy version beside it, as a user of NumPy writes it who cares about time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .kernels import Array, Kernel

ALPHA, BETA = 1.5, 1.2


def _centred(data: Array) -> Array:
    return np.asarray(data - data.mean(axis=0))


def _covariance(data: Array, out: Array) -> None:
    x = _centred(data)
    np.matmul(x.T, x, out=out)
    out /= len(data) - 1


def _correlation(data: Array, out: Array) -> None:
    x, deviation = _centred(data), data.std(axis=0)
    deviation[deviation <= 0.1] = 1
    x /= np.sqrt(len(data)).astype(data.dtype) * deviation
    np.matmul(x.T, x, out=out)
    np.fill_diagonal(out, 1)


def _gemm(a: Array, b: Array, c: Array, out: Array) -> None:
    np.matmul(a, b, out=out)
    out *= ALPHA
    out += BETA * c


def _two_products(a: Array, b: Array, c: Array, d: Array, out: Array) -> None:
    t = a @ b
    t *= ALPHA
    np.matmul(t, c, out=out)
    out += BETA * d


def _two_products_from_the_right(a: Array, b: Array, c: Array, d: Array, out: Array) -> None:
    t = b @ c
    t *= ALPHA
    np.matmul(a, t, out=out)
    out += BETA * d


def _doitgen(a: Array, c: Array, out: Array) -> None:
    np.matmul(a.reshape(-1, a.shape[2]), c, out=out.reshape(-1, c.shape[1]))


def _mlp(x: Array, u: Array, a: Array, v: Array, b: Array, w: Array, c: Array, out: Array) -> None:
    for matrix, shift in ((u, a), (v, b)):
        x = x @ matrix
        x += shift
        np.maximum(x, 0, out=x)
    np.matmul(x, w, out=out)
    out += c
    out -= out.max(axis=1, keepdims=True)
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)


def _atax(a: Array, x: Array, out: Array) -> None:
    np.matmul(a @ x, a, out=out)


def _bicg(a: Array, p: Array, r: Array, out: tuple[Array, Array]) -> None:
    np.matmul(r, a, out=out[0])
    np.matmul(a, p, out=out[1])


# What NumPy does: functions of the inputs, and of the array for the result.
NUMPY: dict[str, dict[str, Callable[..., Any]]] = {
    "gemm": {"matmul": _gemm},
    "2mm": {"from the left": _two_products, "from the right": _two_products_from_the_right},
    "covariance": {"matmul": _covariance},
    "correlation": {"matmul": _correlation},
    "atax": {"matmul": _atax},
    "bicg": {"matmul": _bicg},
    "doitgen": {"matmul": _doitgen},
    "mlp": {"matmul": _mlp},
}


def _first(name: str, output: Callable[..., Any]) -> Callable[..., Any]:
    """What NumPy's first version gives; `output` has its shape, or a list of them, from those of the inputs."""
    function = next(iter(NUMPY[name].values()))

    def reference(*inputs: Array) -> Any:
        shape = output(*(array.shape for array in inputs))
        out = tuple(map(np.empty, shape)) if isinstance(shape, list) else np.empty(shape)
        function(*inputs, out)
        return out

    return reference


PORTED = {
    kernel.name: kernel
    for kernel in [
        Kernel(
            "gemm",
            {"m": 512, "n": 512, "k": 512},
            {"m": 65, "n": 66, "k": 67},
            inputs=lambda m, n, k: [(m, k), (k, n), (m, n)],
            output=lambda m, n, k: (m, n),
            flops=lambda m, n, k: 2 * m * n * k + 3 * m * n,
            reference=_first("gemm", lambda a, b, c: c),
            text="""
fn kernel(A: $T[$m, $k], B: $T[$k, $n], C: $T[$m, $n]) -> $T[$m, $n] {
    1.5 * (A @ B) + 1.2 * C
}""",
        ),
        Kernel(
            "2mm",
            {"i": 400, "j": 450, "k": 500, "m": 550},
            {"i": 40, "j": 45, "k": 50, "m": 55},
            inputs=lambda i, j, k, m: [(i, k), (k, j), (j, m), (i, m)],
            output=lambda i, j, k, m: (i, m),
            flops=lambda i, j, k, m: 2 * min(i * j * k + i * j * m, k * j * m + i * k * m) + 4 * i * m,
            reference=_first("2mm", lambda a, b, c, d: d),
            text="""
fn kernel(A: $T[$i, $k], B: $T[$k, $j], C: $T[$j, $m], D: $T[$i, $m]) -> $T[$i, $m] {
    1.5 * (A @ B) @ C + 1.2 * D
}""",
        ),
        Kernel(
            "covariance",
            {"n": 1000, "m": 800},
            {"n": 100, "m": 80},
            inputs=lambda n, m: [(n, m)],
            output=lambda n, m: (m, m),
            flops=lambda n, m: n * m * (m + 1) + 3 * n * m,
            reference=_first("covariance", lambda x: (x[1], x[1])),
            cancels=True,
            text="""
fn kernel(data: $T[$n, $m]) -> $T[$m, $m] where $n >= 2 {
    let mean = { [j] -> sum({ [i] -> data[i, j] }) / $n };
    let x = { [i, j] -> data[i, j] - mean[j] };
    { [i, j] -> sum({ [k] -> x[k, i] * x[k, j] }) / ($n - 1) }
}""",
        ),
        Kernel(
            "correlation",
            {"n": 1000, "m": 800},
            {"n": 100, "m": 80},
            inputs=lambda n, m: [(n, m)],
            output=lambda n, m: (m, m),
            flops=lambda n, m: n * m * (m + 1) + 7 * n * m,
            reference=_first("correlation", lambda x: (x[1], x[1])),
            cancels=True,
            text="""
fn kernel(data: $T[$n, $m]) -> $T[$m, $m] where $n >= 1 {
    let mean = { [j] -> sum({ [i] -> data[i, j] }) / $n };
    let spread = { [j] -> sqrt(sum({ [i] -> (data[i, j] - mean[j])^2 }) / $n) };
    let deviation = { [j] -> if spread[j] <= 0.1 { 1 } else { spread[j] } };
    let x = { [i, j] -> (data[i, j] - mean[j]) / (sqrt($n) * deviation[j]) };
    { [i, j] -> if i == j { 1 } else { sum({ [k] -> x[k, i] * x[k, j] }) } }
}""",
        ),
        Kernel(
            "atax",
            {"m": 2000, "n": 2000},
            {"m": 190, "n": 210},
            inputs=lambda m, n: [(m, n), (n,)],
            output=lambda m, n: (n,),
            flops=lambda m, n: 4 * m * n,
            reference=_first("atax", lambda a, x: x),
            text="""
fn kernel(A: $T[$m, $n], x: $T[$n]) -> $T[$n] {
    (A @ x) @ A
}""",
        ),
        Kernel(
            "bicg",
            {"m": 2000, "n": 2000},
            {"m": 190, "n": 210},
            inputs=lambda m, n: [(m, n), (n,), (m,)],
            output=lambda m, n: [(n,), (m,)],
            flops=lambda m, n: 4 * m * n,
            reference=_first("bicg", lambda a, p, r: [p, r]),
            text="""
fn kernel(A: $T[$m, $n], p: $T[$n], r: $T[$m]) -> (s: $T[$n], q: $T[$m]) {
    (r @ A, A @ p)
}""",
        ),
        Kernel(
            "doitgen",
            {"r": 150, "q": 140, "p": 160},
            {"r": 15, "q": 14, "p": 16},
            inputs=lambda r, q, p: [(r, q, p), (p, p)],
            output=lambda r, q, p: (r, q, p),
            flops=lambda r, q, p: 2 * r * q * p * p,
            reference=_first("doitgen", lambda a, c: a),
            text="""
fn kernel(A: $T[$r, $q, $p], C: $T[$p, $p]) -> $T[$r, $q, $p] {
    { [i, j, k] -> sum({ [s] -> A[i, j, s] * C[s, k] }) }
}""",
        ),
        Kernel(
            "mlp",
            {"n": 512, "a": 512, "b": 1024, "c": 512, "d": 256},
            {"n": 32, "a": 31, "b": 64, "c": 30, "d": 17},
            inputs=lambda n, a, b, c, d: [(n, a), (a, b), (b,), (b, c), (c,), (c, d), (d,)],
            output=lambda n, a, b, c, d: (n, d),
            flops=lambda n, a, b, c, d: 2 * n * (a * b + b * c + c * d) + 2 * n * (b + c) + 5 * n * d,
            reference=_first("mlp", lambda x, u, a, v, b, w, c: (x[0], w[1])),
            cancels=True,
            text="""
fn kernel(
    x: $T[$n, $a], U: $T[$a, $b], u: $T[$b], V: $T[$b, $c], v: $T[$c], W: $T[$c, $d], w: $T[$d]
) -> $T[$n, $d] where $d >= 1 {
    let first = { [i, j] -> max((x @ U)[i, j] + u[j], 0) };
    let second = { [i, j] -> max((first @ V)[i, j] + v[j], 0) };
    softmax({ [i, j] -> (second @ W)[i, j] + w[j] })
}""",
        ),
    ]
}
