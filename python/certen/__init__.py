"""Tensor kernels that cannot go out of bounds, compiled to native code."""

from certen._certen import Kernel, __version__, compile
from certen._errors import ArgumentTypeError, ArgumentValueError, CompileError, Error, MachineError, OutOfMemory

__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "CompileError",
    "Error",
    "Kernel",
    "MachineError",
    "OutOfMemory",
    "__version__",
    "compile",
]
