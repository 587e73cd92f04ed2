"""Kernels in threads, in children and in pickles: the same bits everywhere, and nothing hangs."""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import run_python
from programs import MODEL, TEIL, TEN
from test_einsum import disagreement

import certen

THREADS = 8
SOURCE = np.random.default_rng(11)
A = SOURCE.standard_normal((61, 43))
B = SOURCE.standard_normal((43, 53))
X = SOURCE.standard_normal((97, 89))


@pytest.fixture(scope="module")
def ten():
    return certen.compile(TEN)


def at_once(*calls):
    """The results of calls that begin together, one thread each."""
    gate = threading.Barrier(len(calls))

    def begin(call):
        gate.wait(timeout=60)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(timeout=120) for future in [pool.submit(begin, call) for call in calls]]


def bits(result) -> bytes:
    parts = result if isinstance(result, tuple) else (result,)
    return b"".join(np.asarray(part).tobytes() for part in parts)


def test_threads_give_what_one_gives(ten):
    alone = bits(ten.matmul(A, B))
    for _ in range(5):
        assert {bits(result) for result in at_once(*[lambda: ten.matmul(A, B)] * THREADS)} == {alone}


def test_threads_with_different_kernels(ten):
    calls = [
        lambda: ten.matmul(A, B),
        lambda: ten.minmax(X),
        lambda: ten.blur(X),
        lambda: ten.normalise(X * X),
        lambda: ten.total(X),
        lambda: ten.relax(X[0], k=50),
        lambda: certen.einsum("ij,jk->ik", A, B),
        lambda: certen.einsum("ij,ij->i", X, X),
    ]
    alone = [bits(call()) for call in calls]
    for _ in range(5):
        assert [bits(result) for result in at_once(*calls)] == alone


def test_threads_with_different_sizes(ten):
    def call(n):
        return lambda: [bits(ten.matmul(A[:n], B[:, :m])) for m in range(1, 12)]

    alone = [[bits(ten.matmul(A[:n], B[:, :m])) for m in range(1, 12)] for n in range(1, THREADS + 1)]
    assert at_once(*[call(n) for n in range(1, THREADS + 1)]) == alone


def test_threads_write_to_their_own_out(ten):
    outs = [np.zeros((61, 53)) for _ in range(THREADS)]
    for _ in range(10):
        at_once(*[lambda out=out: ten.matmul(A, B, out=out) for out in outs])
    assert all(np.array_equal(out, outs[0]) for out in outs)
    assert bits(outs[0]) == bits(ten.matmul(A, B))


def test_threads_with_generated_contractions():
    def work(first):
        return lambda: [found for seed in range(first, first + 100) if (found := disagreement(certen.einsum, seed))]

    assert not any(at_once(*[work(first % 400) for first in range(0, 800, 100)]))


RACE = """
import threading
import numpy as np
import certen

source = "fn product(A: f64[m, k], B: f64[k, n]) -> f64[m, n] { A @ B }"
a, b = np.arange(35.0).reshape(5, 7), np.arange(21.0).reshape(7, 3)
shared = certen.compile(source)
gate, found = threading.Barrier(8), []
def work(at):
    gate.wait()
    kernel = shared if at % 2 else certen.compile(source)
    found.append(kernel(a, b))
    found.append(certen.einsum("ij,jk->ik", a, b))
threads = [threading.Thread(target=work, args=(at,)) for at in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(found) == 16 and all(np.array_equal(each, a @ b) for each in found)
print("done")
"""


def test_first_calls_race_to_compile(own_cache):
    assert run_python(RACE) == "done\n"


def test_processes_race_to_compile(own_cache):
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda _: run_python(RACE), range(3))) == ["done\n"] * 3


# ---- the interpreter's lock


def test_other_threads_go_on_while_a_kernel_runs(ten):
    """A kernel of a second or so; another thread notes the time as often as it can."""
    x = np.ones(4096)
    steps = 1000
    while True:
        # The first call may compile.
        ten.relax(x, k=steps)
        start = time.perf_counter()
        ten.relax(x, k=steps)
        took = time.perf_counter() - start
        if took > 0.4 or steps > 10**9:
            break
        steps *= 4
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.002)

    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.perf_counter()
    ten.relax(x, k=steps)
    end = time.perf_counter()
    stop.set()
    ticker.join()
    during = [at for at in ticks if start + 0.2 * (end - start) < at < end - 0.2 * (end - start)]
    assert len(during) >= 10, f"{len(during)} ticks in {end - start:.2f} s"


def test_kernels_run_at_the_same_time(ten):
    """Not a matter of speed: each of two threads is seen inside its call while the other one is inside, too."""
    x = np.ones(4096)
    spans = at_once(*[lambda: (time.perf_counter(), ten.relax(x, k=400_000, threads=1), time.perf_counter())] * 2)
    (a, _, b), (c, _, d) = spans
    assert max(a, c) < min(b, d)


# ---- how many threads


def test_the_number_of_threads_changes_no_bits(ten):
    before = certen.get_threads()
    large = SOURCE.standard_normal((301, 307))
    try:
        found = set()
        for count in (1, 2, 3, 7):
            certen.set_threads(count)
            assert certen.get_threads() == count
            found.add(bits(ten.matmul(large, large.T)))
            found.add(bits(ten.matmul(large, large.T, threads=5)))
        assert len(found) == 1
        found = set()
        for count in (1, 2, 3, 7):
            certen.set_threads(count)
            found.add(bits(certen.einsum("ij,kj->ik", large, large)))
        assert len(found) == 1
    finally:
        certen.set_threads(before)
    assert certen.get_threads() == before


@pytest.mark.parametrize("count", [0, -1, 1.5, "two", 2**70])
def test_wrong_numbers_of_threads(count):
    before = certen.get_threads()
    with pytest.raises((ValueError, TypeError, OverflowError)):
        certen.set_threads(count)
    assert certen.get_threads() == before


def test_the_environment_says_how_many_threads():
    script = "import certen; print(certen.get_threads())"
    assert run_python(script, env={"CERTEN_THREADS": "3"}) == "3\n"
    script = "import certen; certen.set_threads(5); certen.set_threads(None); print(certen.get_threads())"
    assert run_python(script, env={"CERTEN_THREADS": "3"}) == "3\n"


# ---- children


def use_everything() -> bytes:
    """What a child does."""
    kernel = certen.compile(TEN, fn="matmul")
    large = np.arange(90_000.0).reshape(300, 300) % 7
    return bits(kernel(large, large)) + bits(certen.einsum("ij,jk->ik", large, large)) + bits(kernel(A, B))


def in_a_fork(work, timeout: float = 60) -> None:
    """Runs something in a forked child, which has to end well and in time."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(int(timeout))
            work()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with status {status}"


def test_a_forked_child_computes(ten):
    want = use_everything()

    def work():
        assert use_everything() == want

    in_a_fork(work)
    assert use_everything() == want


def test_a_forked_child_of_a_forked_child_computes(ten):
    want = use_everything()

    def work():
        assert use_everything() == want

    in_a_fork(lambda: (work(), in_a_fork(work)))


def test_fork_while_other_threads_compute(ten):
    want = use_everything()
    stop = threading.Event()
    large = np.ones((400, 400))

    def busy():
        while not stop.is_set():
            ten.matmul(large, large)
            certen.einsum("ij,jk->ik", large, large)

    def work():
        assert use_everything() == want

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            in_a_fork(work)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert use_everything() == want


@pytest.mark.parametrize("turns", [10, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("busy", ["first calls", "texts", "refusals", "einsum"])
def test_fork_while_other_threads_compile(busy, turns):
    """No lock is held at the moment of a fork that the child would wait for."""
    kernels = certen.compile(TEN, symbolic=True)
    kernels.iota(n=1)
    stop = threading.Event()

    def work():
        at = 0
        while not stop.is_set():
            at += 1
            if busy == "first calls":
                kernels.iota(n=at)
            elif busy == "texts":
                certen.compile(f"fn with{at}(x{at}: f64[n]) -> f64[n] {{ {at} * x{at} }}")
            elif busy == "refusals":
                with pytest.raises(ValueError):
                    kernels.matmul(A, A[: at % 40])
            else:
                letters = [chr(97 + (at // 26**place) % 26) for place in range(3)]
                if len(set(letters)) == 3:
                    a, b, c = letters
                    certen.einsum(f"{a}{b},{b}{c}", A[:4, :5], B[:5, :3])

    def child():
        assert len(kernels.iota(n=10**6)) == 10**6
        assert use_everything()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(turns):
            in_a_fork(child, timeout=20)
    finally:
        stop.set()
        thread.join()


def double(x):
    """In a process of a pool."""
    return certen.compile("fn double(x: f64[n]) -> f64[n] { 2 * x }")(x)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes(ten, method):
    inputs = [np.arange(float(n)) for n in range(1, 7)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.map_async(double, inputs).get(timeout=120)
        # A kernel itself is sent to the pool.
        sums = pool.map_async(ten.total, [x[None] for x in inputs]).get(timeout=120)
    assert all(np.array_equal(result, 2 * x) for result, x in zip(results, inputs, strict=True))
    assert sums == [x.sum() for x in inputs]


# ---- pickles


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_kernels_can_be_pickled(ten, protocol):
    for kernel in (
        ten.matmul,
        certen.compile(TEN, fn="matmul", symbolic=True, fp="strict", parallel=False),
        certen.compile(TEIL, dialect="teil"),
        certen.compile(MODEL, dialect="model"),
    ):
        again = pickle.loads(pickle.dumps(kernel, protocol))
        assert (again.name, again.type, again.source) == (kernel.name, kernel.type, kernel.source)
        assert bits(again(A, B)) == bits(kernel(A, B))


def test_options_stay_in_a_pickle():
    kernel = certen.compile(TEIL, dialect="teil", elem="f32")
    again = pickle.loads(pickle.dumps(kernel))
    assert again(A.astype("f4"), B.astype("f4")).dtype == np.float32
    with pytest.raises(TypeError):
        again(A, B)


def test_a_module_can_be_pickled_and_a_kernel_copied(ten):
    import copy

    again = pickle.loads(pickle.dumps(ten))
    assert bits(again.matmul(A, B)) == bits(ten.matmul(A, B))
    assert bits(copy.deepcopy(ten.matmul)(A, B)) == bits(ten.matmul(A, B))


# ---- interrupts


INTERRUPT = """
import os, signal, sys, threading, time
import numpy as np
import certen

kernel = certen.compile("fn relax(u: f64[n], k: size) -> f64[n] where k >= 0 { iterate k times v = u { 0.5 * v + 1 } }")
x = np.ones(4096)
kernel(x, k=2)
steps = 1000
while True:
    start = time.perf_counter()
    kernel(x, k=steps)
    if time.perf_counter() - start > 0.3: break
    steps *= 4
caught = 0
for _ in range(3):
    timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        kernel(x, k=steps)
        time.sleep(2)
    except KeyboardInterrupt:
        caught += 1
    timer.join()
assert np.array_equal(kernel(x, k=2), 0.25 * x + 1.5)
print("caught", caught)
"""


def test_an_interrupt_is_raised_and_nothing_breaks():
    assert run_python(INTERRUPT) == "caught 3\n"


COMPILING = """
import os, signal, sys, threading
import numpy as np
import certen

caught = 0
for at in range(6):
    timer = threading.Timer(0.01 * at, lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        timer.start()
        certen.compile(f"fn f(x: f64[n]) -> f64[n] {{ {at} * x + 1 }}")(np.ones(3))
        timer.join()
    except KeyboardInterrupt:
        caught += 1
    timer.join()
    assert certen.compile(f"fn f(x: f64[n]) -> f64[n] {{ {at} * x + 1 }}")(np.ones(3)).tolist() == [at + 1.0] * 3
print("done")
"""


def test_an_interrupt_while_compiling_breaks_nothing(own_cache):
    assert run_python(COMPILING) == "done\n"


def test_python_ends_while_a_kernel_runs():
    script = """
import threading
import numpy as np
import certen

kernel = certen.compile("fn product(A: f64[m, k], B: f64[k, n]) -> f64[m, n] { A @ B }")
a = np.ones((600, 600))
kernel(a[:2, :2], a[:2, :2])
for _ in range(3):
    threading.Thread(target=lambda: [kernel(a, a) for _ in range(100)], daemon=True).start()
"""
    run_python(script)


def test_the_tests_know_their_platform():
    assert sys.platform == "linux", "the tests of fork are for Linux"
