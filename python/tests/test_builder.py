"""Index notation: the programs that it writes, what they compute, and the mistakes that it refuses.

Every program is compared with its expected text, because users read it; values are compared with NumPy at prime sizes,
1 and 0.
"""

import functools
import math
import operator
import pickle
import threading

import numpy as np
import pytest

import certen
from certen._notation import CALLED, RESERVED

i, j, k, q = certen.indices("i j k q")
l, m, n = certen.sizes("l m n")  # noqa: E741
A = certen.tensor("A", "f64", "l m")
B = certen.tensor("B", "f64", "m n")
x = certen.tensor("x", "f64", n)
y = certen.tensor("y", "f64", n)
z = certen.tensor("z", "i64", n)
u = certen.tensor("u", "u8", n)
h = certen.tensor("h", "f32", n)
a = certen.tensor("a", "f64", ())

SIZES = [(7, 5, 3), (1, 1, 1), (2, 1, 11), (0, 3, 2), (3, 0, 2), (2, 3, 0)]


def defined(name, left, value, **options):
    """A definition with its assignment."""
    made = certen.define(name, **options)
    made[left] = value
    return made


def text(program):
    """A program, without the indentation of this file."""
    lines = program.strip("\n").splitlines()
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[margin:] for line in lines).rstrip()


def random(*shape, dtype=np.float64):
    values = np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape)
    return (10 * values).astype(dtype)


# Programs and their values


@pytest.mark.parametrize("sizes", SIZES)
def test_a_product_of_matrices(sizes):
    C = certen.define("C")
    C[i, j] = sum(A[i, k] * B[k, j])
    assert C.source == text("""
        fn C(A: f64[l, m], B: f64[m, n]) -> f64[l, n] {
            { [i, j] -> sum({ [k] -> A[i,k] * B[k,j] }) }
        }
    """)
    left, right = random(*sizes[:2]), random(*sizes[1:])
    np.testing.assert_allclose(C.kernel()(left, right), left @ right, atol=1e-12)


@pytest.mark.parametrize("size", [7, 1])
def test_definitions_become_lets_in_the_order_of_use(size):
    mean = defined("mean", (), sum(x[i]) / n, where=n >= 1)
    centred = defined("centred", i, x[i] - mean)
    unused = defined("unused", i, x[i])
    variance = defined("variance", (), sum(centred[i] ** 2) / n)
    score = defined("score", i, centred[i] / certen.sqrt(variance + 1) + mean)
    assert score.source == text("""
        fn score(x: f64[n]) -> f64[n] where n >= 1 {
            let mean = sum(x) / n;
            let centred = { [i] -> x[i] - mean };
            let variance = sum({ [i] -> centred[i]^2 }) / n;
            { [i] -> centred[i] / sqrt(variance + 1) + mean }
        }
    """)
    assert "unused" in repr(unused)
    values = random(size)
    expected = (values - values.mean()) / np.sqrt(values.var() + 1) + values.mean()
    np.testing.assert_allclose(score.kernel()(values), expected)


@pytest.mark.parametrize("size", [13, 1])
def test_several_results(size):
    mean = defined("mean", (), sum(x[i]) / n, where=n >= 1)
    twice = defined("twice", i, 2 * x[i])
    both = certen.function(twice, mean, name="both")
    assert both.source == text("""
        fn both(x: f64[n]) -> (twice: f64[n], mean: f64) where n >= 1 {
            let twice = { [i] -> 2 * x[i] };
            let mean = sum(x) / n;
            (twice, mean)
        }
    """)
    values = random(size)
    first, second = both.kernel()(values)
    np.testing.assert_array_equal(first, 2 * values)
    np.testing.assert_allclose(second, values.mean())


def test_one_result_may_use_another():
    total = defined("total", (), sum(x[i]))
    share = defined("share", i, x[i] / total)
    assert certen.function(share, total, name="shares").source == text("""
        fn shares(x: f64[n]) -> (share: f64[n], total: f64) {
            let total = sum(x);
            let share = { [i] -> x[i] / total };
            (share, total)
        }
    """)


def test_parameters_stand_in_the_order_of_their_declaration():
    D = defined("D", (), sum(y[i] * x[i]) * a)
    assert D.source.startswith("fn D(x: f64[n], y: f64[n], a: f64) -> f64 {")
    assert certen.function(D, args=(a, y, x)).source.startswith("fn D(a: f64, y: f64[n], x: f64[n]) -> f64 {")
    assert certen.function(D, name="inner", args=(a, A, y, x)).source.startswith(
        "fn inner(a: f64, A: f64[l, m], y: f64[n], x: f64[n]) -> f64 {"
    )


@pytest.mark.parametrize("size", [7, 3, 2])
def test_stencils_say_their_shape_or_leave_it(size):
    inferred = defined("lap", i, x[i] - 2 * x[i + 1] + x[i + 2])
    assert inferred.source == text("""
        fn lap(x: f64[n]) {
            { [i] -> x[i] - 2 * x[i+1] + x[i+2] }
        }
    """)
    stated = defined("lap", i, x[i] - 2 * x[i + 1] + x[i + 2], shape=n - 2, where=n >= 2)
    assert stated.source == text("""
        fn lap(x: f64[n]) -> f64[n-2] where n >= 2 {
            { [i] -> x[i] - 2 * x[i+1] + x[i+2] | i < n-2 }
        }
    """)
    values = random(size)
    expected = values[:-2] - 2 * values[1:-1] + values[2:]
    np.testing.assert_allclose(inferred.kernel()(values), expected)
    np.testing.assert_allclose(stated.kernel()(values), expected)


@pytest.mark.parametrize("size", [11, 2, 1, 0])
def test_borders_by_where(size):
    smooth = defined("smooth", i, certen.where((i >= 1) & (i < n - 1), (x[i - 1] + x[i] + x[i + 1]) / 3, x[i]), shape=n)
    assert smooth.source == text("""
        fn smooth(x: f64[n]) -> f64[n] {
            { [i] -> if i >= 1 && i < n - 1 { (x[i-1] + x[i] + x[i+1]) / 3 } else { x[i] } | i < n }
        }
    """)
    values = random(size)
    expected = values.copy()
    if size > 2:
        expected[1:-1] = (values[:-2] + values[1:-1] + values[2:]) / 3
    np.testing.assert_allclose(smooth.kernel()(values), expected)


@pytest.mark.parametrize("size", [7, 1, 0])
def test_what_is_selected_under_a_condition_bounds_no_index(size):
    rise = defined("rise", i, x[i] - certen.guard(i >= 1, x[i - 1]))
    assert rise.source == text("""
        fn rise(x: f64[n]) -> f64[n] {
            { [i] -> x[i] - guard(i >= 1, x[i-1]) }
        }
    """)
    values = random(size)
    np.testing.assert_allclose(rise.kernel()(values), np.diff(values, prepend=0.0))


def test_a_choice_says_its_type_where_a_side_may_never_be_taken():
    never = defined("never", i, certen.where(i > n, x[i], 1), shape=n)
    twice = defined("twice", i, never[i] + never[i] * x[i])
    assert twice.source == text("""
        fn twice(x: f64[n]) -> f64[n] {
            let never: f64[n] = { [i] -> if i > n { x[i] } else { 1 } | i < n };
            { [i] -> never[i] + never[i] * x[i] }
        }
    """)
    np.testing.assert_array_equal(twice.kernel()([1.0, 2.0]), [2.0, 3.0])


@pytest.mark.parametrize("size", [7, 3, 1])
def test_borders_by_functions_of_indices(size):
    ring = defined("ring", i, x[certen.periodic(i - 1, n)] + x[certen.clamp(i + 2, "n")], shape=n)
    assert ring.source == text("""
        fn ring(x: f64[n]) -> f64[n] {
            { [i] -> x[periodic(i-1, n)] + x[clamp(i+2, n)] | i < n }
        }
    """)
    values = random(size)
    at = np.arange(size)
    expected = values[(at - 1) % size] + values[np.minimum(at + 2, size - 1)]
    np.testing.assert_allclose(ring.kernel()(values), expected)


@pytest.mark.parametrize("size", [7, 2, 0])
def test_bounds_of_indices(size):
    inner = certen.index("i", 1, n - 1)
    alone = defined("inner", inner, x[inner - 1] + x[inner + 1])
    assert alone.source == text("""
        fn inner(x: f64[n]) {
            { [i] -> x[i-1] + x[i+1] | 1 <= i < n-1 }
        }
    """)
    whole = defined("inner", inner, x[inner - 1] + x[inner + 1], shape=n)
    assert whole.source == text("""
        fn inner(x: f64[n]) -> f64[n] {
            { [i] -> x[i-1] + x[i+1] | 1 <= i < n-1; [i] -> 0 | i < n }
        }
    """)
    values = random(size)
    expected = np.zeros(size)
    expected[1:-1] = values[:-2] + values[2:]
    np.testing.assert_allclose(whole.kernel()(values), expected)
    np.testing.assert_allclose(alone.kernel()(values), expected[: max(size - 1, 0)])


@pytest.mark.parametrize("size", [7, 1, 0])
def test_a_bound_may_depend_on_an_index_outside(size):
    below = certen.index("j", i + 1)
    prefix = defined("prefix", i, sum(x[below]))
    assert prefix.source == text("""
        fn prefix(x: f64[n]) {
            { [i] -> sum({ [j] -> x[j] | j < i+1 }) }
        }
    """)
    pairs = defined("pairs", (), sum(x[i] * y[below]))
    assert pairs.source == text("""
        fn pairs(x: f64[n], y: f64[n]) -> f64 {
            sum({ [i] -> sum({ [j] -> x[i] * y[j] | j < i+1 }) })
        }
    """)
    first, second = random(size), random(size) + 1
    np.testing.assert_allclose(prefix.kernel()(first), np.cumsum(first))
    np.testing.assert_allclose(pairs.kernel()(first, second), np.sum(np.tril(np.outer(first, second))))


@pytest.mark.parametrize(("rows", "size"), [(5, 7), (1, 1), (0, 3)])
def test_indices_that_select_nothing_need_a_shape(rows, size):
    C = defined("C", (i, j), x[j] * (i + 1), shape=("rows", n))
    assert C.source == text("""
        fn C(x: f64[n], rows: size) -> f64[rows, n] where rows >= 0 {
            { [i, j] -> x[j] * (i + 1) | i < rows }
        }
    """)
    values = random(size)
    np.testing.assert_allclose(C.kernel()(values, rows=rows), np.outer(np.arange(rows) + 1.0, values))


def test_sizes_that_are_computed():
    up = certen.tensor("up", "f64", (n + 1, "2*m"))
    E = defined("E", (i, j), up[i + 1, 2 * j] - up[i, 2 * j + 1], shape="n, m")
    assert E.source == text("""
        fn E(up: f64[n+1, 2*m], n: size, m: size) -> f64[n, m] where n >= 0, m >= 0 {
            { [i, j] -> up[i+1,2*j] - up[i,2*j+1] | i < n, j < m }
        }
    """)
    values = random(6, 14)
    np.testing.assert_allclose(E.kernel()(values, n=5, m=7), values[1:, ::2] - values[:-1, 1::2])


@pytest.mark.parametrize("size", [7, 1])
def test_reductions(size):
    R = defined(
        "R",
        i,
        certen.max(x[k]) - certen.min(y[k]) + certen.prod(x[q], over=q) + certen.sum(x[i] * y[k], over=(k,)),
        where=n >= 1,
    )
    assert R.source == text("""
        fn R(x: f64[n], y: f64[n]) -> f64[n] where n >= 1 {
            { [i] -> max(x) - min(y) + prod(x) + sum({ [k] -> x[i] * y[k] }) }
        }
    """)
    first, second = random(size), random(size) + 1
    expected = first.max() - second.min() + first.prod() + first * second.sum()
    np.testing.assert_allclose(R.kernel()(first, second), expected)

    T = defined("T", i, certen.all(x[k] <= x[i]) | certen.any((x[k] > 5) & (k != i)))
    assert T.source == text("""
        fn T(x: f64[n]) -> bool[n] {
            { [i] -> all({ [k] -> x[k] <= x[i] }) || any({ [k] -> x[k] > 5 && k != i }) }
        }
    """)
    others = ~np.eye(size, dtype=bool)
    expected = (first[None] <= first[:, None]).all(1) | ((first[None] > 5) & others).any(1)
    np.testing.assert_array_equal(T.kernel()(first), expected)


def test_sums_are_of_tensors_where_they_take_all_of_them():
    def written(value, left=i):
        return defined("S", left, value).body

    assert written(sum(A[i, k])) == "{ [i] -> sum(A[i]) }"
    assert written(sum(A[k, i])) == "{ [i] -> sum({ [k] -> A[k,i] }) }"
    assert written(sum(A[j, k]), ()) == "sum(A)"
    assert written(certen.sum(A[j, k], over=(k, j)), ()) == "sum({ [k, j] -> A[j,k] })"
    assert written(sum(A[k, k]), ()) == "sum({ [k] -> A[k,k] })"
    assert written(sum(A[i + 1, k])) == "{ [i] -> sum(A[i+1]) }"
    assert written(certen.sum(x[certen.index("k", 1, n)]), ()) == "sum({ [k] -> x[k] | 1 <= k < n })"


def test_sums_inside_each_other():
    inner = certen.sum(B[k, j], over=j)
    C = defined("C", i, sum(A[i, k] * inner))
    assert C.body == "{ [i] -> sum({ [k] -> A[i,k] * sum(B[k]) }) }"
    D = defined("D", i, certen.sum(A[i, k] * sum(B[k, j]), over=k))
    assert D.body == C.body
    E = defined("E", i, sum(A[i, k]) * sum(x[k]))
    assert E.body == "{ [i] -> sum(A[i]) * sum(x) }"
    left, right = random(3, 5), random(5, 2)
    np.testing.assert_allclose(C.kernel()(left, right), left @ right.sum(1))


def test_sums_of_several_expressions():
    assert repr(sum([x[i], x[i + 1], 2 * y[i]])) == "x[i] + x[i+1] + 2 * y[i]"
    assert repr(sum(x[i + place] for place in range(3))) == "x[i] + x[i+1] + x[i+2]"


def test_numbers_in_indices_are_put_together():
    assert repr(
        [i + 0, 0 + i, i + 1 + 1, i + 1 - 1, i - 2 + 1, i + -3, 1 * i, i * 1, 2 * i + 1 + 1, 1 - i - 1, 2 * i**1]
    ) == ("[i, i, i + 2, i, i - 1, i - 3, i, i, 2 * i + 2, 1 - i - 1, 2 * i^1]")
    assert repr(certen.tensor("t", "f64", "n+1+1, 2*3, n-0, 1*n")) == "t: f64[n+2, 6, n, n]"


def test_a_sum_may_have_a_start():
    assert defined("C", i, sum(A[i, k], y[i])).body == "{ [i] -> y[i] + sum(A[i]) }"


def test_attention():
    keys, width = certen.sizes("keys width")
    Q, K = certen.tensor("Q", "f64", ("rows", width)), certen.tensor("K", "f64", (keys, width))
    V = certen.tensor("V", "f64", (keys, "cols"))
    score = defined("score", (i, k), sum(Q[i, q] * K[k, q]) / certen.sqrt(width), where=(keys >= 1, width >= 1))
    weight = defined("weight", (i, k), certen.exp(score[i, k] - certen.max(score[i, q])))
    out = defined("out", (i, j), sum(weight[i, k] * V[k, j]) / sum(weight[i, q]))
    assert out.source == text("""
        fn out(Q: f64[rows, width], K: f64[keys, width], V: f64[keys, cols]) -> f64[rows, cols] where keys >= 1, width >= 1 {
            let score = { [i, k] -> sum({ [q] -> Q[i,q] * K[k,q] }) / sqrt(width) };
            let weight = { [i, k] -> exp(score[i,k] - max(score[i])) };
            { [i, j] -> sum({ [k] -> weight[i,k] * V[k,j] }) / sum(weight[i]) }
        }
    """)  # noqa: E501
    q_, k_, v_ = random(5, 3) / 10, random(7, 3) / 10, random(7, 2)
    scores = q_ @ k_.T / np.sqrt(3)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out.kernel()(q_, k_, v_), weights @ v_ / weights.sum(1, keepdims=True))


def test_constants_of_the_program():
    W = certen.constant("W", [0.25, 0.5, 0.25])
    smooth = defined("smooth", i, sum(W[k] * x[i + k]), where=n >= 3)
    assert smooth.source == text("""
        const W: f64[3] = [0.25, 0.5, 0.25];

        fn smooth(x: f64[n]) where n >= 3 {
            { [i] -> sum({ [k] -> W[k] * x[i+k] }) }
        }
    """)
    values = random(11)
    np.testing.assert_allclose(smooth.kernel()(values), np.convolve(values, [0.25, 0.5, 0.25], "valid"))
    assert (
        certen.constant("M", np.arange(4, dtype=np.int32).reshape(2, 2)).source
        == "const M: i32[2, 2] = [[0, 1], [2, 3]];"
    )
    assert certen.constant("T", [True, False]).source == "const T: bool[2] = [true, false];"
    assert certen.constant("H", [1, 2], "f32").source == "const H: f32[2] = [1.0, 2.0];"


# Operators and functions, one by one: the text, and the same in NumPy

at = np.arange(7)
xs, ys, zs, hs = random(7), random(7) + 3, random(7, dtype=np.int64), random(7, dtype=np.float32)

OPERATORS = {
    "x[i] + y[i]": (x[i] + y[i], xs + ys),
    "1 + x[i]": (1 + x[i], 1 + xs),
    "x[i] - 2": (x[i] - 2, xs - 2),
    "x[i] + 2": (x[i] - -2, xs + 2),
    "2 - x[i]": (2 - x[i], 2 - xs),
    "x[i] - (y[i] - 1)": (x[i] - (y[i] - 1), xs - (ys - 1)),
    "x[i] - y[i] - 1": (x[i] - y[i] - 1, xs - ys - 1),
    "x[i] + (y[i] + 1)": (x[i] + (y[i] + 1), xs + (ys + 1)),
    "2.5 * x[i] * (y[i] + 1)": (2.5 * x[i] * (y[i] + 1), 2.5 * xs * (ys + 1)),
    "x[i] / (y[i] * y[i])": (x[i] / (y[i] * y[i]), xs / (ys * ys)),
    "x[i] * -2": (x[i] * -2, xs * -2),
    "1 / (y[i] + 100)": (1 / (y[i] + 100), 1 / (ys + 100)),
    "-x[i]^2": (-(x[i] ** 2), -(xs**2)),
    "(-x[i])^2": ((-x[i]) ** 2, xs**2),
    "(x[i] + 1)^-2": ((x[i] + 1) ** -2, (xs + 1) ** -2.0),
    "abs(x[i])^0.5": (abs(x[i]) ** 0.5, np.abs(xs) ** 0.5),
    "(x[i]^2)^3": ((x[i] ** 2) ** 3, (xs**2) ** 3),
    "pow(2, x[i])": (2 ** x[i], 2**xs),
    "pow(abs(x[i]), y[i])": (abs(x[i]) ** y[i], np.abs(xs) ** ys),
    "floor_div(z[i], 3)": (z[i] // 3, zs // 3),
    "mod(z[i], 3)": (z[i] % 3, zs % 3),
    "floor_div(z[i], i + 1)": (z[i] // (i + 1), zs // (at + 1)),
    "mod(-7, z[i] * 0 + 4)": (-7 % (z[i] * 0 + 4), np.full(7, -7 % 4)),
    "sqrt(abs(x[i]))": (certen.sqrt(certen.abs(x[i])), np.sqrt(np.abs(xs))),
    "exp(x[i] / 10)": (certen.exp(x[i] / 10), np.exp(xs / 10)),
    "log(x[i]^2 + 1)": (certen.log(x[i] ** 2 + 1), np.log(xs**2 + 1)),
    "sin(x[i]) + cos(x[i])": (certen.sin(x[i]) + certen.cos(x[i]), np.sin(xs) + np.cos(xs)),
    "tanh(x[i])": (certen.tanh(x[i]), np.tanh(xs)),
    "floor(x[i])": (math.floor(x[i]), np.floor(xs)),
    "ceil(x[i])": (certen.ceil(x[i]), np.ceil(xs)),
    "round(x[i])": (round(x[i]), np.round(xs)),
    "max(x[i], y[i], 0)": (certen.max(x[i], y[i], 0), np.maximum(np.maximum(xs, ys), 0)),
    "min(x[i], i)": (certen.min(x[i], i), np.minimum(xs, at)),
    "select(x[i] > 0, x[i], 0.5 * x[i])": (certen.where(x[i] > 0, x[i], 0.5 * x[i]), np.where(xs > 0, xs, 0.5 * xs)),
    "if mod(i, 2) == 0 { x[i] } else { -x[i] }": (
        certen.where(i % 2 == 0, x[i], -x[i]),
        np.where(at % 2 == 0, xs, -xs),
    ),
    "if i < 2 { x[i] } else if i < 4 { 1 } else { 0 }": (
        certen.where(i < 2, x[i], certen.where(i < 4, 1, 0)),
        np.where(at < 2, xs, np.where(at < 4, 1, 0)),
    ),
    "2 * (if i < 2 { x[i] } else { 0 })": (2 * certen.where(i < 2, x[i], 0), 2 * np.where(at < 2, xs, 0)),
    "guard(i >= 1, x[i]) + x[i]": (certen.guard(i >= 1, x[i]) + x[i], xs + np.where(at >= 1, xs, 0)),
    "x[i] * i + n": (x[i] * i + n, xs * at + 7),
    "x[i] + i / 2": (x[i] + i / 2, xs + at / 2),
    "x[i] + i^2": (x[i] + i**2, xs + at**2),
    "x[i] + abs(i - 3)": (x[i] + abs(i - 3), xs + np.abs(at - 3)),
    "x[i] * 1e-09 + 1e+22": (x[i] * 1e-9 + 1e22, xs * 1e-9 + 1e22),
    "max(x[i], -1.0 / 0.0)": (certen.max(x[i], -math.inf), xs),
    "x[i] > 0 && !(y[i] < 3 || i == 2)": ((x[i] > 0) & ~((y[i] < 3) | (i == 2)), (xs > 0) & ~((ys < 3) | (at == 2))),
    "(x[i] > 0) == (y[i] > 3)": ((x[i] > 0) == (y[i] > 3), (xs > 0) == (ys > 3)),
    "x[i] != y[i]": (x[i] != y[i], xs != ys),
    "f64(z[i]) + x[i]": (certen.cast(z[i], "f64") + x[i], zs + xs),
    "f32(x[i]) + h[i]": (x[i].astype(np.float32) + h[i], xs.astype(np.float32) + hs),
    "f64(x[i] > 0) * x[i]": (certen.cast(x[i] > 0, "f64") * x[i], (xs > 0) * xs),
    "i32(z[i]) * 2": (certen.cast(z[i], np.int32) * 2, zs.astype(np.int32) * 2),
    "h[i] * 0.1 + i": (h[i] * 0.1 + i, hs * np.float32(0.1) + at.astype(np.float32)),
    "exp(x[i] / 9) * 3.0": (np.exp(x[i] / 9) * np.float64(3), np.exp(xs / 9) * 3),
    "2.0 * x[i] + max(y[i], 0)": (np.float64(2) * x[i] + np.maximum(y[i], np.int64(0)), 2 * xs + np.maximum(ys, 0)),
    "x[i] * 3": (x[i] * np.array(3), xs * 3),
    "x[i] + x[0] + x[n-1]": (x[i] + x[0] + x[n - 1], xs + xs[0] + xs[-1]),
    "x[n-1-i]": (x[n - 1 - i], xs[::-1]),
    "x[floor_div(i, 2)] + x[i]": (x[i // 2] + x[i], xs[at // 2] + xs),
    "x[if i < 3 { i } else { 0 }] + x[i]": (x[certen.where(i < 3, i, 0)] + x[i], xs[np.where(at < 3, at, 0)] + xs),
    "x[min(i+1, n-1)] + x[i]": (x[certen.min(i + 1, n - 1)] + x[i], xs[np.minimum(at + 1, 6)] + xs),
}


@pytest.mark.parametrize("written", OPERATORS)
def test_operators(written):
    value, expected = OPERATORS[written]
    assert repr(value) == written
    made = defined("made", i, value, where=n >= 1)
    assert made.body == f"{{ [i] -> {written} }}"
    given = {"x": xs, "y": ys, "z": zs, "h": hs}
    kernel = made.kernel()
    result = kernel(**{tensor.name: given[tensor.name] for tensor in made.function().parameters})
    np.testing.assert_allclose(result, expected, rtol=2e-6 if result.dtype == np.float32 else 1e-12)
    assert (result.dtype == bool) == (expected.dtype == bool)


@pytest.mark.parametrize("value", [x[i], -x[i], x[i] + 1, 2 * i, certen.where(i < 2, 1, 2), x[i] > 0, sum(A[i, k])])
def test_expressions_are_no_numbers(value):
    for wrong in (bool, float, int, len, list):
        with pytest.raises((TypeError, ValueError)):
            wrong(value)


# How it is compiled


def test_a_kernel_is_made_once():
    C = defined("C", i, x[i])
    kernels = []
    threads = [threading.Thread(target=lambda: kernels.append(C.kernel())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(kernel) for kernel in kernels}) == 1
    assert C.kernel(fp="strict") is not C.kernel()
    assert C.kernel(fp="strict") is C.kernel(fp="strict")


def test_what_the_compiler_refuses_shows_the_program():
    C = defined("C", i, x[i + 1] - x[i], shape=n)
    with pytest.raises(certen.CompileError) as caught:
        C.kernel()
    assert caught.value.code == "E0207"
    assert "i + 1 must be below n" in str(caught.value)
    assert "--> C.ten:2:14" in str(caught.value)
    assert caught.value.__notes__ == [f"The program, made of index notation:\n\n{C.source}"]


def test_what_is_raised_can_be_pickled():
    with pytest.raises(certen.CompileError) as caught:
        defined("C", i, x[i + 1] - x[i], shape=n).kernel()
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is certen.CompileError
    assert (again.code, again.rendered) == (caught.value.code, str(caught.value))
    assert again.diagnostics == caught.value.diagnostics


def test_sizes_that_do_not_agree_are_the_compilers_to_find():
    C = defined("C", i, sum(A[i, k] * x[k]))
    with pytest.raises(certen.CompileError, match="two bounds for `k`"):
        C.kernel()


def test_many_definitions_are_no_problem():
    previous = x
    for step in range(3_000):
        previous = defined(f"t{step}", i, previous[i] + 1)
    assert previous.source.count("let ") == 2_999


def test_long_expressions_are_no_problem():
    made = defined("made", i, functools.reduce(operator.add, [x[i + place] for place in range(1_500)]))
    assert made.source.count("+ x[") == 1_499


# Mistakes


def assigned(left, value, **options):
    return lambda: defined("C", left, value() if callable(value) else value, **options)


MISTAKES = {
    "an index twice on the left": (
        assigned((i, i), A[i, i]),
        ValueError,
        "the index i stands twice on the left-hand side of C",
    ),
    "a free index": (
        assigned(i, A[i, k]),
        ValueError,
        "the index k is not on the left-hand side of C[i], and stands in no sum: `A[i,k]`",
    ),
    "a free index beside a sum": (
        assigned(i, sum(A[i, k]) * x[k]),
        ValueError,
        "the index k is not on the left-hand side of C[i], and stands in no sum: `sum(A[i]) * x[k]`",
    ),
    "a sum over nothing": (
        assigned(i, sum(x[i])),
        ValueError,
        "`sum(x[i])` runs over nothing: the index i is on the left-hand side",
    ),
    "a sum of a scalar": (
        assigned((), sum(a * 2)),
        ValueError,
        "`sum(a * 2)` runs over nothing: there is no index in it",
    ),
    "an index of either of two sums": (
        assigned(i, sum(A[i, k] * sum(A[k, j]))),
        ValueError,
        "`sum(A[i,k] * sum(A[k,j]))`: the index k is used in the inner sum and around it, and could belong to either",
    ),
    "a sum over the left": (
        assigned(i, certen.sum(A[i, k], over=(i, k))),
        ValueError,
        "the index i is on the left-hand side, and `sum` runs over it",
    ),
    "two sums over one index": (
        assigned(i, certen.sum(A[i, k] * certen.sum(x[k], over=k), over=k)),
        ValueError,
        "two sums inside each other run over the index k: use another index",
    ),
    "a sum over what is not there": (
        assigned(i, certen.sum(A[i, j], over=k)),
        ValueError,
        "`sum` runs over k, which is not in `A[i,j]`",
    ),
    "over= twice": (lambda: certen.sum(x[k], over=(k, k)), ValueError, "the index k stands twice in over="),
    "over= a name": (lambda: certen.sum(x[k], over="k"), TypeError, "over= takes an index or several, not 'k'"),
    "over= nothing": (lambda: certen.sum(x[k], over=()), ValueError, "over= names no index"),
    "too few indices": (lambda: A[i], IndexError, "A takes 2 indices, not 1: A: f64[l, m]"),
    "too many indices": (lambda: x[i, j], IndexError, "x takes one index, not 2: x: f64[n]"),
    "too many sizes": (
        assigned(i, x[i], shape="n n"),
        IndexError,
        "C has a shape of 2 sizes, and one index on the left-hand side",
    ),
    "no index at all": (lambda: A + 1, TypeError, "A stands without its indices: it takes 2, as in A[i, j]"),
    "an if": (lambda: 1 if x[i] > 0 else 2, TypeError, "`x[i] > 0` has no truth value before the kernel runs"),
    "a chain of comparisons": (lambda: 0 < x[i] < 1, TypeError, "write a < b < c as (a < b) & (b < c)"),
    "a chain of ==": (lambda: x[i] == y[i] == 1, TypeError, "`x[i] == y[i]` has no truth value"),
    "an and": (lambda: (x[i] > 0) and (y[i] > 0), TypeError, "combine conditions with & | ~"),
    "a not": (lambda: not (x[i] > 0), TypeError, "combine conditions with & | ~"),
    "& without parentheses": (lambda: (i >= 1) & i, TypeError, "put comparisons in parentheses: (a < b) & (c < d)"),
    "a loop over an expression": (
        lambda: [2 * term for term in x[i]],
        TypeError,
        "`x[i]` cannot be iterated over, except by sum()",
    ),
    "Python's max": (lambda: max(x[i]), TypeError, "certen.max, certen.min and certen.prod reduce as sum does"),
    "unpacking": (lambda: (*x[i],), TypeError, "cannot be iterated over, except by sum()"),
    "a sum of a tensor": (lambda: sum(A), TypeError, "write sums with indices, as in sum(A[i, j])"),
    "an array": (
        lambda: x[i] * np.ones((3, 4)),
        TypeError,
        "a NumPy array of shape (3, 4) stands in an expression: declare it with certen.tensor",
    ),
    "a sum of NumPy": (lambda: np.sum(x[i]), TypeError, "sum(), certen.max and the others reduce it"),
    "an array on the left": (lambda: np.ones(3) * x[i], TypeError, "a NumPy array of shape (3,) stands in"),
    "an array as index": (lambda: x[np.arange(3)], TypeError, "x takes indices, not arrays of them"),
    "a function of NumPy": (lambda: np.deg2rad(x[i]), TypeError, "the language has no function numpy.deg2rad"),
    "a function of math": (lambda: math.sqrt(x[i]), TypeError, "use certen.sqrt, certen.exp and the others"),
    "a list": (lambda: x[i] + [1, 2], TypeError, "list cannot stand in an expression of index notation: [1, 2]"),
    "None": (lambda: x[i] == None, TypeError, "NoneType cannot stand in an expression"),  # noqa: E711
    "complex": (lambda: x[i] * 1j, TypeError, "complex cannot stand in an expression"),
    "too large a number": (lambda: z[i] * 2**64, ValueError, "18446744073709551616 is more than 64 bits can hold"),
    "a fraction as index": (lambda: x[1.5], TypeError, "index 0 of x is `1.5`, which is a number with a point"),
    "data as index": (lambda: x[z[i]], TypeError, "index 0 of x is `z[i]`, which is data (i64): data never becomes"),
    "a condition as index": (lambda: A[i, k < 3], TypeError, "index 1 of A is `k < 3`, which is data (bool)"),
    "a negative index": (lambda: x[-1], IndexError, "index 0 of x is -1: indices count from 0, and the last is n - 1"),
    "a slice": (lambda: x[1:3], TypeError, "x takes indices, not slices"),
    "an element of an element": (lambda: x[i][j], TypeError, "`x[i]` is one number, and has no elements"),
    "@": (lambda: A @ B, TypeError, "in index notation a product is sum(A[i, k] * B[k, j])"),
    "no name": (lambda: certen.tensor("2x", "f64", "n"), ValueError, "'2x' cannot be the name of a tensor: a name is"),
    "a foreign letter": (lambda: certen.index("α"), ValueError, "'α' cannot be the name of an index: a name is"),
    "a word": (lambda: certen.tensor("let", "f64", "n"), ValueError, "it is a word of the language"),
    "a function": (
        lambda: certen.define("sum"),
        ValueError,
        "'sum' cannot be the name of a definition: it is a function",
    ),
    "a keyword of calls": (lambda: certen.tensor("out", "f64", "n"), ValueError, "it is a keyword of every call"),
    "a name that is no text": (lambda: certen.size(3), TypeError, "the name of a size is a str, not int"),
    "no names": (lambda: certen.indices(" "), ValueError, "there are no names of indices in ' '"),
    "a name twice": (lambda: certen.indices("i j i"), ValueError, "'i' stands twice in 'i j i'"),
    "no element type": (lambda: certen.tensor("t", "f16", "n"), ValueError, "'f16' is no element type; there are f32,"),
    "no shape": (lambda: certen.tensor("t", "f64", None), TypeError, "the shape of the tensor t is text such as 'm n'"),
    "sizes with spaces": (lambda: certen.tensor("t", "f64", "n + 1"), ValueError, "are separated by commas: 'n + 1'"),
    "a negative size": (lambda: certen.tensor("t", "f64", (3, -1)), ValueError, "a size cannot be negative: -1"),
    "an index as size": (lambda: certen.tensor("t", "f64", (n, i)), ValueError, "and `i` has the index i"),
    "a fraction as size": (lambda: certen.tensor("t", "f64", 1.5), TypeError, "the shape of the tensor t is text"),
    "no size": (lambda: certen.tensor("t", "f64", ("n/2",)), ValueError, "'n/2' is no size: a name, a number, or"),
    "a size of its own name": (
        lambda: certen.tensor("n", "f64", "n"),
        ValueError,
        "n is the name of the tensor and of one of its sizes",
    ),
    "f32 and f64": (lambda: x[i] + h[i], TypeError, "+: `x[i]` is f64, and `h[i]` is f32: element types do not mix"),
    "f64 and i64": (lambda: certen.max(x[i], z[i]), TypeError, "max: `x[i]` is f64, and `z[i]` is i64"),
    "a fraction and i64": (lambda: z[i] + 0.5, TypeError, "`0.5` is a number with a point, and `z[i]` is i64"),
    "a fraction of integers": (lambda: z[i] / 2, TypeError, "/ is of floats, and `z[i]` is i64: // rounds down"),
    "// of floats": (lambda: x[i] // 2, TypeError, "// is of integers, and this is f64: certen.floor(a / b)"),
    "** of integers": (lambda: z[i] ** 2, TypeError, "** is of floats, and `z[i]` is i64: write the product"),
    "sqrt of integers": (lambda: certen.sqrt(z[i]), TypeError, "sqrt is of floats, and `z[i]` is i64"),
    "bytes": (lambda: u[i] + 1, TypeError, "+ is of numbers, and `u[i]` is u8: convert it with certen.cast"),
    "a product with a condition": (
        lambda: (x[i] > 0) * x[i],
        TypeError,
        "* is of numbers, and `x[i] > 0` is bool: choose with certen.where",
    ),
    "a condition that is none": (lambda: certen.where(x[i], 1, 2), TypeError, "where() is of conditions, and `x[i]`"),
    "a condition of Python": (lambda: certen.where(True, 1, 2), TypeError, "use Python's own `a if c else b`"),
    "a guard by data": (lambda: certen.guard(x[i] > 0, x[i]), TypeError, "`x[i] > 0` has data: choose with where"),
    "no type to convert to": (lambda: certen.cast(x[i], "any"), ValueError, "cannot convert to 'any'"),
    "round to digits": (lambda: round(x[i], 2), TypeError, "it takes no number of digits"),
    "a division by a size": (lambda: i // n, ValueError, "`i // n`: indices and sizes are divided by a number"),
    "a tensor on the left": (
        lambda: operator.setitem(x, i, y[i]),
        TypeError,
        "x is given to the kernel, not computed by it: certen.define makes what is assigned to",
    ),
    "an expression on the left": (
        assigned(i + 1, x[i]),
        TypeError,
        "on the left-hand side of C stand indices alone, not i + 1",
    ),
    "a number on the left": (assigned(0, x[0]), TypeError, "on the left-hand side of C stand indices alone, not 0"),
    "an index without bound": (
        assigned((i, j), x[i]),
        ValueError,
        "nothing says how far the index j runs: it selects from no tensor by itself; give it a bound, as in "
        "certen.index('j', n), or the definition a shape=",
    ),
    "a sum without bound": (assigned(i, certen.sum(x[i] * k)), ValueError, "nothing says how far the index k runs"),
    "a triangle on the left": (
        assigned((i, certen.index("j", i)), 1.0),
        ValueError,
        "the bounds of j depend on i, and C[i, j] would not be rectangular",
    ),
    "an index with the name of a size": (
        assigned(certen.index("n"), x[certen.index("n")]),
        ValueError,
        "n is the name of an index and of a size: give one of them another name",
    ),
    "an index with the name of a tensor": (
        assigned(certen.index("x"), x[certen.index("x")]),
        ValueError,
        "x is the name of an index and of a tensor: give one of them another name",
    ),
    "two indices of one name": (
        assigned(i, x[i] + sum(y[certen.index("i", 3)])),
        ValueError,
        "two different indices are called i: their bounds differ",
    ),
    "two tensors of one name": (
        assigned(i, x[i] + certen.tensor("x", "f64", "m")[i]),
        ValueError,
        "two different tensors are called x",
    ),
    "the name of a tensor for a definition": (
        lambda: defined("x", i, x[i]),
        ValueError,
        "two different tensors are called x",
    ),
    "three bounds": (lambda: certen.index("i", 1, 2, 3), TypeError, "an index has a start and a stop, not 3 bounds"),
    "a negative start": (lambda: certen.index("i", -1, n), ValueError, "the index i cannot begin at -1"),
    "a bound of data": (lambda: certen.index("i", x[j]), TypeError, "made of sizes and whole numbers, and `x[j]` is"),
    "a where of data": (lambda: certen.define("C", where=x[i] > 0), TypeError, "is on sizes alone: `x[i] > 0`"),
    "a where of Python": (lambda: certen.define("C", where=True), TypeError, "True or False in Python already"),
    "an expression that is too deep": (
        lambda: functools.reduce(operator.add, [x[i]] * 2_000),
        ValueError,
        "this expression is too large (5699 parts, nested 1901 deep",
    ),
    "an expression that doubles": (
        lambda: functools.reduce(lambda e, _: e * e, range(64), x[i]),
        ValueError,
        "give parts of it a name with certen.define",
    ),
    "an empty constant": (lambda: certen.constant("K", []), ValueError, "the constant K has no elements"),
    "a large constant": (lambda: certen.constant("K", np.ones(10_001)), ValueError, "has 10001 elements, and at most"),
    "no result": (lambda: certen.function(), TypeError, "a function has at least one result"),
    "a tensor as result": (lambda: certen.function(x), TypeError, "the results of a function are definitions"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake):
    make, error, message = MISTAKES[mistake]
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)


def test_a_definition_is_made_once_and_before_it_is_used():
    C = certen.define("C")
    with pytest.raises(ValueError, match="C is used before it is defined: assign to C"):
        C[i] = C[i] + x[i]
    with pytest.raises(ValueError, match="C is used before it is defined"):
        C[i] += x[i]
    with pytest.raises(ValueError, match="C is used before it is defined"):
        C.kernel()
    C[i] = x[i]
    with pytest.raises(ValueError, match=r"C is defined already: C = \{ \[i\] -> x\[i\] \}"):
        C[i] = y[i]


def test_a_failed_assignment_leaves_nothing():
    C = certen.define("C")
    with pytest.raises(ValueError, match="stands in no sum"):
        C[i] = A[i, k]
    C[i] = sum(A[i, k])
    assert C.body == "{ [i] -> sum(A[i]) }"


def test_functions_of_several_definitions():
    first, second = defined("first", i, x[i]), defined("second", i, x[i + 1])
    with pytest.raises(TypeError, match="a function of several results needs a name="):
        certen.function(first, second)
    with pytest.raises(ValueError, match="a definition is named twice among the results"):
        certen.function(first, first, name="f")
    with pytest.raises(ValueError, match="the shape of second has to be said, because it is one of several results"):
        certen.function(first, second, name="f")
    with pytest.raises(ValueError, match="args= does not name x, which first uses"):
        certen.function(first, args=(y,))
    with pytest.raises(ValueError, match="a tensor is named twice in args="):
        certen.function(first, args=(x, x))
    other = defined("first", i, y[i])
    with pytest.raises(ValueError, match="two different tensors are called first"):
        certen.function(first, other, name="f")
    hidden = defined("i", k, x[k])
    with pytest.raises(ValueError, match="i is the name of an index and of a tensor"):
        certen.function(first, hidden, name="f")


def test_words_of_the_language_are_those_of_the_compiler():
    """Which names cannot be used is written down twice: the compiler refuses exactly these."""
    names = RESERVED | CALLED | set(dir(certen)) | {"stored", "in", "for", "while", "return", "as", "num", "any", "x"}
    for name in sorted(name for name in names if name.isidentifier() and not name.startswith("_")):
        try:
            certen.compile(f"fn f({name}: f64) -> f64 {{ 1.5 }}")
            refused = False
        except certen.CompileError:
            refused = True
        assert refused == (name in RESERVED), name
