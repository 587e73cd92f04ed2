"""Plain C with OpenMP, as `polybench.c` has it, compiled by GCC: the processor's instructions, and fast sums or not."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from ..kernels import Array
from ..machine import CPUS, widest
from ..polybench import POLYBENCH, STEPS
from . import Formulation, Formulations, Task

_SOURCE = Path(__file__).parents[1] / "polybench.c"
_TYPES = {"f64": "double", "f32": "float"}
_FLAGS = ("-std=gnu17", "-O3", "-fopenmp", "-shared", "-fPIC", f"-DSTEPS={STEPS}")
# For vectors of so many bytes, where the processor has longer ones.
_MACHINES = {16: "x86-64", 32: "haswell"}


def _version() -> str:
    try:
        ran = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ImportError("there is no gcc") from error
    return f"gcc {ran.stdout.strip()}"


VERSION = _version()


@cache
def _library(dtype: str, machine: str, more: tuple[str, ...]) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory(prefix="certen-bench-c-") as directory:
        made = str(Path(directory) / "polybench.so")
        command = ["gcc", *_FLAGS, f"-march={machine}", f"-DT={_TYPES[dtype]}", *more, str(_SOURCE), "-o", made, "-lm"]
        subprocess.run(command, check=True, capture_output=True)
        return ctypes.CDLL(made)


def _pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def function_name(kernel: str) -> str:
    """What a kernel is called in C."""
    return ("k" if kernel[0].isdigit() else "") + kernel.replace("-", "_")


def _compiled(*more: str) -> Formulation:
    def formulation(task: Task) -> Callable[[], Any]:
        problem = task.problem
        limited = task.vector_bytes < CPUS[widest()]
        machine = _MACHINES[task.vector_bytes] if limited else "native"
        function = getattr(_library(problem.dtype, machine, more), function_name(problem.name))
        function.restype = None
        outputs = task.out if isinstance(task.out, tuple) else (task.out,)
        arrays = [*task.inputs, *outputs]
        arguments = [*map(ctypes.c_int, problem.sizes.values()), *map(_pointer, arrays)]

        def run() -> Any:
            function(*arguments)
            return task.out

        return run

    return formulation


FORMULATIONS: dict[str, Formulations] = {
    "c": {name: {"-O3": _compiled(), "-O3 -ffast-math": _compiled("-ffast-math")} for name in POLYBENCH}
}
