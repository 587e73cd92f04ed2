"""Entrants in turns: starts their workers, checks their results, times them round by round.

Every round begins with another entrant. Between turns there is a pause where several threads ran: those of a library
spin for a while after their work, and would take the cores from the next.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any

import numpy as np

from .kernels import TOLERANCE, Array, Problem
from .machine import CPUS, environment, unlimited, widest
from .peers import OURS
from .statistics import Interval, paired

# How long a turn takes about, and the most runs in it.
_TURN_SECONDS, _MOST_RUNS = 0.03, 1000
# Threads of TVM and of OpenBLAS stay awake for up to a third of a second.
_PAUSE = 0.4
# What takes longer is given up: automatic schedulers can take many minutes.
_PATIENCE = 180.0
# Intervals that are wider than this part of the median are measured again.
SPREAD = 0.1


class Lost(Exception):
    """A worker that died, did not answer in time, or cannot do what it was asked."""


@dataclass
class Choice:
    """What an entrant was timed with."""

    name: str
    # From the text to the first result, in seconds.
    first: float
    # The shortest run of those that chose it.
    best: float
    # The largest error of its result; none where some elements may be anything.
    error: float | None = None


@dataclass
class Attempt:
    """Rounds in turns; lists have an element for each round."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    # Page faults in a run.
    faults: dict[str, float] = field(default_factory=dict)

    @property
    def best_peer(self) -> str | None:
        """The peer with the lowest median."""
        peers = [entrant for entrant in self.seconds if entrant not in OURS]
        return min(peers, key=self.median, default=None)

    def median(self, entrant: str) -> float:
        return median(self.seconds[entrant])

    @property
    def ratios(self) -> dict[str, Interval]:
        """How many times as fast as the best peer each of ours is."""
        peer = self.best_peer
        if peer is None:
            return {}
        return {ours: paired(self.seconds[ours], self.seconds[peer]) for ours in OURS if ours in self.seconds}

    @property
    def sure(self) -> bool:
        return all(ratio.spread <= SPREAD for ratio in self.ratios.values())


@dataclass
class Result:
    """All that was found out about a problem."""

    problem: Problem
    threads: int
    formulations: dict[str, Choice] = field(default_factory=dict)
    # Why an entrant, or one of its formulations, is not timed.
    refused: list[str] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def last(self) -> Attempt:
        """The one that counts: it was sure enough, or the last that there was."""
        return self.attempts[-1]


class Entrant:
    """A worker, started when it is first needed, and again when it was lost."""

    def __init__(self, name: str, threads: int, cpu: str | None, directory: Path) -> None:
        self.name, self.threads, self.cpu = name, threads, cpu
        self.errors = directory / f"{name}-{threads}.log"
        self.cache = directory / f"cache-{threads}-{name}"
        self.version: str | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str | None:
        """Starts the worker; why it cannot take part, if so."""
        command = [sys.executable, "-m", f"{__package__}.worker", self.name, str(self.threads)]
        command.append(str(CPUS[self.cpu or widest()]))
        # Compiled code is not found again from an earlier run: the time of the first call is all of it.
        variables = {**environment(self.threads, self.cpu), "CERTEN_CACHE": str(self.cache)}
        with open(self.errors, "ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=variables,
                bufsize=0,
                # Ctrl-C reaches the coordinator alone, which ends the workers.
                start_new_session=True,
            )
        try:
            said = self._answer()
        except Lost as lost:
            return str(lost)
        self.version = said.get("version")
        return said.get("missing")

    def ask(self, do: str, **arguments: Any) -> Any:
        """Has the worker do something."""
        if self._process is None and (reason := self.start()):
            raise Lost(reason)
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        except OSError as error:
            raise self._died() from error
        said = self._answer()
        if "error" in said:
            raise Lost(said["error"])
        return said["answer"]

    def _answer(self) -> dict[str, Any]:
        assert self._process is not None and self._process.stdout is not None
        line, end = b"", time.monotonic() + _PATIENCE
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self.stop()
                raise Lost(f"no answer in {_PATIENCE:.0f} s")
            piece = os.read(self._process.stdout.fileno(), 1 << 16)
            if not piece:
                raise self._died()
            line += piece
        said: dict[str, Any] = json.loads(line)
        return said

    def _died(self) -> Lost:
        self.stop()
        lines = self.errors.read_text(errors="replace").strip().splitlines()
        return Lost(f"its process ended: {lines[-1]}" if lines else "its process ended")

    @property
    def runs(self) -> bool:
        return self._process is not None

    def stop(self) -> None:
        """Ends the worker, whatever it does."""
        if self._process is None:
            return
        self._process.kill()
        self._process.communicate()
        self._process = None

    def choose(
        self, problem: Problem, inputs: list[str], reference: Array, result: Path
    ) -> tuple[Choice | None, list[str]]:
        """Prepares the fastest of the formulations whose result is right; what is said of the others."""
        begin = {
            "kernel": problem.name,
            "subscripts": problem.kernel.subscripts,
            "sizes": problem.sizes,
            "dtype": problem.dtype,
            "inputs": inputs,
        }
        right: list[Choice] = []
        said = []
        try:
            names = self.ask("begin", **begin)
            for name in names:
                try:
                    if not self.runs:
                        self.ask("begin", **begin)
                    right.append(Choice(name, **self.ask("prepare", formulation=name, result=str(result))))
                except Lost as lost:
                    said.append(f"{self.name}, {name}: {lost}")
                    continue
                found, kernel = np.load(result), problem.kernel
                wrong = difference(found, reference, TOLERANCE[problem.dtype], kernel.cancels, kernel.jumps)
                if wrong is not None:
                    right.pop()
                    said.append(f"{self.name}, {name}: WRONG, {wrong}")
                elif not kernel.jumps:
                    right[-1].error = largest_error(found, reference, kernel.cancels)
            if not right:
                return None, said
            best = min(right, key=lambda formulation: formulation.best)
            try:
                self.ask("keep", formulation=best.name)
            except Lost:
                # It went with a worker that was lost after it.
                self.ask("begin", **begin)
                self.ask("prepare", formulation=best.name, result=str(result))
            return best, said
        except Lost as lost:
            return None, [*said, f"{self.name}: {lost}"]


def _errors(found: Array, wanted: Array, cancels: bool) -> Iterator[Array]:
    """The errors of elements, some of them at a time.

    They are parts of an element; where sums cancel, of the mean element if that is larger.
    """
    least = float(np.mean(np.abs(wanted))) if cancels else 0.0
    one, other, piece = found.reshape(-1), wanted.reshape(-1), 1 << 22
    for at in range(0, one.size, piece):
        expected = other[at : at + piece]
        yield np.abs(one[at : at + piece] - expected) / np.maximum(np.abs(expected), least)


def largest_error(found: Array, wanted: Array, cancels: bool = False) -> float:
    """That of the element that is most wrong."""
    return float(max((np.max(errors) for errors in _errors(found, wanted, cancels)), default=0.0))


def difference(found: Array, wanted: Array, tolerance: float, cancels: bool = False, jumps: float = 0.0) -> str | None:
    """How a result differs from what it has to be, if it does; `jumps` is the part of it that may."""
    if found.shape != wanted.shape:
        return f"its shape is {found.shape}, not {wanted.shape}"
    left = int(jumps * found.size)
    for errors in _errors(found, wanted, cancels):
        # What is no number is no match.
        left -= int(np.count_nonzero(~(errors <= tolerance)))
        if left < 0:
            return f"an element differs by {float(np.max(errors)):.1e} of its value"
    return None


class Field:
    """All entrants with a number of threads."""

    def __init__(self, names: list[str], threads: int, cpu: str | None, directory: Path) -> None:
        self.threads, self.directory = threads, directory
        self.entrants = [Entrant(name, threads, cpu, directory) for name in names]
        self.missing: dict[str, str] = {}

    def __enter__(self) -> Field:
        for entrant in self.entrants:
            if reason := unlimited(entrant.name, entrant.cpu) or entrant.start():
                self.missing[entrant.name] = reason
                entrant.stop()
        self.entrants = [entrant for entrant in self.entrants if entrant.runs]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for entrant in self.entrants:
            entrant.stop()

    def measure(self, problem: Problem, seed: int, rounds: int, attempts: int) -> Result:
        """Times everybody who computes what is right, until the ratios are sure."""
        found = Result(problem, self.threads)
        inputs = problem.make_inputs(seed)
        paths = [str(self.directory / f"in{at}.npy") for at in range(len(inputs))]
        for path, array in zip(paths, inputs, strict=True):
            np.save(path, array)
        reference = problem.reference(inputs)
        del inputs
        running = []
        for entrant in self.entrants:
            best, said = entrant.choose(problem, paths, reference, self.directory / "result.npy")
            found.refused += said
            self._pause()
            if best is not None:
                found.formulations[entrant.name] = best
                running.append(entrant)
        del reference
        while running and len(found.attempts) < attempts:
            attempt = Attempt()
            try:
                self._rounds(attempt, running, found, rounds)
            except Lost as lost:
                # The one whose turn it was is out; the others begin again.
                entrant = running.pop(0)
                del found.formulations[entrant.name]
                found.refused.append(f"{entrant.name}: {lost}")
                continue
            found.attempts.append(attempt)
            if attempt.sure:
                break
        for entrant in running:
            entrant.ask("end")
        return found

    def _rounds(self, attempt: Attempt, running: list[Entrant], found: Result, rounds: int) -> None:
        """Turns the list of those who run as it goes: the first is the one whose turn it is."""
        faults: dict[str, list[float]] = {}
        for _ in range(rounds):
            for _ in running:
                entrant = running[0]
                taken = max(found.formulations[entrant.name].best, 1e-9)
                times = min(max(1, round(_TURN_SECONDS / taken)), _MOST_RUNS)
                said = entrant.ask("run", times=times)
                attempt.seconds.setdefault(entrant.name, []).append(median(said["seconds"]))
                faults.setdefault(entrant.name, []).append(said["faults"])
                self._pause()
                running.append(running.pop(0))
            # The next round begins with another one.
            running.append(running.pop(0))
        attempt.faults = {name: median(counts) for name, counts in faults.items()}

    def _pause(self) -> None:
        if self.threads > 1:
            time.sleep(_PAUSE)
