"""certen.einsum against numpy.einsum: values, shapes, types, views, memory and refusals.

NumPy without `optimize` is the reference. Integers are compared exactly, and floats too where all values are whole and
no sum can round; other floats may differ by what the order of additions can change: the sum of the absolute values of
all terms, times their number, times the machine's epsilon.
"""

import json
import os
import random
import string
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import DRY_RUN, run_python
from einsum_cases import DTYPES, Case, Plain, build, laid_out

CASES = int(os.environ.get("CERTEN_CASES", "1500"))
SEED = os.environ.get("CERTEN_SEED")
CHUNK = 50


def tolerance(case: Case, want: np.ndarray) -> np.ndarray | float:
    """How far each element may be from NumPy's."""
    if want.dtype.kind != "f":
        return 0.0
    arrays = [np.asarray(operand) for operand in case.operands]
    dtype, out = case.kwargs.get("dtype"), case.kwargs.get("out")
    made = np.result_type(*arrays, *([] if out is None else [out])) if dtype is None else np.dtype(dtype)
    used = [kind.newbyteorder("=") for kind in (made, want.dtype) if kind.kind == "f"]
    eps = max(np.finfo(kind).eps for kind in used)
    sized = Case(0, case.spec, case.lists, [np.abs(array.astype(np.float64)) for array in arrays], [])
    bound = np.einsum(*sized.args)
    sized.operands = [np.ones(array.shape) for array in arrays]
    terms = np.einsum(*sized.args)
    whole = all(np.all(array == np.trunc(array)) for array in arrays)
    exact = whole & (bound < 1 / eps)
    return np.where(exact, 0.0, 2 * eps * (terms + len(arrays)) * bound + np.finfo(np.float32).tiny)


def difference(got, want, allowed) -> str | None:
    """What is different about a result."""
    if type(got) is not type(want):
        return f"a {type(got)}, NumPy gives a {type(want)}"
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype.str} {got.shape}, NumPy gives {want.dtype.str} {want.shape}"
    if want.dtype.kind != "f":
        near = got == want
    else:
        with np.errstate(all="ignore"):
            near = (got == want) | (np.isnan(got) & np.isnan(want)) | (np.abs(got - want) <= allowed)
    if np.all(near):
        return None
    at = tuple(int(i) for i in np.argwhere(~np.asarray(near))[0])
    return f"{got[at]!r} at {at}, NumPy gives {want[at]!r}; allowed is {np.broadcast_to(allowed, want.shape)[at]}"


def place(view: np.ndarray, operand: np.ndarray) -> tuple:
    """Where a view is in the memory of an operand, and how it walks through it."""
    start = view.__array_interface__["data"][0] - operand.__array_interface__["data"][0]
    return start, [stride for stride, size in zip(view.strides, view.shape, strict=True) if size > 1]


def disagreement(einsum, seed: int) -> str | None:
    """Runs NumPy on one copy of a case and einsum on another; says what is different."""
    reference, tested = build(seed), build(seed)
    if "out" not in reference.kwargs and "dtype" in reference.kwargs and len(reference.operands) == 1:
        # NumPy makes a view and forgets about `dtype`, if nothing is summed.
        for case in (reference, tested):
            case.kwargs["dtype"] = None
    natural = np.shape(reference.kwargs.get("out", ()))
    if len(reference.operands) == 1 and reference.notes and 0 in np.shape(reference.operands[0]):
        # NumPy takes a diagonal of sizes 0 and 2 for one of size 2, and shows memory that is not the operand's.
        return None
    try:
        want = np.einsum(*reference.args, **{**reference.kwargs, "optimize": False})
    except (ValueError, TypeError) as error:
        want, refused = None, error
    else:
        fresh = np.shape(np.einsum(*build(seed).args))
        refused = None
    try:
        got = einsum(*tested.args, **tested.kwargs)
    except (ValueError, TypeError) as error:
        if refused is None:
            # NumPy repeats a result of size 1 to fill a larger `out`. Nobody has to.
            repeats = "out" in reference.kwargs and natural != fresh and isinstance(error, ValueError)
            return None if repeats else f"{type(error).__name__}: {error}; NumPy accepts this"
        families = [kind for kind in (ValueError, TypeError) if isinstance(refused, kind)]
        # With two mistakes in a call, either may be found first.
        if reference.notes and set(reference.kwargs) - {"optimize"}:
            families = [ValueError, TypeError]
        if not isinstance(error, tuple(families)):
            return f"{type(error).__name__}: {error}; NumPy has {type(refused).__name__}: {refused}"
        return None if str(error) else "an empty message"
    if refused is not None:
        return f"accepted; NumPy has {type(refused).__name__}: {refused}"

    copies = build(seed)
    found = difference(got, want, tolerance(copies, np.asarray(want)))
    if found:
        return found
    out = tested.kwargs.get("out")
    if out is not None and got is not out:
        return "the result is not `out`"
    if isinstance(want, np.ndarray) and out is None and len(tested.operands) == 1:
        operand, ours = reference.operands[0], tested.operands[0]
        if isinstance(operand, np.ndarray) and want.size:
            shares = np.shares_memory(want, operand)
            if shares != np.shares_memory(got, ours):
                return f"NumPy's result is {'a view' if shares else 'no view'} of the operand"
            if shares and (place(got, ours), got.flags.writeable) != (place(want, operand), want.flags.writeable):
                return f"another view: {got.strides}, NumPy's has {want.strides}"
    if isinstance(want, np.ndarray) and out is None and "order" in reference.kwargs:
        for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS"):
            if flag[0] == reference.kwargs["order"].upper() and want.flags[flag] and not got.flags[flag]:
                return f"the result is not {flag}"
    return changed(reference, tested)


def changed(reference: Case, tested: Case) -> str | None:
    """Whether memory was written that is not `out`."""
    for case in (reference, tested):
        if "out" in case.kwargs:
            case.kwargs["out"][...] = 0
    for at, (ours, theirs) in enumerate(zip(tested.operands, reference.operands, strict=True)):
        if isinstance(ours, np.ndarray) and ours.tobytes() != theirs.tobytes():
            return f"operand {at} was changed"
    out, theirs = tested.kwargs.get("out"), reference.kwargs.get("out")
    if out is not None and isinstance(out.base, np.ndarray) and out.base.tobytes() != theirs.base.tobytes():
        return "something beside `out` was changed"
    return None


def report(einsum, seeds) -> None:
    """Fails with the first few cases that disagree."""
    failures = []
    for seed in seeds:
        try:
            found = disagreement(einsum, seed)
        except Exception as error:  # noqa: BLE001
            found = f"{type(error).__name__}: {error}"
        if found:
            failures.append(f"{found}\n{build(seed).describe()}")
    if failures:
        shown = "\n\n".join(failures[:5])
        pytest.fail(f"{len(failures)} of {len(seeds)} cases are wrong:\n{shown}", pytrace=False)


def chunks() -> list[range]:
    if SEED is not None:
        return [range(int(SEED), int(SEED) + 1)]
    return [range(start, min(start + CHUNK, CASES)) for start in range(0, CASES, CHUNK)]


@pytest.mark.parametrize("seeds", chunks(), ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_generated(einsum, seeds):
    report(einsum, seeds)


@pytest.mark.slow
@pytest.mark.skipif(SEED is not None, reason="one seed is replayed")
@pytest.mark.parametrize("start", range(1_000_000, 1_020_000, 1000))
def test_generated_more(einsum, start):
    report(einsum, range(start, start + 1000))


def test_the_generator_is_deterministic():
    for seed in range(200):
        assert build(seed).describe() == build(seed).describe()


def test_the_generator_makes_right_and_wrong_cases():
    right = 0
    for seed in range(400):
        case = build(seed)
        try:
            np.einsum(*case.args, **{**case.kwargs, "optimize": False})
            right += 1
        except (ValueError, TypeError):
            pass
    assert 200 < right < 350


# ---- every layout of one operand, for specs of each kind


SHAPES = {
    "ij,jk->ik": [(3, 5), (5, 2)],
    "ij,jk": [(7, 1), (1, 5)],
    "ii": [(5, 5)],
    "iji->j": [(3, 2, 3)],
    "ij->": [(3, 7)],
    "ij->j": [(3, 7)],
    "bij,bjk->bik": [(2, 3, 5), (2, 5, 7)],
    "...ij,...jk->...ik": [(2, 1, 3, 5), (7, 5, 2)],
    "i,j,k->kji": [(2,), (3,), (5,)],
    "ij,ij->": [(3, 5), (3, 5)],
    "ij,j,i->": [(3, 5), (5,), (3,)],
    "ab,bc,cd,de->ea": [(2, 3), (3, 5), (5, 2), (2, 7)],
    ",ij->ji": [(), (3, 2)],
    "i...->...": [(3, 2, 5)],
    "ijk,ljk->il": [(3, 5, 2), (7, 5, 2)],
}
LAYOUTS = (
    "C", "F", "transposed", "steps", "negative", "zero strides", "misaligned", "field", "swapped", "read-only", "list",
    "subclass",
)  # fmt: skip


@pytest.mark.parametrize("spec", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts(einsum, spec, dtype):
    rng = random.Random(spec)
    for layout in LAYOUTS:
        for turn in range(3):
            arrays = [
                np.asarray([rng.randint(-9, 9) for _ in range(int(np.prod(shape)))], dtype).reshape(shape)
                for shape in SHAPES[spec]
            ]
            operands = [laid_out(array, layout, rng) for array in arrays]
            want = np.einsum(spec, *operands)
            got = einsum(spec, *operands)
            assert difference(got, want, 0.0) is None, (layout, turn)


# ---- dimensions: blanks, labels, sizes 0 and 1, the interleaved form


def test_implicit_output_is_sorted_upper_case_first(einsum):
    x = np.arange(24.0).reshape(2, 3, 4)
    assert einsum("bAa", x).shape == np.einsum("bAa", x).shape == (3, 4, 2)


def test_a_label_that_occurs_three_times_is_summed(einsum):
    a = np.arange(5.0)
    assert einsum("i,i,i", a, a, a) == np.sum(a**3)
    assert einsum("i,i,i->i", a, a, a).tolist() == (a**3).tolist()


@pytest.mark.parametrize("spec", [" ij , jk -> ik ", "ij,jk->i k", "  i  j,j  k", "ij,jk ->ik"])
def test_blanks_mean_nothing(einsum, spec):
    a, b = np.arange(6.0).reshape(2, 3), np.arange(15.0).reshape(3, 5)
    assert np.array_equal(einsum(spec, a, b), a @ b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("spec", "shapes"),
    [("ij,jk->ik", [(3, 0), (0, 5)]), ("ij->i", [(0, 3)]), ("i->", [(0,)]), ("ii->i", [(0, 0)]), ("i,j", [(0,), (3,)])],
)
def test_sums_of_nothing_are_zero(einsum, spec, shapes, dtype):
    operands = [np.ones(shape, dtype) for shape in shapes]
    assert difference(einsum(spec, *operands), np.einsum(spec, *operands), 0.0) is None


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [
        ("i,i", [(1,), (3,)]),
        ("ij,ij->ij", [(3, 1), (1, 5)]),
        ("ij,jk->ik", [(3, 1), (7, 5)]),
        ("...i,...i->...", [(2, 1, 3), (5, 1)]),
        ("...,...", [(3, 1), (2,)]),
        ("i...,j->ij...", [(2, 3), (5,)]),
        ("a...b,b...->...a", [(2, 5, 3), (3, 5)]),
        ("...,a...->a...", [(), (2, 3)]),
        ("i->...i", [(3,)]),
        ("...i->i", [(3,)]),
        ("...->...", [()]),
        ("...ii->...i", [(2, 3, 3)]),
        ("i...i,...->...", [(3, 2, 3), (2,)]),
    ],
)
def test_broadcasting(einsum, spec, shapes):
    operands = [np.arange(1.0, np.prod(shape) + 1).reshape(shape) for shape in shapes]
    assert difference(einsum(spec, *operands), np.einsum(spec, *operands), 0.0) is None


@pytest.mark.parametrize(
    "lists",
    [
        ([0, 1], [1, 2]),
        ([0, 1], [1, 2], [2, 0]),
        ((26, 1), (1, 0)),
        ([0, 51], [51, 27], [27, Ellipsis]),
        ([Ellipsis, 1], [1, Ellipsis]),
        ([0, Ellipsis], [Ellipsis, 2], [2, Ellipsis, 0]),
        (np.array([0, 1]), [np.int64(1), np.int32(2)]),
    ],
)
def test_interleaved_form(einsum, lists):
    a, b = np.arange(9.0).reshape(3, 3), np.arange(9.0, 18.0).reshape(3, 3)
    args = [a, lists[0], b, lists[1], *lists[2:]]
    assert difference(einsum(*args), np.einsum(*args), 0.0) is None


def test_many_labels_and_many_operands(einsum):
    x = np.arange(3.0).reshape((1,) * 12 + (3,))
    labels = string.ascii_letters[20:33]
    assert np.array_equal(einsum(f"{labels}->{labels[::-1]}", x), np.einsum(f"{labels}->{labels[::-1]}", x))
    vectors = [np.array([1.0, at]) for at in range(12)]
    spec = ",".join(string.ascii_letters[:12])
    assert np.array_equal(einsum(spec, *vectors), np.einsum(spec, *vectors, optimize=True))


# ---- element types


@pytest.mark.parametrize("one", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_mixtures_have_numpys_type(einsum, one, other):
    a, b = np.arange(6).reshape(2, 3).astype(one), np.arange(3).astype(other)
    assert difference(einsum("ij,j->i", a, b), np.einsum("ij,j->i", a, b), 0.0) is None
    assert difference(einsum("i,->i", b, 2), np.einsum("i,->i", b, 2), 0.0) is None
    assert difference(einsum("i,->i", b, 2.5), np.einsum("i,->i", b, 2.5), 0.0) is None


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("spec", ["i->", "i,i->", "i,i,i->i", "i,j->ij"])
@pytest.mark.parametrize("optimize", [False, True])
def test_integers_wrap(einsum, spec, dtype, optimize):
    x = np.full(1001, np.iinfo(dtype).max - 3, dtype)
    operands = [x] * (spec.count(",") + 1)
    want = np.einsum(spec, *operands)
    assert difference(einsum(spec, *operands, optimize=optimize), want, 0.0) is None


def test_a_long_sum_of_i64_is_exact(einsum):
    x = np.full(100_003, 2**53 + 1, np.int64)
    assert int(einsum("i->", x)) == (100_003 * (2**53 + 1) + 2**63) % 2**64 - 2**63
    assert int(einsum("i,i->", x, np.ones_like(x))) == int(einsum("i->", x))


def test_infinities_and_nans(einsum):
    a = np.array([[1.0, np.inf], [np.nan, 2.0], [-np.inf, 0.0]])
    b = np.array([[1.0, 0.0], [2.0, -1.0]])
    with np.errstate(invalid="ignore"):
        assert difference(einsum("ij,jk->ik", a, b), np.einsum("ij,jk->ik", a, b), 0.0) is None
    assert np.isnan(einsum("ij->", a))


REFUSED = {
    "complex64": np.ones(3, np.complex64),
    "complex128": np.ones(3, np.complex128),
    "float16": np.ones(3, np.float16),
    "int8": np.ones(3, np.int8),
    "int16": np.ones(3, np.int16),
    "uint8": np.ones(3, np.uint8),
    "uint64": np.ones(3, np.uint64),
    "bool": np.ones(3, bool),
    "object": np.array([1, 2.0, None], object),
    "datetime": np.array(["2001-02-03"] * 3, "datetime64[D]"),
    "strings": np.array(["a", "b", "c"]),
    "bytes": np.array([b"a", b"b", b"c"]),
    "records": np.zeros(3, [("x", "f8")]),
    "long double": np.ones(3, np.longdouble),
}


@pytest.mark.skipif(DRY_RUN, reason="NumPy has these")
@pytest.mark.parametrize("kind", REFUSED)
def test_element_types_that_are_not_there(einsum, kind):
    x = REFUSED[kind]
    for args in (("i->", x), ("i,i->", np.ones(3), x), ("i,i->i", x, x), ("i->i", x), (x, [0], [])):
        with pytest.raises(NotImplementedError) as caught:
            einsum(*args)
        assert x.dtype.name in str(caught.value) or str(x.dtype) in str(caught.value)


@pytest.mark.skipif(DRY_RUN, reason="NumPy has these")
def test_element_types_of_out_and_dtype_that_are_not_there(einsum):
    with pytest.raises(NotImplementedError):
        einsum("i,i->i", np.ones(3), np.ones(3), dtype=np.complex128)
    with pytest.raises(NotImplementedError):
        einsum("i,i->i", np.ones(3), np.ones(3), out=np.ones(3, np.complex128))


@pytest.mark.parametrize("dtype", [None, *DTYPES])
@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("operand", DTYPES)
def test_dtype_and_casting(einsum, dtype, casting, operand):
    a, b = np.arange(1, 7).reshape(2, 3).astype(operand), np.arange(3, dtype="float32")

    def call(function):
        try:
            return function("ij,j->i", a, b, dtype=dtype, casting=casting)
        except TypeError as error:
            return type(error)

    got, want = call(einsum), call(np.einsum)
    assert got is want or difference(got, want, 0.0) is None


@pytest.mark.parametrize("order", ["C", "F", "A", "K", "c", "f"])
def test_order(einsum, order):
    a, b = np.arange(6.0).reshape(2, 3), np.arange(15.0).reshape(3, 5)
    got = einsum("ij,jk->ik", a, b, order=order)
    assert np.array_equal(got, a @ b)
    if order in "CcFf":
        assert got.flags[f"{order.upper()}_CONTIGUOUS"]


# ---- views


VIEWS = {
    "ij->ji": (2, 3),
    "ij": (2, 3),
    "ba": (2, 3),
    "ijk->kij": (2, 3, 5),
    "ii->i": (3, 3),
    "iii->i": (3, 3, 3),
    "iij->ij": (3, 3, 5),
    "iji->ij": (3, 5, 3),
    "ijij->ji": (2, 3, 2, 3),
    "...": (2, 3),
    "...->...": (2, 3),
    "i...->...i": (2, 3, 5),
    "...ii->...i": (2, 3, 3),
    "a...a->...a": (3, 5, 3),
    " i j -> j i ": (2, 3),
    "i->i": (1,),
}


@pytest.mark.parametrize(
    "layout", ["C", "F", "transposed", "steps", "negative", "misaligned", "field", "swapped", "read-only"]
)
@pytest.mark.parametrize("spec", VIEWS)
def test_nothing_summed_is_a_view(einsum, spec, layout):
    x = laid_out(np.arange(float(np.prod(VIEWS[spec]))).reshape(VIEWS[spec]), layout, random.Random(1))
    got, want = einsum(spec, x), np.einsum(spec, x)
    assert difference(got, want, 0.0) is None
    assert np.shares_memory(got, x)
    assert place(got, x) == place(want, x)
    assert got.flags.writeable == want.flags.writeable == x.flags.writeable
    if x.flags.writeable:
        got[...] = 7
        assert np.array_equal(want, got)


def test_a_view_keeps_its_operand_alive(einsum):
    def made():
        x = np.arange(100_000.0).reshape(100, 1000)
        return einsum("ij->ji", x)

    views = [made() for _ in range(10)]
    assert all(np.array_equal(view, np.arange(100_000.0).reshape(100, 1000).T) for view in views)


def test_views_of_interleaved_form_and_subclass(einsum):
    x = np.arange(6.0).reshape(2, 3).view(Plain)
    for args in (("ij->ji", x), (x, [0, 1], [1, 0])):
        got = einsum(*args)
        assert type(got) is np.ndarray
        assert np.shares_memory(got, x)


def test_a_result_that_is_computed_shares_nothing(einsum):
    x = np.arange(6.0).reshape(2, 3)
    for got in (einsum("ij->j", x), einsum("ij,->ij", x, 1.0), einsum("ij->", x, out=np.zeros(()))):
        assert not np.shares_memory(got, x)
        assert got.flags.writeable


# ---- out=


@pytest.mark.parametrize("layout", ["C", "F", "steps", "negative", "misaligned", "field", "swapped", "subclass"])
@pytest.mark.parametrize("spec", ["ij,jk->ik", "ij,jk->ki", "ij,jk->", "ij,jk->j"])
def test_out_is_written_and_returned(einsum, spec, layout):
    a, b = np.arange(6.0).reshape(2, 3), np.arange(15.0).reshape(3, 5)
    want = np.einsum(spec, a, b)
    out = laid_out(np.full(np.shape(want), 99.0), layout, random.Random(5))
    assert einsum(spec, a, b, out=out) is out
    assert np.array_equal(out, want)


@pytest.mark.parametrize("optimize", [False, True])
def test_out_that_overlaps_operands(einsum, optimize):
    def memory():
        return np.arange(1.0, 41.0)

    for start in range(28):
        data = memory()
        a, out = data[4:20].reshape(4, 4), data[start : start + 12].reshape(4, 3)
        b = data[7:19].reshape(4, 3)
        want = a.copy() @ b.copy()
        rest = memory()
        rest[start : start + 12] = want.ravel()
        assert einsum("ij,jk->ik", a, b, out=out, optimize=optimize) is out
        assert np.array_equal(data, rest), start


@pytest.mark.parametrize("spec", ["ij->ji", "ij->ij", "ij,jk->ik", "ij,kj->ki", "ij,jk,kl->il"])
def test_out_is_an_operand(einsum, spec):
    a = np.arange(25.0).reshape(5, 5) % 7
    operands = [a] * (spec.count(",") + 1)
    want = np.einsum(spec, *(operand.copy() for operand in operands)).copy()
    assert einsum(spec, *operands, out=a) is a
    assert np.array_equal(a, want)


def test_out_that_is_an_operand_backwards(einsum):
    a = np.arange(7.0)
    assert einsum("i->i", a, out=a[::-1]).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert a.tolist() == [6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("out", "error"),
    [
        (np.zeros((3, 5)), ValueError),
        (np.zeros((2, 5, 1)), ValueError),
        (np.zeros(10), ValueError),
        (np.zeros((5, 2)).T, None),
        (np.zeros((2, 5), "float32"), TypeError),
        (np.zeros((2, 5), "int64"), TypeError),
        (np.broadcast_to(np.zeros(5), (2, 5)), ValueError),
        ([[0.0] * 5] * 2, TypeError),
        (3.0, TypeError),
        ("out", TypeError),
    ],
    ids=lambda value: str(getattr(value, "shape", value)),
)
def test_out_that_does_not_fit(einsum, out, error):
    a, b = np.arange(6.0).reshape(2, 3), np.arange(15.0).reshape(3, 5)
    if error is None:
        assert einsum("ij,jk->ik", a, b, out=out) is out
        return
    with pytest.raises(error):
        einsum("ij,jk->ik", a, b, out=out)
    with pytest.raises(error):
        np.einsum("ij,jk->ik", a, b, out=out)


def test_out_that_overlaps_itself(einsum):
    x = np.arange(5.0)
    for strides in [(0,), (4,)]:
        out = np.ndarray((5,), "f8", bytearray(40), 0, strides)
        with pytest.raises(ValueError, match="overlaps itself"):
            einsum("i,i->i", x, x, out=out)


def test_out_of_another_type_widens_the_sum(einsum):
    a = np.full(3, 2**30, np.int32)
    out, want = np.zeros((), np.int64), np.zeros((), np.int64)
    einsum("i,i->", a, a, out=out)
    np.einsum("i,i->", a, a, out=want)
    assert out == want


def test_out_stays_when_the_call_is_wrong(einsum):
    out = np.full((2, 5), 99.0)
    with pytest.raises(ValueError):
        einsum("ij,jk->ik", np.ones((2, 3)), np.ones((4, 5)), out=out)
    assert np.all(out == 99)


# ---- refusals


WRONG = [
    ("ij,jk", [(2, 3), (4, 5)], ["j", "3", "4"]),
    ("ij,jk->ik", [(2, 3), (4, 5)], ["j", "3", "4"]),
    ("ii", [(2, 3)], ["i", "2", "3", "0"]),
    ("i,ii->i", [(3,), (3, 5)], ["i", "3", "5", "1"]),
    ("ij", [(3,)], ["0", "2", "1"]),
    ("i,jk", [(3,), (3, 5, 7)], ["1", "2", "3"]),
    ("i,j", [(3,)], ["2", "1"]),
    ("i", [(3,), (3,)], ["2", "1"]),
    ("ij->ii", [(3, 3)], ["i"]),
    ("ij->k", [(3, 3)], ["k"]),
    ("...i->i", [(3, 5)], ["..."]),
    ("...i,...i", [(2, 3), (5, 3)], ["2", "5"]),
    ("i..j", [(2, 3)], ["."]),
    ("i.j", [(2, 3)], ["."]),
    ("...i...", [(2, 3)], ["..."]),
    ("ij->...i...", [(2, 3)], ["..."]),
    ("i-j", [(2, 3)], ["-"]),
    ("i - >i", [(2,)], []),
    ("i. ..", [(2,)], ["."]),
    ("i>j", [(2, 3)], [">"]),
    ("ij->ji->ij", [(2, 3)], ["-"]),
    ("i1", [(2, 3)], ["1"]),
    ("iä", [(2, 3)], []),
    ("i,\tj", [(2,), (3,)], []),
    ("ij->j,i", [(2, 3)], [","]),
    ("", [(2, 3)], []),
    (",", [(2, 3)], []),
    ("->", [(2, 3)], []),
    ("->i", [()], ["i"]),
    ("ij" * 1000, [(2, 3)], []),
]


@pytest.mark.parametrize(("spec", "shapes", "named"), WRONG)
@pytest.mark.parametrize("optimize", [False, True])
def test_wrong_subscripts(einsum, spec, shapes, named, optimize):
    operands = [np.ones(shape) for shape in shapes]
    with pytest.raises(ValueError):
        np.einsum(spec, *operands)
    with pytest.raises(ValueError) as caught:
        einsum(spec, *operands, optimize=optimize)
    assert str(caught.value)
    if not DRY_RUN:
        for part in named:
            assert part in str(caught.value), caught.value


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ((), ValueError),
        (("i",), ValueError),
        ((np.ones(3),), ValueError),
        ((np.ones(3), [52]), ValueError),
        ((np.ones(3), [-1]), ValueError),
        ((np.ones(3), [1.0]), TypeError),
        ((np.ones(3), ["i"]), TypeError),
        ((np.ones(3), [None]), TypeError),
        ((np.ones(3), [0], [1]), ValueError),
        ((np.ones(3), [0], [0, 0]), ValueError),
        ((np.ones(3), [0, 1]), ValueError),
        ((np.ones((3, 3)), [Ellipsis, Ellipsis]), ValueError),
    ],
)
def test_wrong_calls(einsum, args, error):
    for function in (np.einsum, einsum):
        with pytest.raises(error):
            function(*args)


@pytest.mark.parametrize(
    ("keyword", "error"),
    [
        ({"order": "X"}, ValueError),
        ({"casting": "sometimes"}, ValueError),
        ({"dtype": "no such type"}, TypeError),
    ],
)
def test_wrong_keywords(einsum, keyword, error):
    for function in (np.einsum, einsum):
        with pytest.raises(error):
            function("i,i", np.ones(3), np.ones(3), **keyword)


@pytest.mark.skipif(DRY_RUN, reason="NumPy raises TypeError")
@pytest.mark.parametrize("keyword", ["unknown", "Out", "axis"])
def test_unknown_keywords(einsum, keyword):
    with pytest.raises(NotImplementedError, match=keyword):
        einsum("i,i", np.ones(3), np.ones(3), **{keyword: None})


@pytest.mark.skipif(DRY_RUN, reason="NumPy raises KeyError, IndexError or RuntimeError for some of these")
@pytest.mark.parametrize(
    "optimize",
    [
        "best",
        "",
        3.5,
        [(0, 1)],
        ["einsum_path"],
        ["einsum_path", (0, 1)],
        ["einsum_path", (0, 7), (0, 1)],
        ["einsum_path", (0, 0), (0, 1)],
        ["einsum_path", (0, -1), (0, 1)],
        ["einsum_path", (0, 1), (0, 1), (0, 1)],
        ["einsum_path", (), (0, 1)],
        ["einsum_path", ("a", 1), (0, 1)],
        ["einsum_path", 3],
        ["other", (0, 1), (0, 1)],
    ],
    ids=str,
)
def test_wrong_paths(einsum, optimize):
    x = np.ones(3)
    with pytest.raises((ValueError, TypeError)):
        einsum("i,i,i", x, x, x, optimize=optimize)


@pytest.mark.parametrize("operand", [None, "text", object(), {}, [1, "a"], [[1.0], [1.0, 2.0]], lambda: 0], ids=str)
def test_operands_that_are_no_arrays(einsum, operand):
    with pytest.raises((ValueError, TypeError, NotImplementedError)):
        einsum("i,i", np.ones(2), operand)


def test_errors_of_an_operand_are_passed_on(einsum):
    class Broken:
        def __array__(self, *args, **kwargs):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        einsum("i,i", np.ones(3), Broken())


def test_results_that_are_too_large(einsum):
    x = np.broadcast_to(np.ones(1), (2**20,))
    with pytest.raises((MemoryError, ValueError)):
        einsum("a,b,c->abc", x, x, x)


# ---- optimize and contract_path


EXPRESSIONS = {
    "ij,jk,kl->il": [(7, 11), (11, 3), (3, 13)],
    "ij,jk,kl,lm->im": [(2, 13), (13, 3), (3, 11), (11, 5)],
    "ab,cd,ef->fedcba": [(2, 3), (3, 2), (2, 2)],
    "abc,bd,cde->ae": [(3, 5, 2), (5, 7), (2, 7, 3)],
    "aab,fa,df,ecc->bde": [(3, 3, 5), (2, 3), (7, 2), (5, 2, 2)],
    "ecb,fef,bad,ed->ac": [(3, 2, 5), (7, 3, 7), (5, 2, 3), (3, 3)],
    "i,ij,jk,k->": [(3,), (3, 5), (5, 7), (7,)],
    "aq,bq,cq->abc": [(2, 5), (3, 5), (7, 5)],
    "bij,bjk,bkl->bil": [(3, 2, 5), (3, 5, 7), (3, 7, 2)],
    "...ab,...bc,cd->...ad": [(2, 3, 5), (2, 5, 7), (7, 2)],
    "ii,jj,ij->": [(3, 3), (5, 5), (3, 5)],
    "a,b,c,d->": [(2,), (3,), (5,), (7,)],
    "abi,bcj,cdk,dal->ijkl": [(2, 3, 2), (3, 2, 3), (2, 5, 2), (5, 2, 3)],
    "ij,ij,ij->ij": [(3, 5)] * 3,
    "ij,ji->": [(3, 5), (5, 3)],
    "ij->ji": [(3, 5)],
    "i,->i": [(3,), ()],
    "ij,jk,jl->": [(3, 1), (5, 7), (5, 2)],
}


def arrays_of(spec: str) -> list[np.ndarray]:
    source = np.random.default_rng(len(spec))
    return [source.integers(-4, 5, shape).astype(float) for shape in EXPRESSIONS[spec]]


def steps_of(path: list) -> list[tuple]:
    return [tuple(step) for step in path if step != "einsum_path"]


def cost(spec: str, shapes: list[tuple], path: list, sums_first: bool) -> int:
    """The operations of a path, counted as NumPy does: each step multiplies its operands, and adds if it sums.

    With `sums_first`, what only one operand has is summed before anything is multiplied, as Certen does.
    """
    inputs, _, output = spec.replace(" ", "").partition("->")
    sizes, terms = {}, []
    for labels, shape in zip(inputs.split(","), shapes, strict=True):
        outer = len(shape) - len(labels.replace("...", ""))
        labels = labels.replace("...", "".join(chr(0x3B1 + at) for at in range(outer)))
        terms.append(set(labels))
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    kept = {label for label in sizes if label in output or ord(label) >= 0x3B1}
    total = 0
    for step in steps_of(path):
        used = [terms.pop(at) for at in sorted(step, reverse=True)]
        union = set().union(*used)
        left = union & kept.union(*terms)
        for at, term in enumerate(used if sums_first else []):
            alone = term - left.union(*used[:at], *used[at + 1 :])
            if alone:
                total += int(np.prod([sizes[label] for label in term]))
                used[at] = term - alone
        union = set().union(*used)
        if sums_first and len(step) == 1:
            terms.append(left)
            continue
        factor = max(1, len(step) - 1) + (union != left)
        total += factor * int(np.prod([sizes[label] for label in union]))
        terms.append(left)
    assert len(terms) == 1, "the path leaves operands"
    return total


@pytest.mark.parametrize("optimize", [True, "optimal", "greedy", False])
@pytest.mark.parametrize("spec", EXPRESSIONS)
def test_contract_path(einsum, contract_path, spec, optimize):
    arrays = arrays_of(spec)
    shapes = [array.shape for array in arrays]
    path, text = contract_path(spec, *arrays, optimize=optimize)
    assert isinstance(text, str) and text.strip()
    theirs = np.einsum_path(spec, *arrays, optimize=optimize)[0]
    assert cost(spec, shapes, path, sums_first=True) >= 0
    if optimize == "optimal":
        assert cost(spec, shapes, path, sums_first=True) <= cost(spec, shapes, theirs, sums_first=False)
    want = np.einsum(spec, *arrays)
    for given in (path, theirs, optimize):
        assert difference(einsum(spec, *arrays, optimize=given), want, 0.0) is None, given


def test_contract_path_of_the_interleaved_form(contract_path):
    a, b, c = arrays_of("ij,jk,kl->il")
    path, _ = contract_path(a, [0, 1], b, [1, 2], c, [2, 3], [0, 3], optimize="optimal")
    assert steps_of(path) == steps_of(contract_path("AB,BC,CD->AD", a, b, c, optimize="optimal")[0])


def test_contract_path_refuses_what_einsum_refuses(contract_path):
    for args in (("ij,jk", np.ones((2, 3)), np.ones((4, 5))), ("ij->k", np.ones((2, 3))), ("ij", np.ones(3))):
        with pytest.raises(ValueError):
            contract_path(*args)


@pytest.mark.parametrize("seed", range(40))
def test_optimal_paths_of_random_expressions(contract_path, einsum, seed):
    source = np.random.default_rng(seed)
    letters = [chr(ord("a") + at) for at in range(source.integers(3, 8))]
    sizes = {letter: int(source.choice([2, 3, 5, 7])) for letter in letters}
    terms = [source.permutation(letters)[: source.integers(1, 4)] for _ in range(source.integers(3, 6))]
    used = sorted({letter for term in terms for letter in term})
    output = "".join(source.permutation(used)[: source.integers(0, 3)])
    spec = ",".join("".join(term) for term in terms) + "->" + output
    arrays = [source.integers(-2, 3, [sizes[letter] for letter in term]) for term in terms]
    shapes = [array.shape for array in arrays]
    ours = contract_path(spec, *arrays, optimize="optimal")[0]
    theirs = np.einsum_path(spec, *arrays, optimize="optimal")[0]
    assert cost(spec, shapes, ours, sums_first=True) <= cost(spec, shapes, theirs, sums_first=False), spec
    assert np.array_equal(einsum(spec, *arrays, optimize=ours), np.einsum(spec, *arrays))


# ---- large and repeated calls


LARGE = {
    "ij,jk->ik": [(131, 67), (67, 97)],
    "ij->": [(1009, 103)],
    "ij->j": [(1009, 103)],
    "ij,ij->": [(1009, 103), (1009, 103)],
    "bij,bjk->bik": [(5, 61, 43), (5, 43, 37)],
    "ijkl,klmn->mnij": [(7, 11, 13, 5), (13, 5, 3, 11)],
    "iij,jk->ik": [(61, 61, 7), (7, 23)],
    "ijk,il,jm,kn->lmn": [(17, 13, 11), (17, 5), (13, 3), (11, 7)],
}


@pytest.mark.parametrize("spec", LARGE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_large_operands(einsum, spec, dtype):
    source, rng = np.random.default_rng(3), random.Random(3)
    arrays = [source.integers(-9, 10, shape).astype(dtype) for shape in LARGE[spec]]
    # No sum reaches 2^24, so float32 is exact too.
    want = np.einsum(spec, *arrays, optimize=True)[()]
    assert difference(einsum(spec, *arrays), want, 0.0) is None
    for layout in ("F", "steps", "negative", "misaligned"):
        operands = [laid_out(array, layout, rng) for array in arrays]
        assert difference(einsum(spec, *operands), want, 0.0) is None, layout


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("spec", ["ij,jk->ik", "ij,kj->ik", "ij,jk,kl->il", "ij->i", "ij,ij->"])
def test_every_call_gives_the_same_bits(einsum, spec, dtype):
    """A call that is made often is compiled at some point. Nobody may notice."""
    source = np.random.default_rng(7)
    arrays = [source.standard_normal((37, 37)).astype(dtype) for _ in range(spec.count(",") + 1)]
    first = einsum(spec, *arrays).tobytes()
    for turn in range(400):
        assert einsum(spec, *arrays).tobytes() == first, turn


def test_the_same_subscripts_with_other_operands(einsum):
    """What is remembered of a call fits no other one: shapes, types, layouts and options change in between."""
    rng = random.Random(17)
    for turn in range(600):
        spec = rng.choice(("ij,jk->ik", "ij,jk", "...j,jk->...k"))
        i, j, k = (rng.choice((1, 2, 3, 5)) for _ in range(3))
        shapes = [(i, rng.choice((1, j))), (rng.choice((1, j)), k)]
        if rng.random() < 0.1:
            shapes[0] = (i, j + 1)
        arrays = [
            np.array([rng.randint(-9, 9) for _ in range(int(np.prod(shape)))], rng.choice(DTYPES)).reshape(shape)
            for shape in shapes
        ]
        operands = [laid_out(array, rng.choice(LAYOUTS), rng) for array in arrays]
        kwargs = {} if rng.random() < 0.5 else {"optimize": rng.choice((False, True, "greedy", "optimal"))}
        try:
            want = np.einsum(spec, *operands)
        except ValueError:
            with pytest.raises(ValueError):
                einsum(spec, *operands, **kwargs)
        else:
            assert difference(einsum(spec, *operands, **kwargs), want, 0.0) is None, (turn, spec, shapes)


@pytest.mark.skipif(DRY_RUN, reason="NumPy's sums depend on layouts")
@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "spec", ["ij,jk->ik", "ij,kj->ki", "ij->", "ij->i", "ij->j", "ji->i", "ij,ij->", "ij,ij->j", "ij,j->i", "ij,ji->"]
)
def test_layouts_do_not_change_bits(einsum, spec, dtype, optimize):
    """The order of additions follows from the subscripts and the sizes alone."""
    source, rng = np.random.default_rng(9), random.Random(9)
    for i, j, k in ((29, 31, 23), (8, 16, 1), (3, 100, 5)):
        sizes = {"i": i, "j": j, "k": k}
        arrays = [
            source.standard_normal([sizes[label] for label in term]).astype(dtype)
            for term in spec.partition("->")[0].split(",")
        ]
        first = einsum(spec, *arrays, optimize=optimize).tobytes()
        for layout in ("F", "transposed", "steps", "negative", "misaligned", "field", "swapped", "read-only"):
            operands = [laid_out(array.copy(), layout, rng) for array in arrays]
            got = einsum(spec, *operands, optimize=optimize)
            assert got.tobytes() == first, layout
            out = laid_out(np.zeros(got.shape, dtype), "transposed", rng)
            einsum(spec, *operands, optimize=optimize, out=out)
            assert out.tobytes() == first, layout


@pytest.mark.slow
@pytest.mark.skipif(DRY_RUN, reason="of Certen")
def test_a_small_product_is_fast():
    """The best of many batches: other work on the machine makes calls slower, never faster."""
    import certen

    limit = 10e-6 if certen._certen.__profile__ == "release" else 40e-6
    a, b = np.ones((4, 4)), np.ones((4, 4))
    best = np.inf
    for _ in range(200):
        start = time.perf_counter()
        for _ in range(50):
            certen.einsum("ij,jk->ik", a, b)
        best = min(best, (time.perf_counter() - start) / 50)
        if best < limit / 2:
            break
    assert best < limit, f"{best * 1e6:.1f} µs"


# ---- compiled contractions


def sizes_of(spec: str, rng: random.Random, choices: tuple) -> dict[str, int]:
    return {label: rng.choice(choices) for label in sorted(set(spec) - set(",->"))}


def operands_of(spec: str, sizes: dict[str, int], source: np.random.Generator, dtype: str) -> list[np.ndarray]:
    terms = spec.partition("->")[0].split(",")
    shapes = [tuple(sizes[label] for label in term) for term in terms]
    if dtype[0] == "i":
        limits = np.iinfo(dtype)
        return [source.integers(limits.min, limits.max, shape, dtype) for shape in shapes]
    return [source.standard_normal(shape).astype(dtype) for shape in shapes]


# Sizes with some ten million operations.
FORMS = {
    "ij,jk->ik": {"i": 211, "j": 223, "k": 227},
    "ij,kj->ik": {"i": 211, "j": 223, "k": 227},
    "ji,jk->ki": {"i": 211, "j": 223, "k": 227},
    "ij,jk,kl->il": {"i": 151, "j": 157, "k": 163, "l": 167},
    "bij,bjk->bik": {"b": 11, "i": 97, "j": 101, "k": 103},
    "aij,jk->aki": {"a": 11, "i": 97, "j": 101, "k": 103},
    "abij,ijcd->abcd": {"a": 13, "b": 17, "i": 11, "j": 19, "c": 13, "d": 17},
    "iij,jk->ik": {"i": 97, "j": 31, "k": 2003},
    "ij,j->i": {"i": 2003, "j": 2011},
    "ij,i->j": {"i": 2003, "j": 2011},
    "ij,ij->": {"i": 2003, "j": 2011},
    "ij,ij->i": {"i": 2003, "j": 2011},
    "ij->": {"i": 3001, "j": 3011},
    "ij->i": {"i": 3001, "j": 3011},
    "ij->j": {"i": 3001, "j": 3011},
    "ij,ji->": {"i": 2003, "j": 2011},
    "i,j,ij->": {"i": 2003, "j": 2011},
    "ijk,il,jm->lmk": {"i": 41, "j": 43, "k": 47, "l": 37, "m": 31},
}


def compiled_agrees(spec: str, dtype: str) -> dict:
    """Makes a call so often that it is compiled, and compares small calls from before with the same ones after."""
    import certen

    rng, source = random.Random(spec), np.random.default_rng(len(spec))
    calls = []
    for _ in range(60):
        operands = operands_of(spec, sizes_of(spec, rng, (0, 1, 2, 3, 7, 8, 9, 16, 17, 31)), source, dtype)
        layout = rng.choice(("C", "C", "F", "steps", "negative", "zero strides", "misaligned", "field", "swapped"))
        operands = [laid_out(operand, layout, rng) for operand in operands]
        # The letters do not count, only where they stand.
        names = dict(zip("abcdijklm", rng.sample(string.ascii_letters, 9), strict=True))
        calls.append((spec if "->" not in spec else "".join(names.get(c, c) for c in spec), operands, layout))
    before = [np.asarray(certen.einsum(text, *operands)).tobytes() for text, operands, _ in calls]
    large = operands_of(spec, FORMS[spec], source, dtype)
    cache = Path(os.environ["CERTEN_CACHE"])
    found, first, turns, wrong = 0, None, 0, []
    while not found and turns < 600:
        turns += 1
        result = np.asarray(certen.einsum(spec, *large)).tobytes()
        first = first or result
        if result != first:
            wrong.append(f"call {turns} has other bits than the first")
        found = sum(1 for _ in cache.rglob("*.so")) if cache.exists() else 0
    for (text, operands, layout), old in zip(calls, before, strict=True):
        new = np.asarray(certen.einsum(text, *operands))
        if new.tobytes() != old:
            wrong.append(f"{text} {[operand.shape for operand in operands]} {layout}: other bits once it is compiled")
        want = np.einsum(text, *operands)
        if dtype[0] == "i" and not np.array_equal(new, want):
            wrong.append(f"{text} {[operand.shape for operand in operands]} {layout}: not what NumPy gives")
    for threads in (1, 2, 3):
        certen.set_threads(threads)
        if np.asarray(certen.einsum(spec, *large)).tobytes() != first:
            wrong.append(f"other bits with {threads} threads")
    if dtype[0] == "i" and first != np.einsum(spec, *large, optimize=True).tobytes():
        wrong.append("the large call is not what NumPy gives")
    return {"compiled after": turns if found else None, "wrong": wrong}


FEW = ("ij,jk->ik", "ij,i->j")


@pytest.mark.skipif(DRY_RUN, reason="NumPy compiles nothing")
@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize(
    "spec", [spec if spec in FEW else pytest.param(spec, marks=pytest.mark.slow) for spec in FORMS]
)
def test_compiled_contractions_have_the_same_bits(spec, dtype, own_cache):
    script = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_einsum
print(json.dumps(test_einsum.compiled_agrees({spec!r}, {dtype!r})))
"""
    told = json.loads(run_python(script).splitlines()[-1])
    assert not told["wrong"]
    if spec == "ij,i->j":
        assert told["compiled after"], "never compiled"
