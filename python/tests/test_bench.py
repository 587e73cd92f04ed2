"""The bench beside peers: what it generates, what it makes of times, and that it works from end to end with NumPy."""

import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import certen
from certen.bench import contractions, examples, sweep
from certen.bench.__main__ import main
from certen.bench.hand import by_hand
from certen.bench.kernels import KERNELS, Problem
from certen.bench.machine import unlimited
from certen.bench.measure import Attempt, Field, difference, largest_error
from certen.bench.ported import PORTED
from certen.bench.small import GROUPS, SMALL, WINDOWS, Window
from certen.bench.statistics import geometric_mean, interval, paired


def test_contractions_are_the_same_for_a_seed():
    few, many, others = (
        [(problem.kernel.subscripts, problem.sizes, problem.dtype) for problem in contractions.generate(count, seed)]
        for count, seed in [(20, 7), (40, 7), (20, 8)]
    )
    assert many[:20] == few
    assert few != others


def test_contractions_are_within_their_limits():
    problems = list(contractions.generate(200, 1))
    ranks = set()
    for problem in problems:
        shapes = [*problem.inputs, problem.output]
        ranks |= {len(shape) for shape in shapes}
        assert all(contractions.SMALLEST <= size <= contractions.LARGEST for shape in shapes for size in shape)
        assert max(math.prod(shape) for shape in shapes) <= contractions.MOST_ELEMENTS
        assert contractions.LEAST_FLOPS <= problem.flops <= contractions.MOST_FLOPS
    assert ranks == {2, 3, 4, 5, 6}
    assert {problem.dtype for problem in problems} == {"f64", "f32"}
    assert {problem.kernel.subscripts.count(",") for problem in problems} == {1, 2}
    # Both orders of the dimensions of a matrix, in both operands and in the result.
    products = {problem.kernel.subscripts for problem in problems if len(problem.kernel.subscripts) == 9}
    orders = {tuple("".join(sorted(part)) == part for part in spec.replace("->", ",").split(",")) for spec in products}
    assert orders == set(itertools.product([False, True], repeat=3))


def test_the_least_order_of_a_contraction_is_counted():
    sizes = {"a": 10, "b": 100, "c": 5, "d": 50}
    assert contractions.least_flops(["ab", "bc", "cd"], "ad", sizes) == 2 * (10 * 100 * 5 + 10 * 5 * 50)


def test_contractions_are_programs():
    for problem in contractions.generate(3, 2):
        small = Problem(problem.kernel, dict.fromkeys(problem.sizes, 4), problem.dtype)
        inputs = small.make_inputs(1)
        found = certen.compile(small.text(), fn="kernel")(*inputs)
        assert difference(np.asarray(found), small.reference(inputs), 1e-4) is None


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_least_work_is_what_shapes_say(name, dtype):
    problem = Problem(KERNELS[name], KERNELS[name].quick, dtype)
    inputs = problem.make_inputs(1)
    out = problem.reference(inputs)
    assert out.shape == problem.output
    assert problem.bytes == sum(array.nbytes for array in inputs) + out.size * inputs[0].itemsize
    assert problem.flops >= out.size


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("name", KERNELS)
def test_schedules_by_hand_are_accepted_at_full_size(name, vector_bytes):
    problem = Problem(KERNELS[name], KERNELS[name].sizes, "f32")
    text, schedule = by_hand(problem, vector_bytes)
    assert certen.compile(text, fn="kernel", schedule=schedule).steps


def test_intervals_are_order_statistics():
    values = list(range(1, 16))
    # Of 15 fair coins, fewer than 4 show one side with a probability of 1.8 %: ranks 4 and 12 enclose the median.
    found = interval(values)
    assert (found.median, found.low, found.high) == (8, 4, 12)
    assert interval(values[::-1]) == found
    assert found.spread == 1
    few = interval([3.0, 1.0, 2.0])
    assert (few.median, few.low, few.high) == (2, 1, 3)
    assert interval([5.0]).spread == 0


def test_ratios_are_of_one_round():
    # Every other round is slow for both: the ratio does not see it.
    ours, theirs = [1.0, 10.0, 1.0, 10.0, 1.0], [2.0, 20.0, 2.0, 20.0, 2.0]
    assert paired(ours, theirs) == interval([2.0] * 5)
    assert geometric_mean([0.5, 2.0, 1.0]) == pytest.approx(1)


def test_the_best_peer_has_the_lowest_median():
    attempt = Attempt(seconds={"numpy": [3.0, 3.0, 3.0], "jax": [1.0, 5.0, 5.0], "certen": [1.0, 1.0, 1.0]})
    assert attempt.best_peer == "numpy"
    assert attempt.ratios["certen"].median == 3
    assert attempt.sure
    assert not Attempt(seconds={"numpy": [1.0, 2.0, 3.0], "certen": [1.0, 1.0, 1.0]}).sure
    assert Attempt(seconds={"certen": [1.0]}).ratios == {}


def test_differences_are_found():
    one = np.ones((2, 3))
    assert difference(one, one, 1e-8) is None
    assert "shape" in difference(one.T, one, 1e-8)
    assert "1.0e-03" in difference(one * 1.001, one, 1e-8)
    # Where sums cancel, small elements have the errors of large ones.
    small = np.array([1.0, 1e-9])
    assert difference(small + 1e-10, small, 1e-8) is not None
    assert difference(small + 1e-10, small, 1e-8, cancels=True) is None
    assert difference(small + 1e-7, small, 1e-8, cancels=True) is not None
    one[1, 2] = np.nan
    assert difference(one, np.ones((2, 3)), 1e-3) is not None
    # One of six elements.
    assert difference(one, np.ones((2, 3)), 1e-3, jumps=0.2) is None
    assert difference(one, np.ones((2, 3)), 1e-3, jumps=0.1) is not None
    assert largest_error(np.array([2.0, 5.0]), np.array([2.0, 4.0])) == 0.25
    assert largest_error(np.array([2.0, 5.0]), np.array([0.0, 4.0]), cancels=True) == 1


def test_what_is_wrong_is_reported_and_not_timed(tmp_path):
    kernel = replace(KERNELS["mm"], reference=lambda a, b: a @ b + 1)
    with Field(["numpy"], 1, None, tmp_path) as field:
        found = field.measure(Problem(kernel, kernel.quick, "f64"), seed=1, rounds=1, attempts=1)
        assert len(found.refused) == 2
        assert all(said.startswith("numpy, ") and "WRONG" in said for said in found.refused)
        assert found.attempts == []
        # The worker goes on.
        right = field.measure(Problem(KERNELS["mm"], kernel.quick, "f64"), seed=1, rounds=2, attempts=1)
        assert right.refused == []
        assert len(right.last.seconds["numpy"]) == 2


def test_who_cannot_be_limited_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("certen.bench.machine.widest", lambda: "avx512")
    assert unlimited("jax", "avx2") == "its products cannot be limited to avx2"
    assert unlimited("jax", None) is unlimited("numpy", "avx2") is unlimited("jax", "avx512") is None
    with Field(["jax"], 1, "avx2", tmp_path) as field:
        assert field.entrants == []
        assert "limited" in field.missing["jax"]


def test_a_lost_worker_is_reported(tmp_path):
    with Field(["numpy", "certen"], 1, None, tmp_path) as field:
        numpy, _ = field.entrants
        found = field.measure(Problem(KERNELS["mm"], KERNELS["mm"].quick, "f64"), seed=1, rounds=1, attempts=1)
        assert set(found.last.seconds) == {"numpy", "certen"}
        os.kill(numpy._process.pid, signal.SIGKILL)
        found = field.measure(Problem(KERNELS["blur"], KERNELS["blur"].quick, "f64"), seed=1, rounds=1, attempts=1)
        assert set(found.last.seconds) == {"certen"}
        assert found.refused == ["numpy: its process ended"]


def test_from_end_to_end(tmp_path, capsys):
    data, drawing = tmp_path / "bench.json", tmp_path / "bench.svg"
    given = ["mm", "blur", "--peers", "numpy", "--threads", "1", "--quick"]
    before = signal.getsignal(signal.SIGTERM)
    assert main([*given, "--json", str(data), "--svg", str(drawing)]) == 0
    assert signal.getsignal(signal.SIGTERM) is before
    text = capsys.readouterr().out
    for part in ("mm", "blur", "f64", "f32", "certen-hand", "page faults", "90 % intervals", "geometric mean"):
        assert part in text
    assert "not timed" not in text
    found = json.loads(data.read_text())
    assert [(one["kernel"], one["dtype"]) for one in found["results"]] == [
        ("mm", "f64"),
        ("mm", "f32"),
        ("blur", "f64"),
        ("blur", "f32"),
    ]
    for one in found["results"]:
        (attempt,) = one["attempts"]
        assert attempt["best_peer"] == "numpy"
        assert set(attempt["seconds"]) == {"numpy", "certen", "certen-hand"}
        assert all(len(rounds) == 2 for rounds in attempt["seconds"].values())
        assert one["limit_seconds"] > 0
    svg = ElementTree.parse(drawing).getroot()
    assert svg.tag.endswith("svg")
    assert len(svg.findall("{*}circle")) == 8


def test_ported_kernels_are_measured(tmp_path, capsys):
    data = tmp_path / "bench.json"
    assert main(["--ported", "--threads", "1", "--quick", "--json", str(data)]) == 0
    assert "not timed" not in capsys.readouterr().out
    found = json.loads(data.read_text())["results"]
    assert [(one["kernel"], one["dtype"]) for one in found] == [(name, of) for name in PORTED for of in ("f64", "f32")]
    assert all(set(one["attempts"][0]["ratios"]) == {"certen"} for one in found)


def test_small_sizes_are_measured(tmp_path, capsys):
    data, drawing = tmp_path / "bench.json", tmp_path / "curves.svg"
    rows = ["kron2", "kron7", "kron20", *GROUPS["convolutions"], *GROUPS["batched"]]
    given = ["--small", "kron2", "kron7", "kron20", "convolutions", "batched", "--peers", "numpy", "--threads", "1"]
    assert main([*given, "--dtype", "f32", "--quick", "--json", str(data), "--curves", str(drawing)]) == 0
    assert "not timed" not in capsys.readouterr().out
    found = json.loads(data.read_text())["results"]
    assert [one["kernel"] for one in found] == rows
    assert all(set(one["attempts"][0]["seconds"]) == {"numpy", "certen"} for one in found)
    svg = ElementTree.parse(drawing).getroot()
    assert [len(line.get("points").split()) for line in svg.findall("{*}polyline")] == [3, 3]


@pytest.mark.parametrize("name", SMALL)
def test_small_rows_are_what_shapes_say(name):
    kernel = SMALL[name]
    problem = Problem(kernel, kernel.quick, "f64")
    inputs = problem.make_inputs(1)
    out = problem.reference(inputs)
    shapes = problem.output if isinstance(problem.output, list) else [problem.output]
    assert out.size == sum(math.prod(shape) for shape in shapes)
    assert problem.bytes == 8 * (sum(array.size for array in inputs) + out.size)
    assert problem.flops >= out.size
    # As many arrays as there are entrants have to fit into memory.
    full = Problem(kernel, kernel.sizes, "f64")
    assert full.bytes <= 1 << 30


def test_rows_have_a_group_and_windows_are_used():
    assert [name for names in GROUPS.values() for name in names] == list(SMALL)
    assert GROUPS["kron"] == [f"kron{n}" for n in range(2, 21)]
    assert set(WINDOWS) == set(GROUPS["convolutions"])


# Those of a group that are different enough: many steps are one step often, and one function makes all reductions.
_SWEPT = {
    **{group: [name for name in names if name.endswith("_l2")] for group, names in sweep.GROUPS.items()},
    "reductions": ["sum_million", "min_l2", "dot_l2", "norm_axis0_l2", "variance_l2", "mean_axis1_l2"],
}
_SWEPT["time"] = [name for name in _SWEPT["time"] if name.replace("_l2", "_100_l2") not in sweep.SWEEP]


@pytest.mark.parametrize("group", _SWEPT)
def test_programs_of_all_kinds_are_measured(group, tmp_path, capsys):
    _sweep("numpy", _SWEPT[group], ["f32"], tmp_path)
    text = capsys.readouterr().out
    assert "not timed" not in text and "largest error" in text


@pytest.mark.slow
@pytest.mark.parametrize("group", sweep.GROUPS)
@pytest.mark.parametrize("peer", ["jax", "numba", "halide-auto"])
def test_programs_of_all_kinds_are_measured_with_peers(peer, group, tmp_path, capsys):
    pytest.importorskip(peer.removesuffix("-auto"))
    names = [name for name in sweep.GROUPS[group] if name.endswith("_l2")]
    _sweep(peer, names, ["f64", "f32"], tmp_path, {"halide-auto": {"lu_l2"}}.get(peer, set()))
    assert "WRONG" not in capsys.readouterr().out


def _sweep(peer, names, dtypes, directory, without=()):
    """Runs rows beside a peer, which has all of them but those it is without."""
    data = directory / "bench.json"
    given = ["--sweep", *names, "--peers", peer, "--threads", "1", "--dtype", ",".join(dtypes)]
    assert main([*given, "--quick", "--json", str(data)]) == 0
    found = json.loads(data.read_text())["results"]
    assert [(one["kernel"], one["dtype"]) for one in found] == [(name, dtype) for name in names for dtype in dtypes]
    for one in found:
        there = {"certen"} if one["kernel"] in without else {peer, "certen"}
        assert set(one["attempts"][0]["seconds"]) == there, one["refused"]
        jumps = sweep.SWEEP[one["kernel"]].jumps
        assert all((of["error"] is None) == bool(jumps) for of in one["formulations"].values())


@pytest.mark.parametrize("name", [rows[0] for rows in sweep.PROGRAMS.values()])
def test_rows_of_a_program_are_what_shapes_say(name):
    kernel = sweep.SWEEP[name]
    problem = Problem(kernel, kernel.quick, "f64")
    inputs = problem.make_inputs(1)
    assert [array.shape for array in inputs] == problem.inputs
    # Numbers that are no more or less than they look take their usual time.
    assert all(np.all((array == 0) | (np.abs(array) > 1e-300)) for array in inputs)
    out = problem.reference(inputs)
    shapes = problem.output if isinstance(problem.output, list) else [problem.output]
    assert np.all(np.isfinite(out))
    assert out.size == sum(math.prod(shape) for shape in shapes)
    assert problem.flops >= out.size
    for dtype in ("f64", "f32"):
        certen.compile(replace(problem, dtype=dtype).text(), fn="kernel")
    for row in sweep.PROGRAMS[name.removesuffix("_l2")]:
        full = Problem(sweep.SWEEP[row], sweep.SWEEP[row].sizes, "f64")
        # As many arrays as there are entrants have to fit into memory, and some into the L2 cache.
        assert full.bytes <= (1.1 * (1 << 20) if row.endswith("_l2") else 1 << 29)
        assert full.text() == problem.text()


def test_programs_have_a_group_and_rows():
    assert [name for names in sweep.GROUPS.values() for name in names] == list(sweep.SWEEP)
    assert [name for names in sweep.PROGRAMS.values() for name in names] == list(sweep.SWEEP)
    assert list(sweep.GROUPS) == ["time", "images", "learning", "reductions"]
    assert sweep.PROGRAMS["jacobi2d_100"] == ["jacobi2d_100_l2", "jacobi2d_100_mem"]
    assert sweep.PROGRAMS["sum"] == ["sum_l2", "sum_mem", "sum_million"]
    # No name stands for two things.
    assert not set(sweep.GROUPS) & set(sweep.PROGRAMS)
    assert not set(sweep.PROGRAMS) & set(sweep.SWEEP)


def test_windows_are_counted():
    # Of 5 entries, padded to 7: windows of 3 at 0, 2 and 4, of which the first and the last meet one zero each.
    window = Window(stride=2, padding=1)
    assert (window.places(5, 3), window.inside(5, 3)) == (3, 7)
    assert [part.tolist() for _, part in window.shifted(np.arange(7), (3,))] == [[0, 2, 4], [1, 3, 5], [2, 4, 6]]
    assert [part.tolist() for _, part in Window(dilation=2).shifted(np.arange(5), (2,))] == [[0, 1, 2], [2, 3, 4]]


def test_examples_are_measured(capsys):
    directory = Path(__file__).parents[2] / "examples"
    given = ["linalg/kron_matvec", "learning/lstm_cell", "images/box_blur"]
    assert examples.main([str(directory), *given, "--operations", "1e5", "--rounds", "2"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in given)
    assert "geometric mean" in text and "WRONG" not in text


def test_results_that_differ_are_wrong():
    one = np.array([1.0, 1e-12])
    assert examples.agree(one, one + 1e-12)
    assert not examples.agree(one, one + 1e-6)
    assert not examples.agree((one, one), (one, one + 1))
    assert not examples.agree(np.array([1]), np.array([2]))


def test_generated_contractions_are_measured(tmp_path, capsys):
    data = tmp_path / "bench.json"
    assert main(["--contractions", "1", "--threads", "1", "--quick", "--json", str(data)]) == 0
    assert "certen-einsum: " in capsys.readouterr().out
    for one in json.loads(data.read_text())["results"]:
        assert set(one["attempts"][0]["ratios"]) == {"certen", "certen-einsum"}


@pytest.mark.parametrize(
    "given, message",
    [
        (["nothing"], "`nothing` is none of mm, "),
        (["--peers", "numpy,matlab"], "`matlab` is none of numpy, "),
        (["--dtype", "f16"], "`f16` is none of f64, f32"),
        (["--threads", "0"], "--threads"),
        (["--small", "mm"], "`mm` is none of kron, "),
        (["--small", "--ported"], "--ported"),
        (["--sweep", "mm"], "`mm` is none of time, images, learning, reductions, heat3d, "),
        (["--curves", "curves.svg"], "--curves draws rows of --small"),
        (["--cpu", "neon"], "--cpu"),
    ],
)
def test_wrong_calls_are_refused(given, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_nothing_is_left_behind(tmp_path):
    command = [sys.executable, "-m", "certen.bench", "--quick", "--peers", "numpy", "--threads", "1"]
    variables = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(certen.__file__).parents[1])}
    running = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 60
    while not list(tmp_path.glob("certen-bench-*/in0.npy")):
        assert time.monotonic() < end and running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert list(tmp_path.iterdir()) == []
