"""Tensor kernels that cannot go out of bounds, compiled to native code."""

from ._builder import Constant, Definition, Function, Tensor, constant, define, function, tensor
from ._certen import Kernel, __version__, compile
from ._errors import ArgumentTypeError, ArgumentValueError, CompileError, Error, MachineError, OutOfMemory
from ._functions import (
    abs,
    all,
    any,
    cast,
    ceil,
    ceil_div,
    clamp,
    cos,
    exp,
    floor,
    floor_div,
    guard,
    index,
    indices,
    log,
    max,
    min,
    mirror,
    mod,
    periodic,
    pow,
    prod,
    reflect,
    round,
    sin,
    size,
    sizes,
    sqrt,
    sum,
    tanh,
    where,
)
from ._notation import Expression, Index, Size
