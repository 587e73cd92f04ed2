"""Arguments that change others, forks and the end of Python at bad moments, files that change, sizes without end.

What a caller can do to a call is in `test_hostile.py`; here is what happens around it.
"""

import pathlib
import pickle
import platform
import threading
import time

import numpy as np
import pytest
from conftest import run_python

import certen

ADD = certen.compile("fn add(x: f64[n], y: f64[n]) -> f64[n] { x + 2 * y }")
RAMP = certen.compile("fn ramp(n: size) -> i64[n] where n >= 0 { { [i] -> i | i < n } }")


class Acting:
    """An argument that does something when it is asked for its array."""

    def __init__(self, action, value):
        self.action, self.value = action, value

    def __array__(self, dtype=None, copy=None):
        self.action()
        return self.value


# ---- arguments that change other arguments


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.resize(3, refcheck=False),
        lambda x: x.resize(600_000, refcheck=False),
        lambda x: setattr(x, "shape", (2, 3)),
        lambda x: setattr(x, "dtype", "i8"),
        lambda x: setattr(x, "dtype", ">f8"),
        lambda x: setattr(x, "strides", (0,)),
        lambda x: x.setflags(write=False),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_argument_that_changes_another_one(change):
    x = np.arange(6.0)
    try:
        result = ADD(x, Acting(lambda: change(x), np.ones(6)))
    except certen.Error as error:
        assert str(error)
    except RuntimeError as error:
        assert "changed" in str(error)
    else:
        # It was seen before or after the change.
        assert result.shape == (6,)
        assert any(np.array_equal(result, seen + 2) for seen in (np.arange(6.0), np.zeros(6), np.asarray(x, float)))
    assert np.array_equal(ADD(np.arange(6.0), np.ones(6)), np.arange(6.0) + 2)


# ---- what arguments raise


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, RecursionError, ZeroDivisionError])
def test_what_an_argument_raises_is_raised(error):
    class Raising:
        def __index__(self):
            raise error("mine")

        def __array__(self, dtype=None, copy=None):
            raise error("mine")

        def __fspath__(self):
            raise error("mine")

    for call in (
        lambda: RAMP(n=Raising()),
        lambda: ADD(Raising(), np.ones(3)),
        lambda: certen.compile(Raising()),
        lambda: certen.einsum("i,i", Raising(), np.ones(3)),
    ):
        with pytest.raises(error, match="mine"):
            call()


# ---- the interpreter's lock


@pytest.mark.slow
@pytest.mark.parametrize("what", ["copy", "pack", "einsum", "compare"])
def test_other_threads_go_on_while_elements_are_moved(what):
    """Work without arithmetic is work."""
    x = np.ones((4000, 5000))
    out = np.zeros((5000, 4000))
    turn = certen.compile("fn turn(x: f64[n, m]) -> f64[m, n] { { [i, j] -> x[j, i] } }")
    same = certen.compile("fn same(x: f64[n, m]) -> f64[n, m] { x }")
    below = certen.compile("fn below(x: f64[n, m]) -> bool[n, m] { { [i, j] -> x[i, j] < 2 } }")
    calls = {
        "copy": lambda: turn(x, out=out, threads=1),
        "pack": lambda: same(x[::-1, ::-1], threads=1),
        "einsum": lambda: certen.einsum("ij->ji", x, out=out),
        "compare": lambda: below(x, threads=1),
    }
    turn(x[:2, :2])
    same(x[:2, :2])
    below(x[:2, :2])
    calls[what]()
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.perf_counter()
    for _ in range(5):
        calls[what]()
    end = time.perf_counter()
    stop.set()
    ticker.join()
    inside = [start, *(at for at in ticks if start < at < end), end]
    longest = max(later - earlier for earlier, later in zip(inside, inside[1:], strict=False))
    assert longest < 0.6 * (end - start) / 5, f"nothing for {longest:.3f} s of {(end - start) / 5:.3f} s a call"


# ---- forks and imports


FORKED = """
import os, signal, sys, threading, time
import numpy as np
import certen

lets = "".join(f"let a{at + 1} = a{at} * 1.5 + {at}; " for at in range(150))
i = certen.index("i")
bad = 0
for turn in range(8):
    if sys.argv[1] == "module":
        module = certen.compile("fn f(a0: f64[n]) -> f64[n] { " + lets + "a150 }\\nfn g(x: f64) -> f64 { x }")
        ask = lambda: module.f
    elif sys.argv[1] == "function":
        x = certen.tensor("x", "f64", "n")
        value = x[i]
        for at in range(120):
            value = value * 1.5 + at
        d = certen.define("d")
        d[i] = value
        f = certen.function(d, name="f")
        ask = lambda: f.kernel()
    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.002 * (turn + 1))
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            assert ask()(np.ones(3)).shape == (3,)
        except BaseException as error:
            print(turn, repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    bad += os.waitpid(child, 0)[1] != 0
    thread.join()
print("bad", bad)
"""


@pytest.mark.parametrize("what", ["module", "function"])
def test_a_fork_while_another_thread_asks_for_a_kernel(what):
    assert run_python(FORKED, what, timeout=200) == "bad 0\n"


def test_a_call_while_python_ends():
    script = """
import certen, numpy as np
class Last:
    kernel = certen.compile("fn double(x: f64[n]) -> f64[n] { 2 * x }")
    x, isinstance, Exception = np.ones(3), isinstance, Exception
    def __del__(self):
        try:
            self.kernel(self.x)
        except self.Exception:
            pass
        except BaseException as error:
            import os
            os._exit(9)
keep = Last()
keep.me = keep
import sys
sys.keep = keep
"""
    run_python(script)


# ---- files


def test_paths_that_are_none(tmp_path):
    with pytest.raises(ValueError):
        certen.compile(pathlib.Path("/tmp/a\0b.ten"))
    with pytest.raises((OSError, certen.Error)):
        certen.compile(tmp_path)
    (tmp_path / "binary.ten").write_bytes(b"\xff\xfe\x00")
    with pytest.raises((ValueError, certen.Error)):
        certen.compile(tmp_path / "binary.ten")


def imports(folder: pathlib.Path) -> pathlib.Path:
    (folder / "lib.ten").write_text("fn twice(x: f64[s...]) -> f64[s...] { x + x }\n")
    (folder / "use.ten").write_text('import "lib.ten";\nfn main(x: f64[s..., n]) -> f64[s..., n] { twice(x) }\n')
    return folder / "use.ten"


def test_a_kernel_with_imports_when_the_directory_changes(tmp_path, monkeypatch):
    imports(tmp_path)
    monkeypatch.chdir(tmp_path)
    kernel = certen.compile(pathlib.Path("use.ten"), fn="main")
    assert kernel(np.ones(3)).tolist() == [2, 2, 2]
    monkeypatch.chdir("/")
    assert kernel(np.ones((2, 3))).tolist() == [[2, 2, 2]] * 2


def test_a_kernel_with_imports_is_pickled_whole(tmp_path):
    """Either the pickle has all texts, or it says that it cannot be made."""
    kernel = certen.compile(imports(tmp_path), fn="main")
    packed = pickle.dumps(kernel)
    (tmp_path / "lib.ten").write_text("fn twice(x: f64[s...]) -> f64[s...] { 3 * x }\n")
    assert kernel(np.ones((2, 2))).tolist() == [[2, 2], [2, 2]]
    (tmp_path / "lib.ten").unlink()
    assert pickle.loads(packed)(np.ones(3)).tolist() == [2, 2, 2]


# ---- compiling comes to an end


@pytest.mark.parametrize("text", ["x: f64[n], k: size", "x: f64[s..., n], k: size", "x: float[s..., n], k: size"])
def test_new_sizes_are_not_compiled_for_ever(text, own_cache):
    script = f"""
import os, pathlib
import numpy as np
import certen

kernel = certen.compile("fn o({text}) where k >= 0 {{ x + x * k }}")
x = np.ones((2, 3)) if "..." in kernel.type else np.ones(3)
def libraries():
    return sum(1 for _ in pathlib.Path(os.environ["CERTEN_CACHE"]).rglob("*.so"))
for k in range(14):
    kernel(x, k=k)
early = libraries()
for k in range(14, 30):
    kernel(x, k=k)
print(early, libraries())
"""
    early, late = map(int, run_python(script).split())
    assert early == late <= 10


# ---- the floating-point environment

DISTURBED = """
import ctypes, os, subprocess, sys, tempfile
import numpy as np
import certen

with tempfile.TemporaryDirectory() as folder:
    source, library = os.path.join(folder, "disturb.c"), os.path.join(folder, "libdisturb.so")
    with open(source, "w") as file:
        file.write("void disturb(unsigned how) { __builtin_ia32_ldmxcsr(how); }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    disturb = ctypes.CDLL(library).disturb

size = 60_000
x = np.where(np.arange(size) % 2 == 0, 1e-312, 0.1) * (np.arange(size) % 97 + 1)
f = certen.compile("fn f(x: f64[n]) -> f64[n] { x * 0.7 + x / 3 }", symbolic=True)
expected, product = f(x), certen.einsum("i,i->i", x, x[::-1])
results, products = [], []
for at in range(50):
    # Subnormal numbers are zero, and to plus infinity, to minus infinity or to zero.
    disturb([0x9FC0, 0x5FC0, 0x3FC0, 0x7F80][at % 4])
    results.append(f(x, threads=4))
    products.append(certen.einsum("i,i->i", x, x[::-1]))
disturb(0x1F80)
assert all(result.tobytes() == expected.tobytes() for result in results)
assert all(result.tobytes() == product.tobytes() for result in products)
print("equal")
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="it writes a register of x86-64")
def test_a_library_that_changes_the_floating_point_environment():
    assert "equal" in run_python(DISTURBED)
