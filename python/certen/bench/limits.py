"""What the machine can do at most, measured in the run that is compared with it: `limits.c`, compiled here."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .kernels import Problem
from .machine import CPUS

_FLAGS = {
    "sse2": [],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx2", "-mfma", "-mavx512f", "-mavx512bw", "-mavx512cd", "-mavx512dq", "-mavx512vl"],
}
_REAL = {"f64": "double", "f32": "float"}
_ARRAY_BYTES, _QUICK_ARRAY_BYTES = 1 << 28, 1 << 24


@dataclass
class Limits:
    """Each as often as it was measured, in units of 1e9 a second; the highest counts."""

    # Floating-point operations, by element type and threads.
    peak: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    # Bytes, by threads.
    bandwidth: dict[int, list[float]] = field(default_factory=dict)

    def seconds(self, problem: Problem, threads: int) -> float | None:
        """The least time, by operations or by bytes; nothing where no limit was measured."""
        peak, bandwidth = self.peak.get((problem.dtype, threads)), self.bandwidth.get(threads)
        if peak is None or bandwidth is None:
            return None
        return max(problem.flops / max(peak), problem.bytes / max(bandwidth)) / 1e9


class Meter:
    """Measures limits, and again; without a C compiler there are none, which is said once."""

    def __init__(self, directory: Path, cpu: str, *, quick: bool) -> None:
        self.limits = Limits()
        self.complaint: str | None = None
        self._bytes = _QUICK_ARRAY_BYTES if quick else _ARRAY_BYTES
        self._programs: dict[str, str] = {}
        compiler = os.environ.get("CC", "cc").split()
        source = str(Path(__file__).with_name("limits.c"))
        for dtype, real in _REAL.items():
            program = str(directory / f"limits-{dtype}")
            options = ["-O2", "-pthread", *_FLAGS[cpu], f"-DREAL={real}", f"-DBYTES={CPUS[cpu]}", source, "-o", program]
            try:
                made = subprocess.run([*compiler, *options], capture_output=True, text=True, check=False)
            except OSError as error:
                self.complaint = f"limits are not measured: {error}"
                return
            if made.returncode != 0:
                said = made.stderr.strip().splitlines() or [f"{compiler[0]} failed"]
                self.complaint = f"limits are not measured: {said[0]}"
                return
            self._programs[dtype] = program

    def measure(self, dtypes: list[str], threads: list[int]) -> None:
        if self.complaint:
            return
        for count in threads:
            for dtype in dtypes:
                rate = self._run(dtype, "peak", str(count))
                self.limits.peak.setdefault((dtype, count), []).append(rate)
            rate = self._run("f64", "bandwidth", str(count), str(self._bytes))
            self.limits.bandwidth.setdefault(count, []).append(rate)

    def _run(self, dtype: str, *arguments: str) -> float:
        ran = subprocess.run([self._programs[dtype], *arguments], capture_output=True, text=True, check=True)
        return float(ran.stdout)
