"""Random expressions of index notation against NumPy.

The same operators build an expression and compute its value on arrays over the whole range of its indices; a kernel of
many results has to give the same. `CERTEN_CASES` is the number of expressions, up to a thousand.
"""

import operator
import os

import numpy as np
import pytest

import certen

CASES = min(int(os.environ.get("CERTEN_CASES", "120")), 1_000)
BATCH = 40
ROWS, COLUMNS, INNER = 3, 5, 2

i, j, k = certen.indices("i j k")
m, n, p = certen.sizes("m n p")
A, x, y, z = (
    certen.tensor("A", "f64", (m, n)),
    certen.tensor("x", "f64", m),
    certen.tensor("y", "f64", n),
    certen.tensor("z", "i64", (m, n)),
)
K = certen.tensor("K", "f64", (p, n))


class Case:
    """Makes pairs: an expression, and its values for all i, j and k."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.A = self.random.integers(-4, 5, (ROWS, COLUMNS)) / 2
        self.x, self.y = self.random.integers(-4, 5, ROWS) / 2, self.random.integers(-4, 5, COLUMNS) / 2
        self.z = self.random.integers(-9, 10, (ROWS, COLUMNS))
        self.K = self.random.integers(-4, 5, (INNER, COLUMNS)) / 2
        self.i, self.j, self.k = np.meshgrid(np.arange(ROWS), np.arange(COLUMNS), np.arange(INNER), indexing="ij")

    def one(self, *choices):
        return choices[self.random.integers(len(choices))]

    def index(self, depth):
        """Something of the index level."""
        if depth == 0:
            number = int(self.random.integers(-3, 4))
            return self.one((i, self.i), (j, self.j), (n, COLUMNS + 0 * self.i), (number, number + 0 * self.i))
        if self.random.random() < 0.2:
            a, av = self.index(depth - 1)
            exponent = int(self.random.integers(0, 3))
            return a**exponent, av**exponent
        if self.random.random() < 0.3:
            divide = self.one(operator.floordiv, operator.mod)
            by = int(self.random.integers(1, 4))
            a, av = self.index(depth - 1)
            # Two numbers are Python's to divide.
            return divide(a, by), divide(av, by)
        (a, av), (b, bv) = self.index(depth - 1), self.index(depth - 1)
        op = self.one(operator.add, operator.sub, operator.mul)
        return op(a, b), op(av, bv)

    def whole(self, depth):
        """Integers as data."""
        if depth == 0:
            return z[i, j], self.z[self.i, self.j]
        (a, av), (b, bv) = self.whole(depth - 1), self.one(self.whole, self.index)(depth - 1)
        op = self.one(operator.add, operator.sub, operator.mul)
        if self.random.random() < 0.3:
            op, by = self.one(operator.floordiv, operator.mod), int(self.random.integers(1, 5))
            return op(a, by), op(av, by)
        return op(a, b), op(av, bv)

    def data(self, depth, inner=False):
        """Floats; with `inner`, of the index of a sum, too."""
        if depth == 0:
            leaves = [
                (A[i, j], self.A[self.i, self.j]),
                (x[i], self.x[self.i]),
                (y[j], self.y[self.j]),
                (A[i, certen.clamp(j - 1, n)], self.A[self.i, np.maximum(self.j - 1, 0)]),
            ]
            if inner:
                leaves += [(K[k, j], self.K[self.k, self.j])] * 3
            return self.one(*leaves)
        shape = self.random.integers(11)
        a, av = self.data(depth - 1, inner)
        b, bv = self.one(lambda: self.data(depth - 1, inner), lambda: self.index(depth - 1))()
        match shape:
            case 0:
                return -a, -av
            case 1:
                return abs(a), np.abs(av)
            case 2:
                return certen.max(a, b), np.maximum(av, bv)
            case 3:
                c, cv = self.condition(depth - 1)
                return certen.where(c, a, b), np.where(cv, av, bv)
            case 4:
                exponent = self.one(2, 3, 0)
                return a**exponent, av**exponent
            case 5:
                return a / (abs(b) + 1), av / (np.abs(bv) + 1)
            case 6:
                a, av = self.whole(depth - 1)
                return certen.cast(a, "f64") - b, av - bv
            case 7 if not inner:
                a, av = self.data(depth - 1, True)
                term, value = a * K[k, j], av * self.K[self.k, self.j]
                return sum(term), value.sum(2, keepdims=True) + 0 * self.i
            case _:
                op = self.one(operator.add, operator.sub, operator.mul)
                return (op(a, b), op(av, bv)) if self.random.random() < 0.7 else (op(b, a), op(bv, av))

    def condition(self, depth):
        if depth <= 0 or self.random.random() < 0.4:
            op = self.one(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
            level = self.one(lambda: self.index(1), lambda: self.data(0))
            (a, av), (b, bv) = level(), level()
            if isinstance(a, int) and isinstance(b, int):
                a, av = j, self.j
            return op(a, b), op(av, bv)
        (a, av), (b, bv) = self.condition(depth - 1), self.condition(depth - 1)
        return self.one((~a, ~av), (a & b, av & bv), (a | b, av | bv))


@pytest.mark.parametrize("batch", range(0, CASES, BATCH))
def test_expressions_have_the_values_of_numpy(batch):
    case = Case(batch)
    results, expected = [], []
    for number in range(BATCH):
        a, av = case.data(int(case.random.integers(1, 6)))
        made = certen.define(f"r{number}", (m, n), where=n >= 1)
        made[i, j] = a
        results.append(made)
        expected.append(av[:, :, 0])
    together = certen.function(*results, name="together", args=(A, x, y, z, K))
    found = together.kernel(fp="strict")(case.A, case.x, case.y, case.z, case.K)
    for definition, got, want in zip(results, found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9, err_msg=repr(definition))
