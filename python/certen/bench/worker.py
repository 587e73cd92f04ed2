"""One entrant in a process of its own, so that the threads of libraries do not disturb each other.

Commands come as lines of JSON on standard input, each is answered by one line; in between the process sleeps. It ends
with its input. `python -m certen.bench.worker ENTRANT THREADS VECTOR_BYTES`.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from . import contractions
from .kernels import DTYPES, KERNELS, Array, Problem, whole
from .peers import ENTRANTS, Task
from .polybench import POLYBENCH
from .ported import PORTED
from .small import SMALL
from .sweep import SWEEP

# A formulation is tried so many times, or for so long, to see whether it is a peer's best. What compiles only after it
# was called a few times has done so then.
_TRIES, _TRY_SECONDS = 20, 0.5
_ALIGNED = 64


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Memory that begins at a cache line, which all vectors like best."""
    length = int(np.prod(shape)) * dtype.itemsize
    memory = np.zeros(length + _ALIGNED, np.uint8)
    begin = -memory.ctypes.data % _ALIGNED
    return memory[begin : begin + length].view(dtype).reshape(shape)


class Worker:
    """What has been prepared, by the name of the formulation."""

    def __init__(self, entrant: str, threads: int, vector_bytes: int) -> None:
        self.module = importlib.import_module(f".peers.{ENTRANTS[entrant]}", __package__)
        self.formulations = self.module.FORMULATIONS[entrant]
        self.threads, self.vector_bytes = threads, vector_bytes
        self.prepared: dict[str, Callable[[], Any]] = {}
        self.task: Task | None = None

    def begin(self, kernel: str, subscripts: str, sizes: dict[str, int], dtype: str, inputs: list[str]) -> list[str]:
        """Takes a problem; the names of its formulations."""
        self.end()
        known = KERNELS | PORTED | POLYBENCH | SMALL | SWEEP
        described = contractions.contraction(subscripts, sizes) if subscripts else known[kernel]
        problem = Problem(described, sizes, dtype)
        arrays = []
        for path in inputs:
            given = np.load(path, mmap_mode="r")
            arrays.append(aligned(given.shape, given.dtype))
            arrays[-1][...] = given
        shape = problem.output
        several = tuple(aligned(one, DTYPES[dtype]) for one in (shape if isinstance(shape, list) else [shape]))
        out = several if isinstance(shape, list) else several[0]
        self.task = Task(problem, arrays, out, self.threads, self.vector_bytes)
        return list(self.formulations.get(kernel, {}))

    def prepare(self, formulation: str, result: str) -> dict[str, float]:
        """Builds and runs a formulation, and writes its result to a file."""
        assert self.task is not None
        for array in self.task.out if isinstance(self.task.out, tuple) else [self.task.out]:
            array.fill(0)
        begin = time.perf_counter()
        run = self.formulations[self.task.problem.name][formulation](self.task)
        found = run()
        first = time.perf_counter() - begin
        np.save(result, whole(found))
        tries: list[float] = []
        while len(tries) < _TRIES and sum(tries) < _TRY_SECONDS:
            begin = time.perf_counter()
            run()
            tries.append(time.perf_counter() - begin)
        self.prepared[formulation] = run
        return {"first": first, "best": min(tries)}

    def keep(self, formulation: str) -> None:
        """Forgets all others."""
        self.prepared = {formulation: self.prepared[formulation]}

    def run(self, times: int) -> dict[str, Any]:
        """Times the formulation that was kept; the run before warms caches and wakes threads."""
        (run,) = self.prepared.values()
        run()
        seconds = []
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(times):
            begin = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - begin)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        return {"seconds": seconds, "faults": faults / times}

    def end(self) -> None:
        """Gives memory back."""
        self.prepared, self.task = {}, None


def main(entrant: str, threads: str, vector_bytes: str) -> None:
    # Libraries that print do so elsewhere.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(threads)])

    def answer(value: object) -> None:
        print(json.dumps(value), file=answers, flush=True)

    try:
        worker = Worker(entrant, int(threads), int(vector_bytes))
    except ImportError as error:
        answer({"missing": str(error)})
        return
    answer({"version": worker.module.VERSION})
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer({"answer": getattr(worker, command.pop("do"))(**command)})
        except Exception as error:
            traceback.print_exc()
            answer({"error": f"{type(error).__name__}: {error}".splitlines()[0]})


if __name__ == "__main__":
    main(*sys.argv[1:])
