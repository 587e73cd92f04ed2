"""`@certen.kernel`: programs in docstrings."""

import inspect
import pickle

import numpy as np
import pytest

import certen


@certen.kernel
def scale(x, factor):
    """Every element times a factor.

    fn scale(x: f64[n], factor: f64) -> f64[n] {
        factor * x
    }
    """


@certen.kernel(fp="strict", parallel=False)
def smooth(x):
    """
    The weighted mean of three neighbours.

    const WEIGHTS = [0.25, 0.5, 0.25];

    fn smooth(x: f64[n]) -> f64[n-2] where n >= 2 {
        { [i] -> sum({ [r] -> WEIGHTS[r] * x[i+r] }) }
    }
    """


@certen.kernel
def repeat_rows(x, rows):
    """fn repeat_rows(x: f64[n], rows: size) -> f64[rows, n] where rows >= 0 { { [i, j] -> x[j] | i < rows } }"""


@pytest.mark.parametrize("size", [7, 1, 0])
def test_the_kernel_computes(size):
    values = np.arange(size) + 0.5
    np.testing.assert_array_equal(scale(values, 3.0), values * 3)
    np.testing.assert_array_equal(scale(x=values, factor=2.0), values * 2)
    np.testing.assert_array_equal(repeat_rows(values, rows=5), np.tile(values, (5, 1)))
    if size >= 2:
        np.testing.assert_allclose(smooth(values), np.convolve(values, [0.25, 0.5, 0.25], "valid"))


def test_the_kernel_looks_like_the_function():
    assert isinstance(scale, certen.Kernel)
    assert scale.name == scale.__name__ == scale.__qualname__ == "scale"
    assert scale.__module__ == __name__
    assert scale.__doc__.startswith("Every element times a factor.")
    assert inspect.isfunction(scale.__wrapped__)
    assert list(inspect.signature(scale).parameters) == ["x", "factor"]
    assert scale.source == "fn scale(x: f64[n], factor: f64) -> f64[n] {\n    factor * x\n}\n"
    assert smooth.source.startswith("const WEIGHTS = [0.25, 0.5, 0.25];\n\nfn smooth(")


def test_it_is_pickled_by_its_program():
    again = pickle.loads(pickle.dumps(scale))
    assert again.source == scale.source
    np.testing.assert_array_equal(again(np.ones(3), 2.0), 2 * np.ones(3))


def test_one_of_several_functions():
    @certen.kernel
    def second(x):
        """Functions of one program may use each other.

        fn first(x: f64[n]) -> f64[n] { x + 1 }

        fn second(x: f64[n]) -> f64[n] { 2 * first(x) }
        """

    np.testing.assert_array_equal(second(np.zeros(3)), np.full(3, 2.0))


def test_a_program_in_a_block_of_markdown():
    @certen.kernel
    def half(x):
        """Half of it.

        ```ten
        fn half(x: f64[n]) -> f64[n] {
            x / 2
        }
        ```

        fn is how functions begin.
        """

    assert half.source == "fn half(x: f64[n]) -> f64[n] {\n    x / 2\n}\n"


def refused(function, error=ValueError):
    with pytest.raises(error) as caught:
        certen.kernel(function)
    return str(caught.value)


def test_no_docstring():
    def f(x):
        return x

    assert refused(f).startswith("f has no docstring with a program")


def test_no_program():
    def f(x):
        """Doubles x."""

    assert refused(f) == (
        "the docstring of f has no program: no line begins with `fn`, as in `fn f(x: f64[n]) -> f64[n] { 2 * x }`"
    )


def test_another_name():
    def f(x):
        """fn g(x: f64[n]) -> f64[n] { x }"""

    assert refused(f) == "the program in the docstring of f defines g, but no function f"


def test_a_parameter_that_python_has_not():
    def f(x):
        """fn f(x: f64[n], y: f64[n]) -> f64[n] { x + y }"""

    assert refused(f) == "the program of f has a parameter y, and def f(x) has not"


def test_a_parameter_that_the_program_has_not():
    def f(x, y):
        """fn f(x: f64[n]) -> f64[n] { x }"""

    assert refused(f).startswith("def f has a parameter y, and its program has not:")


def test_another_order():
    def f(y, x):
        """fn f(x: f64[n], y: f64[n]) -> f64[n] { x - y }"""

    assert refused(f) == (
        "the parameters of f stand in another order than in its program: y, x in Python, x, y in the program"
    )


def test_defaults_and_stars():
    def f(x, y=1.0):
        """fn f(x: f64[n], y: f64) -> f64[n] { y * x }"""

    assert refused(f) == "the parameter y of f has a default, which a kernel cannot have"

    def g(*x):
        """fn g(x: f64[n]) -> f64[n] { x }"""

    assert refused(g) == "g takes the parameters of its program, not *x"


def test_no_function():
    assert refused(3, TypeError).startswith("@certen.kernel is for a function with a program in its docstring")

    class Program:
        """fn Program(x: f64[n]) -> f64[n] { x }"""

    assert "not for <class" in refused(Program, TypeError)


def test_what_the_compiler_refuses_names_the_function():
    def f(x):
        """Reads one element too far.

        fn f(x: f64[n]) -> f64[n] {
            { [i] -> x[i+1] | i < n }
        }
        """

    with pytest.raises(certen.CompileError) as caught:
        certen.kernel(f)
    assert caught.value.code == "E0207"
    assert f"{__name__}.{f.__qualname__}" in str(caught.value)


def test_options_are_those_of_compile():
    with pytest.raises(TypeError, match="no_such_option"):
        certen.kernel(no_such_option=1)(scale.__wrapped__)


def test_prose_is_no_program():
    @certen.kernel
    def twice(x):
        """Doubles.

        fn twice is short; const would be, too.

        fn twice(x: f64[n]) -> f64[n] { 2 * x }
        """

    assert twice([1.5]) == [3.0]


def test_imports_need_a_file():
    def lost(x):
        """
        import "shapes.ten";
        fn lost(x: f64[n]) -> f64[n] { shape(x) }
        """

    with pytest.raises(ValueError, match="imports a file"):
        certen.kernel(lost)


@pytest.mark.parametrize("option", ["fn", "name"])
def test_the_function_says_its_name(option):
    with pytest.raises(TypeError, match=f"no option {option}"):
        certen.kernel(**{option: "other"})
