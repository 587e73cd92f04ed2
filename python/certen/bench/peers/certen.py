"""Certen: programs as a user writes them, with schedules by hand, and einsum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import certen

from ..hand import by_hand
from ..kernels import KERNELS
from ..polybench import POLYBENCH
from ..ported import PORTED
from ..small import SMALL
from ..sweep import SWEEP
from . import Formulations, Task

VERSION = f"{certen.__version__} ({certen._certen.__profile__} build)"


def _automatic(task: Task) -> Callable[[], Any]:
    kernel = certen.compile(task.problem.text(), fn="kernel")
    return lambda: kernel(*task.inputs, out=task.out)


def _hand(task: Task) -> Callable[[], Any]:
    text, schedule = by_hand(task.problem, task.vector_bytes)
    kernel = certen.compile(text, fn="kernel", schedule=schedule)
    return lambda: kernel(*task.inputs, out=task.out)


def _einsum(task: Task) -> Callable[[], Any]:
    subscripts = task.problem.kernel.subscripts
    # As NumPy's is called: both may choose how their result lies in memory.
    return lambda: certen.einsum(subscripts, *task.inputs)


FORMULATIONS: dict[str, Formulations] = {
    "certen": {
        name: {"automatic": _automatic} for name in [*KERNELS, *PORTED, *POLYBENCH, *SMALL, *SWEEP, "contraction"]
    },
    "certen-hand": {name: {"by hand": _hand} for name in KERNELS},
    "certen-einsum": {"contraction": {"einsum": _einsum}},
}
