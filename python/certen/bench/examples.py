"""What automatic schedules make of example programs: each function with one, beside itself without.

`python -m certen.bench.examples DIRECTORY [NAME …]` takes the programs of a clone's `examples` directory, whose
`expected.json` has small inputs for them. All sizes are multiplied by the same number, so that there is something to
time, and inputs are filled with their values, drawn at random. Both variants have to give the same result.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import certen

from .statistics import Interval, geometric_mean, paired

_DTYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32, "u8": np.uint8, "bool": np.bool_}
_SCALES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536)
_MOST_ELEMENTS = 1 << 22
_TURN_SECONDS = 0.01
_TOLERANCE = 1e-9


def shape_of(type_of: str, sizes: dict[str, int]) -> tuple[int, ...]:
    """The shape of a tensor's type at some sizes."""
    inside = re.fullmatch(r"\w+\[(.*)\]", type_of)
    if inside is None:
        return ()
    # Dimensions are integer expressions of names, which Python reads as Certen does.
    return tuple(eval(part, {"__builtins__": {}}, sizes) for part in inside[1].split(","))


def sizes_of(kernel: certen.Kernel, shapes: dict[str, list[int]]) -> dict[str, int]:
    """The sizes that stand for whole dimensions of inputs."""
    sizes: dict[str, int] = {}
    for parameter in kernel.parameters:
        inside = re.fullmatch(r"\w+\[(.*)\]", parameter.type)
        if parameter.kind == "tensor" and inside:
            for part, size in zip(inside[1].split(","), shapes[parameter.name], strict=True):
                if part.strip().isidentifier():
                    sizes[part.strip()] = size
    return sizes


def _operations(kernel: certen.Kernel, sizes: dict[str, int], elements: int) -> float:
    """How many operations a call makes, or about as many where loops run over triangles."""
    try:
        return kernel.flops(**sizes)
    except TypeError:
        return float(elements * max(sizes.values()) ** 2)


def inputs_of(kernel: certen.Kernel, case: dict[str, Any], operations: float) -> tuple[dict[str, int], list[Any]]:
    """The largest sizes with at most so many operations, and arguments of them."""
    given = case["inputs"]
    small = sizes_of(kernel, {name: one["shape"] for name, one in given.items()})
    tensors = [parameter for parameter in kernel.parameters if parameter.kind == "tensor"]
    best = small
    for scale in _SCALES:
        sizes = {name: size * scale for name, size in small.items()}
        elements = max(int(np.prod(shape_of(one.type, sizes), dtype=np.int64)) for one in tensors)
        if elements > _MOST_ELEMENTS or _operations(kernel, sizes | case["sizes"], elements) > operations:
            break
        best = sizes
    arguments: list[Any] = []
    drawn = np.random.default_rng(0)
    for parameter in kernel.parameters:
        if parameter.kind == "size":
            arguments.append(case["sizes"][parameter.name])
            continue
        one = given[parameter.name]
        data = np.array(one["data"], _DTYPES[one["type"]])
        shape = shape_of(parameter.type, best)
        arguments.append(drawn.choice(data, shape) if one["shape"] and data.size else data.reshape(shape)[()])
    return best, arguments


def agree(one: Any, other: Any) -> bool:
    """Whether two results are the same but for roundings."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(agree, one, other))
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    largest = float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0))
    return bool(np.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE * largest, equal_nan=True))


def timed(kernels: list[certen.Kernel], arguments: list[Any], threads: int, rounds: int) -> list[list[float]]:
    """The time of each kernel in each round."""
    seconds: list[list[float]] = [[] for _ in kernels]
    once = []
    for kernel in kernels:
        begin = time.perf_counter()
        kernel(*arguments, threads=threads)
        once.append(time.perf_counter() - begin)
    times = max(1, round(_TURN_SECONDS / max(*once, 1e-6)))
    for turn in range(rounds):
        order = list(enumerate(kernels))
        for at, kernel in order if turn % 2 == 0 else reversed(order):
            kernel(*arguments, threads=threads)
            begin = time.perf_counter()
            for _ in range(times):
                kernel(*arguments, threads=threads)
            seconds[at].append((time.perf_counter() - begin) / times)
    return seconds


def measure(
    path: Path, case: dict[str, Any], operations: float, threads: int, rounds: int
) -> tuple[str, Interval | None]:
    """A line about a program, and how many times as fast it is with its automatic schedule."""
    text = path.read_text()
    automatic = certen.compile(text, fn=path.stem)
    plain = certen.compile(text, fn=path.stem, schedule="none")
    sizes, arguments = inputs_of(automatic, case, operations)
    if not agree(automatic(*arguments, threads=threads), plain(*arguments, threads=threads)):
        return "WRONG: the results differ", None
    without, with_schedule = timed([plain, automatic], arguments, threads, rounds)
    ratio = paired(with_schedule, without)
    at = " ".join(f"{name}={size}" for name, size in sizes.items())
    said = f"{ratio.median:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"
    return f"{said}  {1e3 * float(np.median(with_schedule)):8.3f} ms  {at}", ratio


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m certen.bench.examples", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as linalg/gemm; all without it")
    parser.add_argument("--operations", type=float, default=3e7, metavar="N", help="at most, in a call; 3e7 without it")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="1 without it")
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="15 without it")
    arguments = parser.parse_args(given)
    cases = json.loads((arguments.directory / "expected.json").read_text())
    if unknown := [name for name in arguments.names if name not in cases]:
        parser.error(f"`{unknown[0]}` is not in expected.json")
    found: dict[str, Interval] = {}
    wrong = 0
    print("times as fast with the automatic schedule as with none, with 90 % intervals")
    for name in arguments.names or cases:
        path = (arguments.directory / name).with_suffix(".ten")
        said, ratio = measure(path, cases[name], arguments.operations, arguments.threads, arguments.rounds)
        print(f"{name:28} {said}", flush=True)
        wrong += ratio is None
        found |= {name: ratio} if ratio else {}
    slower = [name for name, ratio in found.items() if ratio.high < 0.95]
    faster = [name for name, ratio in found.items() if ratio.median > 2]
    print(f"\n{geometric_mean([ratio.median for ratio in found.values()]):.3f} times as fast, geometric mean")
    print(f"slower by more than 5 %: {', '.join(slower) or 'none'}")
    print(f"more than 2 times as fast: {', '.join(faster) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
