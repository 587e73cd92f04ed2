"""PolyBench's thirty kernels as a new user would port them, without a schedule; `polybench.c` has them as C.

Stencils go `STEPS` times over their arrays. The kernels that are also in `PORTED` are the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .kernels import Array, Kernel, Shape, Sizes
from .ported import ALPHA, BETA, PORTED

STEPS = 100
# Coefficients of `adi`, and how much `deriche` smooths.
_A, _D, _SMOOTHING = -0.75, -0.5, 0.25


def _k3mm(a: Array, b: Array, c: Array, d: Array) -> Any:
    return (a @ b) @ (c @ d)


def _gemver(a: Array, u1: Array, v1: Array, u2: Array, v2: Array, y: Array, z: Array) -> Any:
    b = a + np.outer(u1, v1) + np.outer(u2, v2)
    x = BETA * (y @ b) + z
    return b, x, ALPHA * (b @ x)


def _gesummv(a: Array, b: Array, x: Array) -> Any:
    return ALPHA * (a @ x) + BETA * (b @ x)


def _mvt(x1: Array, x2: Array, y1: Array, y2: Array, a: Array) -> Any:
    return x1 + a @ y1, x2 + y2 @ a


def _symm(a: Array, b: Array, c: Array) -> Any:
    return ALPHA * ((np.tril(a) + np.tril(a, -1).T) @ b) + BETA * c


def _lower(new: Array, old: Array) -> Any:
    return np.where(np.tri(len(old), dtype=bool), new, old)


def _syrk(a: Array, c: Array) -> Any:
    return _lower(ALPHA * (a @ a.T) + BETA * c, c)


def _syr2k(a: Array, b: Array, c: Array) -> Any:
    return _lower(ALPHA * (a @ b.T + b @ a.T) + BETA * c, c)


def _trmm(a: Array, b: Array) -> Any:
    return ALPHA * (b + np.tril(a, -1).T @ b)


def _cholesky(a: Array) -> Any:
    out = np.zeros_like(a)
    for j in range(len(a)):
        c = a[j:, j] - out[j:, :j] @ out[j, :j]
        out[j:, j] = c / np.sqrt(c[0])
    return out


def _lu(a: Array) -> Any:
    out = a.copy()
    for k in range(len(a)):
        out[k + 1 :, k] /= out[k, k]
        out[k + 1 :, k + 1 :] -= np.outer(out[k + 1 :, k], out[k, k + 1 :])
    return out


def _ludcmp(a: Array, b: Array) -> Any:
    f, x = _lu(a), b.copy()
    for i in range(len(a)):
        x[i] -= f[i, :i] @ x[:i]
    for i in range(len(a) - 1, -1, -1):
        x[i] = (x[i] - f[i, i + 1 :] @ x[i + 1 :]) / f[i, i]
    return x


def _trisolv(a: Array, b: Array) -> Any:
    x = b.copy()
    for i in range(len(b)):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return x


def _durbin(r: Array) -> Any:
    y = np.zeros_like(r)
    alpha, beta = 0.0, 1.0
    for k in range(len(r)):
        beta *= 1 - alpha * alpha
        alpha = -(r[k] + r[:k][::-1] @ y[:k]) / beta
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    return y


def _gramschmidt(a: Array) -> Any:
    n = a.shape[1]
    q, r = a.copy(), np.zeros((n, n), a.dtype)
    for k in range(n):
        r[k, k] = np.linalg.norm(q[:, k])
        q[:, k] /= r[k, k]
        r[k, k + 1 :] = q[:, k] @ q[:, k + 1 :]
        q[:, k + 1 :] -= np.outer(q[:, k], r[k, k + 1 :])
    return q, r


def _down(x: Array, a: float, b: float, c: float, d: float) -> Array:
    y = a * x
    y[1:] += b * x[:-1]
    for i in range(1, len(x)):
        y[i] += c * y[i - 1]
        if i >= 2:
            y[i] += d * y[i - 2]
    return y


def _both(x: Array) -> Array:
    e = math.exp(-_SMOOTHING)
    k = (1 - e) ** 2 / (1 + 2 * _SMOOTHING * e - math.exp(2 * _SMOOTHING))
    c, d = 2.0**-_SMOOTHING, -e * e
    late = np.concatenate([np.zeros_like(x[:1]), x[:0:-1]])
    up = _down(late, k * e * (_SMOOTHING + 1), -k * e * e, c, d)
    return _down(x, k, k * e * (_SMOOTHING - 1), c, d) + up[::-1]


def _deriche(x: Array) -> Any:
    return _both(_both(x).T).T


def _floyd_warshall(d: Array) -> Any:
    out = d.copy()
    for k in range(len(d)):
        np.minimum(out, out[:, k, None] + out[k], out=out)
    return out


def _nussinov(bases: Array) -> Any:
    n = len(bases)
    t = np.zeros((n, n), bases.dtype)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            pair = i < j - 1 and bases[i] + bases[j] == 3
            t[i, j] = max(t[i + 1, j - 1] + pair, np.max(t[i, i:j] + t[i + 1 : j + 1, j]))
    return t


def _half(u: Array, a: float, d: float) -> Array:
    b = 1 - 2 * a
    p, q, v = np.zeros(len(u)), np.ones_like(u), np.ones_like(u)
    for j in range(1, len(u) - 1):
        w = a * p[j - 1] + b
        p[j] = -a / w
        q[j, 1:-1] = ((1 + 2 * d) * u[j, 1:-1] - d * (u[j, :-2] + u[j, 2:]) - a * q[j - 1, 1:-1]) / w
    for j in range(len(u) - 2, 0, -1):
        v[j, 1:-1] = p[j] * v[j + 1, 1:-1] + q[j, 1:-1]
    return v


def _adi(u: Array) -> Any:
    for _ in range(STEPS):
        u = _half(_half(u, _A, _D).T, _D, _A).T
    return u


def _fdtd_2d(ex: Array, ey: Array, hz: Array, border: Array) -> Any:
    ex, ey, hz = ex.copy(), ey.copy(), hz.copy()
    for value in border:
        ey[0] = value
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


def _heat_3d(u: Array) -> Any:
    u = u.copy()
    for _ in range(STEPS):
        inner = u[1:-1, 1:-1, 1:-1]
        around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
        around += u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
        inner += 0.125 * (around - 6 * inner)
    return u


def _jacobi_1d(x: Array) -> Any:
    x = x.copy()
    for _ in range(STEPS):
        x[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    return x


def _jacobi_2d(x: Array) -> Any:
    x = x.copy()
    for _ in range(STEPS):
        x[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1])
    return x


def _seidel_2d(x: Array) -> Any:
    x = x.copy()
    h, w = x.shape
    for _ in range(STEPS):
        for i in range(h - 2):
            for j in range(w - 2):
                x[i + 1, j + 1] = np.sum(x[i : i + 3, j : j + 3]) / 9
    return x


# What the inputs are made of are numbers between 0 and 1; kernels that cancel want some below 0.
def _centred(*inputs: Array) -> list[Array]:
    return [array - 0.5 for array in inputs]


def _triangular(a: Array, b: Array) -> list[Array]:
    made, other = _dominant(a, b)
    return [np.tril(made), other]


def _dominant(*inputs: Array) -> list[Array]:
    """A matrix that has an LU factorization without pivots, and the rest."""
    a, *others = _centred(*inputs)
    np.fill_diagonal(a, len(a))
    return [a, *others]


def _definite(a: Array) -> list[Array]:
    return _dominant((a + a.T) / 2)


def _short(r: Array) -> list[Array]:
    """Correlations that belong to a definite matrix."""
    return [(r - 0.5) / len(r)]


def _bases(x: Array) -> list[Array]:
    return [np.floor(4 * x)]


_REFERENCES: dict[str, Callable[..., Any]] = {
    "3mm": _k3mm,
    "gemver": _gemver,
    "gesummv": _gesummv,
    "mvt": _mvt,
    "symm": _symm,
    "syrk": _syrk,
    "syr2k": _syr2k,
    "trmm": _trmm,
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
    "heat-3d": _heat_3d,
    "jacobi-1d": _jacobi_1d,
    "jacobi-2d": _jacobi_2d,
    "seidel-2d": _seidel_2d,
}


def _returned(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes the array for the result, too."""
    return lambda *arrays: function(*arrays[:-1])


# What NumPy does: functions of the inputs, and of the array for the result.
REFERENCES: dict[str, dict[str, Callable[..., Any]]] = {
    name: {"slices": _returned(function)} for name, function in _REFERENCES.items()
}


def _kernel(
    name: str,
    sizes: Sizes,
    quick: Sizes,
    inputs: Callable[..., list[Shape]],
    output: Callable[..., Shape | list[Shape]],
    flops: Callable[..., int],
    text: str,
    cancels: bool = False,
    made: Callable[..., list[Array]] | None = None,
) -> Kernel:
    return Kernel(name, sizes, quick, inputs, output, flops, _REFERENCES[name], text, cancels=cancels, made=made)


_NEW = [
    _kernel(
        "3mm",
        {"i": 400, "j": 450, "k": 500, "p": 550, "m": 600},
        {"i": 40, "j": 45, "k": 50, "p": 55, "m": 60},
        inputs=lambda i, j, k, p, m: [(i, k), (k, j), (j, m), (m, p)],
        output=lambda i, j, k, p, m: (i, p),
        flops=lambda i, j, k, p, m: 2 * min(i * j * k + j * m * p + i * j * p, i * k * j + i * j * m + i * m * p),
        text="""
fn kernel(A: $T[$i, $k], B: $T[$k, $j], C: $T[$j, $m], D: $T[$m, $p]) -> $T[$i, $p] {
    (A @ B) @ (C @ D)
}""",
    ),
    _kernel(
        "gemver",
        {"n": 2000},
        {"n": 190},
        inputs=lambda n: [(n, n), *[(n,)] * 6],
        output=lambda n: [(n, n), (n,), (n,)],
        flops=lambda n: 8 * n * n + 3 * n,
        text="""
fn kernel(A: $T[$n, $n], u1: $T[$n], v1: $T[$n], u2: $T[$n], v2: $T[$n], y: $T[$n], z: $T[$n])
    -> (B: $T[$n, $n], x: $T[$n], w: $T[$n])
{
    let B = A + outer(u1, v1) + outer(u2, v2);
    let x = 1.2 * (y @ B) + z;
    (B, x, 1.5 * (B @ x))
}""",
    ),
    _kernel(
        "gesummv",
        {"m": 1300, "n": 1350},
        {"m": 130, "n": 135},
        inputs=lambda m, n: [(m, n), (m, n), (n,)],
        output=lambda m, n: (m,),
        flops=lambda m, n: 4 * m * n + 3 * m,
        text="""
fn kernel(A: $T[$m, $n], B: $T[$m, $n], x: $T[$n]) -> $T[$m] {
    1.5 * (A @ x) + 1.2 * (B @ x)
}""",
    ),
    _kernel(
        "mvt",
        {"m": 2000, "n": 2100},
        {"m": 190, "n": 210},
        inputs=lambda m, n: [(m,), (n,), (n,), (m,), (m, n)],
        output=lambda m, n: [(m,), (n,)],
        flops=lambda m, n: 4 * m * n,
        text="""
fn kernel(x1: $T[$m], x2: $T[$n], y1: $T[$n], y2: $T[$m], A: $T[$m, $n]) -> (x1: $T[$m], x2: $T[$n]) {
    (x1 + A @ y1, x2 + y2 @ A)
}""",
    ),
    _kernel(
        "symm",
        {"m": 500, "n": 600},
        {"m": 50, "n": 60},
        inputs=lambda m, n: [(m, m), (m, n), (m, n)],
        output=lambda m, n: (m, n),
        flops=lambda m, n: 2 * m * m * n + 3 * m * n,
        text="""
fn kernel(A: $T[$m, $m], B: $T[$m, $n], C: $T[$m, $n]) -> $T[$m, $n] {
    let S = { [i, j] -> if j <= i { A[i, j] } else { A[j, i] } };
    1.5 * (S @ B) + 1.2 * C
}""",
    ),
    _kernel(
        "syrk",
        {"n": 600, "k": 500},
        {"n": 60, "k": 50},
        inputs=lambda n, k: [(n, k), (n, n)],
        output=lambda n, k: (n, n),
        flops=lambda n, k: n * (n + 1) // 2 * (2 * k + 3),
        text="""
fn kernel(A: $T[$n, $k], C: $T[$n, $n]) -> $T[$n, $n] {
    { [i, j] -> if j <= i { 1.5 * (A[i] @ A[j]) + 1.2 * C[i, j] } else { C[i, j] } }
}""",
    ),
    _kernel(
        "syr2k",
        {"n": 600, "k": 500},
        {"n": 60, "k": 50},
        inputs=lambda n, k: [(n, k), (n, k), (n, n)],
        output=lambda n, k: (n, n),
        flops=lambda n, k: n * (n + 1) // 2 * (4 * k + 3),
        text="""
fn kernel(A: $T[$n, $k], B: $T[$n, $k], C: $T[$n, $n]) -> $T[$n, $n] {
    { [i, j] -> if j <= i { 1.5 * (A[i] @ B[j] + B[i] @ A[j]) + 1.2 * C[i, j] } else { C[i, j] } }
}""",
    ),
    _kernel(
        "trmm",
        {"m": 500, "n": 600},
        {"m": 50, "n": 60},
        inputs=lambda m, n: [(m, m), (m, n)],
        output=lambda m, n: (m, n),
        flops=lambda m, n: m * m * n,
        text="""
fn kernel(A: $T[$m, $m], B: $T[$m, $n]) -> $T[$m, $n] {
    1.5 * { [i] -> B[i] + A[i+1.., i] @ B[i+1..] }
}""",
    ),
    _kernel(
        "cholesky",
        {"n": 500},
        {"n": 40},
        inputs=lambda n: [(n, n)],
        output=lambda n: (n, n),
        flops=lambda n: n**3 // 3,
        cancels=True,
        made=_definite,
        text="""
fn kernel(A: $T[$n, $n]) -> $T[$n, $n] {
    iterate j < $n L = 0 * A {
        let c = { [i] -> A[i, j] - L[i, ..j] @ L[j, ..j] };
        { [i, k] -> c[i] / sqrt(c[j]) | j <= i, j <= k <= j; iv -> L[iv] }
    }
}""",
    ),
    _kernel(
        "lu",
        {"n": 500},
        {"n": 40},
        inputs=lambda n: [(n, n)],
        output=lambda n: (n, n),
        flops=lambda n: 2 * n**3 // 3,
        cancels=True,
        made=_dominant,
        text="""
fn kernel(A0: $T[$n, $n]) -> $T[$n, $n] {
    iterate k < $n A = A0 {
        let l = A[., k] / A[k, k];
        { [i, j] -> l[i] | k < i, k <= j <= k; [i, j] -> A[i, j] - l[i] * A[k, j] | k < i, k < j; iv -> A[iv] }
    }
}""",
    ),
    _kernel(
        "ludcmp",
        {"n": 500},
        {"n": 40},
        inputs=lambda n: [(n, n), (n,)],
        output=lambda n: (n,),
        flops=lambda n: 2 * n**3 // 3 + 2 * n * n,
        cancels=True,
        made=_dominant,
        text="""
fn kernel(A0: $T[$n, $n], b: $T[$n]) -> $T[$n] {
    let A = iterate k < $n A = A0 {
        let l = A[., k] / A[k, k];
        { [i, j] -> l[i] | k < i, k <= j <= k; [i, j] -> A[i, j] - l[i] * A[k, j] | k < i, k < j; iv -> A[iv] }
    };
    let y = iterate i < $n y = b {
        { [k] -> b[i] - A[i, ..i] @ y[..i] | i <= k <= i; [k] -> y[k] }
    };
    iterate t < $n x = y {
        let i = $n - 1 - t;
        { [k] -> (y[i] - A[i, i+1..] @ x[i+1..]) / A[i, i] | i <= k <= i; [k] -> x[k] }
    }
}""",
    ),
    _kernel(
        "trisolv",
        {"n": 2000},
        {"n": 190},
        inputs=lambda n: [(n, n), (n,)],
        output=lambda n: (n,),
        flops=lambda n: n * n,
        cancels=True,
        made=_triangular,
        text="""
fn kernel(L: $T[$n, $n], b: $T[$n]) -> $T[$n] {
    iterate i < $n x = b {
        { [k] -> (b[i] - L[i, ..i] @ x[..i]) / L[i, i] | i <= k <= i; [k] -> x[k] }
    }
}""",
    ),
    _kernel(
        "durbin",
        {"n": 2000},
        {"n": 190},
        inputs=lambda n: [(n,)],
        output=lambda n: (n,),
        flops=lambda n: 2 * n * n,
        cancels=True,
        made=_short,
        text="""
fn kernel(r: $T[$n]) -> $T[$n] {
    let (y, _, _) = iterate k < $n (y = 0 * r, alpha = $T(0.0), beta = $T(1.0)) {
        let b = (1 - alpha * alpha) * beta;
        let a = -(r[k] + reverse(r[..k]) @ y[..k]) / b;
        ({ [i] -> y[i] + a * y[k-1-i] | i < k; [i] -> a | i <= k; [i] -> y[i] }, a, b)
    };
    y
}""",
    ),
    _kernel(
        "gramschmidt",
        {"m": 300, "n": 250},
        {"m": 50, "n": 40},
        inputs=lambda m, n: [(m, n)],
        output=lambda m, n: [(m, n), (n, n)],
        flops=lambda m, n: 2 * m * n * n,
        cancels=True,
        text="""
fn kernel(A: $T[$m, $n]) -> (Q: $T[$m, $n], R: $T[$n, $n]) where $m >= $n {
    iterate k < $n (Q = A, R = full([$n, $n], $T(0.0))) {
        let q = Q[., k] / norm(Q[., k]);
        let r = q @ Q;
        (
            { [i, j] -> q[i] | k <= j <= k; [i, j] -> Q[i, j] - q[i] * r[j] | k < j; iv -> Q[iv] },
            { [i, j] -> r[j] | k <= i <= k, k <= j; iv -> R[iv] }
        )
    }
}""",
    ),
    _kernel(
        "deriche",
        {"h": 480, "w": 720},
        {"h": 48, "w": 72},
        inputs=lambda h, w: [(h, w)],
        output=lambda h, w: (h, w),
        flops=lambda h, w: 2 * 15 * h * w,
        cancels=True,
        text="""
fn down(x: $T[h, w], a: $T, b: $T, c: $T, d: $T) -> $T[h, w] {
    iterate i < h y = 0 * x {
        {
            [k] -> a * x[k] + guard(k >= 1, b * x[k-1] + c * y[k-1]) + guard(k >= 2, d * y[k-2]) | i <= k <= i;
            [k] -> y[k]
        }
    }
}

fn both(x: $T[h, w], alpha: $T) -> $T[h, w] {
    let e = exp(-alpha);
    let k = (1 - e)^2 / (1 + 2 * alpha * e - exp(2 * alpha));
    let c = pow(2, -alpha);
    let d = -e * e;
    let up = down(shift(1, 0, reverse(x)), k * e * (alpha + 1), -k * e * e, c, d);
    down(x, k, k * e * (alpha - 1), c, d) + reverse(up)
}

fn kernel(x: $T[$h, $w]) -> $T[$h, $w] {
    transpose(both(transpose(both(x, 0.25)), 0.25))
}""",
    ),
    _kernel(
        "floyd-warshall",
        {"n": 500},
        {"n": 40},
        inputs=lambda n: [(n, n)],
        output=lambda n: (n, n),
        flops=lambda n: 2 * n**3,
        text="""
fn kernel(D0: $T[$n, $n]) -> $T[$n, $n] {
    iterate k < $n D = D0 {
        { [i, j] -> min(D[i, j], D[i, k] + D[k, j]) }
    }
}""",
    ),
    _kernel(
        "nussinov",
        {"n": 500},
        {"n": 40},
        inputs=lambda n: [(n,)],
        output=lambda n: (n, n),
        flops=lambda n: n**3 // 3,
        cancels=True,
        made=_bases,
        text="""
fn kernel(bases: $T[$n]) -> $T[$n, $n] {
    iterate d < $n - 1 t = full([$n, $n], $T(0.0)) {
        {
            [i, j] -> if j == i + d + 1 {
                let pair = $T(if d >= 1 && bases[i] + bases[j] == 3 { 1.0 } else { 0.0 });
                max(t[i+1, j-1] + pair, max(t[i, i..j] + t[i+1..j+1, j]))
            } else { t[i, j] } | [i, j] < [$n, $n]
        }
    }
}""",
    ),
    _kernel(
        "adi",
        {"m": 200, "n": 220},
        {"m": 20, "n": 22},
        inputs=lambda m, n: [(m, n)],
        output=lambda m, n: (m, n),
        flops=lambda m, n: 2 * STEPS * 9 * (m - 2) * (n - 2),
        text=f"""
fn half(u: $T[m, n], a: $T, d: $T) -> $T[m, n] {{
    let b = 1 - 2 * a;
    let (p, q) = iterate j < m - 2 (p = full([m], $T(0.0)), q = full([m, n], $T(1.0))) {{
        let w = a * p[j] + b;
        (
            {{ [k] -> -a / w | j < k < j + 2; [k] -> p[k] }},
            {{
                [k, i] -> ((1 + 2 * d) * u[k, i] - d * (u[k, i-1] + u[k, i+1]) - a * q[j, i]) / w
                    | j < k < j + 2, 1 <= i < n - 1;
                iv -> q[iv]
            }}
        )
    }};
    iterate t < m - 2 v = full([m, n], $T(1.0)) {{
        let j = m - 2 - t;
        {{ [k, i] -> p[j] * v[j+1, i] + q[j, i] | j <= k <= j, 1 <= i < n - 1; iv -> v[iv] }}
    }}
}}

fn kernel(u0: $T[$m, $n]) -> $T[$m, $n] {{
    iterate {STEPS} times u = u0 {{ transpose(half(transpose(half(u, {_A}, {_D})), {_D}, {_A})) }}
}}""",
    ),
    _kernel(
        "fdtd-2d",
        {"h": 200, "w": 240, "t": STEPS},
        {"h": 20, "w": 24, "t": STEPS},
        inputs=lambda h, w, t: [*[(h, w)] * 3, (t,)],
        output=lambda h, w, t: [(h, w)] * 3,
        flops=lambda h, w, t: t * 11 * (h - 1) * (w - 1),
        cancels=True,
        text="""
fn kernel(ex0: $T[$h, $w], ey0: $T[$h, $w], hz0: $T[$h, $w], border: $T[$t])
    -> (ex: $T[$h, $w], ey: $T[$h, $w], hz: $T[$h, $w])
{
    iterate s < $t (ex = ex0, ey = ey0, hz = hz0) {
        let y = { [i, j] -> if i >= 1 { ey[i, j] - 0.5 * (hz[i, j] - hz[i-1, j]) } else { border[s] } };
        let x = { [i, j] -> ex[i, j] - 0.5 * (hz[i, j] - hz[i, j-1]) | 1 <= j; iv -> ex[iv] };
        let z = {
            [i, j] -> hz[i, j] - 0.7 * (x[i, j+1] - x[i, j] + y[i+1, j] - y[i, j]);
            iv -> hz[iv]
        };
        (x, y, z)
    }
}""",
    ),
    _kernel(
        "heat-3d",
        {"d": 40, "h": 42, "w": 44},
        {"d": 10, "h": 11, "w": 12},
        inputs=lambda d, h, w: [(d, h, w)],
        output=lambda d, h, w: (d, h, w),
        flops=lambda d, h, w: STEPS * 9 * (d - 2) * (h - 2) * (w - 2),
        text=f"""
fn kernel(u0: $T[$d, $h, $w]) -> $T[$d, $h, $w] {{
    iterate {STEPS} times u = u0 {{
        {{
            [i, j, k] -> u[i, j, k] + 0.125 * (
                u[i-1, j, k] + u[i+1, j, k] + u[i, j-1, k] + u[i, j+1, k]
                    + u[i, j, k-1] + u[i, j, k+1] - 6 * u[i, j, k]
            ) | 1 <= i < $d - 1, 1 <= j < $h - 1, 1 <= k < $w - 1;
            iv -> u[iv]
        }}
    }}
}}""",
    ),
    _kernel(
        "jacobi-1d",
        {"n": 2000},
        {"n": 200},
        inputs=lambda n: [(n,)],
        output=lambda n: (n,),
        flops=lambda n: STEPS * 3 * (n - 2),
        text=f"""
fn kernel(x0: $T[$n]) -> $T[$n] {{
    iterate {STEPS} times x = x0 {{
        {{ [i] -> (x[i-1] + x[i] + x[i+1]) / 3 | 1 <= i < $n - 1; [i] -> x[i] }}
    }}
}}""",
    ),
    _kernel(
        "jacobi-2d",
        {"h": 250, "w": 260},
        {"h": 25, "w": 26},
        inputs=lambda h, w: [(h, w)],
        output=lambda h, w: (h, w),
        flops=lambda h, w: STEPS * 5 * (h - 2) * (w - 2),
        text=f"""
fn kernel(x0: $T[$h, $w]) -> $T[$h, $w] {{
    iterate {STEPS} times x = x0 {{
        {{
            [i, j] -> 0.2 * (x[i, j] + x[i, j-1] + x[i, j+1] + x[i+1, j] + x[i-1, j])
                | 1 <= i < $h - 1, 1 <= j < $w - 1;
            iv -> x[iv]
        }}
    }}
}}""",
    ),
    _kernel(
        "seidel-2d",
        {"h": 50, "w": 60},
        {"h": 12, "w": 14},
        inputs=lambda h, w: [(h, w)],
        output=lambda h, w: (h, w),
        flops=lambda h, w: STEPS * 9 * (h - 2) * (w - 2),
        text=f"""
fn kernel(x0: $T[$h, $w]) -> $T[$h, $w] {{
    iterate {STEPS} times x = x0 {{
        iterate i < $h - 2 y = x {{
            iterate j < $w - 2 z = y {{
                {{ [p, q] -> sum(z[i..i+3, j..j+3]) / 9 | i < p < i + 2, j < q < j + 2; iv -> z[iv] }}
            }}
        }}
    }}
}}""",
    ),
]

POLYBENCH = {name: kernel for name, kernel in PORTED.items() if name != "mlp"}
POLYBENCH |= {kernel.name: kernel for kernel in _NEW}
