"""PolyBench in the bench: what NumPy, C and Certen compute is the same."""

import importlib
import importlib.util
import json
import math
import shutil

import numpy as np
import pytest

from certen.bench.__main__ import main
from certen.bench.kernels import DTYPES, TOLERANCE, Problem, whole
from certen.bench.measure import difference
from certen.bench.peers import Task
from certen.bench.polybench import POLYBENCH, STEPS

OTHERS = [
    pytest.param("c", marks=pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc")),
    pytest.param(
        "numba",
        marks=[
            pytest.mark.slow,
            pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="there is no Numba"),
        ],
    ),
    "certen",
]


def solved(entrant: str, name: str, dtype: str) -> list[str]:
    """What is wrong with the formulations of an entrant."""
    kernel = POLYBENCH[name]
    problem = Problem(kernel, kernel.quick, dtype)
    inputs = problem.make_inputs(1)
    before = [array.copy() for array in inputs]
    shape = problem.output
    outs = tuple(np.full(one, 77, DTYPES[dtype]) for one in (shape if isinstance(shape, list) else [shape]))
    task = Task(problem, inputs, outs if isinstance(shape, list) else outs[0], 1, 16)
    peer = importlib.import_module(f"certen.bench.peers.{entrant}")
    reference, said = problem.reference(inputs), []
    for formulation, make in peer.FORMULATIONS[entrant][name].items():
        run = make(task)
        for _ in range(2):
            found = whole(run())
            wrong = difference(found, reference, TOLERANCE[dtype], kernel.cancels)
            said += [f"{formulation}: {wrong}"] if wrong else []
    assert all(np.array_equal(one, other) for one, other in zip(inputs, before, strict=True)), "inputs were changed"
    return said


def test_there_are_all_of_them():
    names = """
        correlation covariance gemm gemver gesummv symm syr2k syrk trmm 2mm 3mm atax bicg doitgen mvt cholesky durbin
        gramschmidt lu ludcmp trisolv deriche floyd-warshall nussinov adi fdtd-2d heat-3d jacobi-1d jacobi-2d seidel-2d
    """
    assert sorted(POLYBENCH) == sorted(names.split())
    # The stencils in C go there and back.
    assert STEPS % 2 == 0


@pytest.mark.parametrize("name", POLYBENCH)
def test_rows_are_what_shapes_say(name):
    kernel = POLYBENCH[name]
    problem = Problem(kernel, kernel.quick, "f64")
    out = problem.reference(problem.make_inputs(1))
    shapes = problem.output if isinstance(problem.output, list) else [problem.output]
    assert out.size == sum(math.prod(shape) for shape in shapes)
    assert np.isfinite(out).all()
    assert problem.flops > 0
    assert list(kernel.sizes) == list(kernel.quick)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", POLYBENCH)
@pytest.mark.parametrize("entrant", ["numpy", *OTHERS])
def test_everybody_computes_the_same(entrant, name, dtype):
    assert solved(entrant, name, dtype) == []


def test_they_are_measured(tmp_path, capsys):
    data = tmp_path / "bench.json"
    given = ["--polybench", "atax", "fdtd-2d", "--peers", "numpy", "--threads", "1", "--dtype", "f64", "--quick"]
    assert main([*given, "--json", str(data)]) == 0
    assert "not timed" not in capsys.readouterr().out
    found = json.loads(data.read_text())["results"]
    assert [one["kernel"] for one in found] == ["atax", "fdtd-2d"]
    assert all(set(one["attempts"][0]["seconds"]) == {"numpy", "certen"} for one in found)


@pytest.mark.parametrize("given", [["--polybench", "mlp"], ["--polybench", "--small"]])
def test_wrong_calls_are_refused(given):
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 2
