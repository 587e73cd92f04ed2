"""How fast kernels and `certen.einsum` are beside NumPy.

`python python/benchmarks/against_numpy.py`; with `--quick`, a look that takes a second.

Both sides run in turns, in one process, on the same arrays; the best of several rounds counts. NumPy is shown as it is
called by default, and with `optimize=True`, which uses BLAS where it can. The package must be a release build
(`pip install .`), else the numbers mean nothing; the first line says which it is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import certen

BLUR = """
fn blur(x: f64[h, w]) -> f64[h-2, w-2] where h >= 2, w >= 2 {
    let rows = { [i, j] -> (x[i,j] + x[i,j+1] + x[i,j+2]) / 3 };
    { [i, j] -> (rows[i,j] + rows[i+1,j] + rows[i+2,j]) / 3 }
}
"""


def numpy_blur(x: np.ndarray) -> np.ndarray:
    rows = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3
    return (rows[:-2] + rows[1:-1] + rows[2:]) / 3


def best(sides: list[Callable[[], object]], seconds: float) -> list[float]:
    """The best time of each, in turns; a round of one side takes about so many seconds."""
    times = [float("inf")] * len(sides)
    repeats = [1] * len(sides)
    for _ in range(8):
        for at, side in enumerate(sides):
            begin = time.perf_counter()
            for _ in range(repeats[at]):
                side()
            taken = (time.perf_counter() - begin) / repeats[at]
            times[at] = min(times[at], taken)
            repeats[at] = max(1, min(100_000, int(seconds / max(taken, 1e-9))))
    return times


def main(quick: bool) -> None:
    rng = np.random.default_rng(1)
    seconds, most = (0.001, 100) if quick else (0.1, 1000)
    print(f"certen {certen.__version__} ({certen._certen.__profile__} build), numpy {np.__version__}; microseconds")
    print(f"{'':32}{'certen':>12}{'numpy':>12}{'optimize':>12}")

    def row(name: str, *sides: Callable[[], object]) -> None:
        print(f"{name:32}" + "".join(f"{1e6 * taken:12.2f}" for taken in best(list(sides), seconds)))

    def contraction(spec: str, *shapes: tuple[int, ...]) -> None:
        arrays = [rng.random(shape) for shape in shapes]
        row(
            f"{spec} {shapes[0][0]}",
            lambda: certen.einsum(spec, *arrays),
            lambda: np.einsum(spec, *arrays),
            lambda: np.einsum(spec, *arrays, optimize=True),
        )

    for n in (4, 64, 256, 512):
        if n <= most:
            contraction("ij,jk->ik", (n, n), (n, n))
    contraction("ai,bj,ck,ijk->abc", (9, 7), (9, 7), (9, 7), (7, 7, 7))
    contraction("bij,bjk->bik", (most // 10, 100, 100), (most // 10, 100, 100))
    for spec in ("ij->", "ij->i", "ii->"):
        contraction(spec, (most, most))
    contraction("ij,ij->", (most, most), (most, most))
    product = certen.compile("fn product(A: f64[l, m], B: f64[m, n]) -> f64[l, n] { A @ B }")
    small = rng.random((4, 4))
    row("kernel: product 4, numpy: @", lambda: product(small, small), lambda: small @ small)
    blur, image = certen.compile(BLUR), rng.random((most, most))
    row(f"kernel: blur {most}", lambda: blur(image), lambda: numpy_blur(image))


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
