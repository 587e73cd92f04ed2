"""What Certen raises.

Every error says what is wrong the way the command line does: with a code that has a page (``certen explain-error
E0208``), located in the program, in the user's terms. Each is also one of Python's own exceptions, so that code that
knows nothing of Certen catches it.
"""

from typing import Any


class Error(Exception):
    """Why Certen refused something: ``str(error)`` is the whole message.

    >>> import certen
    >>> try:
    ...     certen.compile("fn f(x: f64[n]) -> f64[n] { y }")
    ... except certen.Error as error:
    ...     print(error.code, error.diagnostics[0]["message"])
    E0201 `y` is not declared
    """

    #: The code of the first error, such as ``"E0208"``; none if there is none.
    code: str | None
    #: The whole message, as text.
    rendered: str
    #: The errors and warnings, each as ``certen check --json`` prints it.
    diagnostics: list[dict[str, Any]]

    def __init__(
        self, rendered: str = "", code: str | None = None, diagnostics: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__(rendered)
        self.rendered = rendered
        self.code = code
        self.diagnostics = [] if diagnostics is None else diagnostics

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled by their `args` alone, and processes would lose the rest.
        return type(self), (self.rendered, self.code, self.diagnostics)


class CompileError(Error, ValueError):
    """The program is wrong.

    >>> import certen
    >>> certen.compile("fn f(x: f64[n]) -> f64 { x }")
    Traceback (most recent call last):
    certen.CompileError: error[E0236]: ...
    """


class ArgumentTypeError(Error, TypeError):
    """An argument is missing, unknown, or of another type than the kernel wants.

    >>> import certen
    >>> certen.compile("fn f(x: f64[n]) -> f64[n] { x }")()
    Traceback (most recent call last):
    certen.ArgumentTypeError: error[E0401]: ...
    """


class ArgumentValueError(Error, ValueError):
    """An argument does not fit: its rank or sizes, what a ``where`` clause says of them, or it is read-only.

    >>> import certen
    >>> certen.compile("fn f(x: f64[n], y: f64[n]) -> f64[n] { x + y }")([1.0], [1.0, 2.0])
    Traceback (most recent call last):
    certen.ArgumentValueError: error[E0403]: ...
    """


class MachineError(Error, RuntimeError):
    """The machine could not do it: there is no C compiler, the cache cannot be used, or Certen has a bug.

    >>> import certen
    >>> issubclass(certen.MachineError, RuntimeError)
    True
    """


class OutOfMemory(Error, MemoryError):
    """There is not as much memory as the call needs.

    >>> import certen
    >>> cube = certen.compile("fn cube(n: size) -> f64[n, n, n] where n >= 0 { zeros([n, n, n]) }")
    >>> cube(n=2**19)
    Traceback (most recent call last):
    certen.OutOfMemory: ...
    """


for _error in (Error, CompileError, ArgumentTypeError, ArgumentValueError, MachineError, OutOfMemory):
    # Messages name them as users do.
    _error.__module__ = "certen"
