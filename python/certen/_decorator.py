"""`@certen.kernel`: a Python function whose docstring holds its program.

The program is everything from the first line of the docstring that begins with `fn name(` or `const NAME`, to the end
of its block if it stands in one of Markdown; what stands before it is for people. The Python function gives the kernel
its name and its parameters, and is never run.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from . import _certen

if TYPE_CHECKING:
    from ._certen import Kernel

_FENCE = re.compile(r"^[ \t]*```", re.MULTILINE)
_BEGIN = re.compile(r"^[ \t]*(?:fn[ \t]+\w+[ \t]*\(|const[ \t]+\w+[ \t]*[:=])", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]*\"[^\"]*\"[ \t]*;", re.MULTILINE)


@overload
def kernel(function: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(function: None = None, /, **options: Any) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a kernel of a Python function whose docstring holds a program in the `.ten` language.

    The program is everything from the first line that begins with `fn` or `const`. Its function has the name and the
    parameters of the Python function. Options are those of `certen.compile`, except `fn` and `name`. A program that
    imports others needs a file of its own, and `certen.compile`.

    >>> import certen
    >>> @certen.kernel
    ... def axpy(a, x, y):
    ...     '''A scaled vector, added to another.
    ...
    ...     fn axpy(a: f64, x: f64[n], y: f64[n]) -> f64[n] {
    ...         a * x + y
    ...     }
    ...     '''
    >>> axpy(2.0, [1.0, 2.0], [10.0, 20.0])
    array([12., 24.])
    >>> axpy.__name__
    'axpy'

    It is compiled when the function is defined, so mistakes are found when the module is imported.
    """
    for taken in ("fn", "name"):
        if taken in options:
            raise TypeError(f"@certen.kernel has no option {taken}: the function says it")
    if function is None:
        return lambda given: _compiled(given, options)
    return _compiled(function, options)


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Kernel:
    if not inspect.isfunction(function):
        raise TypeError(f"@certen.kernel is for a function with a program in its docstring, not for {function!r}")
    name = function.__name__
    source = _program(function)
    defined = re.findall(r"^[ \t]*fn[ \t]+([A-Za-z_0-9]+)", source, re.MULTILINE)
    if name not in defined:
        raise ValueError(f"the program in the docstring of {name} defines {', '.join(defined)}, but no function {name}")
    made = _certen.compile(source, name=f"{function.__module__}.{function.__qualname__}", fn=name, **options)
    assert isinstance(made, _certen.Kernel)
    _check_parameters(function, made)
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(made, attribute, getattr(function, attribute))
    made.__wrapped__ = function
    return made


def _program(function: Callable[..., Any]) -> str:
    """The program in a docstring, without the indentation of Python."""
    text = function.__doc__
    if text is None:
        raise ValueError(
            f"{function.__name__} has no docstring with a program; "
            "a string that is not the first statement is no docstring, and `python -OO` removes them all"
        )
    text = textwrap.dedent(text)
    begin = _BEGIN.search(text)
    if begin is None:
        raise ValueError(
            f"the docstring of {function.__name__} has no program: no line begins with `fn`, as in "
            f"`fn {function.__name__}(x: f64[n]) -> f64[n] {{ 2 * x }}`"
        )
    if _IMPORT.search(text):
        raise ValueError(
            f"the program in the docstring of {function.__name__} imports a file, and a docstring stands beside none: "
            "write it to a file, and compile that with certen.compile(pathlib.Path(…))"
        )
    program = _FENCE.split(text[begin.start() :])[0]
    return textwrap.dedent(program).strip() + "\n"


def _check_parameters(function: Callable[..., Any], made: Kernel) -> None:
    """The parameters have the same names on both sides, in the same order."""
    name = function.__name__
    given = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ValueError(f"{name} takes the parameters of its program, not *{parameter.name}")
        if parameter.default is not parameter.empty:
            raise ValueError(f"the parameter {parameter.name} of {name} has a default, which a kernel cannot have")
        given.append(parameter.name)
    stated = [parameter.name for parameter in made.parameters]
    for missing in (parameter for parameter in stated if parameter not in given):
        raise ValueError(f"the program of {name} has a parameter {missing}, and def {name}({', '.join(given)}) has not")
    for unknown in (parameter for parameter in given if parameter not in stated):
        raise ValueError(f"def {name} has a parameter {unknown}, and its program has not: {made.type}")
    if given != stated:
        raise ValueError(
            f"the parameters of {name} stand in another order than in its program: "
            f"{', '.join(given)} in Python, {', '.join(stated)} in the program"
        )
