"""Schedules from Python: chosen, listed, explained, pickled, and refused."""

import pickle

import numpy as np
import pytest

import certen

BLUR = """
fn blur(x: f64[h, w]) -> f64[h-2, w-2] where h >= 2, w >= 2 {
    let rows = { [i, j] -> x[i, j] + x[i, j+1] + x[i, j+2] };
    { [i, j] -> rows[i, j] + rows[i+1, j] + rows[i+2, j] }
}

schedule blur {
    split(i, 4);
}

schedule tiled for blur {
    split(i, 4);
    split(j, 3);
    interchange(i.i, j.o);
}
"""

X = np.arange(11.0 * 7).reshape(11, 7) ** 2


def blurred(x):
    rows = x[:, :-2] + x[:, 1:-1] + x[:, 2:]
    return rows[:-2] + rows[1:-1] + rows[2:]


@pytest.fixture(scope="module")
def blur():
    return certen.compile(BLUR)


def loops(kernel):
    return kernel.explain("loops")


def test_the_schedule_of_the_text_is_taken_unless_another_is_chosen(blur):
    assert blur.steps == ("split(i, 4)",)
    assert "for i.o in" in loops(blur)
    plain = blur.schedule("none")
    assert plain.steps == () and "i.o" not in loops(plain)
    tiled = blur.schedule("tiled")
    assert tiled.steps == ("split(i, 4)", "split(j, 3)", "interchange(i.i, j.o)")
    assert certen.compile(BLUR, schedule="tiled").steps == tiled.steps
    own = blur.schedule("split(rows.j, 2)")
    assert "for j.o in" in loops(own) and "i.o" not in loops(own)
    for kernel in (blur, plain, tiled, own):
        assert np.array_equal(kernel(X), blurred(X))


def test_schedules_are_listed(blur):
    assert blur.schedules == {
        None: ("split(i, 4)",),
        "tiled": ("split(i, 4)", "split(j, 3)", "interchange(i.i, j.o)"),
    }
    assert certen.compile("fn f(x: f64[n]) -> f64[n] { x }").schedules == {}


def test_a_kernel_keeps_what_it_was_compiled_with():
    kernel = certen.compile(BLUR, symbolic=True, parallel=False, threads=1, fp="strict")
    other = kernel.schedule("split(i, 2)")
    assert other.source == kernel.source and other.filename == kernel.filename and other.name == kernel.name
    assert other.schedules == kernel.schedules
    assert kernel.steps == ("split(i, 4)",), "the kernel itself does not change"


@pytest.mark.parametrize("what", [None, "none", "tiled", "split(i, 2); split(j, 5)"])
def test_pickled_kernels_keep_their_schedule(what):
    kernel = certen.compile(BLUR, schedule=what)
    again = pickle.loads(pickle.dumps(kernel))
    assert again.steps == kernel.steps
    assert np.array_equal(again(X), blurred(X))


def test_a_schedule_in_a_file(tmp_path, blur):
    path = tmp_path / "fast.schedule"
    path.write_text("// What blur likes.\nschedule blur {\n    split(j, 2);\n}\n")
    kernel = blur.schedule(path)
    assert kernel.steps == ("split(j, 2)",)
    path.unlink()
    assert pickle.loads(pickle.dumps(kernel)).steps == ("split(j, 2)",)
    with pytest.raises(FileNotFoundError):
        blur.schedule(path)
    with pytest.raises(ValueError, match=r"pathlib\.Path"):
        blur.schedule(str(path))


def test_the_steps_are_explained(blur):
    text = blur.explain("steps")
    assert "1. split(i, 4)" in text and "bounds and races: proved" in text
    assert "for i in 0..h - 2" in text and "for i.i in" in text


@pytest.mark.parametrize(
    ("what", "code", "said"),
    [
        ("split(i, 0)", "E0801", "the size of a block is at least 1"),
        ("splitt(i, 4)", "E0801", "did you mean `split`?"),
        ("split(q, 4)", "E0802", "for i in 0..h - 2"),
        ("split(i 4)", "E0103", "expected `,` or `)`"),
        ("slow", "E0802", "`tiled`"),
        ("interchange(rows.i, result.j)", "E0803", ">"),
    ],
)
def test_what_is_wrong_is_said_at_once(blur, what, code, said):
    for refused in (lambda: blur.schedule(what), lambda: certen.compile(BLUR, schedule=what)):
        with pytest.raises(certen.CompileError) as raised:
            refused()
        assert raised.value.code == code
        assert said in raised.value.rendered


def test_what_is_no_schedule_is_a_type_error(blur):
    for wrong in (3, None, ["split(i, 4)"]):
        with pytest.raises(TypeError, match="a schedule is a text"):
            blur.schedule(wrong)


def test_other_dialects_have_schedules_too():
    text = "var A : [m n]\nvar B : [m n]\nB = A + A\n"
    kernel = certen.compile(text, dialect="model", schedule="split(i1, 3)")
    assert kernel(np.ones((4, 5))).tolist() == [[2.0] * 5] * 4


def test_open_ranks_are_scheduled_when_they_are_known():
    kernel = certen.compile("fn twice(x: f64[s...]) -> f64[s...] { 2 * x }\nschedule twice { split(i, 3); }")
    assert list(kernel.schedules) == [None]
    assert kernel(np.arange(8.0)).tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


def test_the_compiler_writes_schedules():
    text = "fn mm(A: f64[m, p], B: f64[p, n]) -> f64[m, n] { { [i, j] -> sum({ [k] -> A[i, k] * B[k, j] }) } }"
    plain, auto = certen.compile(text, schedule="none"), certen.compile(text)
    assert auto.steps == certen.compile(text, schedule="auto").steps
    assert not plain.steps and any(step.startswith("tile(") for step in auto.steps)
    assert "stay in registers" in auto.explain("schedule")
    again = pickle.loads(pickle.dumps(auto))
    for m, p, n in [(3, 4, 5), (0, 3, 4), (41, 9, 65), (33, 1, 70), (8, 8, 32)]:
        # Small whole numbers: no order of operations rounds.
        a, b = np.arange(m * p, dtype=float).reshape(m, p) % 7, np.arange(p * n, dtype=float).reshape(p, n) % 5
        assert np.array_equal(auto(a, b), a @ b) and np.array_equal(again(a, b), a @ b)
