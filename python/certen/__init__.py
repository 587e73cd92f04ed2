'''Tensor kernels that cannot go out of bounds, compiled to native code.

A program in the `.ten` language becomes a function on arrays. Every access is proved in bounds, for all sizes that the
types allow, before anything runs:

>>> import certen
>>> import numpy as np
>>> smooth = certen.compile("""
... fn smooth(x: f64[n]) -> f64[n-2] where n >= 2 {
...     { [i] -> (x[i] + 2 * x[i+1] + x[i+2]) / 4 }
... }
... """)
>>> smooth(np.array([0.0, 4.0, 0.0, 8.0]))
array([2., 3.])

The same in index notation, which writes the program:

>>> i, n = certen.index("i"), certen.size("n")
>>> x = certen.tensor("x", "f64", n)
>>> s = certen.define("smooth", shape=n - 2, where=n >= 2)
>>> s[i] = (x[i] + 2 * x[i + 1] + x[i + 2]) / 4
>>> print(s.source)
fn smooth(x: f64[n]) -> f64[n-2] where n >= 2 {
    { [i] -> (x[i] + 2 * x[i+1] + x[i+2]) / 4 | i < n-2 }
}
>>> s.kernel()(np.array([0.0, 4.0, 0.0, 8.0]))
array([2., 3.])

And in the docstring of a Python function:

>>> @certen.kernel
... def scale(x, factor):
...     """fn scale(x: f64[n], factor: f64) -> f64[n] { factor * x }"""
>>> scale(np.array([1.0, 2.0]), 10.0)
array([10., 20.])

What the language cannot show is refused, with sizes that break it:

>>> certen.compile("fn next(x: f64[n]) -> f64[n] { { [i] -> x[i+1] | i < n } }")
Traceback (most recent call last):
certen.CompileError: error[E0207]: this access can be out of bounds
...

There are also

- `einsum`, `contract_path`, `tensordot` and `matmul`, which agree with NumPy's and are compiled where that pays;
- `Kernel.explain`, `Kernel.c_source` and `Kernel.flops`, which show what is computed;
- `set_threads`: how many threads kernels use. Results have the same bits with any number of them.

In a clone, `docs/reference/python.md` is the tour and `docs/reference/language.md` the language. Where the command line
is installed, `certen help python` and `certen help language` print them.
'''

from ._builder import Constant, Definition, Function, Tensor, constant, define, function, tensor
from ._certen import (
    Formula,
    Kernel,
    Module,
    Parameter,
    __version__,
    compile as compile,
    contract_path,
    einsum,
    get_threads,
    set_threads,
)
from ._contract import matmul, tensordot, transpose
from ._decorator import kernel
from ._errors import ArgumentTypeError, ArgumentValueError, CompileError, Error, MachineError, OutOfMemory
from ._functions import (
    abs as abs,
    acos,
    acosh,
    all as all,
    any as any,
    asin,
    asinh,
    atan,
    atanh,
    cast,
    cbrt,
    ceil,
    ceil_div,
    clamp,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    floor_div,
    guard,
    index,
    indices,
    log,
    log1p,
    log2,
    log10,
    max as max,
    min as min,
    mirror,
    mod,
    periodic,
    pow as pow,
    prod,
    reflect,
    round as round,
    sigmoid,
    sin,
    sinh,
    size,
    sizes,
    sqrt,
    sum as sum,
    tan,
    tanh,
    where,
)
from ._notation import Expression, Index, Size

# `sum`, `max`, `compile` and the others with names of Python's own are not here: a star import leaves those alone.
__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "CompileError",
    "Constant",
    "Definition",
    "Error",
    "Expression",
    "Formula",
    "Function",
    "Index",
    "Kernel",
    "MachineError",
    "Module",
    "OutOfMemory",
    "Parameter",
    "Size",
    "Tensor",
    "__version__",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cast",
    "cbrt",
    "ceil",
    "ceil_div",
    "clamp",
    "constant",
    "contract_path",
    "cos",
    "cosh",
    "define",
    "einsum",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "floor_div",
    "function",
    "get_threads",
    "guard",
    "index",
    "indices",
    "kernel",
    "log",
    "log10",
    "log1p",
    "log2",
    "matmul",
    "mirror",
    "mod",
    "periodic",
    "prod",
    "reflect",
    "set_threads",
    "sigmoid",
    "sin",
    "sinh",
    "size",
    "sizes",
    "sqrt",
    "tan",
    "tanh",
    "tensor",
    "tensordot",
    "transpose",
    "where",
]
