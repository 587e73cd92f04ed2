"""The functions of index notation: indices and sizes, the language's functions entry by entry, reductions.

Several have the names of Python's own functions. Applied to expressions, `sum`, `abs` and `round` of both kinds do the
same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from ._notation import (
    Expression,
    Index,
    Operand,
    Over,
    Size,
    SizeLike,
    agree,
    border,
    both_indices,
    bound_expression,
    check_name,
    condition,
    converted,
    expression,
    extreme,
    function_of_floats,
    power,
    reduction,
    rounded_division,
    words,
)

# Indices and sizes


def index(name: str, *bounds: SizeLike | None) -> Index:
    """An index. Its bounds are inferred, or given as to `range`: `index(name, stop)` or `index(name, start, stop)`.

    >>> import certen
    >>> i = certen.index("i")
    >>> inner = certen.index("i", 1, certen.size("n") - 1)

    `None` leaves a bound to be inferred, as in `index("i", 1, None)`: it is the smallest that keeps every element in
    bounds; `x[i + 1]` asks for `i < n - 1`. Elements of a definition outside given bounds are zero.
    """
    check_name(name, "an index")
    if len(bounds) > 2:
        raise TypeError(f"an index has a start and a stop, not {len(bounds)} bounds")
    made = [None if bound is None else bound_expression(bound) for bound in bounds]
    start, stop = (None, made[0]) if len(made) == 1 else (made[0], made[1]) if made else (None, None)
    if start is not None and start.op == "const" and start.value < 0:
        raise ValueError(f"the index {name} cannot begin at {start.value}: indices count from 0")
    return Index(name, start, stop)


def indices(names: str) -> tuple[Index, ...]:
    """Several indices, whose names are separated by spaces or commas.

    >>> import certen
    >>> i, j, k = certen.indices("i j k")
    """
    return tuple(index(name) for name in words(names, "indices"))


def size(name: str) -> Size:
    """A size, by its name: at least 0, and the same as in the shapes of tensors that name it.

    >>> import certen
    >>> n = certen.size("n")
    >>> x = certen.tensor("x", "f64", (n, n + 1))
    >>> x
    x: f64[n, n+1]
    """
    return Size(check_name(name, "a size"))


def sizes(names: str) -> tuple[Size, ...]:
    """Several sizes, whose names are separated by spaces or commas.

    >>> import certen
    >>> m, n = certen.sizes("m n")
    """
    return tuple(size(name) for name in words(names, "sizes"))


# Functions of the language


def sqrt(x: Operand) -> Expression:
    """The square root, entry by entry.

    >>> import certen
    >>> x = certen.tensor("x", "f64", "n")
    >>> certen.sqrt(x[certen.index("i")])
    sqrt(x[i])
    """
    return function_of_floats("sqrt", x)


def exp(x: Operand) -> Expression:
    """The exponential function.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.exp(x[i])
    exp(x[i])
    """
    return function_of_floats("exp", x)


def log(x: Operand) -> Expression:
    """The natural logarithm.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.log(x[i])
    log(x[i])
    """
    return function_of_floats("log", x)


def sin(x: Operand) -> Expression:
    """The sine.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.sin(x[i])
    sin(x[i])
    """
    return function_of_floats("sin", x)


def cos(x: Operand) -> Expression:
    """The cosine.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.cos(x[i])
    cos(x[i])
    """
    return function_of_floats("cos", x)


def tanh(x: Operand) -> Expression:
    """The hyperbolic tangent.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.tanh(x[i])
    tanh(x[i])
    """
    return function_of_floats("tanh", x)


def exp2(x: Operand) -> Expression:
    """2 to the power of x.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.exp2(x[i])
    exp2(x[i])
    """
    return function_of_floats("exp2", x)


def expm1(x: Operand) -> Expression:
    """`exp(x) - 1`, exact for small numbers too.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.expm1(x[i])
    expm1(x[i])
    """
    return function_of_floats("expm1", x)


def log2(x: Operand) -> Expression:
    """The logarithm to the base 2.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.log2(x[i])
    log2(x[i])
    """
    return function_of_floats("log2", x)


def log10(x: Operand) -> Expression:
    """The logarithm to the base 10.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.log10(x[i])
    log10(x[i])
    """
    return function_of_floats("log10", x)


def log1p(x: Operand) -> Expression:
    """`log(1 + x)`, exact for small numbers too.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.log1p(x[i])
    log1p(x[i])
    """
    return function_of_floats("log1p", x)


def tan(x: Operand) -> Expression:
    """The tangent.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.tan(x[i])
    tan(x[i])
    """
    return function_of_floats("tan", x)


def asin(x: Operand) -> Expression:
    """The arc sine.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.asin(x[i])
    asin(x[i])
    """
    return function_of_floats("asin", x)


def acos(x: Operand) -> Expression:
    """The arc cosine.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.acos(x[i])
    acos(x[i])
    """
    return function_of_floats("acos", x)


def atan(x: Operand) -> Expression:
    """The arc tangent.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.atan(x[i])
    atan(x[i])
    """
    return function_of_floats("atan", x)


def sinh(x: Operand) -> Expression:
    """The hyperbolic sine.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.sinh(x[i])
    sinh(x[i])
    """
    return function_of_floats("sinh", x)


def cosh(x: Operand) -> Expression:
    """The hyperbolic cosine.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.cosh(x[i])
    cosh(x[i])
    """
    return function_of_floats("cosh", x)


def asinh(x: Operand) -> Expression:
    """The inverse of the hyperbolic sine.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.asinh(x[i])
    asinh(x[i])
    """
    return function_of_floats("asinh", x)


def acosh(x: Operand) -> Expression:
    """The inverse of the hyperbolic cosine.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.acosh(x[i])
    acosh(x[i])
    """
    return function_of_floats("acosh", x)


def atanh(x: Operand) -> Expression:
    """The inverse of the hyperbolic tangent.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.atanh(x[i])
    atanh(x[i])
    """
    return function_of_floats("atanh", x)


def erf(x: Operand) -> Expression:
    """The error function.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.erf(x[i])
    erf(x[i])
    """
    return function_of_floats("erf", x)


def erfc(x: Operand) -> Expression:
    """`1 - erf(x)`, exact for large numbers too.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.erfc(x[i])
    erfc(x[i])
    """
    return function_of_floats("erfc", x)


def cbrt(x: Operand) -> Expression:
    """The cube root.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.cbrt(x[i])
    cbrt(x[i])
    """
    return function_of_floats("cbrt", x)


def sigmoid(x: Operand) -> Expression:
    """`1 / (1 + exp(-x))`.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.sigmoid(x[i])
    sigmoid(x[i])
    """
    return function_of_floats("sigmoid", x)


def floor(x: Operand) -> Expression:
    """Rounded down, still a float; `math.floor(x)` is the same.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.floor(x[i])
    floor(x[i])
    """
    return function_of_floats("floor", x)


def ceil(x: Operand) -> Expression:
    """Rounded up, still a float; `math.ceil(x)` is the same.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.ceil(x[i])
    ceil(x[i])
    """
    return function_of_floats("ceil", x)


def round(x: Operand) -> Expression:
    """Rounded to the nearest whole number, still a float; Python's `round(x)` is the same.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.round(x[i])
    round(x[i])
    """
    return function_of_floats("round", x)


def abs(x: Operand) -> Expression:
    """The absolute value, of data or of an index; Python's `abs(x)` is the same.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.abs(x[i] - 1)
    abs(x[i] - 1)
    """
    return expression(x).__abs__()


def pow(x: Operand, y: Operand) -> Expression:
    """`x` to the power `y`; `x ** y` is the same.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> certen.pow(x[i], 0.5)
    x[i]^0.5
    """
    return power(x, y)


def floor_div(x: Operand, y: Operand) -> Expression:
    """Division of integers, rounded down; `x // y` is the same.

    >>> import certen
    >>> i, z = certen.index("i"), certen.tensor("z", "i64", "n")
    >>> certen.floor_div(z[i], 3)
    floor_div(z[i], 3)
    """
    return rounded_division("floor_div", x, y)


def ceil_div(x: Operand, y: Operand) -> Expression:
    """Division of an index or size by a number, rounded up.

    >>> import certen
    >>> certen.ceil_div(certen.size("n"), 4)
    ceil_div(n, 4)
    """
    return rounded_division("ceil_div", x, y)


def mod(x: Operand, y: Operand) -> Expression:
    """What is left of `x // y`, never negative for positive `y`; `x % y` is the same.

    >>> import certen
    >>> i, z = certen.index("i"), certen.tensor("z", "i64", "n")
    >>> certen.mod(z[i], 3) == z[certen.mod(i, 2)]
    mod(z[i], 3) == z[mod(i, 2)]
    """
    return rounded_division("mod", x, y)


def cast(x: Operand, elem: object) -> Expression:
    """`x` converted to an element type, named as in `certen.tensor`.

    >>> import certen
    >>> certen.cast(certen.index("i") == 3, "f32")
    f32(i == 3)
    """
    return converted(x, elem)


def where(c: Operand, a: Operand, b: Operand) -> Expression:
    """`a` where the condition `c` holds, else `b`.

    A condition on indices is lazy: each side has to be in bounds only where it is chosen. With data in the condition,
    both sides have to be.

    >>> import certen
    >>> i = certen.index("i")
    >>> x = certen.tensor("x", "f64", "n")
    >>> certen.where(i >= 1, x[i - 1], 0)
    if i >= 1 { x[i-1] } else { 0 }
    >>> certen.where(x[i] > 0, x[i], 0)
    select(x[i] > 0, x[i], 0)
    """
    if isinstance(c, (bool, np.bool_)):
        raise TypeError("the condition of where() is True or False in Python already: use Python's own `a if c else b`")
    test, yes, no = condition(c, "where()"), expression(a), expression(b)
    elem = agree(yes, no, "where()")
    if test.level == "index":
        return Expression("if", (test, yes, no), level=both_indices(yes, no), elem=elem)
    return Expression("call", (test, yes, no), "select", elem=elem)


def guard(c: Operand, x: Operand) -> Expression:
    """`x` where the condition `c` on indices holds, else zero, as padding.

    >>> import certen
    >>> i, j = certen.indices("i j")
    >>> A = certen.tensor("A", "f64", "m n")
    >>> certen.guard(j <= i, A[i, j])
    guard(j <= i, A[i,j])
    """
    test, body = condition(c, "guard()"), expression(x)
    if test.level != "index":
        raise TypeError(f"the condition of guard() is on indices, and `{test!r}` has data: choose with where(c, x, 0)")
    return Expression("call", (test, body), "guard", elem=body.elem)


def clamp(i: Operand, n: Operand | str) -> Expression:
    """The index `i` itself, or the nearest one in 0..n: a border that goes on like the last element.

    >>> import certen
    >>> i, n = certen.index("i"), certen.size("n")
    >>> x = certen.tensor("x", "f64", n)
    >>> x[certen.clamp(i - 1, n)]
    x[clamp(i-1, n)]
    """
    return border("clamp", i, n)


def reflect(i: Operand, n: Operand | str) -> Expression:
    """The index `i` mirrored at the first or last element, which is not repeated: 2, 1, 0, 1, 2.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> x[certen.reflect(i - 1, "n")]
    x[reflect(i-1, n)]
    """
    return border("reflect", i, n)


def mirror(i: Operand, n: Operand | str) -> Expression:
    """The index `i` mirrored at the border, so that the first and last element are repeated: 1, 0, 0, 1.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> x[certen.mirror(i + 1, "n")]
    x[mirror(i+1, n)]
    """
    return border("mirror", i, n)


def periodic(i: Operand, n: Operand | str) -> Expression:
    """The index `i` in a ring of `n` elements, within one length of the border.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> x[certen.periodic(i + 1, "n")]
    x[periodic(i+1, n)]
    """
    return border("periodic", i, n)


# Reductions


def sum(x: Operand, *, over: Over = None) -> Expression:
    """The sum of `x` over indices: those in `over`, else all that are not on the left-hand side.

    >>> import certen
    >>> i, j, k = certen.indices("i j k")
    >>> A = certen.tensor("A", "f64", "m n")
    >>> row = certen.define("row")
    >>> row[i] = certen.sum(A[i, k])
    >>> print(row.source)
    fn row(A: f64[m, n]) -> f64[m] {
        { [i] -> sum(A[i]) }
    }

    Python's own `sum(A[i, k])` is the same, without `over`.
    """
    return reduction("sum", x, over)


def prod(x: Operand, *, over: Over = None) -> Expression:
    """The product of `x` over indices, chosen as in `certen.sum`.

    >>> import certen
    >>> i, k = certen.indices("i k")
    >>> A, p = certen.tensor("A", "f64", "m n"), certen.define("p")
    >>> p[i] = certen.prod(A[i, k] + 1)
    >>> p
    p = { [i] -> prod({ [k] -> A[i,k] + 1 }) }
    """
    return reduction("prod", x, over)


def min(x: Operand, *others: Operand, over: Over = None) -> Expression:
    """The least of `x` over indices, chosen as in `certen.sum`; of several values, the least of them.

    A minimum is over at least one element: the sizes have to show it, for example by `define(…, where=n >= 1)`.

    >>> import certen
    >>> i, k, n = *certen.indices("i k"), certen.size("n")
    >>> A, least = certen.tensor("A", "f64", ("m", n)), certen.define("least", where=n >= 1)
    >>> least[i] = certen.min(certen.min(A[i, k]), 0)
    >>> least
    least = { [i] -> min(min(A[i]), 0) }
    """
    return extreme("min", x, others, over)


def max(x: Operand, *others: Operand, over: Over = None) -> Expression:
    """The greatest of `x` over indices, chosen as in `certen.sum`; of several values, the greatest of them.

    >>> import certen
    >>> i, n = certen.index("i"), certen.size("n")
    >>> x = certen.tensor("x", "f64", n)
    >>> certen.max(x[i], 0)
    max(x[i], 0)
    >>> top = certen.define("top", where=n >= 1)
    >>> top[()] = certen.max(x[i])
    >>> print(top.source)
    fn top(x: f64[n]) -> f64 where n >= 1 {
        max(x)
    }
    """
    return extreme("max", x, others, over)


def all(x: Operand, *, over: Over = None) -> Expression:
    """Whether the condition `x` holds for all indices, chosen as in `certen.sum`.

    >>> import certen
    >>> i, k = certen.indices("i k")
    >>> A, found = certen.tensor("A", "f64", "m n"), certen.define("found")
    >>> found[i] = certen.all(A[i, k] > 0)
    >>> found
    found = { [i] -> all({ [k] -> A[i,k] > 0 }) }
    """
    return reduction("all", x, over)


def any(x: Operand, *, over: Over = None) -> Expression:
    """Whether the condition `x` holds for some indices, chosen as in `certen.sum`.

    >>> import certen
    >>> i, k = certen.indices("i k")
    >>> A, found = certen.tensor("A", "f64", "m n"), certen.define("found")
    >>> found[i] = certen.any(A[i, k] > 0)
    >>> found
    found = { [i] -> any({ [k] -> A[i,k] > 0 }) }
    """
    return reduction("any", x, over)


UFUNCS: dict[str, Callable[..., Expression]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "float_power": operator.pow,
    "negative": operator.neg,
    "absolute": operator.abs,
    "fabs": operator.abs,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "logical_and": operator.and_,
    "logical_or": operator.or_,
    "logical_not": operator.invert,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "invert": operator.invert,
    "sqrt": sqrt,
    "exp": exp,
    "log": log,
    "sin": sin,
    "cos": cos,
    "tanh": tanh,
    "exp2": exp2,
    "expm1": expm1,
    "log2": log2,
    "log10": log10,
    "log1p": log1p,
    "tan": tan,
    "arcsin": asin,
    "arccos": acos,
    "arctan": atan,
    "sinh": sinh,
    "cosh": cosh,
    "arcsinh": asinh,
    "arccosh": acosh,
    "arctanh": atanh,
    "cbrt": cbrt,
    "floor": floor,
    "ceil": ceil,
    "rint": round,
    "maximum": max,
    "minimum": min,
}
