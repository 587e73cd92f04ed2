"""Contractions made at random from a seed: from 2 to 6 dimensions in any order, of sizes from 3 to 1500."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

import numpy as np

from .kernels import Kernel, Problem, Sizes

SMALLEST, LARGEST, THIN = 3, 1500, 16
MOST_DIMENSIONS = 6
MOST_FLOPS, MOST_ELEMENTS = 2 * 10**9, 4 * 10**6
# What is smaller measures how long a call takes, not the loops.
LEAST_FLOPS = 10**6
_KINDS = ("product", "batched", "thin", "several", "general")


def contraction(subscripts: str, sizes: Sizes) -> Kernel:
    """A kernel of einsum's subscripts; each letter is a size, and doubled the name of an index."""
    operands, output = subscripts.split("->")
    inputs = operands.split(",")
    summed = [letter for letter in dict.fromkeys(operands.replace(",", "")) if letter not in output]

    def indices(letters: str | list[str]) -> str:
        return ", ".join(2 * letter for letter in letters)

    def tensor(letters: str) -> str:
        return f"$T[{', '.join('$' + letter for letter in letters)}]" if letters else "$T"

    body = " * ".join(f"X{at}[{indices(letters)}]" for at, letters in enumerate(inputs))
    if summed:
        body = f"sum({{ [{indices(summed)}] -> {body} }})"
    if output:
        body = f"{{ [{indices(output)}] -> {body} }}"
    parameters = ", ".join(f"X{at}: {tensor(letters)}" for at, letters in enumerate(inputs))
    return Kernel(
        name="contraction",
        sizes=sizes,
        quick=sizes,
        inputs=lambda **sizes: [tuple(sizes[letter] for letter in letters) for letters in inputs],
        output=lambda **sizes: tuple(sizes[letter] for letter in output),
        flops=lambda **sizes: least_flops(inputs, output, sizes),
        reference=lambda *arrays: np.asarray(np.einsum(subscripts, *arrays, optimize=True)),
        text=f"fn kernel({parameters}) -> {tensor(output)} {{ {body} }}",
        subscripts=subscripts,
    )


def least_flops(operands: list[str], output: str, sizes: Sizes) -> int:
    """The operations of the best order in which pairs are contracted."""
    if len(operands) == 1:
        return 0
    best = []
    for one, other in itertools.combinations(range(len(operands)), 2):
        rest = [operand for at, operand in enumerate(operands) if at not in (one, other)]
        both = set(operands[one] + operands[other])
        kept = "".join(sorted(both & set("".join([*rest, output]))))
        here = 2 * math.prod(sizes[letter] for letter in both)
        best.append(here + least_flops([*rest, kept], output, sizes))
    return min(best)


def generate(count: int, seed: int) -> Iterator[Problem]:
    """The same ones for the same seed; a longer list begins with a shorter one."""
    rng = random.Random(seed)
    for _ in range(count):
        operands, output, thin = _form(rng)
        sizes = _sizes(rng, operands, output, thin)
        subscripts = ",".join(operands) + "->" + output
        yield Problem(contraction(subscripts, sizes), sizes, rng.choice(["f64", "f32"]))


def _form(rng: random.Random) -> tuple[list[str], str, str]:
    """The dimensions of operands and result, and the one that is small, if any."""
    kind = rng.choice(_KINDS)
    counts = {"product": [1], "general": [1, 2, 3]}.get(kind, [1, 1, 2])
    letters = iter("abcdefghijkl")

    def some(counts: list[int]) -> list[str]:
        return list(itertools.islice(letters, rng.choice(counts)))

    batch = some({"batched": [1], "general": [0, 0, 0, 1]}.get(kind, [0]))
    rows, columns, summed = some(counts), some(counts), some(counts)
    operands = [batch + rows + summed, batch + summed + columns]
    output = batch + rows + columns
    if kind == "several":
        # A third operand takes the place of one of the columns.
        (new,) = some([1])
        operands.append([columns[-1], new])
        output[-1] = new
    if max(map(len, [*operands, output])) > MOST_DIMENSIONS:
        return _form(rng)
    for dimensions in [*operands, output]:
        rng.shuffle(dimensions)
    return ["".join(operand) for operand in operands], "".join(output), columns[-1] if kind == "thin" else ""


def _sizes(rng: random.Random, operands: list[str], output: str, thin: str) -> Sizes:
    """Drawn until they are neither too large nor too small together: every form has its share."""
    while True:
        sizes = {}
        for letter in sorted(set("".join(operands))):
            largest = THIN if letter == thin else LARGEST
            sizes[letter] = round(math.exp(rng.uniform(math.log(SMALLEST), math.log(largest))))
        elements = max(math.prod(sizes[letter] for letter in dimensions) for dimensions in [*operands, output])
        if elements <= MOST_ELEMENTS and LEAST_FLOPS <= least_flops(operands, output, sizes) <= MOST_FLOPS:
            return sizes
