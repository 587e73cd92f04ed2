"""Writes expressions of index notation in the `.ten` language, as a person would.

One walk, parts first, over an expression whose left-hand side is known: it decides which indices each sum runs over,
and writes the text. A sum without `over=` takes all indices that are free in it, not on the left-hand side, and not
taken by an `over=` around it. Where an index is taken by such a sum and also used around it, inside another one, it
could be meant to be the index of either: that is refused.

There is no recursion: expressions are as deep as the language allows, which is deeper than Python's stack.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from ._notation import WHOLE, Expression, Index

if TYPE_CHECKING:
    from ._builder import Indexed

# How tightly an expression binds, from the loosest; `ALONE` is a conditional, which is never an operand without
# parentheses.
ALONE, OR, AND, COMPARE, SUM, PRODUCT, UNARY, POWER, ATOM = range(9)

BINARY = {
    "||": OR,
    "&&": AND,
    "<": COMPARE,
    "<=": COMPARE,
    ">": COMPARE,
    ">=": COMPARE,
    "==": COMPARE,
    "!=": COMPARE,
    "+": SUM,
    "-": SUM,
    "*": PRODUCT,
    "/": PRODUCT,
}

UNKNOWN = "?"
"""A bound of an index that is more than the size of one dimension."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the dimensions that an index selects from: always, and where some condition holds."""

    always: frozenset[str] = frozenset()
    sometimes: frozenset[str] = frozenset()

    def __or__(self, other: Sizes) -> Sizes:
        return Sizes(self.always | other.always, self.sometimes | other.sometimes)

    def __bool__(self) -> bool:
        return bool(self.always or self.sometimes)

    @property
    def known(self) -> str | None:
        """The bound that the compiler will find: of what is always selected, and of the rest if that is all."""
        sizes = self.always or self.sometimes
        return next(iter(sizes)) if len(sizes) == 1 and UNKNOWN not in sizes else None


Free: TypeAlias = dict[str, Sizes]


@dataclass(frozen=True, slots=True)
class Written:
    """The text of an expression, and what it says about indices."""

    text: str
    tight: int
    free: Free = field(default_factory=dict)
    """The free indices, in the order of the text."""
    taken: frozenset[str] = frozenset()
    """The indices of sums without `over=` inside."""

    def within(self, tight: int) -> str:
        """The text as an operand of something that binds as tightly as that."""
        return self.text if self.tight >= tight else f"({self.text})"


class Writer:
    """Writes expressions for one left-hand side; with none, as they are shown to users."""

    def __init__(self, left: Sequence[Index] | None = None) -> None:
        self.left = left
        self.indices: dict[str, Index] = {}
        self.sizes: dict[str, None] = {}
        self.tensors: dict[str, Indexed] = {}
        self.done: dict[tuple[int, frozenset[str], bool], Written] = {}

    def write(self, root: Expression, compact: bool = False) -> Written:
        """The text of an expression; `compact` without spaces around operators, as in subscripts."""
        around = frozenset(index.name for index in self.left or ())
        stack = [(root, around, compact)]
        while stack:
            node, bound, small = stack[-1]
            key = (id(node), bound, small)
            if key in self.done:
                stack.pop()
                continue
            inner, small_inner = bound, small
            if node.op == "reduce" and node.value[1] is not None:
                inner = bound | {index.name for index in node.value[1]}
            if node.op == "sel":
                small_inner = True
            needed = [(part, inner, small_inner) for part in self.parts(node)]
            missing = [part for part in needed if (id(part[0]), part[1], part[2]) not in self.done]
            if missing:
                stack.extend(reversed(missing))
                continue
            parts = [self.done[id(part), context, tight] for part, context, tight in needed]
            self.done[key] = self.node(node, parts, bound, small)
            stack.pop()
        return self.done[id(root), around, compact]

    def parts(self, node: Expression) -> tuple[Expression, ...]:
        """What has to be written before a node: an index has its bounds."""
        if isinstance(node, Index):
            return tuple(bound for bound in (node.start, node.stop) if bound is not None)
        return node.args

    def node(self, node: Expression, parts: list[Written], bound: frozenset[str], small: bool) -> Written:
        free = merged(
            under_condition(part.free) if self.guarded(node, place) else part.free for place, part in enumerate(parts)
        )
        taken = frozenset().union(*(part.taken for part in parts))
        space = "" if small and node.level == "index" else " "
        match node.op:
            case "const":
                return Written(*literal(node.value))
            case "size":
                self.sizes[node.value] = None
                return Written(node.value, ATOM)
            case "index":
                assert isinstance(node, Index)
                self.use(node)
                # An index in the bounds of another one is bounded by what that one selects: more than is known here.
                outer = {name: Sizes(frozenset([UNKNOWN])) for name in free}
                return Written(node.name, ATOM, {**outer, node.name: Sizes()})
            case "neg" | "not":
                sign = "-" if node.op == "neg" else "!"
                return Written(sign + parts[0].within(UNARY), UNARY, free, taken)
            case "^":
                base = parts[0].within(ATOM)
                return Written(f"{base}^{literal(node.value)[0]}", POWER, free, taken)
            case "call":
                arguments = ", ".join(part.text for part in parts)
                return Written(f"{node.value}({arguments})", ATOM, free, taken)
            case "if":
                test, yes, no = parts
                otherwise = no.text if no.tight == ALONE else f"{{ {no.text} }}"
                text = f"if {test.text} {{ {yes.text} }} else {otherwise}"
                return Written(text, ALONE, free, taken)
            case "sel":
                return self.selection(node, parts, free)
            case "reduce":
                return self.reduction(node, parts[0], bound)
        tight = BINARY[node.op]
        # To the left: `a - (b - c)` needs its parentheses, and floats are not associative. Comparisons do not chain.
        left = parts[0].within(tight + 1 if tight == COMPARE else tight)
        right = parts[1].within(tight + 1)
        around = space if tight in (SUM, PRODUCT) else " "
        return Written(f"{left}{around}{node.op}{around}{right}", tight, free, taken)

    def guarded(self, node: Expression, place: int) -> bool:
        """Whether a part is evaluated only where a condition on indices holds."""
        if node.op == "if" or (node.op == "call" and node.value == "guard"):
            return place > 0
        return node.op == "&&" and place == 1 and node.args[0].level == "index"

    def use(self, index: Index) -> None:
        other = self.indices.setdefault(index.name, index)
        if not index.same(other):
            raise ValueError(f"two different indices are called {index.name}: their bounds differ")

    def selection(self, node: Expression, parts: list[Written], free: Free) -> Written:
        tensor: Indexed = node.value
        other = self.tensors.setdefault(tensor.name, tensor)
        if not tensor.same(other):
            raise ValueError(f"two different tensors are called {tensor.name}")
        if not node.args:
            return Written(tensor.name, ATOM)
        free = dict(free)
        for subscript, dimension in zip(node.args, tensor.dimensions, strict=True):
            plain = isinstance(subscript, Index) and dimension is not None
            for name in affine(subscript):
                free[name] = free[name] | Sizes(frozenset([dimension if plain and dimension else UNKNOWN]))
        return Written(f"{tensor.name}[{','.join(part.text for part in parts)}]", ATOM, free)

    def reduction(self, node: Expression, body: Written, bound: frozenset[str]) -> Written:
        name, over = node.value
        if self.left is None:
            said = f", over=({', '.join(index.name for index in over)})" if over else ""
            return Written(f"{name}({body.text}{said})", ATOM, body.free)
        if over is None:
            names = [index for index in body.free if index not in bound]
            if not names:
                raise ValueError(self.over_nothing(node, body))
            both = [index for index in names if index in body.taken]
            if both:
                raise ValueError(
                    f"`{shown(node)}`: the index {both[0]} is used in the inner sum and around it, and could belong to "
                    "either: name the indices of the inner one with certen.sum(…, over=…), or use another index"
                )
        else:
            names = [index.name for index in over]
            self.check_over(name, over, body, bound)
        free = {index: sizes for index, sizes in body.free.items() if index not in names}
        taken = body.taken | frozenset(names) if over is None else body.taken
        text = body.text
        for group in reversed(self.nested(names)):
            text = self.reduced(name, node.args[0], text, group, body, alone=len(group) == len(names))
        return Written(text, ATOM, free, taken)

    def over_nothing(self, node: Expression, body: Written) -> str:
        if not body.free:
            return f"`{shown(node)}` runs over nothing: there is no index in it"
        left = [index.name for index in self.left or ()]
        names = [name for name in body.free if name in left]
        where = "on the left-hand side" if names else "in an over= around it"
        return f"`{shown(node)}` runs over nothing: {listed(names or list(body.free))} {where}"

    def check_over(self, name: str, over: tuple[Index, ...], body: Written, bound: frozenset[str]) -> None:
        for index in over:
            if any(index.name == left.name for left in self.left or ()):
                raise ValueError(f"the index {index.name} is on the left-hand side, and `{name}` runs over it")
            if index.name in bound:
                raise ValueError(f"two sums inside each other run over the index {index.name}: use another index")
            if index.name not in body.free and index.stop is None:
                raise ValueError(f"`{name}` runs over {index.name}, which is not in `{body.text}`")
            self.use(index)

    def nested(self, names: list[str]) -> list[list[str]]:
        """The indices of a reduction in groups, outermost first: one that bounds another is in a group before it."""
        levels: dict[str, int] = {}
        for name in sorted(names, key=lambda name: self.depth(name)):
            index = self.indices[name]
            bounds = merged(self.write(bound, True).free for bound in self.parts(index))
            levels[name] = 1 + max((levels.get(other, -1) for other in bounds), default=-1)
        count = max(levels.values()) + 1
        return [[name for name in names if levels[name] == level] for level in range(count)]

    def depth(self, name: str) -> int:
        """How many indices are in the way from an index to bounds without any."""
        depth, level = 0, [self.indices[name]]
        while level:
            found: list[Index] = []
            for index in level:
                for bound in self.parts(index):
                    found.extend(self.indices[other] for other in self.write(bound, True).free)
            depth, level = depth + 1, found
        return depth

    def reduced(self, name: str, of: Expression, text: str, group: list[str], body: Written, alone: bool) -> str:
        """`name` of a comprehension over a group of indices, or of a tensor if it is all of it."""
        bounds = [self.bounds(index, body.free.get(index, Sizes())) for index in group]
        said = [bound for bound in bounds if bound]
        if alone and not said and of.op == "sel":
            subscripts = of.args[-len(group) :]
            plain = all(isinstance(part, Index) for part in subscripts)
            before = merged(self.write(part, True).free for part in of.args[: -len(group)])
            if plain and [part.value for part in subscripts] == group and not any(index in before for index in group):
                rest = ",".join(self.write(part, True).text for part in of.args[: -len(group)])
                return f"{name}({of.value.name}[{rest}])" if rest else f"{name}({of.value.name})"
        generator = f" | {', '.join(said)}" if said else ""
        return f"{name}({{ [{', '.join(group)}] -> {text}{generator} }})"

    def bounds(self, name: str, sizes: Sizes, stop: str | None = None) -> str:
        """The generator of one index, if there is something to say; `stop` where the index has none of its own."""
        index = self.indices[name]
        start = self.write(index.start, True).text if index.start is not None else "0"
        if index.stop is not None:
            stop = self.write(index.stop, True).text
        if stop is None and not sizes:
            shape = any(name == left.name for left in self.left or ())
            raise ValueError(
                f"nothing says how far the index {name} runs: it selects from no tensor by itself; give it a bound, as "
                f"in certen.index({name!r}, n){', or the definition a shape=' if shape else ''}"
            )
        lower = f"{start} <= " if start != "0" else ""
        return f"{lower}{name} < {stop}" if stop is not None else f"{lower}{name}" if lower else ""


def listed(names: list[str]) -> str:
    if len(names) == 1:
        return f"the index {names[0]} is"
    return f"the indices {', '.join(names[:-1])} and {names[-1]} are"


def affine(subscript: Expression) -> list[str]:
    """The indices that a subscript bounds: those in sums, and in products with a number."""
    found: list[str] = []
    stack = [subscript]
    while stack:
        node = stack.pop()
        if isinstance(node, Index):
            found.append(node.name)
        elif node.op in ("+", "-", "neg") or (node.op == "*" and any(part.op == "const" for part in node.args)):
            stack.extend(node.args)
    return found


def under_condition(free: Free) -> Free:
    """The same indices, where they select only if a condition holds."""
    return {name: Sizes(sometimes=sizes.always | sizes.sometimes) for name, sizes in free.items()}


def merged(parts: Iterable[Free]) -> Free:
    found: Free = {}
    for part in parts:
        if not found:
            found = part
        elif part and part is not found:
            found = {**found, **{name: found.get(name, Sizes()) | sizes for name, sizes in part.items()}}
    return found


def literal(value: bool | int | float) -> tuple[str, int]:
    """A number as the language writes it."""
    if isinstance(value, bool):
        return ("true" if value else "false"), ATOM
    if isinstance(value, float) and not math.isfinite(value):
        # There is no word for these; IEEE 754 says what the quotients are.
        return {math.inf: "1.0 / 0.0", -math.inf: "-1.0 / 0.0"}.get(value, "0.0 / 0.0"), PRODUCT
    text = repr(value)
    return text, UNARY if text.startswith("-") else ATOM


def shown(root: Expression) -> str:
    """An expression as it is shown to users."""
    text = Writer().write(root).text
    return text if len(text) <= 2_000 else f"{text[:2_000]}…"


def size_text(size: Expression) -> str:
    """A size as it stands in a type."""
    return Writer().write(size, True).text


def settled(elem: str) -> str:
    """The element type of what is left of literals alone."""
    return "i64" if elem == WHOLE else "f64" if elem.startswith("a number") else elem
