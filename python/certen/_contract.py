"""`tensordot`, `matmul` and `transpose`, with NumPy's meaning, by `einsum`.

Together with `einsum` they are what opt_einsum asks of a back end: `opt_einsum.contract(…, backend="certen")`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._certen import einsum


def tensordot(a: ArrayLike, b: ArrayLike, axes: int | tuple[int | Sequence[int], int | Sequence[int]] = 2) -> Any:
    """The sums of products over some axes of two arrays, as `numpy.tensordot`.

    >>> import certen, numpy as np
    >>> certen.tensordot(np.ones((2, 3)), np.ones((3, 4)), 1).shape
    (2, 4)
    """
    a, b = np.asarray(a), np.asarray(b)
    if isinstance(axes, (int, np.integer)):
        count = int(axes)
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise ValueError(f"cannot contract {count} axes of arrays with {a.ndim} and {b.ndim}")
        left, right = list(range(a.ndim - count, a.ndim)), list(range(count))
    else:
        first, second = axes
        left, right = _axes(first, a.ndim), _axes(second, b.ndim)
    if [a.shape[axis] for axis in left] != [b.shape[axis] for axis in right]:
        raise ValueError(f"shape-mismatch for sum: axes {left} of {a.shape}, axes {right} of {b.shape}")
    of_a = list(range(a.ndim))
    of_b = [left[right.index(axis)] if axis in right else a.ndim + axis for axis in range(b.ndim)]
    kept = [index for index in of_a if index not in left] + [index for index in of_b if index >= a.ndim]
    return einsum(a, of_a, b, of_b, kept)


def _axes(given: int | Sequence[int], rank: int) -> list[int]:
    """Axes from 0 on, each once."""
    several = [given] if isinstance(given, (int, np.integer)) else list(given)
    for axis in several:
        if not -rank <= axis < rank:
            raise IndexError(f"axis {axis} of an array with {rank} axes")
    axes = [int(axis) % rank for axis in several]
    if len(set(axes)) != len(axes):
        raise ValueError(f"an axis is contracted twice: {several}")
    return axes


def matmul(a: ArrayLike, b: ArrayLike) -> Any:
    """The product of matrices, or of stacks of them, as `numpy.matmul`: the operator `@`.

    >>> import certen, numpy as np
    >>> certen.matmul(np.ones((5, 2, 3)), np.ones((3, 4))).shape
    (5, 2, 4)
    """
    a, b = np.asarray(a), np.asarray(b)
    if not a.ndim or not b.ndim:
        raise ValueError("matmul: a scalar is not a matrix")
    if a.shape[-1] != b.shape[-min(2, b.ndim)]:
        raise ValueError(f"matmul: {a.shape} and {b.shape} do not fit")
    rows, columns = "i" if a.ndim > 1 else "", "k" if b.ndim > 1 else ""
    return einsum(f"...{rows}j,...j{columns}->...{rows}{columns}", a, b)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Any:
    """The array with its axes in another order, a view of it, as `numpy.transpose`.

    >>> import certen, numpy as np
    >>> certen.transpose(np.ones((2, 3))).shape
    (3, 2)
    """
    return np.transpose(a, axes)
