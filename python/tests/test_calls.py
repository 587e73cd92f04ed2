"""Kernels are called from Python: what they take, what they give, and what they say of a wrong call."""

import array
import ctypes
import gc
import random
import re

import numpy as np
import pytest
from conftest import EXAMPLES, ROOT, parameters, run_python
from einsum_cases import laid_out
from numpy.lib.stride_tricks import as_strided
from programs import CORE, MODEL, TEIL, TEN

import certen


@pytest.fixture(scope="module")
def ten():
    """A module of kernels."""
    return certen.compile(TEN)


A = np.arange(1.0, 7.0).reshape(2, 3)
B = np.arange(15.0).reshape(3, 5)
X, Y = np.arange(5.0), np.arange(5.0, 10.0)


# ---- right calls


def test_arguments_by_position_by_name_and_mixed(ten):
    want = A @ B
    for got in (ten.matmul(A, B), ten.matmul(A=A, B=B), ten.matmul(B=B, A=A), ten.matmul(A, B=B)):
        assert np.array_equal(got, want)
    for got in (ten.axpy(2.0, X, Y), ten.axpy(2.0, y=Y, x=X), ten.axpy(y=Y, x=X, a=2.0)):
        assert np.array_equal(got, 2 * X + Y)


@pytest.mark.parametrize("a", [2, 2.0, np.float64(2), np.array(2.0), True + 1])
def test_scalars(ten, a):
    assert np.array_equal(ten.axpy(a, X, Y), 2 * X + Y)


def test_lists_and_tuples_are_converted(ten):
    assert ten.matmul([[1, 2], [3, 4]], ((1.0,), (0.5,))).tolist() == [[2.0], [5.0]]
    assert ten.mixed([True, False], [200, 7], [0.5, 0.25], -1).tolist() == [0.5, 6.0]
    assert ten.twice([1, 2]).tolist() == [2, 4]
    assert ten.twice([1.5]).dtype == np.float64


def test_several_results_are_a_tuple(ten):
    result = ten.minmax(A)
    assert type(result) is tuple
    assert [part.tolist() for part in result] == [[1, 4], [3, 6]]


def test_scalar_results_are_numpy_scalars(ten):
    assert type(ten.total(A)) is np.float64
    assert ten.total(A) == 21
    mean, variance = ten.moments(X)
    assert (type(mean), type(variance)) == (np.float64, np.float64)
    assert (mean, variance) == (2, 2)


def test_sizes_are_given_by_name_or_in_order(ten):
    assert ten.window(X, k=2).tolist() == ten.window(X, 2).tolist() == [1, 3, 5, 7]
    assert ten.window(k=np.int64(5), x=X).tolist() == [10]
    assert ten.iota(n=4).tolist() == [0, 1, 2, 3]
    assert ten.iota(n=0).shape == (0,)


def test_sizes_zero_and_one(ten):
    assert ten.matmul(np.ones((0, 3)), np.ones((3, 2))).shape == (0, 2)
    assert ten.matmul(np.ones((2, 0)), np.ones((0, 2))).tolist() == [[0, 0], [0, 0]]
    assert ten.blur(np.ones((2, 2))).shape == (0, 0)
    assert ten.blur(np.ones((3, 3))) == pytest.approx(np.ones((1, 1)))
    assert ten.total(np.ones((0, 5))) == 0


@pytest.mark.parametrize("shape", [(1,), (5,), (3, 5), (2, 3, 5), (2, 1, 3, 2), (2, 2, 2, 2, 2)])
def test_functions_of_any_rank(ten, shape):
    x = np.random.default_rng(1).random(shape) + 1
    assert ten.normalise(x) == pytest.approx(x / x.sum(axis=-1, keepdims=True), rel=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_functions_of_any_number(ten, dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    got = ten.twice(x)
    assert got.dtype == dtype
    assert np.array_equal(got, x + x)
    assert np.array_equal(ten.twice(x[0, 0]), x[0, 0] + x[0, 0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_functions_of_any_element(ten, dtype):
    x = np.array([1, 0, 1, 1]).astype(dtype)
    got = ten.pairs(x)
    assert got.dtype == dtype
    assert np.array_equal(got, np.stack([x, x[::-1]], axis=1))


def test_every_element_type(ten):
    m, x = np.array([True, False, False]), np.array([1, 255, 0], np.uint8)
    y, a = np.array([0.5, 9, 9], np.float32), np.array(7, np.int32)
    got = ten.mixed(m, x, y, a)
    assert got.dtype == np.float32
    assert got.tolist() == [0.5, 262.0, 7.0]


def test_index_vectors(ten):
    """Vectors of sizes: lists of whole numbers, or refused in words."""
    x = np.arange(30.0).reshape(2, 3, 5)
    try:
        got = ten.pick([1, 2], x)
    except certen.Error as error:
        assert "at" in str(error)
    else:
        assert np.array_equal(got, x[1, 2])
        assert np.array_equal(ten.pick((1,), x), x[1])
        refused(certen.ArgumentValueError, "at", call=lambda: ten.pick([2, 0], x))


def test_the_same_kernel_at_many_sizes(ten):
    for n in (1, 2, 3, 5, 7, 11, 3, 1):
        x = np.arange(float(n * n)).reshape(n, n)
        assert np.array_equal(ten.matmul(x, x), x @ x)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
def test_options(symbolic, parallel):
    kernel = certen.compile(TEN, fn="matmul", symbolic=symbolic, parallel=parallel, fp="strict", threads=2)
    assert np.array_equal(kernel(A, B), A @ B)
    assert np.array_equal(kernel(A, B, threads=1), A @ B)


# ---- dialects and sources


@pytest.mark.parametrize(("dialect", "text"), [("teil", TEIL), ("model", MODEL), ("core", CORE)])
def test_every_dialect(dialect, text, tmp_path):
    kernel = certen.compile(text, dialect=dialect)
    assert np.array_equal(kernel(A, B), A @ B)
    assert np.array_equal(kernel(B=B, A=A), A @ B)
    path = tmp_path / f"product.{dialect}"
    path.write_text(text)
    assert np.array_equal(certen.compile(path)(A, B), A @ B)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize(("dialect", "text"), [("teil", TEIL), ("model", MODEL)])
def test_element_types_of_the_papers_notations(dialect, text, dtype):
    elem = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}[dtype]
    kernel = certen.compile(text, dialect=dialect, elem=elem)
    got = kernel(A.astype(dtype), B.astype(dtype))
    assert got.dtype == dtype
    assert np.array_equal(got, A @ B)


def test_two_outputs_of_a_program():
    kernel = certen.compile(EXAMPLES / "slices.teil")
    a, b = np.ones((2, 3)), np.arange(24.0).reshape(4, 2, 3)
    c, d = kernel(a, b)
    assert np.array_equal(c, a + b[1])
    assert np.array_equal(d, a + b)


def test_a_file_that_imports_another(tmp_path):
    (tmp_path / "other.ten").write_text("fn double(x: f64[n]) -> f64[n] { 2 * x }\n")
    path = tmp_path / "main.ten"
    path.write_text('import "other.ten";\nfn four(x: f64[n]) -> f64[n] { double(double(x)) }\n')
    assert certen.compile(path, fn="four")(X).tolist() == (4 * X).tolist()


def test_a_module_has_its_kernels(ten):
    assert isinstance(ten.matmul, certen.Kernel)
    assert np.array_equal(ten["matmul"](A, B), A @ B)
    names = re.findall(r"^fn (\w+)", TEN, re.MULTILINE)
    assert list(ten) == names
    assert len(ten) == len(names) and "matmul" in ten and "nothing" not in ten
    assert set(names) <= set(dir(ten))
    with pytest.raises(AttributeError, match="nothing"):
        ten.nothing  # noqa: B018
    with pytest.raises(KeyError, match="nothing"):
        ten["nothing"]


def test_one_function_is_a_kernel():
    kernel = certen.compile("fn double(x: f64[n]) -> f64[n] { 2 * x }")
    assert isinstance(kernel, certen.Kernel)
    assert kernel.name == "double"
    assert isinstance(certen.compile(TEN, fn="axpy"), certen.Kernel)


def test_what_a_kernel_tells(ten):
    kernel = ten.matmul
    assert kernel.name == "matmul"
    assert "A: f64[m, k]" in kernel.type and "f64[m, n]" in kernel.type
    assert "fn matmul" in kernel.source
    assert parameters(kernel) == ["A", "B"]
    assert parameters(ten.window) == ["x", "k"]
    assert "matmul" in kernel.c_source and "for (" in kernel.c_source
    assert "matmul" in repr(kernel)
    assert kernel.flops(m=2, k=3, n=5) == 60
    assert str(kernel.flops) == "2*k*m*n"
    assert kernel.explain("loops").startswith("loops matmul\n")
    assert "<" in kernel._repr_html_()


# ---- memory


LAYOUTS = (
    "C", "F", "transposed", "steps", "negative", "zero strides", "misaligned", "field", "read-only", "subclass",
)  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_strides(ten, layout):
    rng = random.Random(layout)
    for _ in range(5):
        a, b = laid_out(A.copy(), layout, rng), laid_out(B.copy(), layout, rng)
        assert np.array_equal(ten.matmul(a, b), np.asarray(a) @ np.asarray(b))
        x = laid_out(np.arange(35.0).reshape(5, 7) ** 2, layout, rng)
        low, high = ten.minmax(x)
        assert np.array_equal(low, x.min(axis=1)) and np.array_equal(high, x.max(axis=1))
        assert ten.blur(x) == pytest.approx(sum(x[i : i + 3, j : j + 5] for i in range(3) for j in range(3)) / 9)


def test_swapped_bytes_are_the_same_numbers(ten):
    assert np.array_equal(ten.matmul(A.astype(">f8"), B), A @ B)
    out = np.zeros((2, 5), ">f8")
    assert ten.matmul(A, B, out=out) is out
    assert np.array_equal(out, A @ B)


@pytest.mark.parametrize("layout", ["C", "F", "transposed", "steps", "negative", "misaligned", "field", "subclass"])
def test_out_of_any_strides(ten, layout):
    rng = random.Random(layout)
    out = laid_out(np.full((2, 5), 99.0), layout, rng)
    assert ten.matmul(A, B, out=out) is out
    assert np.array_equal(out, A @ B)


def test_out_of_several_results(ten):
    low, high = np.zeros(2), np.zeros((2, 3))[:, 1]
    result = ten.minmax(A, out=(low, high))
    assert result[0] is low and result[1] is high
    assert (low.tolist(), high.tolist()) == ([1, 4], [3, 6])


def test_out_of_a_scalar(ten):
    out = np.zeros(())
    assert ten.total(A, out=out) is out
    assert out == 21


def test_out_may_overlap_an_input(ten):
    for start in range(9):
        data = np.arange(1.0, 15.0)
        x, y, out = data[2:7], data[4:9], data[start : start + 5]
        want = np.arange(1.0, 15.0)
        want[start : start + 5] = 2 * x + y
        assert ten.axpy(2.0, x, y, out=out) is out
        assert np.array_equal(data, want), start


def test_outs_that_overlap_each_other(ten):
    """One of them has what it should, as if they were written one after the other; nothing else is touched."""
    for start in range(3):
        data = np.full(7, 99.0)
        low, high = data[1:3], data[1 + start : 3 + start]
        ten.minmax(A, out=(low, high))
        assert low.tolist() == [1, 4] or high.tolist() == [3, 6]
        assert data[0] == 99 and np.all(data[3 + start :] == 99)


def test_out_may_be_an_input(ten):
    square = np.arange(9.0).reshape(3, 3)
    want = square @ square
    assert ten.matmul(square, square, out=square) is square
    assert np.array_equal(square, want)
    turned = np.arange(7.0)
    ten.relax(turned, k=1, out=turned[::-1])
    assert np.array_equal(turned, (0.5 * np.arange(7.0) + 1)[::-1])


def test_out_with_steps_that_interleave(ten):
    """Neither step is longer than the other reaches, but no two elements meet."""
    memory = np.zeros(20)
    out = as_strided(memory, (2, 5), (3 * 8, 2 * 8))
    assert ten.matmul(A, B, out=out) is out
    assert np.array_equal(out, A @ B)


def test_results_are_new_dense_and_aligned(ten):
    results = [ten.matmul(A, B) for _ in range(20)] + [*ten.minmax(A), ten.blur(np.ones((5, 7)))]
    for result in results:
        assert result.ctypes.data % 64 == 0
        assert result.flags.c_contiguous and result.flags.writeable and result.flags.aligned
        assert not np.shares_memory(result, A)
    assert len({result.ctypes.data for result in results}) == len(results)


def test_results_outlive_everything():
    def made():
        kernel = certen.compile("fn double(x: f64[n]) -> f64[n] { 2 * x }")
        return [kernel(np.arange(1000.0)) for _ in range(10)]

    results = made()
    gc.collect()
    made()
    assert all(np.array_equal(result, 2 * np.arange(1000.0)) for result in results)


def test_inputs_are_not_changed(ten):
    a, b = A.copy(), B.copy()
    ten.matmul(a, b)
    assert np.array_equal(a, A) and np.array_equal(b, B)


class Interface:
    """Something that shows its memory by `__array_interface__`, and counts how often."""

    def __init__(self, array):
        self.array, self.asked = array, 0

    @property
    def __array_interface__(self):
        self.asked += 1
        return self.array.__array_interface__


class Capsule:
    """Something that lends its memory by DLPack, and counts how often."""

    def __init__(self, array):
        self.array, self.asked = array, 0

    def __dlpack__(self, **options):
        self.asked += 1
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("kind", [Interface, Capsule])
def test_other_arrays_lend_their_memory(ten, kind):
    a, b = kind(A.copy()), kind(np.asfortranarray(B))
    assert np.array_equal(ten.matmul(a, b), A @ B)
    assert a.asked >= 1
    out = np.zeros((5, 2)).T
    ten.matmul(a, b, out=kind(out))
    assert np.array_equal(out, A @ B)


def test_buffers_lend_their_memory(ten):
    assert ten.three(array.array("d", [1, 2, 3])) == 6
    assert ten.three((ctypes.c_double * 3)(1, 2, 3)) == 6
    assert np.array_equal(ten.matmul(memoryview(A), memoryview(B)), A @ B)
    assert ten.pairs(b"ab").tolist() == [[97, 98], [98, 97]]
    assert ten.pairs(bytearray(b"ab")).dtype == np.uint8
    out = array.array("d", [0] * 5)
    ten.axpy(2.0, X, Y, out=out)
    assert list(out) == (2 * X + Y).tolist()


def test_capsules_are_given_back(ten):
    class Watched(np.ndarray):
        pass

    import weakref

    x = np.arange(5.0).view(Watched)
    alive = weakref.ref(x)
    ten.axpy(1.0, Capsule(x), Y)
    ten.axpy(1.0, Interface(x), Y)
    del x
    gc.collect()
    assert alive() is None


MEMORY = """
import resource, sys
import numpy as np
import certen

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

kernel = certen.compile("fn total(x: f64[m, n]) -> f64 { sum(x) }")
class Capsule:
    def __init__(self, array): self.array = array
    def __dlpack__(self, **options): return self.array.__dlpack__(**options)
    def __dlpack_device__(self): return self.array.__dlpack_device__()
kernel(np.ones((2, 3)))
big = np.ones((1024, 16384))
before = peak()
assert kernel(big) == big.size
assert kernel(Capsule(big)) == big.size
assert kernel(memoryview(big)) == big.size
print(peak() - before)
"""


def test_inputs_are_not_copied():
    """An array of 128 MiB is summed, and the process grows by less than a quarter of that."""
    assert int(run_python(MEMORY)) < 32


LEAKS = """
import gc, resource
import numpy as np
import certen

kernel = certen.compile("fn double(x: f64[n]) -> (a: f64[n], b: f64[n]) { (2 * x, 3 * x) }")
x, out = np.ones(50_000), (np.ones(50_000), np.ones(50_000))
def round():
    for _ in range(300):
        kernel(x); kernel(x[::-1]); kernel(x, out=out); certen.einsum("i,i->i", x, x)
        try: kernel(x, out=(x, 3))
        except TypeError: pass
    gc.collect()
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
round()
before = peak()
for _ in range(4): round()
print(peak() - before)
"""


def test_nothing_leaks():
    """Each round makes some 700 MB of results; what stays would be seen."""
    assert int(run_python(LEAKS)) < 64


# ---- wrong calls


def refused(kind, *named, call):
    """A call raises exactly a class of Certen, and the message has these words."""
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert isinstance(caught.value, certen.Error)
    text = str(caught.value)
    assert text == caught.value.rendered and text.strip()
    assert not re.search(r"--\w", text), f"an option of the command line in: {text}"
    for word in named:
        assert re.search(rf"(?<![\w.]){re.escape(str(word))}(?![\w.])", text), f"no {word} in: {text}"
    return caught.value


class Odd:
    """No array at all."""


f8 = np.float64
TYPE, VALUE = "ArgumentTypeError", "ArgumentValueError"
WRONG = {
    "nothing": (TYPE, ["A", "B"], lambda k: k.matmul()),
    "one missing": (TYPE, ["B"], lambda k: k.matmul(A)),
    "the first missing": (TYPE, ["A"], lambda k: k.matmul(B=B)),
    "too many": (TYPE, ["3", "2"], lambda k: k.matmul(A, B, A)),
    "twice": (TYPE, ["A"], lambda k: k.matmul(A, B, A=A)),
    "unknown": (TYPE, ["C"], lambda k: k.matmul(A, B, C=A)),
    "unknown for missing": (TYPE, ["b"], lambda k: k.matmul(A, b=B)),
    "rank too low": (VALUE, ["A"], lambda k: k.matmul(X, B)),
    "rank too high": (VALUE, ["B"], lambda k: k.matmul(A, B[None])),
    "scalar for a matrix": (VALUE, ["A"], lambda k: k.matmul(1.0, B)),
    "matrix for a scalar": (VALUE, ["a"], lambda k: k.axpy(A, X, Y)),
    "sizes that contradict": (VALUE, ["A", "B", "k", "3", "2"], lambda k: k.matmul(A, A)),
    "sizes of two vectors": (VALUE, ["y", "5", "4"], lambda k: k.axpy(1.0, X, Y[1:])),
    "a size that is written": (VALUE, ["x", "3", "4"], lambda k: k.three(np.ones(4))),
    "a size that is computed": (VALUE, ["x", "5"], lambda k: k.even(np.ones(5), np.ones(2))),
    "where": (VALUE, ["h", "1"], lambda k: k.blur(np.ones((1, 3)))),
    "where of two": (VALUE, ["k", "6", "5"], lambda k: k.window(X, k=6)),
    "where of a size": (VALUE, ["n", "-1"], lambda k: k.iota(n=-1)),
    "empty": (VALUE, ["n", "0"], lambda k: k.moments(np.ones(0))),
    "size missing": (TYPE, ["k"], lambda k: k.window(X)),
    "size is a float": (TYPE, ["k"], lambda k: k.window(X, k=2.0)),
    "size is a text": (TYPE, ["k"], lambda k: k.window(X, k="2")),
    "size is an array": (TYPE, ["k"], lambda k: k.window(X, k=np.ones(3))),
    "size is none": (TYPE, ["k"], lambda k: k.window(X, k=None)),
    "size too large": (VALUE, ["k"], lambda k: k.window(X, k=2**70)),
    "f32 for f64": (TYPE, ["A", "f32", "f64"], lambda k: k.matmul(A.astype("f4"), B)),
    "i64 for f64": (TYPE, ["B", "i64", "f64"], lambda k: k.matmul(A, B.astype("i8"))),
    "complex": (TYPE, ["A"], lambda k: k.matmul(A.astype(complex), B)),
    "f16": (TYPE, ["A"], lambda k: k.matmul(A.astype("f2"), B)),
    "objects": (TYPE, ["A"], lambda k: k.matmul(A.astype(object), B)),
    "records": (TYPE, ["x"], lambda k: k.three(np.zeros(3, [("x", f8)]))),
    "dates": (TYPE, ["x"], lambda k: k.three(np.zeros(3, "datetime64[s]"))),
    "strings": (TYPE, ["x"], lambda k: k.three(np.array(["1", "2", "3"]))),
    "bools for u8": (TYPE, ["x"], lambda k: k.mixed([True], np.array([True]), [1.0], 1)),
    "i8 for u8": (TYPE, ["x"], lambda k: k.mixed([True], np.array([1], "i1"), [1.0], 1)),
    "bools for any number": (TYPE, ["x"], lambda k: k.twice(np.array([True]))),
    "u8 for any number": (TYPE, ["x"], lambda k: k.twice(np.array([1], "u1"))),
    "none": (TYPE, ["A"], lambda k: k.matmul(None, B)),
    "a text": (TYPE, ["A"], lambda k: k.matmul("A", B)),
    "an object": (TYPE, ["B"], lambda k: k.matmul(A, Odd())),
    "a class": (TYPE, ["B"], lambda k: k.matmul(A, np.ndarray)),
    "a set": (TYPE, ["x"], lambda k: k.three({1, 2, 3})),
    "a dict": (TYPE, ["x"], lambda k: k.three({"a": 1})),
    "a ragged list": (VALUE, ["A"], lambda k: k.matmul([[1.0], [1.0, 2.0]], B)),
    "a list of texts": (TYPE, ["x"], lambda k: k.three(["1", "2", "3"])),
    "a list with none": (TYPE, ["x"], lambda k: k.three([1.0, None, 3.0])),
    "a scalar that is a text": (TYPE, ["a"], lambda k: k.axpy("2", X, Y)),
    "a scalar that is none": (TYPE, ["a"], lambda k: k.axpy(None, X, Y)),
    "a scalar that is complex": (TYPE, ["a"], lambda k: k.axpy(1j, X, Y)),
    "a fraction for i32": (TYPE, ["a"], lambda k: k.mixed([True], [1], [1.0], 0.5)),
    "an integer that i32 has not": (TYPE, ["a"], lambda k: k.mixed([True], [1], [1.0], 2**31)),
    "an integer that u8 has not": (TYPE, ["x"], lambda k: k.mixed([True], [256], [1.0], 1)),
    "a negative number for u8": (TYPE, ["x"], lambda k: k.mixed([True], [-1], [1.0], 1)),
    "an integer that f64 has not": (TYPE, ["a"], lambda k: k.axpy(2**53 + 1, X, Y)),
    "a float that f32 has not": (TYPE, ["y"], lambda k: k.mixed([True], [1], [1e300], 1)),
    "a NumPy scalar that f32 has not": (TYPE, ["y"], lambda k: k.mixed([True], [1], np.float64(0.1), 1)),
    "an integer beside floats": (TYPE, ["x"], lambda k: k.three([2**53 + 1, 0.5, 0.25])),
    "out of another shape": (VALUE, ["2", "5", "3"], lambda k: k.matmul(A, B, out=np.zeros((2, 3)))),
    "out of another rank": (VALUE, ["out"], lambda k: k.matmul(A, B, out=np.zeros(10))),
    "out of another type": (TYPE, ["f32", "f64"], lambda k: k.matmul(A, B, out=np.zeros((2, 5), "f4"))),
    "out of objects": (TYPE, ["out"], lambda k: k.matmul(A, B, out=np.zeros((2, 5), object))),
    "out is read-only": (VALUE, ["out"], lambda k: k.axpy(1.0, X, Y, out=np.frombuffer(bytes(40)))),
    "out is a repeated element": (VALUE, ["out"], lambda k: k.axpy(1.0, X, Y, out=np.broadcast_to(np.ones(1), 5))),
    "out repeats an element": (
        VALUE,
        ["out", "overlaps itself"],
        lambda k: k.axpy(1.0, X, Y, out=as_strided(np.zeros(1), (5,), (0,))),
    ),
    "out is a sliding window": (
        VALUE,
        ["out", "overlaps itself"],
        lambda k: k.matmul(A, B, out=as_strided(np.zeros(6), (2, 5), (8, 8))),
    ),
    "out has elements that share bytes": (
        VALUE,
        ["out", "overlaps itself"],
        lambda k: k.axpy(1.0, X, Y, out=np.ndarray((5,), "f8", bytearray(40), 0, (4,))),
    ),
    "out is bytes": (TYPE, ["out"], lambda k: k.axpy(1.0, X, Y, out=bytes(40))),
    "out is a list": (TYPE, ["out"], lambda k: k.axpy(1.0, X, Y, out=[0.0] * 5)),
    "out is a number": (TYPE, ["out"], lambda k: k.axpy(1.0, X, Y, out=3.0)),
    "out is an object": (TYPE, ["out"], lambda k: k.axpy(1.0, X, Y, out=Odd())),
    "one out of two": (TYPE, ["2", "1"], lambda k: k.minmax(A, out=(np.zeros(2),))),
    "one out of two, no tuple": (TYPE, ["2"], lambda k: k.minmax(A, out=np.zeros(2))),
    "three outs of two": (TYPE, ["2", "3"], lambda k: k.minmax(A, out=(np.zeros(2),) * 3)),
    "two outs of one": (TYPE, ["1", "2"], lambda k: k.axpy(1.0, X, Y, out=(np.zeros(5), np.zeros(5)))),
    "the second out": (VALUE, ["high"], lambda k: k.minmax(A, out=(np.zeros(2), np.zeros(3)))),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(ten, name):
    kind, named, call = WRONG[name]
    kept = X.copy()
    refused(getattr(certen, kind), *named, call=lambda: call(ten))
    assert np.array_equal(X, kept), "something was written"


@pytest.mark.parametrize("threads", [0, -1, 2**70, "two", 1.5])
def test_wrong_numbers_of_threads(ten, threads):
    with pytest.raises((ValueError, TypeError, OverflowError), match="threads"):
        ten.axpy(1.0, X, Y, threads=threads)


def test_errors_are_pythons_own(ten):
    for kind, own in (
        ("CompileError", ValueError),
        ("ArgumentTypeError", TypeError),
        ("ArgumentValueError", ValueError),
        ("MachineError", RuntimeError),
        ("OutOfMemory", MemoryError),
    ):
        assert issubclass(getattr(certen, kind), own) and issubclass(getattr(certen, kind), certen.Error)
    with pytest.raises(TypeError):
        ten.matmul(A)
    with pytest.raises(ValueError):
        ten.matmul(A, A)


def test_messages_are_the_command_lines(ten):
    error = refused(certen.ArgumentValueError, call=lambda: ten.matmul(A, A))
    assert error.code == "E0403"
    assert "`B` has shape [2, 3], but f64[k, n] is [3, 3] here" in str(error)
    assert "k = 3 comes from dimension 2 of `A`" in str(error)
    assert error.diagnostics[0]["code"] == "E0403"
    error = refused(certen.ArgumentValueError, call=lambda: ten.blur(np.ones((1, 3))))
    assert error.code == "E0409"
    assert "h >= 2" in str(error)


def test_a_wrong_call_does_no_harm(ten):
    for _ in range(3):
        for _, _, call in WRONG.values():
            with pytest.raises(certen.Error):
                call(ten)
        assert np.array_equal(ten.matmul(A, B), A @ B)


@pytest.mark.parametrize("n", [2**40, 2**50, 2**60, 2**62, 2**63 - 1])
def test_results_that_no_machine_has(ten, n):
    with pytest.raises((certen.OutOfMemory, certen.ArgumentValueError)) as caught:
        ten.iota(n=n)
    refused(type(caught.value), "n", call=lambda: ten.iota(n=n))


def test_a_product_that_no_machine_has(ten):
    row = np.broadcast_to(np.ones(1), (1 << 22, 1))
    refused(certen.OutOfMemory, call=lambda: ten.matmul(row, row.T))


# ---- wrong programs


def test_an_access_out_of_bounds():
    with pytest.raises(certen.CompileError) as caught:
        certen.compile("fn f(x: f64[n]) -> f64[n] {\n    { [i] -> x[i+1] | i < n }\n}\n", name="mine.ten")
    error, text = caught.value, str(caught.value)
    assert error.code == "E0207"
    assert text.startswith("error[E0207]: this access can be out of bounds")
    assert "--> mine.ten:2:14" in text
    assert "x[i+1]" in text and "for example" in text
    first = error.diagnostics[0]
    assert (first["code"], first["line"], first["column"]) == ("E0207", 2, 14)
    assert "\x1b" not in text


def test_a_program_that_violates_a_rule():
    path = ROOT / "tests/programs/teil/figures/fig03a.teil"
    with pytest.raises(certen.CompileError) as caught:
        certen.compile(path)
    assert caught.value.code == "E0208"
    assert "violates T-Diag (TeIL, Fig. 8)" in str(caught.value)
    assert "fig03a.teil:21:5" in str(caught.value)
    assert "T-Diag" in caught.value.diagnostics[0]["rule"]


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("fn f(x: f64[n]) -> f64[n] { x[", "ten"),
        ("fn f(x: f64[n]) -> f64[m] { x }", "ten"),
        ("", "ten"),
        ("\0", "ten"),
        ("fn f(x: f64[n]) { y }", "ten"),
        ("fn f(x: f64[n]) { f(x) }", "ten"),
        ("alloc A : [n]\nB = A", "teil"),
        ("var A : [n]\nA = A # A", "model"),
        ("core f\ninput A : f64[n]\noutput B", "core"),
        ("(" * 100_000, "ten"),
        ("fn f(x: f64) { " + "-" * 50_000 + "x }", "ten"),
    ],
)
def test_wrong_programs(text, dialect):
    with pytest.raises(certen.CompileError) as caught:
        certen.compile(text, dialect=dialect)
    error = caught.value
    assert re.match(r"E\d{4}$", error.code) and error.code in str(error)
    assert not re.search(r"--\w", str(error)), f"an option of the command line in: {error}"
    assert all({"code", "message"} <= set(diagnostic) for diagnostic in error.diagnostics)


@pytest.mark.parametrize(
    ("kwargs", "kind"),
    [
        ({"dialect": "fortran"}, ValueError),
        ({"elem": "f16"}, ValueError),
        ({"fp": "fast"}, ValueError),
        ({"threads": 0}, ValueError),
        ({"unknown": 1}, TypeError),
        ({"fn": 3}, TypeError),
        ({"fn": "nothing"}, ValueError),
    ],
)
def test_wrong_options(kwargs, kind):
    with pytest.raises(kind):
        certen.compile(TEN, **kwargs)


@pytest.mark.parametrize("source", [None, 3, b"fn f() { 1 }", ["fn f() { 1 }"]])
def test_sources_that_are_none(source):
    with pytest.raises(TypeError):
        certen.compile(source)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing.ten"):
        certen.compile(tmp_path / "nothing.ten")


def test_errors_can_be_pickled(ten):
    import pickle

    for call in (lambda: ten.matmul(A, A), lambda: certen.compile("fn f(")):
        with pytest.raises(certen.Error) as caught:
            call()
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), str(again), again.code) == (type(caught.value), str(caught.value), caught.value.code)


def test_a_machine_without_a_compiler(tmp_path):
    script = """
import certen, numpy as np
kernel = certen.compile("fn double(x: f64[n]) -> f64[n] { 2 * x }")
try:
    kernel(np.ones(3))
except certen.MachineError as error:
    print(type(error).__name__, error)
"""
    env = {"CERTEN_CACHE": str(tmp_path), "CERTEN_CC": "/no/compiler", "PATH": "/nowhere", "CC": "/no/compiler"}
    assert run_python(script, env=env).startswith("MachineError")


# ---- odd arguments


def test_parameters_with_names_of_other_things():
    for name in ("out", "threads", "self", "lambda", "class", "args", "kwargs"):
        kernel = certen.compile(f"fn f({name}: f64[n], y: f64[n]) -> f64[n] {{ {name} + 2 * y }}")
        assert np.array_equal(kernel(X, Y), X + 2 * Y), name
        if name not in ("out", "threads"):
            assert np.array_equal(kernel(y=Y, **{name: X}), X + 2 * Y), name


def test_a_function_without_parameters():
    kernel = certen.compile("fn seven() -> f64[2] { [7, 8] }")
    assert kernel().tolist() == [7, 8]
    refused(certen.ArgumentTypeError, call=lambda: kernel(1))


@pytest.mark.parametrize("dtype", [np.longlong, np.int_, np.dtype("int64", metadata={"unit": "m"})])
def test_other_names_of_an_element_type(ten, dtype):
    x = np.arange(3).astype(dtype)
    assert ten.twice(x).tolist() == [0, 2, 4]
    assert certen.einsum("i,i->i", x, x).tolist() == [0, 1, 4]
    assert certen.einsum("i,j->ij", x, np.arange(2)).tolist() == [[0, 0], [0, 1], [0, 2]]
    out = np.zeros(3, dtype)
    ten.twice(np.arange(3), out=out)
    assert out.tolist() == [0, 2, 4]


@pytest.mark.parametrize("rank", [9, 12, 40])
def test_more_dimensions_than_a_function_can_have(ten, rank):
    """Whether it computes or refuses."""
    x = np.ones((1,) * rank)
    try:
        assert ten.twice(x).shape == x.shape
    except certen.Error as error:
        assert str(error)
    assert certen.einsum(x, [*range(rank)], [0]).tolist() == [1]


def test_more_sizes_than_are_remembered(ten):
    for n in [*range(5000), *range(0, 5000, 7)]:
        result = ten.iota(n=n)
        assert len(result) == n and (n == 0 or result[-1] == n - 1)


class Lying:
    """A lender of memory that does not do as it says."""

    def __init__(self, device=(1, 0), capsule=None, error=None):
        self.device, self.capsule, self.error = device, capsule, error

    def __dlpack__(self, **options):
        if self.error:
            raise self.error
        return self.capsule

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize(
    "lying",
    [
        Lying(),
        Lying(capsule=3),
        Lying(capsule="dltensor"),
        Lying(device=(2, 0), error=BufferError("on a GPU")),
        Lying(device=None, error=BufferError("nowhere")),
        Lying(error=ZeroDivisionError("mine")),
        type("Wrong", (), {"__array_interface__": {"shape": (3,), "typestr": "<f8", "version": 3, "data": None}})(),
        type(
            "Wrong", (), {"__array_interface__": {"shape": (-3,), "typestr": "<f8", "version": 3, "data": (0, True)}}
        )(),
        type("Wrong", (), {"__array_interface__": {"shape": (3,), "typestr": "nonsense", "version": 3}})(),
        type("Wrong", (), {"__array_interface__": {}})(),
        type("Wrong", (), {"__array_interface__": 7})(),
    ],
)
def test_lenders_that_lie(ten, lying):
    for call in (lambda: ten.three(lying), lambda: ten.axpy(1.0, X, Y, out=lying), lambda: certen.einsum("i->", lying)):
        with pytest.raises(
            (TypeError, ValueError, BufferError, ZeroDivisionError, NotImplementedError, AttributeError)
        ):
            call()


def test_a_capsule_can_be_used_once(ten):
    capsule = X.__dlpack__()
    lender = Lying(capsule=capsule)
    assert np.array_equal(ten.axpy(1.0, lender, Y), X + Y)
    with pytest.raises((TypeError, ValueError, BufferError, RuntimeError)):
        ten.axpy(1.0, lender, Y)


def test_an_array_that_grows_while_it_is_lent(ten):
    """The buffer of a bytearray cannot change its size as long as it is used; afterwards it can."""
    memory = bytearray(b"abc")
    assert ten.pairs(memory).shape == (3, 2)
    memory.extend(b"d")
    assert ten.pairs(memory).shape == (4, 2)
    with pytest.raises(certen.Error):
        ten.three(memory)
    memory.extend(b"e")


# ---- garbage


def things() -> list:
    """All kinds of arguments, some of them good ones."""
    read_only = np.arange(5.0)
    read_only.setflags(write=False)
    arrays = [A, B, X, Y, A.T, B[::-1], X[::2], X[:0], A[None], np.array(2.0), read_only, np.zeros((3, 0)), X > 2]
    arrays += [A.astype("f4"), A.astype("i4"), X.astype("u1"), X.astype(complex), X.astype(object), np.zeros((2,) * 11)]
    arrays += [np.broadcast_to(1.0, (4, 4)), X.view("V8"), np.zeros(3, [("x", "f8")]), np.ma.array(X)]
    scalars = [0, 1, -1, 3, 2**31, 2**63, 2**200, 1.5, float("nan"), float("inf"), 1j, True, None, "x", "", b"ab", b""]
    scalars += [np.float32(1), np.int64(3), np.bool_(1), np.str_("a"), np.datetime64("2001-01-01")]
    buffers = [bytearray(b"abc"), memoryview(X), memoryview(A), array.array("d", [1, 2]), array.array("i"), range(3)]
    lists = [[], (), [1.0, 2.0], [[1, 2], [3]], [[[]]], [None], ["a"], (1, 2, 3), {1, 2}, {"a": 1}, iter([1.0])]
    others = [Odd(), Odd, len, ..., type, slice(3), NotImplemented, (x for x in (1.0, 2.0))]
    lenders = [Interface(X), Capsule(A), Lying(), Lying(error=BufferError("no"))]
    return [*arrays, *scalars, *buffers, *lists, *others, *lenders]


@pytest.mark.parametrize("seed", range(6))
def test_kernels_survive_garbage(ten, seed):
    """Random arguments are computed with, or refused by one of Certen's errors."""
    rng = random.Random(seed)
    names = list(ten)
    computed = refusals = 0
    for turn in range(700):
        pool = things()
        kernel = ten[rng.choice(names)]
        wanted = parameters(kernel)
        args = [rng.choice(pool) for _ in range(rng.choice((0, len(wanted), len(wanted), len(wanted), 5)))]
        left = wanted[len(args) :] if rng.random() < 0.9 else wanted
        kwargs = {name: rng.choice(pool) for name in left}
        # Not as large as the machine: what is asked for would be made.
        if any(isinstance(value, int) and 10**6 < value < 2**40 for value in [*args, *kwargs.values()]):
            continue
        if rng.random() < 0.3:
            kwargs["out"] = rng.choice(pool) if rng.random() < 0.7 else tuple(rng.sample(pool, 2))
        try:
            kernel(*args, **kwargs)
            computed += 1
        except certen.Error as error:
            refusals += 1
            assert str(error)
        except BufferError as error:
            assert str(error) == "no"
        except BaseException as error:
            pytest.fail(f"turn {turn}: {kernel.name}{args} {kwargs}: {type(error)} {error}", pytrace=False)
    assert computed > 5 and refusals > 100
    assert np.array_equal(ten.matmul(A, B), A @ B)


@pytest.mark.parametrize("seed", range(6))
def test_einsum_survives_garbage(seed):
    """Random arguments are computed with, or refused by the errors that NumPy has."""
    rng = random.Random(seed)
    allowed = (ValueError, TypeError, NotImplementedError, MemoryError, BufferError, OverflowError)
    for turn in range(1000):
        pool = things()
        specs = ["i,i", "ij,jk", "i->", "ij->ji", "...", ",", "ij,j->i", *pool]
        args = [rng.choice(specs), *rng.choices(pool, k=rng.choice((0, 1, 1, 2, 2, 3)))]
        if rng.random() < 0.2:
            args = [rng.choice(pool), rng.choice(([0], [0, 1], [1, ...], rng.choice(pool))), *args[1:]]
        kwargs = {}
        for name in ("out", "optimize", "dtype", "order", "casting"):
            if rng.random() < 0.1:
                kwargs[name] = rng.choice(pool)
        try:
            certen.einsum(*args, **kwargs)
        except allowed:
            pass
        except BaseException as error:
            pytest.fail(f"turn {turn}: {args} {kwargs}: {type(error)} {error}", pytrace=False)
