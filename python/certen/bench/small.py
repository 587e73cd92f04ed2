"""Small and awkward sizes, of which a program has many: spectral elements, convolutions, batches of tiny products.

`kron2` to `kron20` are one operator at each polynomial degree; `GROUPS` gives several rows a name. `WINDOWS` says what
is not in the shapes of a convolution. Images lie as channels, rows, columns; weights as results, channels, window.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .kernels import Array, Kernel, Sizes

# The sizes of an image and of the window, outermost first; a row has the last of them.
_AXES, _TAPS = ("d", "h", "w"), ("r", "p", "q")
_DEGREES = range(2, 21)
# Arrays of more entries do not fit into memory as often as there are entrants: from n = 15 on there are fewer elements.
_ELEMENTS, _MOST_ENTRIES = 10_000, 1 << 25


@dataclass(frozen=True)
class Window:
    """How a window goes over an image, the same along all axes."""

    stride: int = 1
    padding: int = 0
    dilation: int = 1

    def places(self, size: int, taps: int) -> int:
        """How many places there are for it along an axis."""
        return (size + 2 * self.padding - self.dilation * (taps - 1) - 1) // self.stride + 1

    def inside(self, size: int, taps: int) -> int:
        """How many taps meet the image rather than its padding, at all places together."""
        reached = itertools.product(range(self.places(size, taps)), range(taps))
        return sum(0 <= at * self.stride + tap * self.dilation - self.padding < size for at, tap in reached)

    def shifted(self, padded: Any, shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Each tap of a window, and what it meets of an image that is padded already."""
        step, rank = self.stride, len(shape)
        spans = [
            (size - self.dilation * (taps - 1) - 1) // step * step + 1
            for size, taps in zip(padded.shape[-rank:], shape, strict=True)
        ]
        for tap in itertools.product(*map(range, shape)):
            begins = [self.dilation * index for index in tap]
            pieces = [slice(begin, begin + span, step) for begin, span in zip(begins, spans, strict=True)]
            yield tap, padded[(..., *pieces)]


WINDOWS = {
    "conv2d": Window(),
    "conv2d_stride": Window(stride=2),
    "conv2d_guarded": Window(padding=1),
    "conv2d_padded": Window(padding=1),
    "conv2d_dilation": Window(dilation=2),
    "conv1d": Window(),
    "conv3d": Window(),
    "depthwise3": Window(),
    "depthwise7": Window(),
    "max_pool": Window(stride=2),
}
# Of `max_pool`, along both axes.
POOL = 3


def zero_padded(x: Array, padding: int) -> Array:
    """An image with zeros around it."""
    return np.pad(x, [(0, 0), (0, 0), *[(padding, padding)] * (x.ndim - 2)]) if padding else x


def _convolved(window: Window) -> Callable[[Array, Array], Array]:
    def reference(x: Array, w: Array) -> Array:
        depthwise, out = w.ndim < x.ndim, np.zeros(())
        shape = w.shape[1 if depthwise else 2 :]
        for tap, part in window.shifted(zero_padded(x, window.padding), shape):
            at: Any = (..., *tap)
            weights = w[at]
            if depthwise:
                term = part * weights.reshape(-1, *[1] * len(shape))
            else:
                term = np.moveaxis(np.tensordot(weights, part, axes=([1], [1])), 0, 1)
            out = out + term
        return out

    return reference


def _pooled(x: Array) -> Array:
    return np.asarray(np.max([part for _, part in WINDOWS["max_pool"].shifted(x, (POOL, POOL))], axis=0))


def _convolution(name: str, sizes: Sizes, quick: Sizes, text: str) -> Kernel:
    """Sizes without `f` are those of a convolution that keeps channels apart."""
    window, depthwise = WINDOWS[name], "f" not in sizes
    axes = [(axis, taps) for axis, taps in zip(_AXES, _TAPS, strict=True) if axis in sizes]

    def inputs(**s: int) -> list[tuple[int, ...]]:
        image, taps = (s["n"], s["c"], *(s[axis] for axis, _ in axes)), [s[taps] for _, taps in axes]
        return [image, (s["c"], *taps) if depthwise else (s["f"], s["c"], *taps)]

    def output(**s: int) -> tuple[int, ...]:
        return (s["n"], s["c" if depthwise else "f"], *(window.places(s[axis], s[taps]) for axis, taps in axes))

    def flops(**s: int) -> int:
        return 2 * s["n"] * s["c"] * s.get("f", 1) * math.prod(window.inside(s[axis], s[taps]) for axis, taps in axes)

    return Kernel(name, sizes, quick, inputs, output, flops, _convolved(window), text)


def _plane(name: str, text: str) -> Kernel:
    sizes = {"n": 8, "f": 64, "c": 64, "h": 56, "w": 56, "p": 3, "q": 3}
    return _convolution(name, sizes, {**sizes, "n": 2, "f": 6, "c": 5, "h": 13, "w": 18}, text)


def _depthwise(taps: int) -> Kernel:
    sizes = {"n": 8, "c": 128, "h": 56, "w": 56, "p": taps, "q": taps}
    return _convolution(
        f"depthwise{taps}",
        sizes,
        {**sizes, "n": 2, "c": 5, "h": 13, "w": 18},
        """
fn kernel(X: $T[$n, $c, $h, $w], W: $T[$c, $p, $q]) {
    { [b, z, y, x] -> sum({ [u, v] -> X[b, z, y+u, x+v] * W[z, u, v] }) }
}""",
    )


def _kron(n: int) -> Kernel:
    return Kernel(
        f"kron{n}",
        {"e": min(_ELEMENTS, _MOST_ENTRIES // n**3), "n": n},
        {"e": 100, "n": n},
        inputs=lambda e, n: [(n, n), (n, n), (n, n), (e, n, n, n)],
        output=lambda e, n: (e, n, n, n),
        flops=lambda e, n: e * 3 * 2 * n**4,
        reference=lambda a, b, c, u: np.asarray(np.einsum("ia,jb,kc,eabc->eijk", a, b, c, u, optimize=True)),
        text="""
fn kernel(A: $T[$n, $n], B: $T[$n, $n], C: $T[$n, $n], u: $T[$e, $n, $n, $n]) -> $T[$e, $n, $n, $n] {
    let t1 = { [z, i, j, k] -> sum({ [a] -> A[i, a] * u[z, a, j, k] }) };
    let t2 = { [z, i, j, k] -> sum({ [a] -> B[j, a] * t1[z, i, a, k] }) };
    { [z, i, j, k] -> sum({ [a] -> C[k, a] * t2[z, i, j, a] }) }
}""",
    )


def _products(n: int) -> Kernel:
    return Kernel(
        f"bmm{n}",
        {"b": 1_000_000, "n": n},
        {"b": 1000, "n": n},
        inputs=lambda b, n: [(b, n, n), (b, n, n)],
        output=lambda b, n: (b, n, n),
        flops=lambda b, n: b * 2 * n**3,
        reference=lambda a, b: a @ b,
        text="""
fn kernel(A: $T[$b, $n, $n], B: $T[$b, $n, $n]) -> $T[$b, $n, $n] {
    { [z] -> A[z] @ B[z] }
}""",
    )


def _rotated(q: Array, v: Array) -> Array:
    t = 2 * np.cross(q[:, 1:], v)
    return np.asarray(v + q[:, :1] * t + np.cross(q[:, 1:], t))


_KRON = [_kron(n) for n in _DEGREES]
_CONVOLUTIONS = [
    _plane(
        "conv2d",
        """
fn kernel(X: $T[$n, $c, $h, $w], W: $T[$f, $c, $p, $q]) {
    { [b, o, y, x] -> sum({ [z, u, v] -> X[b, z, y+u, x+v] * W[o, z, u, v] }) }
}""",
    ),
    _plane(
        "conv2d_stride",
        """
fn kernel(X: $T[$n, $c, $h, $w], W: $T[$f, $c, $p, $q]) {
    { [b, o, y, x] -> sum({ [z, u, v] -> X[b, z, 2*y+u, 2*x+v] * W[o, z, u, v] }) }
}""",
    ),
    # Padding in both ways in which programs say it: where an element is read, and around the image.
    _plane(
        "conv2d_guarded",
        """
fn kernel(X: $T[$n, $c, $h, $w], W: $T[$f, $c, $p, $q]) {
    { [b, o, y, x] -> sum({ [z, u, v] ->
        guard(1 <= y+u && y+u <= $h && 1 <= x+v && x+v <= $w, X[b, z, y+u-1, x+v-1]) * W[o, z, u, v]
    }) | y < $h-$p+3, x < $w-$q+3 }
}""",
    ),
    _plane(
        "conv2d_padded",
        """
fn kernel(X: $T[$n, $c, $h, $w], W: $T[$f, $c, $p, $q]) {
    let padded = { [b, z] -> {
        let rows = pad_l(1, pad_r(1, X[b, z]));
        { [y] -> pad_l(1, pad_r(1, rows[y])) }
    } };
    { [b, o, y, x] -> sum({ [z, u, v] -> padded[b, z, y+u, x+v] * W[o, z, u, v] }) }
}""",
    ),
    _plane(
        "conv2d_dilation",
        """
fn kernel(X: $T[$n, $c, $h, $w], W: $T[$f, $c, $p, $q]) {
    { [b, o, y, x] -> sum({ [z, u, v] -> X[b, z, y+2*u, x+2*v] * W[o, z, u, v] }) }
}""",
    ),
    _convolution(
        "conv1d",
        {"n": 8, "f": 128, "c": 64, "w": 1000, "q": 9},
        {"n": 2, "f": 6, "c": 5, "w": 50, "q": 9},
        """
fn kernel(X: $T[$n, $c, $w], W: $T[$f, $c, $q]) {
    { [b, o, x] -> sum({ [z, v] -> X[b, z, x+v] * W[o, z, v] }) }
}""",
    ),
    _convolution(
        "conv3d",
        {"n": 8, "f": 16, "c": 16, "d": 24, "h": 24, "w": 24, "r": 3, "p": 3, "q": 3},
        {"n": 2, "f": 6, "c": 5, "d": 7, "h": 8, "w": 18, "r": 3, "p": 3, "q": 3},
        """
fn kernel(X: $T[$n, $c, $d, $h, $w], W: $T[$f, $c, $r, $p, $q]) {
    { [b, o, k, y, x] -> sum({ [z, t, u, v] -> X[b, z, k+t, y+u, x+v] * W[o, z, t, u, v] }) }
}""",
    ),
    _depthwise(3),
    _depthwise(7),
    Kernel(
        "max_pool",
        {"n": 8, "c": 64, "h": 112, "w": 112},
        {"n": 2, "c": 5, "h": 14, "w": 19},
        inputs=lambda n, c, h, w: [(n, c, h, w)],
        output=lambda n, c, h, w: (n, c, *(WINDOWS["max_pool"].places(size, POOL) for size in (h, w))),
        flops=lambda n, c, h, w: (
            n * c * (POOL**2 - 1) * math.prod(WINDOWS["max_pool"].places(size, POOL) for size in (h, w))
        ),
        reference=_pooled,
        text="""
fn kernel(X: $T[$n, $c, $h, $w]) {
    { [b, z, y, x] -> max(X[b, z, 2*y..2*y+3, 2*x..2*x+3]) }
}""",
    ),
]
_BATCHED = [
    _products(3),
    _products(4),
    Kernel(
        "kalman",
        {"b": 100_000, "n": 4},
        {"b": 1000, "n": 4},
        inputs=lambda b, n: [(n, n), (n, n), (b, n), (b, n, n)],
        output=lambda b, n: [(b, n), (b, n, n)],
        flops=lambda b, n: b * (2 * n**2 + 4 * n**3 + n**2),
        reference=lambda f, q, x, p: (x @ f.T, f @ p @ f.T + q),
        text="""
fn kernel(
    F: $T[$n, $n], Q: $T[$n, $n], x: $T[$b, $n], P: $T[$b, $n, $n]
) -> (state: $T[$b, $n], covariance: $T[$b, $n, $n]) {
    ({ [i] -> F @ x[i] }, { [i] -> F @ P[i] @ transpose(F) + Q })
}""",
    ),
    Kernel(
        "rotation",
        {"b": 1_000_000},
        {"b": 1000},
        inputs=lambda b: [(b, 4), (b, 3)],
        output=lambda b: (b, 3),
        flops=lambda b: 30 * b,
        reference=_rotated,
        cancels=True,
        text="""
fn cross(a: $T[3], b: $T[3]) -> $T[3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn kernel(q: $T[$b, 4], v: $T[$b, 3]) -> $T[$b, 3] {
    { [i] -> {
        let axis = q[i, 1..4];
        let t = 2 * cross(axis, v[i]);
        v[i] + q[i, 0] * t + cross(axis, t)
    } }
}""",
    ),
]

SMALL = {kernel.name: kernel for kernel in [*_KRON, *_CONVOLUTIONS, *_BATCHED]}
# Names for several rows.
GROUPS = {
    group: [kernel.name for kernel in kernels]
    for group, kernels in {"kron": _KRON, "convolutions": _CONVOLUTIONS, "batched": _BATCHED}.items()
}
