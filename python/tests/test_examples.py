"""Every kernel of `examples`, called from Python, gives what the NumPy function beside it gives.

Inputs at the sizes of `expected.json` are made as `make_expected.py` makes them; for other sizes, the recipe of each
argument is asked for other shapes. As in `crates/certen/tests/examples.rs`, elements may differ by 1e-12 times the
largest one of their tensor.
"""

import inspect
import json
import re
import zlib

import numpy as np
import pytest
from conftest import EXAMPLES, load, parameters

import certen

TOLERANCE = 1e-12
MAKE = load(EXAMPLES / "make_expected.py")
EXPECTED = json.loads((EXAMPLES / "expected.json").read_text())
TYPES = {"f64": "float64", "bool": "bool", "u8": "uint8"}
# Sizes that names stand for, instead of those that are in `make_expected.py`; one round each.
ROUNDS = [(2, 3, 5, 4, 7, 6), (7, 5, 3, 2, 4, 11), (13, 11, 6, 17, 5, 3), (5, 5, 5, 5, 5, 5), (9, 14, 10, 8, 12, 16)]


def array(stored: dict) -> np.ndarray:
    """An array as `expected.json` has it."""
    return np.array(stored["data"], TYPES[stored["type"]]).reshape(stored["shape"])


def near(got, want) -> None:
    """Fails unless results agree."""
    got, want = (value if isinstance(value, tuple) else (value,) for value in (got, want))
    assert len(got) == len(want)
    for ours, theirs in zip(got, want, strict=True):
        theirs = np.asarray(theirs)
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        if theirs.dtype.kind != "f":
            assert np.array_equal(ours, theirs)
            continue
        finite = np.abs(theirs[np.isfinite(theirs)])
        largest = finite.max() if finite.size else 0.0
        with np.errstate(invalid="ignore"):
            same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)) | (abs(ours - theirs) <= TOLERANCE * largest)
        assert np.all(same), f"{np.argwhere(~same)[:3]}"


def compiled(name: str, **options):
    return certen.compile(EXAMPLES / f"{name}.ten", fn=name.split("/")[1], **options)


def recipes(name: str, sizes: tuple[int, ...]) -> dict | None:
    """The arguments of a kernel at other sizes: its recipes, with the sizes of its type replaced.

    A recipe is a closure over the shape, whose sizes stand in the kernel's text by name. None if a size is not a name.
    """
    text = re.sub(r"//.*", "", (EXAMPLES / f"{name}.ten").read_text())
    header = re.search(rf"fn {name.split('/')[1]}\((.*?)\)\s*(->|where|{{)", text, re.DOTALL).group(1)
    types = dict(re.findall(r"(\w+):\s*\w+(?:\[(.*?)\])?", header))
    chosen: dict[str, int] = {}
    arguments = {}
    for key, recipe in MAKE.CASES[name].items():
        if not callable(recipe):
            arguments[key] = recipe
            continue
        shape = []
        for part in types[key].split(","):
            for symbol in re.findall(r"[A-Za-z]\w*", part):
                chosen.setdefault(symbol, sizes[len(chosen) % len(sizes)])
            if re.search(r"[^\w\s*+-]", part):
                return None
            shape.append(eval(part, {}, dict(chosen)))
        make = re.match(r"(\w+)", recipe.__qualname__).group(1)
        make = getattr(MAKE, make)
        arguments[key] = (
            make(shape[0]) if make in (MAKE.dominant, MAKE.lower, MAKE.roads, MAKE.lattice) else make(*shape)
        )
    return arguments


def values(name: str, arguments: dict) -> dict:
    """Arguments as both functions take them."""
    return {
        key: value(zlib.crc32(f"{name}/{key}".encode())) if callable(value) else value
        for key, value in arguments.items()
    }


@pytest.mark.parametrize("name", sorted(MAKE.CASES))
def test_agrees_with_numpy(name):
    kernel = compiled(name)
    arguments = values(name, MAKE.CASES[name])
    case = EXPECTED[name]
    for key, stored in case["inputs"].items():
        assert np.array_equal(arguments[key], array(stored)), "expected.json is old"
    got = kernel(**arguments)
    near(got, tuple(map(array, case["outputs"])))
    near(got, MAKE.kernel(name)(**arguments))
    assert parameters(kernel) == list(inspect.signature(MAKE.kernel(name)).parameters)
    near(kernel(*arguments.values()), got)


@pytest.mark.parametrize("name", sorted(MAKE.CASES))
def test_a_symbolic_kernel_has_the_same_bits(name):
    arguments = values(name, MAKE.CASES[name])
    special, general = compiled(name)(**arguments), compiled(name, symbolic=True)(**arguments)
    special, general = (value if isinstance(value, tuple) else (value,) for value in (special, general))
    assert [part.tobytes() for part in special] == [part.tobytes() for part in general]


def other_sizes(name: str, rounds: list, **options) -> int:
    """How many of some rounds of sizes a kernel takes; they have to agree."""
    kernel, reference, ran = compiled(name, **options), MAKE.kernel(name), 0
    for sizes in rounds:
        arguments = recipes(name, sizes)
        if arguments is None:
            continue
        given = values(name, arguments)
        try:
            got = kernel(**given)
        except certen.ArgumentValueError as error:
            # Only a `where` clause may refuse sizes that fit each other.
            assert error.code == "E0409", error
            continue
        try:
            with np.errstate(all="ignore"):
                want = reference(**given)
        except ValueError:
            # NumPy has no windows that are larger than an image; here there are just none.
            continue
        near(got, want)
        ran += 1
    return ran


@pytest.mark.parametrize("name", sorted(MAKE.CASES))
def test_agrees_with_numpy_at_other_sizes(name):
    assert other_sizes(name, ROUNDS, symbolic=True) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MAKE.CASES))
def test_special_kernels_agree_with_numpy_at_other_sizes(name):
    assert other_sizes(name, ROUNDS) > 0


@pytest.mark.parametrize("name", sorted(MAKE.CASES))
def test_layouts_and_out(name):
    """The same arrays in another order of memory, and results in memory that is given."""
    kernel = compiled(name)
    arguments = values(name, MAKE.CASES[name])
    first = kernel(**arguments)
    turned = {key: value.copy(order="F")[::-1][::-1] if np.ndim(value) else value for key, value in arguments.items()}
    backwards = {key: value[::-1].copy()[::-1] if np.ndim(value) else value for key, value in arguments.items()}
    parts = first if isinstance(first, tuple) else (first,)
    outs = tuple(np.full(np.shape(part), 77).astype(part.dtype, order="F") for part in parts)
    for given in (turned, backwards):
        again = kernel(**given, out=outs if len(outs) > 1 else outs[0])
        again = again if isinstance(again, tuple) else (again,)
        assert all(ours is out for ours, out in zip(again, outs, strict=True))
        assert all(np.array_equal(out, part, equal_nan=True) for out, part in zip(outs, parts, strict=True))
