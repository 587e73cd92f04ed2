"""Index notation: tensors, definitions by index, and the functions that are made of them.

    C[i, j] = sum(A[i, k] * B[k, j])

An assignment to a definition is checked at once, and written as a comprehension of the `.ten` language. A function has
one or several definitions as its results; the other definitions that they use become its `let`s, each once and before
it is used, and the tensors its parameters. The text is `source`; it is compiled when `kernel()` is first called.

This file is long because tensors, definitions and functions are made of each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ._notation import (
    NUMPY_NAMES,
    Expression,
    Index,
    Operand,
    Operators,
    Shape,
    check_name,
    condition,
    element_type,
    expression,
    has_open_choice,
    shape_expressions,
)
from ._text import Free, Sizes, Writer, literal, settled, size_text

if TYPE_CHECKING:
    from ._certen import Kernel

_order = itertools.count()

# An element of a constant is found by comparing indices, one condition inside the other: the compiler has its limits.
MOST_ELEMENTS = 256


class Indexed(Operators):
    """What takes indices: tensors that are given, constants, and definitions."""

    __slots__ = ("__weakref__", "_born", "name")

    name: str

    def __init__(self, name: str, what: str) -> None:
        self.name = check_name(name, what)
        self._born = next(_order)

    @property
    def dimensions(self) -> tuple[str | None, ...]:
        """The size of each dimension, as text; None where it is left to the compiler."""
        raise NotImplementedError

    @property
    def elem(self) -> str:
        """The element type."""
        raise NotImplementedError

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dimensions)

    def same(self, other: Indexed) -> bool:
        """Whether both are one tensor."""
        return self is other

    def __getitem__(self, key: Operand | tuple[Operand, ...]) -> Expression:
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != self.rank:
            raise IndexError(f"{self.name} takes {_count(self.rank, 'index')}, not {len(keys)}: {self!r}")
        subscripts = tuple(_subscript(self.name, part, place) for place, part in enumerate(keys))
        return Expression("sel", subscripts, self, elem=self.elem)

    def _expression(self) -> Expression:
        if self.rank:
            raise TypeError(f"{self.name} stands without its indices: it takes {self.rank}, as in {self._example()}")
        return Expression("sel", (), self, elem=self.elem)

    def _example(self) -> str:
        return f"{self.name}[{', '.join('ijklpqrst'[: self.rank])}]"

    def __iter__(self) -> NoReturn:
        raise TypeError(
            f"{self.name} has no elements before the kernel runs, and cannot be iterated over: "
            f"write sums with indices, as in sum({self._example()})"
        )


def _count(count: int, what: str) -> str:
    plural = "indices" if what == "index" else what + "s"
    return f"one {what}" if count == 1 else f"no {what}" if count == 0 else f"{count} {plural}"


def _subscript(name: str, value: object, place: int) -> Expression:
    if isinstance(value, slice) or value is ...:
        raise TypeError(f"{name} takes indices, not slices: index notation says what one element is")
    if isinstance(value, (list, np.ndarray)):
        raise TypeError(f"{name} takes indices, not arrays of them: data never becomes an index")
    made = expression(value)
    if made.level != "index" or made.elem == "bool":
        kind = made.elem if made.elem.startswith("a ") else f"data ({made.elem})"
        raise TypeError(f"index {place} of {name} is `{made!r}`, which is {kind}: data never becomes an index")
    if made.op == "const" and made.value < 0:
        raise IndexError(f"index {place} of {name} is {made.value}: indices count from 0, and the last is n - 1")
    return made


class Tensor(Indexed):
    """A tensor that a kernel is given; `certen.tensor` makes one.

    >>> import certen
    >>> A = certen.tensor("A", "f64", "m n")
    >>> (A.name, A.elem, A.dimensions, A.rank, A.type)
    ('A', 'f64', ('m', 'n'), 2, 'f64[m, n]')
    """

    __slots__ = ("_dimensions", "_elem", "shape")

    def __init__(self, name: str, elem: object, shape: object) -> None:
        super().__init__(name, "a tensor")
        self._elem = element_type(elem)
        self.shape = shape_expressions(shape, f"the tensor {name}")
        self._dimensions = tuple(size_text(size) for size in self.shape)
        if name in self._dimensions:
            raise ValueError(f"{name} is the name of the tensor and of one of its sizes")

    @property
    def dimensions(self) -> tuple[str | None, ...]:
        """The size of each dimension, as text."""
        return self._dimensions

    @property
    def elem(self) -> str:
        """The element type, as the language names it: "f64"."""
        return self._elem

    @property
    def type(self) -> str:
        """The type, as the language writes it: "f64[m, n]"."""
        return _type(self._elem, self._dimensions)

    def same(self, other: Indexed) -> bool:
        """Whether both are declared alike: name and type say which tensor is meant."""
        return type(self) is type(other) and repr(self) == repr(other)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise TypeError(
            f"{self.name} is given to the kernel, not computed by it: certen.define makes what is assigned to"
        )

    def __repr__(self) -> str:
        return f"{self.name}: {self.type}"


class Constant(Tensor):
    """A tensor that is part of the program; `certen.constant` makes one.

    >>> import certen
    >>> certen.constant("W", [[1, 2], [3, 4]]).source
    'const W: i64[2, 2] = [[1, 2], [3, 4]];'
    """

    __slots__ = ("text",)

    def __init__(self, name: str, values: object, elem: object) -> None:
        array = np.asarray(values)
        if elem is not None:
            array = _with_elements(name, array, element_type(elem))
        if array.size == 0:
            raise ValueError(f"the constant {name} has no elements")
        if array.size > MOST_ELEMENTS:
            raise ValueError(
                f"the constant {name} has {array.size} elements, and at most {MOST_ELEMENTS} can be part of a program: "
                "declare it with certen.tensor, and give it when the kernel is called"
            )
        if array.dtype == np.int64 and array.min() == np.iinfo(np.int64).min:
            raise ValueError(f"the constant {name} has the least of all integers, which no program can write")
        super().__init__(name, array.dtype, array.shape)
        self.text = _nested(array)

    @property
    def source(self) -> str:
        """The declaration in the `.ten` language."""
        return f"const {self.name}: {self.type} = {self.text};"

    def __repr__(self) -> str:
        return f"{self.name}: {self.type} = {self.text}"


_NUMPY = {elem: name for name, elem in NUMPY_NAMES.items()}


def _with_elements(name: str, array: np.ndarray[Any, Any], elem: str) -> np.ndarray[Any, Any]:
    """The values with another element type, which has to have them; only floats are rounded to shorter floats."""
    if elem not in _NUMPY:
        raise ValueError(f"the constant {name} has one element type, and {elem} stands for several")
    try:
        with np.errstate(all="ignore"):
            made = array.astype(_NUMPY[elem])
            back = made.astype(array.dtype)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"the constant {name} has values that {elem} does not have: {error}") from error
    kept = np.isfinite(made) == np.isfinite(array) if array.dtype.kind == made.dtype.kind == "f" else back == array
    if not np.all(kept):
        raise ValueError(f"the constant {name} has values that {elem} does not have, such as {array[~kept].flat[0]}")
    return made


def _nested(array: np.ndarray[Any, Any]) -> str:
    rows = [literal(value)[0] for value in array.reshape(-1).tolist()]
    for size in reversed(array.shape):
        rows = [f"[{', '.join(rows[at : at + size])}]" for at in range(0, len(rows), size)]
    return rows[0]


def _type(elem: str, dimensions: Sequence[str | None]) -> str:
    return f"{elem}[{', '.join(map(str, dimensions))}]" if dimensions else elem


class Definition(Indexed):
    """A tensor that is defined by what each element is; `certen.define` makes one.

    >>> import certen
    >>> i, j, k = certen.indices("i j k")
    >>> A = certen.tensor("A", "f64", "l m")
    >>> B = certen.tensor("B", "f64", "m n")
    >>> C = certen.define("C")
    >>> C[i, j] = sum(A[i, k] * B[k, j])
    >>> print(C.source)
    fn C(A: f64[l, m], B: f64[m, n]) -> f64[l, n] {
        { [i, j] -> sum({ [k] -> A[i,k] * B[k,j] }) }
    }
    >>> matmul = C.kernel()
    >>> matmul([[1.0, 2.0]], [[3.0], [4.0]])
    array([[11.]])
    """

    __slots__ = (
        "_chosen",
        "_dimensions",
        "_elem",
        "_function",
        "body",
        "conditions",
        "names",
        "shape",
        "sizes",
        "uses",
    )

    def __init__(self, name: str, shape: object, where: object) -> None:
        super().__init__(name, "a definition")
        self.shape = None if shape is None else shape_expressions(shape, f"the definition {name}")
        self.conditions = _conditions(where)
        self.body: str | None = None
        self._function: Function | None = None

    def __setitem__(self, key: Index | tuple[Index, ...], value: Operand) -> None:
        if self.body is not None:
            raise ValueError(f"{self.name} is defined already: {self!r}")
        left = self._left(key)
        body = expression(value)
        writer = Writer(left)
        for index in left:
            writer.write(index)
        written = writer.write(body)
        for name in written.free:
            if all(name != index.name for index in left):
                raise ValueError(
                    f"the index {name} is not on the left-hand side of {self._shown(left)}, and stands in no sum: "
                    f"`{written.text}`"
                )
        for index in left:
            outer = [name for name in writer.write(index).free if name != index.name]
            if outer:
                raise ValueError(
                    f"the bounds of {index.name} depend on {outer[0]}, and {self._shown(left)} would not be "
                    f"rectangular: choose with where({index.name} < …, …, 0)"
                )
        elem = settled(body.elem)
        text, dimensions = self._comprehension(writer, left, written.text, written.free, elem)
        for size in self.shape or ():
            writer.write(size, True)
        self.names = {index.name for index in writer.indices.values()}
        self._check_names(writer)
        self.uses = list(writer.tensors.values())
        self.sizes = list(writer.sizes)
        self._dimensions = dimensions
        self._elem = elem
        self._chosen = has_open_choice(body)
        self.body = text

    def _left(self, key: object) -> tuple[Index, ...]:
        keys = key if isinstance(key, tuple) else (key,)
        names = set()
        for part in keys:
            if not isinstance(part, Index):
                raise TypeError(
                    f"on the left-hand side of {self.name} stand indices alone, not {part!r}: "
                    "certen.index makes one, with bounds if there are some"
                )
            if part.name in names:
                raise ValueError(f"the index {part.name} stands twice on the left-hand side of {self.name}")
            names.add(part.name)
        if self.shape is not None and len(self.shape) != len(keys):
            sizes, given = _count(len(self.shape), "size"), _count(len(keys), "index")
            raise IndexError(f"{self.name} has a shape of {sizes}, and {given} on the left-hand side")
        return keys

    def _shown(self, left: Sequence[Index]) -> str:
        return f"{self.name}[{', '.join(index.name for index in left)}]"

    def _check_names(self, writer: Writer) -> None:
        for name in self.names:
            if name in writer.sizes or any(name in tensor.dimensions for tensor in writer.tensors.values()):
                raise ValueError(f"{name} is the name of an index and of a size: give one of them another name")
            if name in writer.tensors or name == self.name:
                raise ValueError(f"{name} is the name of an index and of a tensor: give one of them another name")
        if self.name in writer.tensors:
            raise ValueError(f"two different tensors are called {self.name}")

    def _comprehension(
        self, writer: Writer, left: Sequence[Index], body: str, free: Free, elem: str
    ) -> tuple[str, tuple[str | None, ...]]:
        """The body as a comprehension over the indices on the left, and the size of each dimension."""
        if not left:
            return body, ()
        found = [free.get(index.name, Sizes()) for index in left]
        unbounded = [index.start is index.stop is None for index in left]
        inferred = [sizes.known if free else None for sizes, free in zip(found, unbounded, strict=True)]
        pattern = f"[{', '.join(index.name for index in left)}]"
        if self.shape is None:
            said = [writer.bounds(index.name, sizes) for index, sizes in zip(left, found, strict=True)]
            return _braces(f"{pattern} -> {body}", said), tuple(inferred)
        shape = tuple(size_text(size) for size in self.shape)
        stops = [None if index.stop is None else size_text(index.stop) for index in left]
        if all(stop is None or stop == size for stop, size in zip(stops, shape, strict=True)):
            said = [
                "" if known == size and sizes.always else writer.bounds(index.name, sizes, size)
                for index, sizes, known, size in zip(left, found, inferred, shape, strict=True)
            ]
            return _braces(f"{pattern} -> {body}", said), shape
        # The indices stop before the shape does: the last partition gives the shape, and zero.
        zero = "false" if elem == "bool" else "0"
        inner = [writer.bounds(index.name, sizes, size) for index, sizes, size in zip(left, found, shape, strict=True)]
        outer = ", ".join(f"{index.name} < {size}" for index, size in zip(left, shape, strict=True))
        return f"{{ {pattern} -> {body} | {', '.join(inner)}; {pattern} -> {zero} | {outer} }}", shape

    @property
    def dimensions(self) -> tuple[str | None, ...]:
        """The size of each dimension, as text; None where it is left to the compiler."""
        self._defined()
        return self._dimensions

    @property
    def elem(self) -> str:
        """The element type, as the language names it: "f64"."""
        self._defined()
        return self._elem

    def _declared(self) -> str:
        """The name as a `let` declares it: with a type where the compiler could find another one."""
        if self._chosen and None not in self._dimensions:
            return f"{self.name}: {_type(self._elem, self._dimensions)}"
        return self.name

    def _defined(self) -> None:
        if self.body is None:
            raise ValueError(f"{self.name} is used before it is defined: assign to {self.name}[…] first")

    def function(self) -> Function:
        """The function whose result is this definition."""
        if self._function is None:
            self._defined()
            self._function = Function((self,), self.name, None, ())
        return self._function

    @property
    def source(self) -> str:
        """The program, in the `.ten` language."""
        return self.function().source

    def kernel(self, **options: Any) -> Kernel:
        """The compiled function; options are those of `certen.compile`. It is compiled once."""
        return self.function().kernel(**options)

    def __repr__(self) -> str:
        return f"{self.name} = {'…' if self.body is None else self.body}"


def _braces(body: str, bounds: Iterable[str]) -> str:
    said = [bound for bound in bounds if bound]
    return f"{{ {body} | {', '.join(said)} }}" if said else f"{{ {body} }}"


def _conditions(where: object) -> tuple[Expression, ...]:
    found = []
    for item in where if isinstance(where, (tuple, list)) else (where,):
        if isinstance(item, (bool, np.bool_)):
            raise TypeError("a condition of where= is True or False in Python already: write it with certen.size")
        made = condition(item, "where=")
        writer = Writer()
        writer.write(made)
        if made.level != "index" or writer.indices:
            raise TypeError(f"a condition of where= is on sizes alone: `{made!r}`")
        found.append(made)
    return tuple(found)


class Function:
    """A function of one or several results in index notation; `certen.function` makes one.

    >>> import certen
    >>> i, x = certen.index("i"), certen.tensor("x", "f64", "n")
    >>> twice = certen.define("twice")
    >>> twice[i] = 2 * x[i]
    >>> made = certen.function(twice, name="doubled")
    >>> (made.name, made.parameters, made.results)
    ('doubled', (x: f64[n],), (twice = { [i] -> 2 * x[i] },))
    """

    def __init__(
        self,
        results: tuple[Definition, ...],
        name: str,
        args: Sequence[Tensor] | None,
        where: tuple[Expression, ...],
    ) -> None:
        for result in results:
            result._defined()
        self.name = check_name(name, "a function")
        self.results = results
        self._kernels: dict[tuple[tuple[str, Any], ...], Kernel] = {}
        definitions, tensors = _reached(results, args)
        self._check_names(definitions, tensors)
        if args is None:
            self.parameters: tuple[Tensor, ...] = tuple(
                sorted((t for t in tensors if not isinstance(t, Constant)), key=lambda tensor: tensor._born)
            )
        else:
            self.parameters = tuple(args)
            missing = [t.name for t in tensors if t not in _Same(self.parameters) and not isinstance(t, Constant)]
            if missing:
                raise ValueError(f"args= does not name {missing[0]}, which {self.name} uses")
        self.source = self._source(definitions, tensors, where)

    def _check_names(self, definitions: Sequence[Definition], tensors: Sequence[Tensor]) -> None:
        named: dict[str, Indexed] = {}
        for item in (*tensors, *definitions):
            if not named.setdefault(item.name, item).same(item):
                raise ValueError(f"two different tensors are called {item.name}")
        sizes = {size for tensor in tensors for part in tensor.shape for size in _sizes(part)}
        for definition in definitions:
            sizes.update(definition.sizes)
        both = sizes & named.keys()
        if both:
            raise ValueError(f"{min(both)} is the name of a size and of a tensor: give one of them another name")
        for definition in definitions:
            for name in definition.names:
                if name in sizes or name in named:
                    what = "size" if name in sizes else "tensor"
                    raise ValueError(f"{name} is the name of an index and of a {what}: give one of them another name")

    def _source(
        self, definitions: Sequence[Definition], tensors: Sequence[Tensor], where: tuple[Expression, ...]
    ) -> str:
        told = {size for tensor in self.parameters for size in tensor.dimensions}
        writer = Writer()
        conditions = [condition for definition in definitions for condition in definition.conditions]
        said = dict.fromkeys(writer.write(condition).text for condition in (*conditions, *where))
        used = dict.fromkeys(size for tensor in tensors for part in tensor.shape for size in _sizes(part))
        used.update(dict.fromkeys(size for definition in definitions for size in definition.sizes))
        used.update(writer.sizes)
        asked = [size for size in used if size not in told]
        parameters = [f"{tensor.name}: {tensor.type}" for tensor in self.parameters]
        parameters += [f"{size}: size" for size in asked]
        said = {**dict.fromkeys(f"{size} >= 0" for size in asked), **said}
        clause = f" where {', '.join(said)}" if said else ""
        lines = [tensor.source for tensor in tensors if isinstance(tensor, Constant)]
        if lines:
            lines.append("")
        lines.append(f"fn {self.name}({', '.join(parameters)}){self._result_type()}{clause} {{")
        last = self.results[0] if len(self.results) == 1 else None
        for definition in definitions:
            if definition is not last:
                lines.append(f"    let {definition._declared()} = {definition.body};")
        value = last.body if last is not None else f"({', '.join(result.name for result in self.results)})"
        return "\n".join([*lines, f"    {value}", "}"])

    def _result_type(self) -> str:
        types = []
        for result in self.results:
            if None not in result.dimensions:
                types.append(_type(result.elem, result.dimensions))
            elif len(self.results) == 1:
                return ""
            else:
                raise ValueError(
                    f"the shape of {result.name} has to be said, because it is one of several results: "
                    f"certen.define({result.name!r}, shape=…)"
                )
        if len(types) == 1:
            return f" -> {types[0]}"
        return f" -> ({', '.join(f'{result.name}: {ty}' for result, ty in zip(self.results, types, strict=True))})"

    def kernel(self, **options: Any) -> Kernel:
        """The compiled function; options are those of `certen.compile`. It is compiled once."""
        from . import _certen
        from ._errors import CompileError

        key = tuple(sorted(options.items()))
        if key in self._kernels:
            return self._kernels[key]
        # Without a lock, which a fork would leave locked in the child: of two that come at once, the first stays.
        try:
            made = _certen.compile(self.source, fn=self.name, **{"name": self.name, **options})
        except CompileError as error:
            error.add_note(f"The program, made of index notation:\n\n{self.source}")
            raise
        return self._kernels.setdefault(key, made)

    def __repr__(self) -> str:
        return self.source


class _Same:
    """Tensors by what they are declared as: `in` must not compare with `==`, which makes expressions."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self.shown = {repr(tensor) for tensor in tensors}

    def __contains__(self, tensor: object) -> bool:
        return repr(tensor) in self.shown


def _sizes(size: Expression) -> list[str]:
    writer = Writer()
    writer.write(size)
    return list(writer.sizes)


def _reached(results: tuple[Definition, ...], args: Sequence[Tensor] | None) -> tuple[list[Definition], list[Tensor]]:
    """The definitions that results need, each after those that it uses, and the tensors."""
    definitions: dict[int, Definition] = {}
    tensors: dict[str, Tensor] = {repr(tensor): tensor for tensor in args or ()}
    stack: list[Indexed] = list(reversed(results))
    while stack:
        item = stack[-1]
        if not isinstance(item, Definition):
            assert isinstance(item, Tensor)
            tensors.setdefault(repr(item), item)
            stack.pop()
        elif id(item) in definitions:
            stack.pop()
        else:
            item._defined()
            waiting = [
                used
                for used in item.uses
                if (id(used) not in definitions if isinstance(used, Definition) else repr(used) not in tensors)
            ]
            if waiting:
                stack.extend(reversed(waiting))
            else:
                definitions[id(item)] = item
                stack.pop()
    return list(definitions.values()), list(tensors.values())


def tensor(name: str, elem: object, shape: Shape) -> Tensor:
    """Declares a tensor that the kernel will be given.

    `elem` is an element type (`"f64"`, `"f32"`, `"i64"`, `"i32"`, `"u8"`, `"bool"`, or a NumPy dtype). `shape` has the
    sizes: names, numbers, or expressions of them; a size of the same name is the same size in all tensors of a
    function. A scalar has the shape `()`.

    >>> import certen
    >>> certen.tensor("A", "f64", "m n")
    A: f64[m, n]
    >>> n = certen.size("n")
    >>> certen.tensor("x", "f32", (n + 1, 3))
    x: f32[n+1, 3]
    >>> certen.tensor("alpha", "f64", ())
    alpha: f64
    """
    return Tensor(name, elem, shape)


def constant(name: str, values: object, elem: object = None) -> Constant:
    """A small tensor that is part of the program, from nested lists or an array.

    >>> import certen
    >>> i, r = certen.indices("i r")
    >>> n = certen.size("n")
    >>> x = certen.tensor("x", "f64", n)
    >>> W = certen.constant("W", [0.25, 0.5, 0.25])
    >>> smooth = certen.define("smooth", where=n >= 3)
    >>> smooth[i] = sum(W[r] * x[i + r])
    >>> print(smooth.source)
    const W: f64[3] = [0.25, 0.5, 0.25];
    <BLANKLINE>
    fn smooth(x: f64[n]) where n >= 3 {
        { [i] -> sum({ [r] -> W[r] * x[i+r] }) }
    }
    """
    return Constant(name, values, elem)


def define(name: str, shape: Shape | None = None, *, where: Operand | Sequence[Operand] = ()) -> Definition:
    """A tensor that an assignment will define: `C[i, j] = …`, for a scalar `s[()] = …`.

    `shape` is needed where it cannot be inferred: if an index on the left selects from no tensor, or its bounds are to
    be others than those that keep all elements in bounds. `where` has conditions on sizes for which it is meant.

    >>> import certen
    >>> i, n = certen.index("i"), certen.size("n")
    >>> x = certen.tensor("x", "f64", n)
    >>> mean = certen.define("mean", where=n >= 1)
    >>> mean[()] = sum(x[i]) / n
    >>> centred = certen.define("centred")
    >>> centred[i] = x[i] - mean
    >>> print(centred.source)
    fn centred(x: f64[n]) -> f64[n] where n >= 1 {
        let mean = sum(x) / n;
        { [i] -> x[i] - mean }
    }
    """
    return Definition(name, shape, where)


def function(
    *results: Definition,
    name: str | None = None,
    args: Sequence[Tensor] | None = None,
    where: Operand | Sequence[Operand] = (),
) -> Function:
    """A function whose results are definitions, in this order.

    Its parameters are the tensors that they use, in the order in which they were declared, or `args`.

    >>> import certen
    >>> i = certen.index("i")
    >>> x, y = certen.tensor("x", "f64", "n"), certen.tensor("y", "f64", "n")
    >>> total, dot = certen.define("total"), certen.define("dot")
    >>> total[()] = sum(x[i] + y[i])
    >>> dot[()] = sum(x[i] * y[i])
    >>> both = certen.function(total, dot, name="both")
    >>> print(both.source)
    fn both(x: f64[n], y: f64[n]) -> (total: f64, dot: f64) {
        let total = sum({ [i] -> x[i] + y[i] });
        let dot = sum({ [i] -> x[i] * y[i] });
        (total, dot)
    }
    >>> both.kernel()([1.0, 2.0], [3.0, 4.0])
    (np.float64(10.0), np.float64(11.0))
    """
    if not results:
        raise TypeError("a function has at least one result")
    for result in results:
        if not isinstance(result, Definition):
            raise TypeError(f"the results of a function are definitions (certen.define), not {result!r}")
    if len({id(result) for result in results}) < len(results):
        raise ValueError("a definition is named twice among the results")
    for given in args or ():
        if not isinstance(given, Tensor) or isinstance(given, Constant):
            raise TypeError(f"args= has tensors (certen.tensor), not {given!r}")
    if args is not None and len({tensor.name for tensor in args}) < len(args):
        raise ValueError("a tensor is named twice in args=")
    if name is None:
        if len(results) > 1:
            raise TypeError("a function of several results needs a name=")
        name = results[0].name
    return Function(results, name, args, _conditions(where))
