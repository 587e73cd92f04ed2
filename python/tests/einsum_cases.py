"""Calls of einsum, made from integers: one seed is one case.

`build(seed)` makes the same case each time, with arrays of its own, so that one implementation can be given the first
copy and another one the second; memory that operands and `out` share is shared in each copy. About one case of four is
made wrong on purpose. Nothing here knows whether a case is right: NumPy says it.
"""

import random
import string
from dataclasses import dataclass, field

import numpy as np

SIZES = (1, 2, 3, 5, 7, 8, 17)
DTYPES = ("float32", "float64", "int32", "int64")
LAYOUTS = (
    "C", "C", "C", "F", "transposed", "steps", "negative", "zero strides", "misaligned", "field", "swapped",
    "read-only", "list", "subclass",
)  # fmt: skip
OUTS = (
    "fresh", "F", "steps", "negative", "misaligned", "field", "swapped", "operand", "partial", "dtype", "shape",
    "read-only",
)  # fmt: skip
OPTIMIZE = (False, True, "greedy", "optimal", "path")
CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
# More products than this in a case would be slow for NumPy.
BUDGET = 20_000


class Plain(np.ndarray):
    """A subclass of ndarray that changes nothing."""


@dataclass
class Case:
    """The arguments of a call, and how they were made."""

    seed: int
    spec: str | None
    """The subscripts, or None for the interleaved form."""
    lists: list | None
    """The subscript lists, the output's last (None if it is implicit)."""
    operands: list
    layouts: list[str]
    kwargs: dict = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def args(self) -> list:
        if self.spec is not None:
            return [self.spec, *self.operands]
        *inputs, output = self.lists
        mixed = [part for pair in zip(self.operands, inputs, strict=False) for part in pair]
        return mixed if output is None else [*mixed, output]

    def describe(self) -> str:
        """The case in words, and how to run it alone."""
        lines = [f"CERTEN_SEED={self.seed} replays this case"]
        lines += [f"  {self.spec!r}" if self.spec is not None else f"  {self.lists}"]
        for at, (operand, layout) in enumerate(zip(self.operands, self.layouts, strict=False)):
            array = np.asarray(operand)
            strides = f", strides {array.strides}" if isinstance(operand, np.ndarray) else ""
            lines.append(f"  operand {at}: {array.dtype.str} {array.shape}, {layout}{strides}")
        for key, value in self.kwargs.items():
            if isinstance(value, np.ndarray):
                value = f"{value.dtype.str} {value.shape}, strides {value.strides}"
            lines.append(f"  {key} = {value}")
        return "\n".join(lines + [f"  {note}" for note in self.notes])


def laid_out(array: np.ndarray, layout: str, rng: random.Random):
    """The values of an array in a layout (with zero strides: some of them)."""
    rank, shape = array.ndim, array.shape
    if layout == "list":
        return array.tolist()
    if layout == "F":
        return array.copy(order="F")
    if layout == "transposed":
        axes = rng.sample(range(rank), rank)
        return array.transpose(axes).copy().transpose(np.argsort(axes))
    if layout == "steps":
        steps = [rng.choice((1, 2, 3)) for _ in shape]
        wide = np.full([size * step for size, step in zip(shape, steps, strict=True)], 77, array.dtype)
        view = wide[(*(slice(0, None, step) for step in steps), ...)]
        view[...] = array
        return view
    if layout == "negative":
        turn = (*(slice(None, None, rng.choice((-1, 1))) for _ in shape), ...)
        return array[turn].copy()[turn]
    if layout == "zero strides":
        some = array[(*(slice(0, 1) if size > 1 and rng.random() < 0.5 else slice(None) for size in shape), ...)]
        return np.broadcast_to(some, shape)
    if layout == "misaligned":
        memory = bytearray(array.nbytes + 8)
        view = np.ndarray(shape, array.dtype, memory, offset=rng.choice((1, 2, 3)))
        view[...] = array
        return view
    if layout == "field":
        # A field of a record: strides are no multiple of the element's size.
        record = np.zeros(shape, [("before", "u1"), ("x", array.dtype)])
        record["x"] = array
        return record["x"]
    if layout == "swapped":
        return array.astype(array.dtype.newbyteorder())
    if layout == "read-only":
        array.setflags(write=False)
        return array
    if layout == "subclass":
        return array.view(Plain)
    return array


def values(rng: random.Random, dtype: str, shape: tuple, kind: str) -> np.ndarray:
    """Elements of a kind: small whole numbers, normal floats, floats of many magnitudes, or integers that overflow."""
    source = np.random.default_rng(rng.getrandbits(64))
    if kind == "small" or (dtype[0] == "f" and kind == "whole"):
        return np.asarray(source.integers(-4, 5, shape), dtype)
    if dtype[0] == "i":
        limits = np.iinfo(dtype)
        return np.asarray(source.integers(limits.min, limits.max, shape, dtype, endpoint=True))
    scale = 10.0 ** source.integers(-3, 4, shape) if kind == "wide" else 1.0
    return np.asarray(source.standard_normal(shape) * scale, dtype)


def blanks(rng: random.Random, spec: str) -> str:
    """The same subscripts with blanks between them."""
    parts, at = [], 0
    while at < len(spec):
        width = next((len(token) for token in ("...", "->") if spec.startswith(token, at)), 1)
        parts.append(spec[at : at + width])
        at += width
    return "".join(" " * rng.choice((0, 0, 1, 2)) + part for part in parts) + " " * rng.choice((0, 1))


def good(rng: random.Random) -> tuple[list, list | None, list[tuple]]:
    """Subscript lists, the output's (None: implicit) and shapes that fit; labels are letters."""
    letters = rng.sample(string.ascii_letters, rng.randint(1, 6))
    count = rng.choice((1, 1, 2, 2, 2, 3, 3, 4, 5))
    outer = [rng.choice(SIZES[:4]) for _ in range(rng.choice((0, 1, 1, 2)))] if rng.random() < 0.35 else None
    sizes = {letter: 0 if rng.random() < 0.03 else rng.choice(SIZES) for letter in letters}
    while np.prod([max(1, size) for size in [*sizes.values(), *(outer or [])]]) > BUDGET:
        sizes[max(sizes, key=sizes.get)] = 2
    inputs, shapes = [], []
    for _ in range(count):
        labels = rng.sample(letters, min(len(letters), rng.choice((0, 1, 1, 2, 2, 2, 3, 4))))
        if labels and rng.random() < 0.15:
            labels += rng.choices(labels, k=rng.choice((1, 1, 2)))
            rng.shuffle(labels)
        one = {label for label in labels if rng.random() < 0.06}
        shape = [1 if label in one else sizes[label] for label in labels]
        if outer is not None and rng.random() < 0.75:
            tail = outer[rng.randint(0, len(outer)) :] if rng.random() < 0.3 else outer
            tail = [1 if rng.random() < 0.15 else size for size in tail]
            at = rng.randint(0, len(labels))
            labels[at:at] = [Ellipsis]
            shape[at:at] = tail
        inputs.append(labels)
        shapes.append(tuple(shape))
    output = None
    if rng.random() < 0.6:
        used = sorted({label for labels in inputs for label in labels if label is not Ellipsis})
        output = rng.sample(used, rng.randint(0, min(len(used), 4)))
        ellipsis = any(Ellipsis in labels for labels in inputs)
        if rng.random() < (0.93 if ellipsis else 0.03):
            output.insert(rng.randint(0, len(output)), Ellipsis)
    return inputs, output, shapes


def written(inputs: list, output: list | None) -> str:
    """Subscript lists as a text."""

    def text(labels: list) -> str:
        return "".join("..." if label is Ellipsis else label for label in labels)

    return ",".join(map(text, inputs)) + ("" if output is None else "->" + text(output))


def numbered(labels: list) -> list:
    """Letters as the integers of the interleaved form: A is 0, a is 26."""
    return [label if label is Ellipsis else string.ascii_letters.index(label.swapcase()) for label in labels]


def misspelt(rng: random.Random, spec: str) -> str:
    """A text with a character dropped, doubled, exchanged with its neighbour or replaced."""
    at = rng.randrange(len(spec)) if spec else 0
    match rng.randrange(5):
        case 0:
            return spec[:at] + spec[at + 1 :]
        case 1:
            return spec[: at + 1] + spec[at:]
        case 2:
            return spec[:at] + spec[at + 1 : at + 2] + spec[at : at + 1] + spec[at + 2 :]
        case 3:
            return spec[:at] + rng.choice("ijZ.,->1 _*é") + spec[at + 1 :]
        case _:
            return spec[:at] + rng.choice(["i", "j", "->", ",", ".", "...", "ä", "\t", "\0", "-", ">"]) + spec[at:]


def break_shape(rng: random.Random, shape: tuple) -> tuple:
    """A shape with an axis more or less, or another size."""
    shape = list(shape)
    at = rng.randint(0, len(shape))
    match rng.randrange(3):
        case 0 if shape:
            del shape[at % len(shape)]
        case 1 if shape:
            shape[at % len(shape)] = rng.choice((0, 1, 2, 3, 4, 5, 11))
        case _:
            shape.insert(at, rng.choice((1, 2, 3)))
    return tuple(shape)


def build(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    inputs, output, shapes = good(rng)
    notes = []
    wrong = rng.random() < 0.25
    mistake = rng.choice(("spelling", "spelling", "spelling", "count", "shape", "output")) if wrong else None
    if mistake == "output" and output is not None:
        used = [label for labels in inputs for label in labels]
        output.insert(rng.randint(0, len(output)), rng.choice([*output, *used, "q", "Q", Ellipsis]))
    if mistake in ("shape", "output"):
        at = rng.randrange(len(shapes))
        shapes[at] = break_shape(rng, shapes[at])
    if mistake == "count":
        at = rng.randrange(len(shapes) + 1)
        shapes[at : at + 1] = rng.choice(([], [(2,), (3,)]))
    if mistake:
        notes.append(f"made wrong: {mistake}")

    odd = rng.random() < 0.2
    kwargs = {}
    if odd:
        kind = "small"
        if rng.random() < 0.6:
            kwargs["dtype"] = rng.choice((*DTYPES, None))
        if rng.random() < 0.6:
            kwargs["casting"] = rng.choice(CASTINGS)
        if rng.random() < 0.4:
            kwargs["order"] = rng.choice("KCFAkcfa")
    else:
        kind = rng.choice(("small", "whole", "normal", "wide"))
    out_kind = rng.choice(OUTS) if rng.random() < 0.3 else None
    if out_kind == "dtype":
        kind = "small"

    common = rng.choice(DTYPES)
    mixed = rng.random() < 0.25
    plain = rng.random() < 0.3
    operands, layouts = [], []
    for shape in shapes:
        dtype = rng.choice(DTYPES) if mixed else common
        layout = "C" if plain else rng.choice(LAYOUTS)
        operands.append(laid_out(values(rng, dtype, shape, kind), layout, rng))
        layouts.append(layout)
    overlap(rng, operands, layouts)

    interleaved = rng.random() < 0.25
    case = Case(seed, None, None, operands, layouts, kwargs, notes)
    if interleaved:
        case.lists = [*map(numbered, inputs), None if output is None else numbered(output)]
        if mistake == "spelling":
            chosen = rng.choice([labels for labels in case.lists if labels is not None])
            chosen.insert(rng.randint(0, len(chosen)), rng.choice((0, 26, 51, 52, -1, 1.5, "a", None, Ellipsis)))
    else:
        case.spec = written(inputs, output)
        if rng.random() < 0.2:
            case.spec = blanks(rng, case.spec)
        if mistake == "spelling":
            for _ in range(rng.choice((1, 1, 2))):
                case.spec = misspelt(rng, case.spec)
    if rng.random() < 0.6:
        kwargs["optimize"] = rng.choice(OPTIMIZE)
    if kwargs.get("optimize") == "path":
        kwargs["optimize"] = numpy_path(case)
    if out_kind:
        kwargs["out"] = make_out(rng, case, out_kind)
        notes.append(f"out: {out_kind}")
    return case


def overlap(rng: random.Random, operands: list, layouts: list[str]) -> None:
    """Lets two operands share memory, sometimes."""
    if len(operands) < 2 or rng.random() > 0.15:
        return
    a, b = rng.sample(range(len(operands)), 2)
    if not all(isinstance(operands[at], np.ndarray) and layouts[at] == "C" for at in (a, b)):
        return
    if operands[a].dtype != operands[b].dtype:
        return
    one, other = operands[a], operands[b]
    memory = np.concatenate([one.ravel(), other.ravel()])
    start = min(rng.choice((0, 1, 2)), one.size)
    operands[a] = memory[: one.size].reshape(one.shape)
    operands[b] = memory[start : start + other.size].reshape(other.shape)
    layouts[a] = layouts[b] = "overlapping"


def numpy_path(case: Case):
    """NumPy's path for a case, or True if there is none."""
    try:
        return np.einsum_path(*case.args, optimize="greedy")[0]
    except (ValueError, TypeError, LookupError):
        return True


def make_out(rng: random.Random, case: Case, kind: str):
    """An output of a kind, with garbage in it."""
    try:
        wanted = np.einsum(*case.args, dtype=case.kwargs.get("dtype"), casting="unsafe")
        dtype, shape = wanted.dtype.newbyteorder("="), wanted.shape
    except (ValueError, TypeError):
        dtype, shape = np.dtype("float64"), (2, 3)
    if kind == "dtype":
        dtype = np.dtype(rng.choice(DTYPES))
    if kind == "shape":
        shape = break_shape(rng, shape)
    garbage = np.full(shape, 99, dtype)
    same = [at for at, operand in enumerate(case.operands) if isinstance(operand, np.ndarray)]
    same = [at for at in same if case.operands[at].dtype == dtype and case.layouts[at] in ("C", "F", "transposed")]
    if kind == "operand":
        same = [at for at in same if case.operands[at].shape == shape]
        return case.operands[rng.choice(same)] if same else garbage
    if kind == "partial" and same:
        at = rng.choice(same)
        operand = case.operands[at]
        memory = np.concatenate([operand.ravel(), garbage.ravel()])
        case.operands[at] = memory[: operand.size].reshape(operand.shape)
        start = rng.randint(0, operand.size)
        return memory[start : start + garbage.size].reshape(shape)
    return laid_out(garbage, kind, rng) if kind in LAYOUTS else garbage
