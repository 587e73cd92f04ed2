"""How kernels are shown: one line for `repr`, and HTML for notebooks.

The HTML has no scripts and no colours of its own, so that it is readable on light and dark pages; everything that comes
from a program is escaped.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING

from ._errors import Error

if TYPE_CHECKING:
    from ._certen import Kernel

_PRE = 'style="margin: 0.3em 0 0.6em 1.2em; padding: 0; background: transparent; color: inherit; overflow-x: auto"'
_BOX = 'style="border-left: 3px solid rgba(128, 128, 128, 0.5); padding: 0.2em 0 0.2em 0.8em"'


def kernel(kernel: Kernel) -> str:
    """A kernel in HTML: its type, how many operations it makes, its program, loops and C code, and warnings."""
    parts = [f"<div><b>certen.Kernel</b> <code>{escape(_signature(kernel))}</code></div>"]
    parts += [_code(warning) for warning in kernel.warnings]
    operations = _said(lambda: str(kernel.flops))
    if operations is not None:
        parts.append(f"<div>operations: <code>{escape(operations)}</code></div>")
    for title, text in (
        ("Program", _said(lambda: kernel.source)),
        ("Loops", _said(lambda: kernel.explain("loops"))),
        ("C code", _said(lambda: kernel.c_source)),
    ):
        if text:
            parts.append(f"<details><summary>{title}</summary>{_code(text)}</details>")
    return f'<div class="certen-kernel" {_BOX}>{"".join(parts)}</div>'


def _signature(kernel: Kernel) -> str:
    """The type with the name once: the type may have it already."""
    text = " ".join(kernel.type.split()).removeprefix("fn ")
    return text if text.startswith(kernel.name) else f"{kernel.name}{'' if text.startswith('(') else ': '}{text}"


def _code(text: str) -> str:
    return f"<pre {_PRE}><code>{escape(text.strip())}</code></pre>"


def _said(ask: Callable[[], str]) -> str | None:
    """What a kernel says of itself, if it can: one of open rank has no loops before it is called."""
    try:
        return ask()
    except (Error, OverflowError):
        return None
