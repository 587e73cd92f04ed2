"""Ratios of times that were taken in turns, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Interval:
    """A median, and where it is with a probability of 90 %."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The width, as a part of the median."""
        return (self.high - self.low) / self.median


def interval(values: Sequence[float], confidence: float = 0.9) -> Interval:
    """By order statistics: nothing is assumed of the distribution.

    The k-th value from below and from above enclose the median unless fewer than k of n fair coins show the same side.
    With fewer than five values no pair is sure enough: the interval is all of them.
    """
    ordered = sorted(values)
    n, k, outside = len(ordered), 0, 0.0
    while k < (n - 1) // 2:
        outside += 2 * math.comb(n, k) / 2**n
        if outside > 1 - confidence:
            break
        k += 1
    at = max(k - 1, 0)
    return Interval(median(ordered), ordered[at], ordered[n - 1 - at])


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """How many times as fast as they we are, compared round by round."""
    return interval([their / our for our, their in zip(ours, theirs, strict=True)])


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
