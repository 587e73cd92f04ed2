"""Expressions of index notation: what Python's operators make of indices, sizes and elements of tensors.

There are two levels, as in the language. On the *index level* are indices, sizes and whole numbers: subscripts, bounds
and shapes are made of them, and they are known before any data is. On the *data level* are elements of tensors. What
is of the index level may be used as data; data never becomes an index.

An expression is a tree of immutable nodes that knows its level and its element type, so that a mistake is an exception
at the line that makes it. Nothing is computed here: `_text` writes the tree down, `_builder` makes functions of it.

This file is long because operators make expressions, and expressions have operators.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

ELEMENT_TYPES = ("f32", "f64", "i32", "i64", "u8", "bool")
OPEN_TYPES = ("any", "num", "float")
FLOATS = ("f32", "f64", "float")
INTEGERS = ("i32", "i64")
NUMBERS = (*FLOATS, *INTEGERS, "num")

# The element types of what has none yet: a whole number takes any type of numbers that it meets, a number with a point
# any type of floats.
WHOLE = "a whole number"
POINT = "a number with a point"

NUMPY_NAMES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "uint8": "u8", "bool": "bool"}

RESERVED = frozenset(
    """fn let if else where const import with iterate times true false genarray modarray fold size f32 f64 i32 i64
    u8 bool schedule derive""".split()  # noqa: SIM905
)
# Functions of the language that generated text calls: a tensor of the same name would hide them.
CALLED = frozenset(
    """sum prod min max all any abs floor ceil round sqrt exp log sin cos tanh pow select guard floor_div ceil_div mod
    exp2 expm1 log2 log10 log1p tan asin acos atan sinh cosh asinh acosh atanh erf erfc cbrt sigmoid
    clamp reflect mirror periodic""".split()  # noqa: SIM905
)

# Keywords of every call of a kernel: an argument of the same name could not be given by name.
KEYWORDS = frozenset(("out", "threads"))

# The language nests expressions at most 2,000 levels deep; some are left for what is put around them.
MAX_DEPTH = 1_900
MAX_NODES = 100_000


def check_name(name: object, what: str) -> str:
    """Returns a name that the language can use, else raises what is wrong with it."""
    if not isinstance(name, str):
        raise TypeError(f"the name of {what} is a str, not {type(name).__name__}")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"{name!r} cannot be the name of {what}: a name is a letter or _, then letters, digits and _")
    if name in RESERVED:
        raise ValueError(f"{name!r} cannot be the name of {what}: it is a word of the language")
    if name in CALLED:
        raise ValueError(f"{name!r} cannot be the name of {what}: it is a function of the language")
    if name in KEYWORDS and what in ("a tensor", "a size"):
        raise ValueError(f"{name!r} cannot be the name of {what}: it is a keyword of every call of a kernel")
    return name


def element_type(elem: object) -> str:
    """The language's name of an element type, which may be given as NumPy names it."""
    if isinstance(elem, str) and elem in (*ELEMENT_TYPES, *OPEN_TYPES):
        return elem
    try:
        name = np.dtype(elem).name  # type: ignore[call-overload]
    except TypeError:
        name = None
    if elem is None or name not in NUMPY_NAMES:
        raise ValueError(f"{elem!r} is no element type; there are {', '.join(ELEMENT_TYPES)}")
    return NUMPY_NAMES[name]


class Operators:
    """Python's operators, for everything that stands for one value in index notation."""

    __slots__ = ()

    def _expression(self) -> Expression:
        raise NotImplementedError

    def __add__(self, other: Operand) -> Expression:
        if isinstance(other, Summand):
            return NotImplemented
        return arithmetic("+", self, other)

    def __radd__(self, other: Operand) -> Expression:
        # Where `sum([x[0], x[1]])` begins.
        return number(self, "+") if type(other) is int and other == 0 else arithmetic("+", other, self)

    def __sub__(self, other: Operand) -> Expression:
        return arithmetic("-", self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return arithmetic("-", other, self)

    def __mul__(self, other: Operand) -> Expression:
        return arithmetic("*", self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return arithmetic("*", other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return quotient(self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return quotient(other, self)

    def __floordiv__(self, other: Operand) -> Expression:
        return rounded_division("floor_div", self, other)

    def __rfloordiv__(self, other: Operand) -> Expression:
        return rounded_division("floor_div", other, self)

    def __mod__(self, other: Operand) -> Expression:
        return rounded_division("mod", self, other)

    def __rmod__(self, other: Operand) -> Expression:
        return rounded_division("mod", other, self)

    def __pow__(self, other: Operand) -> Expression:
        return power(self, other)

    def __rpow__(self, other: Operand) -> Expression:
        return power(other, self)

    def __neg__(self) -> Expression:
        a = number(self, "-")
        return Expression("neg", (a,), level=a.level, elem=a.elem)

    def __pos__(self) -> Expression:
        return number(self, "+")

    def __abs__(self) -> Expression:
        a = number(self, "abs")
        return Expression("call", (a,), "abs", level=a.level, elem=a.elem)

    def __floor__(self) -> Expression:
        return function_of_floats("floor", self)

    def __ceil__(self) -> Expression:
        return function_of_floats("ceil", self)

    def __round__(self, digits: None = None) -> Expression:
        if digits is not None:
            raise TypeError("round() of an expression rounds to whole numbers: it takes no number of digits")
        return function_of_floats("round", self)

    def __lt__(self, other: Operand) -> Expression:
        return comparison("<", self, other)

    def __le__(self, other: Operand) -> Expression:
        return comparison("<=", self, other)

    def __gt__(self, other: Operand) -> Expression:
        return comparison(">", self, other)

    def __ge__(self, other: Operand) -> Expression:
        return comparison(">=", self, other)

    def __eq__(self, other: Operand) -> Expression:  # type: ignore[override]
        return comparison("==", self, other)

    def __ne__(self, other: Operand) -> Expression:  # type: ignore[override]
        return comparison("!=", self, other)

    __hash__ = object.__hash__

    def __and__(self, other: Operand) -> Expression:
        return logic("&&", self, other)

    def __rand__(self, other: Operand) -> Expression:
        return logic("&&", other, self)

    def __or__(self, other: Operand) -> Expression:
        return logic("||", self, other)

    def __ror__(self, other: Operand) -> Expression:
        return logic("||", other, self)

    def __invert__(self) -> Expression:
        a = condition(self, "~")
        return Expression("not", (a,), level=a.level, elem="bool")

    def __matmul__(self, other: object) -> NoReturn:
        raise TypeError("@ is of whole matrices; in index notation a product is sum(A[i, k] * B[k, j])")

    __rmatmul__ = __matmul__

    def __bool__(self) -> bool:
        raise TypeError(
            f"`{self!r}` has no truth value before the kernel runs: "
            "choose with where(c, a, b), combine conditions with & | ~, and write a < b < c as (a < b) & (b < c)"
        )

    def __float__(self) -> float:
        raise TypeError(
            f"`{self!r}` has no value before the kernel runs: use certen.sqrt, certen.exp and the others, not "
            "the functions of the module math"
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Expression:
        # NumPy's scalars and functions come here; its arrays do, too, and `expression` refuses them.
        if method != "__call__" or options:
            raise TypeError(
                f"NumPy cannot compute with `{self!r}`, which has no value before the kernel runs; "
                "sum(), certen.max and the others reduce it"
            )
        operands = [expression(operand) for operand in inputs]
        from ._functions import UFUNCS

        made = UFUNCS.get(ufunc.__name__)
        if made is None:
            raise TypeError(f"the language has no function numpy.{ufunc.__name__}")
        return made(*operands)


class Expression(Operators):
    """A value in index notation, made by operators and functions from elements such as `A[i, k]`.

    >>> import certen
    >>> i = certen.index("i")
    >>> x = certen.tensor("x", "f64", "n")
    >>> 2 * x[i] + x[i + 1] ** 2
    2 * x[i] + x[i+1]^2

    It has no value before a kernel runs. Python's `sum` makes a sum of it; nothing else can iterate over it.
    """

    __slots__ = ("args", "depth", "elem", "level", "nodes", "op", "value")

    op: str
    args: tuple[Expression, ...]
    value: Any
    level: str
    elem: str
    depth: int
    nodes: int

    def __init__(
        self, op: str, args: tuple[Expression, ...] = (), value: Any = None, *, level: str = "data", elem: str = WHOLE
    ) -> None:
        self.op = op
        self.args = args
        self.value = value
        self.level = level
        self.elem = elem
        self.depth = 1 + max((arg.depth for arg in args), default=0)
        self.nodes = 1 + sum(arg.nodes for arg in args)
        if self.depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise ValueError(
                f"this expression is too large ({self.nodes} parts, nested {self.depth} deep; at most {MAX_NODES} and "
                f"{MAX_DEPTH}): give parts of it a name with certen.define, or write a sum over an index"
            )

    def _expression(self) -> Expression:
        return self

    def astype(self, elem: object) -> Expression:
        """The value converted to another element type; `certen.cast` is the same."""
        return converted(self, elem)

    def __iter__(self) -> Iterator[Any]:
        # `sum(e)` takes one item, adds it to 0 and asks for the next. Whoever asks without having added is no sum.
        summand = Summand(self)
        yield summand
        if not summand.added:
            summand.refuse()

    def __getitem__(self, key: object) -> NoReturn:
        raise TypeError(f"`{self!r}` is one number, and has no elements: only tensors and definitions take indices")

    def __repr__(self) -> str:
        from ._text import shown

        return shown(self)


class Index(Expression):
    """An index: `certen.index` makes one, `certen.indices` several.

    >>> import certen
    >>> i = certen.index("i", 1, "n - 1")
    >>> (i.name, i.start, i.stop)
    ('i', 1, n - 1)
    """

    __slots__ = ("name", "start", "stop")

    def __init__(self, name: str, start: Expression | None, stop: Expression | None) -> None:
        super().__init__("index", value=name, level="index")
        self.name = name
        self.start = start
        self.stop = stop

    def same(self, other: Index) -> bool:
        """Whether both are the index of the same name in the same bounds."""
        if self is other:
            return True
        mine, others = (self.start, self.stop), (other.start, other.stop)
        return self.name == other.name and repr(mine) == repr(others)


class Size(Expression):
    """A size, known by its name: `certen.size` makes one, `certen.sizes` several.

    >>> import certen
    >>> certen.size("n") + 1
    n + 1
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__("size", value=name, level="index")
        self.name = name


class Summand:
    """What iteration over an expression gives: `sum` adds it to 0, and gets the sum over the expression's indices."""

    __slots__ = ("added", "body")

    def __init__(self, body: Expression) -> None:
        self.body = body
        self.added = False

    def __radd__(self, start: Operand) -> Expression:
        self.added = True
        total = reduction("sum", self.body, None)
        if isinstance(start, int) and start == 0:
            return total
        return expression(start) + total

    def refuse(self, *_: object) -> NoReturn:
        """Raises what is wrong with anything but a sum."""
        raise TypeError(
            f"`{self.body!r}` cannot be iterated over, except by sum(): its indices have no values before the kernel "
            "runs (certen.max, certen.min and certen.prod reduce as sum does)"
        )

    __add__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = refuse
    __neg__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __getitem__ = refuse


Operand: TypeAlias = Operators | int | float | np.number[Any] | np.bool_
SizeLike: TypeAlias = str | int | Expression
Shape: TypeAlias = SizeLike | Sequence[SizeLike]


# Operands


def expression(value: object) -> Expression:
    """An operand as an expression."""
    if isinstance(value, Operators):
        return value._expression()
    if isinstance(value, (bool, np.bool_)):
        return Expression("const", value=bool(value), elem="bool")
    if isinstance(value, (int, np.integer)):
        whole = operator.index(value)
        if not -(2**63) < whole < 2**63:
            raise ValueError(f"{whole} is more than 64 bits can hold")
        return Expression("const", value=whole, level="index")
    if isinstance(value, (float, np.floating)):
        return Expression("const", value=float(value), elem=POINT)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return expression(value[()])
    if isinstance(value, np.ndarray):
        raise TypeError(
            f"a NumPy array of shape {value.shape} stands in an expression: declare it with certen.tensor and give it "
            "when the kernel is called, or make it part of the program with certen.constant"
        )
    if isinstance(value, Summand):
        value.refuse()
    raise TypeError(f"{type(value).__name__} cannot stand in an expression of index notation: {value!r}")


def agree(a: Expression, b: Expression, what: str) -> str:
    """The element type of two operands that have to have one."""
    if a.elem == b.elem:
        return a.elem
    for one, other in ((a, b), (b, a)):
        if one.elem == WHOLE and other.elem != "bool":
            return other.elem
        if one.elem == POINT and other.elem in (WHOLE, *FLOATS, "num"):
            return other.elem if other.elem != WHOLE else POINT
    for one, other in ((a, b), (b, a)):
        if one.elem == POINT:
            raise TypeError(
                f"{what}: `{one!r}` is {POINT}, and `{other!r}` is {other.elem}: convert it with certen.cast(…, 'f64')"
            )
    raise TypeError(
        f"{what}: `{a!r}` is {a.elem}, and `{b!r}` is {b.elem}: element types do not mix; "
        "convert one of them with certen.cast"
    )


def has_open_choice(root: Expression) -> bool:
    """Whether a choice between indices or numbers and data has a part in the element type.

    The compiler does not look at a side that is never chosen, and would find the type of the other one alone.
    """
    stack = [root]
    while stack:
        node = stack.pop()
        if node.op == "if" and node.elem not in (WHOLE, POINT) and any(a.elem in (WHOLE, POINT) for a in node.args[1:]):
            return True
        if node.op in ("sel", "reduce") or (node.op == "call" and node.value in ELEMENT_TYPES):
            stack.extend(node.args if node.op == "reduce" else ())
        elif node.op in ("if", "+", "-", "*", "/", "neg", "^", "call"):
            stack.extend(node.args)
    return False


def number(value: object, what: str) -> Expression:
    """An operand that has to be a number to be computed with."""
    a = expression(value)
    if a.elem in ("bool", "u8"):
        help = "choose with certen.where, or convert it" if a.elem == "bool" else "convert it"
        raise TypeError(f"{what} is of numbers, and `{a!r}` is {a.elem}: {help} with certen.cast(…, 'i32')")
    return a


def both_indices(a: Expression, b: Expression) -> str:
    return "index" if a.level == b.level == "index" else "data"


def arithmetic(op: str, left: object, right: object) -> Expression:
    """`+`, `-` and `*`."""
    a, b = number(left, op), number(right, op)
    if both_indices(a, b) == "index":
        return index_arithmetic(op, a, b)
    if op in ("+", "-") and b.op == "const" and b.value < 0:
        op, b = ("-" if op == "+" else "+"), expression(-b.value)
    return Expression(op, (a, b), elem=agree(a, b, op))


def index_arithmetic(op: str, a: Expression, b: Expression) -> Expression:
    """The same of indices, where numbers are put together: `i + 1 + 1` is `i + 2`, as a person would write it."""
    if a.op == b.op == "const":
        return expression({"+": operator.add, "-": operator.sub, "*": operator.mul}[op](a.value, b.value))
    if op == "*":
        for one, other in ((a, b), (b, a)):
            if one.op == "const" and one.value == 1:
                return other
    elif b.op == "const":
        added = b.value if op == "+" else -b.value
        if a.op in ("+", "-") and a.args[1].op == "const":
            added += a.args[1].value if a.op == "+" else -a.args[1].value
            a = a.args[0]
        if added == 0:
            return a
        op, b = ("+", expression(added)) if added > 0 else ("-", expression(-added))
    elif op == "+" and a.op == "const" and a.value == 0:
        return b
    return Expression(op, (a, b), level="index")


def floats(values: Sequence[Expression], elem: str, what: str) -> str:
    if elem == WHOLE:
        return POINT
    if elem in INTEGERS:
        help = "// rounds down; " if what == "/" else "write the product, or " if what == "**" else ""
        shown = next(repr(value) for value in values if value.elem == elem)
        raise TypeError(f"{what} is of floats, and `{shown}` is {elem}: {help}convert it with certen.cast(…, 'f64')")
    return elem


def quotient(left: object, right: object) -> Expression:
    a, b = number(left, "/"), number(right, "/")
    return Expression("/", (a, b), elem=floats((a, b), agree(a, b, "/"), "/"))


def rounded_division(name: str, left: object, right: object) -> Expression:
    sign = {"floor_div": "//", "mod": "%"}.get(name, name)
    a, b = number(left, sign), number(right, sign)
    if both_indices(a, b) == "index":
        if b.op != "const" or b.value < 1:
            raise ValueError(
                f"`{a!r} {sign} {b!r}`: indices and sizes are divided by a number that is at least 1; "
                "as data: certen.cast(…, 'i64')"
            )
        return Expression("call", (a, b), name, level="index")
    elem = agree(a, b, sign)
    if elem in (POINT, *FLOATS):
        raise TypeError(f"{sign} is of integers, and this is {elem}: certen.floor(a / b) rounds floats down")
    if name == "ceil_div":
        raise TypeError("ceil_div is of indices and sizes; of data: -(-a // b)")
    return Expression("call", (a, b), name, elem="i64" if elem == WHOLE else elem)


def power(left: object, right: object) -> Expression:
    a, b = number(left, "**"), number(right, "**")
    if a.level == "index" and b.op == "const" and b.level == "index" and b.value >= 0:
        return Expression("^", (a,), b.value, level="index")
    elem = floats((a, b), agree(a, b, "**"), "**")
    if b.op == "const" and np.isfinite(b.value):
        return Expression("^", (a,), b.value, elem=elem)
    return Expression("call", (a, b), "pow", elem=elem)


def function_of_floats(name: str, value: object) -> Expression:
    a = number(value, name)
    return Expression("call", (a,), name, elem=floats((a,), a.elem, name))


def comparison(op: str, left: object, right: object) -> Expression:
    if isinstance(right, Summand) or right is None or isinstance(right, str):
        raise TypeError(f"{type(right).__name__} cannot stand in an expression of index notation: {right!r}")
    a, b = expression(left), expression(right)
    agree(a, b, op)
    level = "data" if "bool" in (a.elem, b.elem) else both_indices(a, b)
    return Expression(op, (a, b), level=level, elem="bool")


def converted(x: object, elem: object) -> Expression:
    name = element_type(elem)
    if name in OPEN_TYPES:
        raise ValueError(f"cannot convert to {name!r}, which stands for several element types")
    return Expression("call", (expression(x),), name, elem=name)


def condition(value: object, what: str) -> Expression:
    a = expression(value)
    if a.elem != "bool":
        help = ", and put comparisons in parentheses: (a < b) & (c < d)" if what in ("&", "|") else ""
        raise TypeError(f"{what} is of conditions, and `{a!r}` is {a.elem}: compare it, as in x != 0{help}")
    return a


def logic(op: str, left: object, right: object) -> Expression:
    sign = "&" if op == "&&" else "|"
    a, b = condition(left, sign), condition(right, sign)
    return Expression(op, (a, b), level=both_indices(a, b), elem="bool")


def reduction(name: str, body: object, over: object) -> Expression:
    a = condition(body, name) if name in ("all", "any") else number(body, name)
    return Expression("reduce", (a,), (name, over_indices(over)), elem=a.elem)


def over_indices(over: object) -> tuple[Index, ...] | None:
    if over is None:
        return None
    indices = (over,) if isinstance(over, Index) or not isinstance(over, (tuple, list)) else tuple(over)
    names = set()
    for index in indices:
        if not isinstance(index, Index):
            raise TypeError(f"over= takes an index or several, not {index!r}")
        if index.name in names:
            raise ValueError(f"the index {index.name} stands twice in over=")
        names.add(index.name)
    if not indices:
        raise ValueError("over= names no index")
    return indices


Over: TypeAlias = Index | Sequence[Index] | None


def extreme(name: str, x: object, others: tuple[object, ...], over: Over) -> Expression:
    if not others:
        return reduction(name, x, over)
    if over is not None:
        raise TypeError(f"{name}() of several values takes no over=")
    values = [number(value, name) for value in (x, *others)]
    result = values[0]
    for value in values[1:]:
        level = both_indices(result, value)
        elem = agree(result, value, name)
        args = (*result.args, value) if result is not values[0] else (result, value)
        result = Expression("call", args, name, level=level, elem=elem)
    return result


def border(name: str, i: Operand, n: Operand | str) -> Expression:
    index, size = expression(i), size_expression(n)
    if index.level != "index":
        raise TypeError(f"{name}() is of an index, and `{index!r}` is data")
    return Expression("call", (index, size), name, level="index")


# Indices and sizes


def words(names: object, what: str) -> list[str]:
    if not isinstance(names, str):
        raise TypeError(f"the names of {what} are a str such as 'i j k', not {type(names).__name__}")
    found = names.replace(",", " ").split()
    if not found:
        raise ValueError(f"there are no names of {what} in {names!r}")
    twice = [name for place, name in enumerate(found) if name in found[:place]]
    if twice:
        raise ValueError(f"{twice[0]!r} stands twice in {names!r}")
    return found


def size_expression(value: object) -> Expression:
    """A size that is given as a name, a number, an expression, or the text of an expression; it has no indices."""
    made = bound_expression(value)
    stack = [made]
    while stack:
        part = stack.pop()
        if isinstance(part, Index):
            raise ValueError(f"a size is made of sizes and numbers, and `{made!r}` has the index {part.name}")
        stack.extend(part.args)
    return made


def bound_expression(value: object) -> Expression:
    """As a size, but indices from outside are allowed."""
    made = parsed_size(value) if isinstance(value, str) else expression(value)
    if made.level != "index" or made.elem == "bool":
        raise TypeError(f"a size is made of sizes and whole numbers, and `{made!r}` is data")
    return made


def parsed_size(text: str) -> Expression:
    if len(text) > 400:
        raise ValueError(f"{text[:40]!r}… is too long for a size")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(f"{text!r} is no size: a name, a number, or an expression such as 'n + 1'") from None
    return size_of_tree(tree, text)


SIZE_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
SIZE_FUNCTIONS = ("min", "max", "floor_div", "ceil_div", "mod")


def size_of_tree(tree: ast.expr, text: str) -> Expression:
    match tree:
        case ast.Name(id=name):
            return Size(check_name(name, "a size"))
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return expression(value)
        case ast.UnaryOp(op=ast.USub(), operand=a):
            return -size_of_tree(a, text)
        case ast.BinOp(left=a, op=op, right=b) if type(op) in SIZE_OPERATORS:
            made = SIZE_OPERATORS[type(op)](size_of_tree(a, text), size_of_tree(b, text))
            return expression(made)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in SIZE_FUNCTIONS and len(args) == 2:
            first, second = (size_of_tree(arg, text) for arg in args)
            if name in ("min", "max"):
                return extreme(name, first, (second,), None)
            return rounded_division(name, first, second)
    raise ValueError(f"{text!r} is no size: a name, a number, or an expression such as 'n + 1'")


def shape_expressions(shape: object, what: str) -> tuple[Expression, ...]:
    """A shape: text (separated by commas or spaces), one size, or a sequence of sizes."""
    if isinstance(shape, str):
        parts: Sequence[object] = shape.split(",") if "," in shape else shape.split()
        if "," in shape and not parts[-1].strip():  # type: ignore[attr-defined]
            parts = parts[:-1]
        if any(part in ("+", "-", "*", "//", "%") for part in parts):
            raise ValueError(f"sizes that are computed are separated by commas: {shape!r}")
    elif isinstance(shape, (Expression, int, np.integer)):
        parts = (shape,)
    elif isinstance(shape, (tuple, list)):
        parts = shape
    else:
        raise TypeError(f"the shape of {what} is text such as 'm n' or a tuple of sizes, not {type(shape).__name__}")
    made = tuple(size_expression(part) for part in parts)
    for part in made:
        if part.op == "neg" or (part.op == "const" and part.value < 0):
            raise ValueError(f"a size cannot be negative: {part!r}")
    return made
