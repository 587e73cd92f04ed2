"""Who takes part: a module for each library, which can be imported where the library is.

A module has its library's `VERSION`, and `FORMULATIONS`: for each entrant and kernel, the ways to write it. Each is a
function that takes a `Task`, does what is done once, and gives the function that is timed, which gives the result. Of
the formulations of an entrant the fastest counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..kernels import DTYPES, Array, Problem

# The module of each entrant.
ENTRANTS = {
    "numpy": "numpy",
    "jax": "jax",
    "torch": "torch",
    "numba": "numba",
    "halide": "halide",
    "halide-auto": "halide",
    "tvm": "tvm",
    "c": "c",
    "certen": "certen",
    "certen-hand": "certen",
    "certen-einsum": "certen",
}
OURS = ("certen", "certen-hand", "certen-einsum")
PEERS = tuple(entrant for entrant in ENTRANTS if entrant not in OURS)


@dataclass(frozen=True)
class Task:
    """A problem with its arrays, and with what may be used to solve it."""

    problem: Problem
    inputs: list[Array]
    # An array, or a tuple of them if there are several results.
    out: Any
    threads: int
    vector_bytes: int

    @property
    def lanes(self) -> int:
        """How many elements the longest vectors have."""
        return self.vector_bytes // DTYPES[self.problem.dtype].itemsize


Formulation: TypeAlias = Callable[[Task], Callable[[], Any]]
Formulations: TypeAlias = dict[str, dict[str, Formulation]]


def calls(function: Callable[..., Any]) -> Formulation:
    """A function of the inputs and the array for the result, which it may give back or leave."""

    def formulation(task: Task) -> Callable[[], Any]:
        def run() -> Any:
            found = function(*task.inputs, task.out)
            return task.out if found is None else found

        return run

    return formulation


def strips(function: Callable[..., Any], rows: int, halo: int = 0) -> Callable[..., Any]:
    """A few rows at a time: what is in between stays in the cache."""

    def run(*arrays: Any) -> None:
        *inputs, out = arrays
        for begin in range(0, out.shape[0], rows):
            end = min(begin + rows, out.shape[0])
            function(*(array[begin : end + halo] for array in inputs), out[begin:end])

    return run
