"""The kernels: what each computes, how much that is at least, and the program as a user writes it.

Entries of inputs are positive, so that a plain relative tolerance means something, unless a kernel `cancels`. `flops`
counts the least algorithm that is known (sums factorised), `bytes` each input read once and the output written once:
both are lower limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from string import Template
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Shape: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = dict[str, int]

DTYPES: dict[str, np.dtype[Any]] = {"f64": np.dtype(np.float64), "f32": np.dtype(np.float32)}
# How much an element may differ from the reference, as a part of it.
TOLERANCE = {"f64": 1e-8, "f32": 1e-3}


@dataclass(frozen=True)
class Kernel:
    """What is computed; functions take the sizes by name."""

    name: str
    sizes: Sizes
    quick: Sizes
    inputs: Callable[..., list[Shape]]
    # A list, if there are several results.
    output: Callable[..., Shape | list[Shape]]
    flops: Callable[..., int]
    reference: Callable[..., Array | tuple[Array, ...]]
    # `$T` is the element type, `$m` a size: a name, or a number where the sizes are part of the program.
    text: str
    # Of einsum, if the kernel is a generated contraction.
    subscripts: str = ""
    # Whether what is added up cancels: inputs are centred then, and errors are parts of the mean result.
    cancels: bool = False
    # Makes the inputs of numbers between 0 and 1, where they have to be others.
    made: Callable[..., list[Array]] | None = None
    # The part of the elements that may be anything: those where rounding decides a condition.
    jumps: float = 0.0


@dataclass(frozen=True)
class Problem:
    """A kernel at some sizes, for an element type."""

    kernel: Kernel
    sizes: Sizes
    dtype: str

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def inputs(self) -> list[Shape]:
        return self.kernel.inputs(**self.sizes)

    @property
    def output(self) -> Shape | list[Shape]:
        return self.kernel.output(**self.sizes)

    @property
    def flops(self) -> int:
        return self.kernel.flops(**self.sizes)

    @property
    def bytes(self) -> int:
        outputs = self.output if isinstance(self.output, list) else [self.output]
        elements = sum(math.prod(shape) for shape in [*self.inputs, *outputs])
        return elements * DTYPES[self.dtype].itemsize

    def text(self, *, fixed: bool = False) -> str:
        """The program, with sizes that stand for any, or fixed."""
        sizes = {name: size if fixed else name for name, size in self.sizes.items()}
        return Template(self.kernel.text).substitute(sizes, T=self.dtype)

    def make_inputs(self, seed: int) -> list[Array]:
        rng = np.random.default_rng(seed)
        if self.kernel.made is not None:
            drawn = self.kernel.made(*(rng.random(shape) for shape in self.inputs))
            return [array.astype(DTYPES[self.dtype]) for array in drawn]
        shift = -0.5 if self.kernel.cancels else 0.1
        return [(rng.random(shape) + shift).astype(DTYPES[self.dtype]) for shape in self.inputs]

    def reference(self, inputs: list[Array]) -> Array:
        """What has to come out, computed by NumPy in double precision."""
        return whole(self.kernel.reference(*(array.astype(np.float64) for array in inputs)))


def whole(result: Any) -> Array:
    """A result, or several as one array."""
    return np.concatenate([np.ravel(one) for one in result]) if isinstance(result, tuple) else np.asarray(result)


def _convolution(x: Array, w: Array) -> Array:
    n, g, _, height, width = x.shape
    _, f, _, p, q = w.shape
    h, v = height - p + 1, width - q + 1
    out = np.zeros((n, g, f, h, v))
    for u in range(p):
        for t in range(q):
            out += np.einsum("ngchw,gfc->ngfhw", x[..., u : u + h, t : t + v], w[..., u, t], optimize=True)
    return out


def _three_modes(p: Array, u: Array) -> Array:
    return np.asarray(np.einsum("ia,jb,kc,eabc->eijk", p, p, p, u, optimize=True))


def _blur(x: Array) -> Array:
    rows = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3
    return np.asarray((rows[:-2] + rows[1:-1] + rows[2:]) / 3)


def _coars(x: Array, y: Array) -> Array:
    return np.asarray((x * x) * (y * y) - (x * y) ** 2 - 0.04 * (x * x + y * y) ** 2)


def _gconv(name: str, sizes: Sizes, quick: Sizes) -> Kernel:
    return Kernel(
        name,
        sizes,
        quick,
        inputs=lambda n, g, f, c, h, w, p, q: [(n, g, c, h, w), (g, f, c, p, q)],
        output=lambda n, g, f, c, h, w, p, q: (n, g, f, h - p + 1, w - q + 1),
        flops=lambda n, g, f, c, h, w, p, q: 2 * n * g * f * c * (h - p + 1) * (w - q + 1) * p * q,
        reference=_convolution,
        text="""
fn kernel(X: $T[$n, $g, $c, $h, $w], W: $T[$g, $f, $c, $p, $q]) -> $T[$n, $g, $f, $h-$p+1, $w-$q+1]
where $h >= $p, $w >= $q, $p >= 1, $q >= 1 {
    { [b, s, o, y, x] -> sum({ [z, u, v] -> X[b, s, z, y+u, x+v] * W[s, o, z, u, v] }) }
}""",
    )


_MATRICES = {"m": 1024, "n": 1024, "k": 1024}
_FEW = {"m": 128, "n": 128, "k": 128}

KERNELS = {
    kernel.name: kernel
    for kernel in [
        Kernel(
            "mm",
            _MATRICES,
            _FEW,
            inputs=lambda m, n, k: [(m, k), (k, n)],
            output=lambda m, n, k: (m, n),
            flops=lambda m, n, k: 2 * m * n * k,
            reference=lambda a, b: a @ b,
            text="""
fn kernel(A: $T[$m, $k], B: $T[$k, $n]) -> $T[$m, $n] {
    { [i, j] -> sum({ [l] -> A[i, l] * B[l, j] }) }
}""",
        ),
        Kernel(
            "tmm",
            _MATRICES,
            _FEW,
            inputs=lambda m, n, k: [(k, m), (k, n)],
            output=lambda m, n, k: (m, n),
            flops=lambda m, n, k: 2 * m * n * k,
            reference=lambda a, b: a.T @ b,
            text="""
fn kernel(A: $T[$k, $m], B: $T[$k, $n]) -> $T[$m, $n] {
    { [i, j] -> sum({ [l] -> A[l, i] * B[l, j] }) }
}""",
        ),
        Kernel(
            "bmm",
            {"b": 8192, "m": 72, "n": 72, "k": 26},
            {"b": 64, "m": 72, "n": 72, "k": 26},
            inputs=lambda b, m, n, k: [(b, m, k), (b, k, n)],
            output=lambda b, m, n, k: (b, m, n),
            flops=lambda b, m, n, k: 2 * b * m * n * k,
            reference=lambda a, b: a @ b,
            text="""
fn kernel(A: $T[$b, $m, $k], B: $T[$b, $k, $n]) -> $T[$b, $m, $n] {
    { [z, i, j] -> sum({ [l] -> A[z, i, l] * B[z, l, j] }) }
}""",
        ),
        _gconv(
            "gconv",
            {"n": 4, "g": 8, "f": 8, "c": 8, "h": 38, "w": 38, "p": 7, "q": 7},
            {"n": 2, "g": 2, "f": 8, "c": 8, "h": 38, "w": 38, "p": 7, "q": 7},
        ),
        _gconv(
            "gconv_dw",
            {"n": 32, "g": 32, "f": 1, "c": 1, "h": 38, "w": 38, "p": 7, "q": 7},
            {"n": 2, "g": 4, "f": 1, "c": 1, "h": 38, "w": 38, "p": 7, "q": 7},
        ),
        Kernel(
            "mttkrp",
            {"m": 250, "k": 250, "p": 250, "n": 250},
            {"m": 20, "k": 50, "p": 50, "n": 50},
            inputs=lambda m, k, p, n: [(m, k, p), (k, n), (p, n)],
            output=lambda m, k, p, n: (m, n),
            flops=lambda m, k, p, n: 2 * m * k * p * n + 2 * m * k * n,
            reference=lambda b, c, d: np.einsum("ikl,kj,lj->ij", b, c, d, optimize=True),
            text="""
fn kernel(B: $T[$m, $k, $p], C: $T[$k, $n], D: $T[$p, $n]) -> $T[$m, $n] {
    { [i, j] -> sum({ [a, b] -> B[i, a, b] * D[b, j] * C[a, j] }) }
}""",
        ),
        Kernel(
            "sddmm",
            {"m": 4096, "n": 4096, "k": 256},
            {"m": 128, "n": 128, "k": 64},
            inputs=lambda m, n, k: [(m, n), (m, k), (k, n)],
            output=lambda m, n, k: (m, n),
            flops=lambda m, n, k: 2 * m * n * k + m * n,
            reference=lambda b, c, d: b * (c @ d),
            text="""
fn kernel(B: $T[$m, $n], C: $T[$m, $k], D: $T[$k, $n]) -> $T[$m, $n] {
    { [i, j] -> B[i, j] * sum({ [l] -> C[i, l] * D[l, j] }) }
}""",
        ),
        Kernel(
            "interp",
            {"e": 50000, "n": 7},
            {"e": 100, "n": 7},
            inputs=lambda e, n: [(n, n), (e, n, n, n)],
            output=lambda e, n: (e, n, n, n),
            flops=lambda e, n: e * 3 * 2 * n**4,
            reference=_three_modes,
            text="""
fn kernel(P: $T[$n, $n], u: $T[$e, $n, $n, $n]) -> $T[$e, $n, $n, $n] {
    let t1 = { [z, i, j, k] -> sum({ [a] -> P[i, a] * u[z, a, j, k] }) };
    let t2 = { [z, i, j, k] -> sum({ [a] -> P[j, a] * t1[z, i, a, k] }) };
    { [z, i, j, k] -> sum({ [a] -> P[k, a] * t2[z, i, j, a] }) }
}""",
        ),
        Kernel(
            "helm",
            {"e": 5000, "n": 13},
            {"e": 100, "n": 13},
            inputs=lambda e, n: [(n, n), (n, n, n), (e, n, n, n)],
            output=lambda e, n: (e, n, n, n),
            flops=lambda e, n: e * (6 * 2 * n**4 + n**3),
            reference=lambda s, d, u: _three_modes(s.T, _three_modes(s, u) * d),
            text="""
fn kernel(S: $T[$n, $n], D: $T[$n, $n, $n], u: $T[$e, $n, $n, $n]) -> $T[$e, $n, $n, $n] {
    let t1 = { [z, i, j, k] -> sum({ [a] -> S[i, a] * u[z, a, j, k] }) };
    let t2 = { [z, i, j, k] -> sum({ [a] -> S[j, a] * t1[z, i, a, k] }) };
    let t = { [z, i, j, k] -> sum({ [a] -> S[k, a] * t2[z, i, j, a] }) };
    let r = { [z, i, j, k] -> D[i, j, k] * t[z, i, j, k] };
    let v1 = { [z, i, j, k] -> sum({ [a] -> S[a, i] * r[z, a, j, k] }) };
    let v2 = { [z, i, j, k] -> sum({ [a] -> S[a, j] * v1[z, i, a, k] }) };
    { [z, i, j, k] -> sum({ [a] -> S[a, k] * v2[z, i, j, a] }) }
}""",
        ),
        Kernel(
            "blur",
            {"h": 4096, "w": 4096},
            {"h": 200, "w": 200},
            inputs=lambda h, w: [(h, w)],
            output=lambda h, w: (h - 2, w - 2),
            flops=lambda h, w: 6 * (h - 2) * (w - 2),
            reference=_blur,
            text="""
fn kernel(x: $T[$h, $w]) -> $T[$h-2, $w-2] where $h >= 2, $w >= 2 {
    let rows = { [i, j] -> (x[i, j] + x[i, j+1] + x[i, j+2]) * (1.0 / 3.0) };
    { [i, j] -> (rows[i, j] + rows[i+1, j] + rows[i+2, j]) * (1.0 / 3.0) }
}""",
        ),
        Kernel(
            "coars",
            {"h": 4096, "w": 4096},
            {"h": 256, "w": 256},
            inputs=lambda h, w: [(h, w), (h, w)],
            output=lambda h, w: (h, w),
            flops=lambda h, w: 9 * h * w,
            reference=_coars,
            text="""
fn kernel(x: $T[$h, $w], y: $T[$h, $w]) -> $T[$h, $w] {
    let a = x * x;
    let b = y * y;
    let c = x * y;
    a * b - c * c - 0.04 * (a + b) * (a + b)
}""",
        ),
    ]
}
