"""What was measured, as a table, as JSON, and as a drawing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

from .limits import Limits
from .measure import Result
from .peers import ENTRANTS, OURS
from .small import GROUPS
from .statistics import Interval, geometric_mean

_CERTEN = "certen"


@dataclass
class Run:
    """One run of the bench. Ratios are of one run; times of several are not compared."""

    processor: str
    cpu: str
    seed: int
    rounds: int
    limits: Limits
    versions: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)

    @property
    def timed(self) -> list[Result]:
        return [result for result in self.results if result.attempts]

    @property
    def entrants(self) -> list[str]:
        """Those who took part, in the order of the list."""
        there = {entrant for result in self.timed for entrant in result.last.seconds}
        return [entrant for entrant in ENTRANTS if entrant in there]


def _row(result: Result) -> list[str]:
    problem = result.problem
    sizes = " ".join(f"{name}={size}" for name, size in problem.sizes.items())
    name = f"{problem.kernel.subscripts} {sizes}" if problem.kernel.subscripts else problem.name
    return [name, problem.dtype, str(result.threads)]


def _ratio(ratio: Interval | None) -> str:
    return "-" if ratio is None else f"{ratio.median:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}"


def _error(error: float | None) -> str:
    return "-" if error is None else f"{error:.1e}"


def _aligned(rows: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _limited(run: Run, result: Result, entrant: str) -> str:
    least = run.limits.seconds(result.problem, result.threads)
    if least is None or entrant not in result.last.seconds:
        return "-"
    return f"{100 * least / result.last.median(entrant):.0f} %"


def as_text(run: Run) -> str:
    """Tables for people."""
    lines = [f"{run.processor}, {run.cpu}; {run.rounds} rounds in turns, seed {run.seed}"]
    lines += [f"{name} {version}" for name, version in run.versions.items()]
    lines += [f"{name}: not here ({reason})" for name, reason in run.missing.items()]
    for threads, bandwidth in run.limits.bandwidth.items():
        peaks = ", ".join(
            f"{max(rates):.0f} GFLOP/s of {dtype}"
            for (dtype, count), rates in run.limits.peak.items()
            if count == threads
        )
        lines.append(f"limits with {_counted(threads)}: {peaks}; {max(bandwidth):.0f} GB/s")
    shown, ours = run.entrants, [entrant for entrant in OURS if entrant in run.entrants]
    head = ["kernel", "type", "threads"]

    def table(title: str, names: list[str], cells: Callable[[Result], list[str]]) -> None:
        rows = [[*head, *names], *([*_row(result), *cells(result)] for result in run.timed)]
        lines.extend(["", title, *_aligned(rows)])

    def each(value: Callable[[Result, str], str]) -> Callable[[Result], list[str]]:
        return lambda result: [value(result, one) if one in result.last.seconds else "-" for one in shown]

    def ratios(result: Result) -> list[str]:
        peer = result.last.best_peer
        cells = [f"{peer}, {result.formulations[peer].name}", _limited(run, result, peer)] if peer else ["-", "-"]
        for one in ours:
            cells += [_ratio(result.last.ratios.get(one)), _limited(run, result, one)]
        return [*cells, str(len(result.attempts))]

    table("median, ms", shown, each(lambda result, one: _digits(1e3 * result.last.median(one))))
    titles = [title for one in ours for title in (one, "of limit")]
    table("times as fast as the best peer, with 90 % intervals", ["best peer", "of limit", *titles, "attempts"], ratios)
    table(
        "from the text to the first result, s", shown, each(lambda result, one: _digits(result.formulations[one].first))
    )
    table(
        "largest error, as a part of the value",
        shown,
        each(lambda result, one: _error(result.formulations[one].error)),
    )
    table("page faults in a run", shown, each(lambda result, one: f"{result.last.faults[one]:.0f}"))
    for one in ours:
        medians = [result.last.ratios[one].median for result in run.timed if one in result.last.ratios]
        if medians:
            lines += ["", f"{one}: {geometric_mean(medians):.3f} times as fast as the best peer, geometric mean"]
    again = [result for result in run.timed if len(result.attempts) > 1]
    if again:
        lines += ["", "measured again, because intervals were wide; all attempts of certen:"]
        for result in again:
            tries = "; ".join(_ratio(attempt.ratios.get(_CERTEN)) for attempt in result.attempts)
            lines.append(f"{' '.join(_row(result))}: {tries}")
    refused = [(result, said) for result in run.results for said in result.refused]
    if refused:
        lines += ["", "not timed:", *(f"{' '.join(_row(result))}: {said}" for result, said in refused)]
    return "\n".join(lines) + "\n"


def as_json(run: Run) -> dict[str, Any]:
    """All of it, for programs."""

    def one(result: Result) -> dict[str, Any]:
        problem = result.problem
        return {
            "kernel": problem.name,
            "subscripts": problem.kernel.subscripts or None,
            "sizes": problem.sizes,
            "dtype": problem.dtype,
            "threads": result.threads,
            "flops": problem.flops,
            "bytes": problem.bytes,
            "limit_seconds": run.limits.seconds(problem, result.threads),
            "formulations": {name: asdict(formulation) for name, formulation in result.formulations.items()},
            "refused": result.refused,
            "attempts": [
                {
                    "best_peer": attempt.best_peer,
                    "ratios": {name: asdict(ratio) for name, ratio in attempt.ratios.items()},
                    "seconds": attempt.seconds,
                    "faults": attempt.faults,
                }
                for attempt in result.attempts
            ],
        }

    limits = run.limits
    return {
        "processor": run.processor,
        "cpu": run.cpu,
        "seed": run.seed,
        "rounds": run.rounds,
        "versions": run.versions,
        "missing": run.missing,
        "limits": {
            "gflops": [{"dtype": dtype, "threads": n, "measured": rates} for (dtype, n), rates in limits.peak.items()],
            "gbytes": [{"threads": n, "measured": rates} for n, rates in limits.bandwidth.items()],
        },
        "results": [one(result) for result in run.results],
    }


_COLOURS = {"certen": "#c0392b", "certen-hand": "#e59866", "certen-einsum": "#e59866", "peer": "#2c6fbb"}
_WIDTH, _BAR, _CHART = 960, 14, 320
_CURVES = {
    "numpy": "#2c6fbb",
    "jax": "#7d3c98",
    "torch": "#d4ac0d",
    "numba": "#148f77",
    "halide": "#444444",
    "halide-auto": "#a6acaf",
    "tvm": "#6e2c00",
    "c": "#b9770e",
    "certen": "#c0392b",
}
# About what a character of a label takes.
_CHARACTER = 7


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = "#444", more: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'


def as_svg(run: Run) -> str:
    """Bars of the ratios, then a roofline for each element type and number of threads."""
    parts, height = _bars(run)
    for dtype, threads in run.limits.peak:
        results = [one for one in run.timed if one.problem.dtype == dtype and one.threads == threads]
        if results:
            parts += _roofline(run.limits, dtype, threads, results, height)
            height += _CHART + 70
    return _drawing(parts, height)


def _drawing(parts: list[str], height: int) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-family="sans-serif">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"


def as_curves(run: Run) -> str:
    """What everybody reaches with `kron` over n: a chart for each element type and number of threads."""
    shown = [result for result in run.timed if result.problem.name in GROUPS["kron"]]
    parts, height = [], 20
    for dtype, threads in dict.fromkeys((one.problem.dtype, one.threads) for one in shown):
        chosen = [one for one in shown if (one.problem.dtype, one.threads) == (dtype, threads)]
        parts += _curves(f"{dtype}, {_counted(threads)}: GFLOP/s of (A x B x C) u over n", chosen, height)
        height += _CHART + 70
    return _drawing(parts, height)


def _counted(threads: int) -> str:
    return f"{threads} thread{'s' * (threads > 1)}"


def _curves(title: str, results: list[Result], top: int) -> list[str]:
    """A line for each entrant; what it was not timed with leaves no gap."""
    points: dict[str, list[tuple[int, float]]] = {}
    for result in sorted(results, key=lambda one: one.problem.sizes["n"]):
        for entrant in (one for one in ENTRANTS if one in result.last.seconds):
            rate = result.problem.flops / result.last.median(entrant) / 1e9
            points.setdefault(entrant, []).append((result.problem.sizes["n"], rate))
    degrees = sorted({n for line in points.values() for n, _ in line})
    most = max(rate for line in points.values() for _, rate in line)
    step = 10.0 ** math.floor(math.log10(most))
    right, bottom = _WIDTH - 140, top + 30 + _CHART

    def x(n: int) -> float:
        return 80 + (right - 80) * (n - degrees[0]) / max(1, degrees[-1] - degrees[0])

    def y(rate: float) -> float:
        return bottom - _CHART * rate / most

    parts = [_text(20, top + 16, title, size=16), _line(80, bottom, right, bottom), _line(80, bottom, 80, y(most))]
    parts += [_text(x(n), bottom + 16, str(n), anchor="middle") for n in degrees]
    parts += [_text(72, y(at * step) + 4, f"{at * step:g}", anchor="end") for at in range(int(most / step) + 1)]
    for at, (entrant, line) in enumerate(points.items()):
        colour, width = _CURVES[entrant], 3 if entrant == _CERTEN else 1.5
        corners = " ".join(f"{x(n):.1f},{y(rate):.1f}" for n, rate in line)
        parts.append(f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        parts += [f'<circle cx="{x(n):.1f}" cy="{y(rate):.1f}" r="{width}" fill="{colour}"/>' for n, rate in line]
        parts.append(_line(right + 20, top + 40 + 18 * at, right + 40, top + 40 + 18 * at, colour, 'stroke-width="3"'))
        parts.append(_text(right + 46, top + 44 + 18 * at, entrant))
    return parts


def _bars(run: Run) -> tuple[list[str], int]:
    """A bar for each of ours, and where the drawing goes on below."""
    ours = [entrant for entrant in OURS if entrant in run.entrants]
    rows = [result for result in run.timed if result.last.ratios]
    most = max((ratio.high for result in rows for ratio in result.last.ratios.values()), default=1.0)
    left = 30 + _CHARACTER * max((len(" ".join(_row(result))) for result in rows), default=0)
    scale = (_WIDTH - left - 60) / max(most, 1.2)
    parts = [_text(20, 24, "Times as fast as the best peer, with 90 % intervals", size=16)]
    for at, one in enumerate(ours):
        parts.append(f'<rect x="{20 + 140 * at}" y="36" width="12" height="12" fill="{_COLOURS[one]}"/>')
        parts.append(_text(38 + 140 * at, 47, one))
    y = 64
    for result in rows:
        parts.append(_text(left - 10, y + 11, " ".join(_row(result)), anchor="end"))
        for one in ours:
            ratio = result.last.ratios.get(one)
            if ratio is not None:
                width, middle = scale * ratio.median, y + _BAR / 2
                parts.append(
                    f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{_BAR - 2}" fill="{_COLOURS[one]}"/>'
                )
                parts.append(_line(left + scale * ratio.low, middle, left + scale * ratio.high, middle, "black"))
                parts.append(_text(left + scale * ratio.high + 6, y + 11, f"{ratio.median:.2f}", size=11))
                y += _BAR
        y += 6
    parts.append(_line(left + scale, 56, left + scale, y, more='stroke-dasharray="4 3"'))
    return parts, y + 30


def _roofline(limits: Limits, dtype: str, threads: int, results: list[Result], top: int) -> list[str]:
    """Operations a second over operations for each byte; both axes are logarithmic."""
    peak, bandwidth = max(limits.peak[dtype, threads]), max(limits.bandwidth[threads])
    points = []
    for result in results:
        attempt = result.last
        for entrant in (attempt.best_peer, _CERTEN):
            if entrant is not None and entrant in attempt.seconds:
                rate = result.problem.flops / attempt.median(entrant) / 1e9
                kind = _CERTEN if entrant == _CERTEN else "peer"
                points.append((result.problem.flops / result.problem.bytes, rate, kind, result.problem.name))
    intensities, rates = [point[0] for point in points], [point[1] for point in points]
    low_x, high_x = min([*intensities, 0.5]) / 2, max([*intensities, 2 * peak / bandwidth]) * 2
    low_y, high_y = min(rates) / 2, max([*rates, peak]) * 2
    right, bottom = _WIDTH - 40, top + 30 + _CHART

    def x(value: float) -> float:
        return 80 + (right - 80) * math.log(value / low_x) / math.log(high_x / low_x)

    def y(value: float) -> float:
        clamped = max(value, low_y)
        return bottom - _CHART * math.log(clamped / low_y) / math.log(high_y / low_y)

    parts = [
        _text(20, top + 16, f"{dtype}, {_counted(threads)}: GFLOP/s over flops for each byte", size=16),
        _line(80, bottom, right, bottom),
        _line(80, bottom, 80, bottom - _CHART),
    ]
    for power in range(math.ceil(math.log10(low_x)), math.floor(math.log10(high_x)) + 1):
        parts.append(_text(x(10.0**power), bottom + 16, f"{10.0**power:g}", anchor="middle"))
    for power in range(math.ceil(math.log10(low_y)), math.floor(math.log10(high_y)) + 1):
        parts.append(_text(72, y(10.0**power) + 4, f"{10.0**power:g}", anchor="end"))
    ridge, begin = peak / bandwidth, max(low_x, low_y / bandwidth)
    parts.append(_line(x(begin), y(begin * bandwidth), x(ridge), y(peak)))
    parts.append(_line(x(ridge), y(peak), right, y(peak)))
    parts.append(_text(right, y(peak) - 6, f"{peak:.0f} GFLOP/s, {bandwidth:.0f} GB/s", anchor="end"))
    for intensity, rate, kind, name in points:
        parts.append(f'<circle cx="{x(intensity):.1f}" cy="{y(rate):.1f}" r="4" fill="{_COLOURS[kind]}"/>')
        if kind == _CERTEN:
            parts.append(_text(x(intensity) + 6, y(rate) + 4, name, size=11))
    return parts
