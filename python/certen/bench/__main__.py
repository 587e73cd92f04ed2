"""The arguments of `python -m certen.bench`, and a run from beginning to end."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from . import contractions, sweep
from .kernels import DTYPES, KERNELS, Kernel, Problem
from .limits import Meter
from .machine import CPUS, LIMITS, model, widest
from .measure import Field
from .peers import OURS, PEERS
from .polybench import POLYBENCH
from .ported import PORTED
from .report import Run, as_curves, as_json, as_svg, as_text
from .small import GROUPS, SMALL


def _names(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Reads a list with commas in between."""
    known = list(known)

    def read(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"`{name}` is none of {', '.join(known)}")
        return names

    return read


def _counts(text: str) -> list[int]:
    counts = [int(part) for part in text.split(",")]
    if min(counts) < 1:
        raise ValueError(text)
    return counts


def _count(text: str) -> int:
    (count,) = _counts(text)
    return count


def _short() -> list[str]:
    """The rows of `--small`; the first group has too many."""
    many, *others = GROUPS
    return [many, *(name for group in others for name in GROUPS[group])]


def _known(arguments: argparse.Namespace) -> dict[str, list[Kernel]]:
    """The names that can be given, and what each stands for."""
    if arguments.small:
        groups = {group: [SMALL[name] for name in names] for group, names in GROUPS.items()}
        return groups | {name: [kernel] for name, kernel in SMALL.items()}
    if arguments.polybench:
        return {name: [kernel] for name, kernel in POLYBENCH.items()}
    if arguments.sweep:
        named = sweep.GROUPS | sweep.PROGRAMS | {row: [row] for row in sweep.SWEEP}
        return {name: [sweep.SWEEP[row] for row in rows] for name, rows in named.items()}
    return {name: [kernel] for name, kernel in (PORTED if arguments.ported else KERNELS).items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="certen bench --peers",
        description="Times Certen beside other compilers and libraries, in turns, on the same arrays.",
    )
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help=f"of {', '.join(KERNELS)}; all without it")
    parser.add_argument("--peers", type=_names(PEERS), default=list(PEERS), metavar="NAME,…", help=", ".join(PEERS))
    parser.add_argument("--threads", type=_counts, default=[1, 2], metavar="N,…", help="1,2 without it")
    parser.add_argument(
        "--dtype", type=_names(DTYPES), default=list(DTYPES), metavar="TYPE,…", help="f64,f32 without it"
    )
    parser.add_argument("--cpu", choices=list(LIMITS), help="limits everybody to an instruction set")
    parser.add_argument("--rounds", type=_count, default=15, metavar="N", help="15 without it")
    parser.add_argument("--attempts", type=_count, default=5, metavar="N", help="how often rounds are repeated at most")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--contractions", type=_count, metavar="COUNT", help="generated ones beside NumPy, instead of kernels"
    )
    instead.add_argument("--ported", action="store_true", help=f"{', '.join(PORTED)} beside NumPy, instead of kernels")
    instead.add_argument("--polybench", action="store_true", help="PolyBench beside NumPy, Numba and C, instead")
    instead.add_argument("--small", action="store_true", help=f"{', '.join(_short())}, instead of kernels")
    instead.add_argument(
        "--sweep",
        action="store_true",
        help=f"{', '.join(sweep.GROUPS)}: programs of all kinds, in the L2 cache (_l2) and in memory (_mem), instead "
        f"of kernels: {', '.join(sweep.PROGRAMS)}",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the inputs, and of generated contractions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes everything that was measured")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draws bars and rooflines")
    parser.add_argument("--curves", type=Path, metavar="FILE", help="with --small: draws what kron reaches over n")
    parser.add_argument("--quick", action="store_true", help="small sizes, two rounds: whether everything works")
    return parser


def _problems(arguments: argparse.Namespace) -> Iterator[Problem]:
    if arguments.contractions:
        yield from contractions.generate(arguments.contractions, arguments.seed)
        return
    known = _known(arguments)
    # Kernels have no equality that means something, names do.
    chosen = {kernel.name: kernel for name in arguments.kernels or known for kernel in known[name]}
    for kernel in chosen.values():
        for dtype in arguments.dtype:
            yield Problem(kernel, kernel.quick if arguments.quick else kernel.sizes, dtype)


def _entrants(arguments: argparse.Namespace) -> list[str]:
    if arguments.contractions:
        return ["numpy", "certen", "certen-einsum"]
    if arguments.ported:
        return ["numpy", "certen"]
    if arguments.polybench:
        return [*(peer for peer in ("numpy", "numba", "c") if peer in arguments.peers), "certen"]
    if arguments.small or arguments.sweep:
        return [*arguments.peers, "certen"]
    return [*arguments.peers, *(one for one in OURS if one != "certen-einsum")]


def main(given: list[str] | None = None) -> int:
    parser = _parser()
    arguments = parser.parse_args(given)
    known = _known(arguments)
    if arguments.curves and not arguments.small:
        parser.error("--curves draws rows of --small")
    if unknown := [name for name in arguments.kernels if name not in known]:
        parser.error(f"`{unknown[0]}` is none of {', '.join(known)}")
    if arguments.cpu and CPUS[arguments.cpu] > CPUS[widest()]:
        parser.error(f"this processor does not have {arguments.cpu}")
    rounds, attempts = (2, 1) if arguments.quick else (arguments.rounds, arguments.attempts)
    # What has to be removed is removed however the process is ended.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with tempfile.TemporaryDirectory(prefix="certen-bench-") as directory:
            run = _run(arguments, rounds, attempts, Path(directory))
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    if arguments.json:
        arguments.json.write_text(json.dumps(as_json(run), indent=1) + "\n")
    if arguments.svg:
        arguments.svg.write_text(as_svg(run))
    if arguments.curves:
        arguments.curves.write_text(as_curves(run))
    print(as_text(run), end="")
    wrong = any("WRONG" in said for result in run.results for said in result.refused)
    return 1 if wrong else 0


def _run(arguments: argparse.Namespace, rounds: int, attempts: int, directory: Path) -> Run:
    cpu = arguments.cpu or widest()
    meter = Meter(directory, cpu, quick=arguments.quick)
    if meter.complaint:
        print(meter.complaint, file=sys.stderr)
    run = Run(model(), cpu, arguments.seed, rounds, meter.limits)
    meter.measure(arguments.dtype, arguments.threads)
    for threads in arguments.threads:
        with Field(_entrants(arguments), threads, arguments.cpu, directory) as everybody:
            run.missing |= everybody.missing
            run.versions |= {one.name: one.version for one in everybody.entrants if one.version}
            for problem in _problems(arguments):
                name = problem.kernel.subscripts or problem.name
                print(f"{name} {problem.dtype}, threads: {threads}", file=sys.stderr, flush=True)
                run.results.append(everybody.measure(problem, arguments.seed, rounds, attempts))
    meter.measure(arguments.dtype, arguments.threads)
    return run


if __name__ == "__main__":
    sys.exit(main())
