"""The package as others get it: one wheel for all Pythons, in an environment of its own, beside JAX and PyTorch.

All slow. `CERTEN_WHEEL_PROFILE=dev` builds without optimisation. PyTorch and all that it needs is some gigabytes, so it
is installed only if `CERTEN_TEST_TORCH` is set.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path = ROOT, timeout: float = 1800, **env: str) -> str:
    """What a command prints; it has to end well. The package that is tested elsewhere is not to be found here."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**inherited, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert ran.returncode == 0, f"{command[:6]}: status {ran.returncode}\n{ran.stdout[-6000:]}"
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    profile = ["--profile", "dev"] if os.environ.get("CERTEN_WHEEL_PROFILE") == "dev" else ["--release"]
    run(sys.executable, "-m", "maturin", "build", *profile, "--out", folder)
    wheels = list(folder.iterdir())
    assert len(wheels) == 1, wheels
    return wheels[0]


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory) -> Path:
    """The Python of a new environment that has the wheel."""
    folder = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    run(python, "-m", "pip", "install", "--quiet", wheel)
    return python


def test_the_wheel_is_for_every_python(wheel):
    assert re.fullmatch(r"certen-[\d.]+-cp311-abi3-\w+\.whl", wheel.name), wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        extensions = [name for name in names if name.endswith(".so")]
        assert extensions == ["certen/_certen.abi3.so"]
        assert {"certen/py.typed", "certen/bench/worker.py", "certen/bench/limits.c"} <= set(names)
        assert not [name for name in names if "test" in name or name.endswith((".pyc", ".rs"))]
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert "Requires-Python: >=3.11" in metadata
    assert "License-Expression: MIT OR Apache-2.0" in metadata
    assert wheel.stat().st_size < 40_000_000


def test_the_wheel_runs_where_nothing_else_is(fresh, tmp_path):
    script = """
import certen, numpy as np
assert "site-packages" in certen.__file__, certen.__file__
kernel = certen.compile("fn product(A: f64[m, k], B: f64[k, n]) -> f64[m, n] { A @ B }")
a = np.arange(6.0).reshape(2, 3)
assert np.array_equal(kernel(a, a.T), a @ a.T)
assert np.array_equal(certen.einsum("ij,kj->ik", a, a), a @ a.T)
print(certen.__version__)
"""
    printed = run(fresh, "-c", script, cwd=tmp_path, PYTHONPATH="").strip()
    assert printed == re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE).group(1)


def readme_examples() -> list[str]:
    return re.findall(r"^```(?:python|py)\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def test_the_readme_has_examples_that_run(fresh, tmp_path):
    examples = readme_examples()
    assert examples
    for example in examples:
        if ">>>" in example:
            (tmp_path / "example.txt").write_text(example)
            run(fresh, "-m", "doctest", "-o", "ELLIPSIS", "example.txt", cwd=tmp_path)
        else:
            run(fresh, "-c", example, cwd=tmp_path)


JAX = """
import os
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp, numpy as np, certen

kernel = certen.compile("fn axpy(a: f64, x: f64[m, n], y: f64[m, n]) -> f64[m, n] { a * x + y }")
x, y = jnp.arange(12.0).reshape(3, 4), jnp.ones((3, 4))

# To a kernel: lent, once.
class Lent:
    asked = []
    def __init__(self, array): self.array = array
    def __dlpack__(self, **options):
        Lent.asked.append(self.array.unsafe_buffer_pointer())
        return self.array.__dlpack__(**options)
    def __dlpack_device__(self): return self.array.__dlpack_device__()
result = kernel(2.0, Lent(x), Lent(y))
assert np.array_equal(result, 2 * np.asarray(x) + 1)
assert set(Lent.asked) == {x.unsafe_buffer_pointer(), y.unsafe_buffer_pointer()}
assert np.array_equal(kernel(2.0, x, y), result)

# From a kernel: JAX takes the memory as it is, which needs its alignment.
taken = jnp.from_dlpack(result)
assert taken.unsafe_buffer_pointer() == result.ctypes.data, "copied"
assert np.array_equal(np.asarray(taken), result)
product = certen.einsum("ij,kj->ik", x, y)
assert jnp.from_dlpack(product).unsafe_buffer_pointer() == product.ctypes.data
assert np.array_equal(product, np.asarray(x) @ np.asarray(y).T)

# Arrays of JAX cannot be written.
try:
    kernel(2.0, x, y, out=jnp.zeros((3, 4)))
except (ValueError, TypeError) as error:
    print("refused:", type(error).__name__)
else:
    raise SystemExit("an array of JAX was written")
print("done")
"""

TORCH = """
import torch, numpy as np, certen

kernel = certen.compile("fn axpy(a: f64, x: f64[m, n], y: f64[m, n]) -> f64[m, n] { a * x + y }")
x, y = torch.arange(12, dtype=torch.float64).reshape(3, 4), torch.ones(4, 3, dtype=torch.float64).T

class Lent:
    asked = []
    def __init__(self, tensor): self.tensor = tensor
    def __dlpack__(self, **options):
        Lent.asked.append(self.tensor.data_ptr())
        return self.tensor.__dlpack__(**options)
    def __dlpack_device__(self): return self.tensor.__dlpack_device__()
result = kernel(2.0, Lent(x), Lent(y))
assert np.array_equal(result, 2 * x.numpy() + 1)
assert set(Lent.asked) == {x.data_ptr(), y.data_ptr()}
assert np.array_equal(kernel(2.0, x, y), result)
assert np.array_equal(kernel(2.0, x.flip(0)[::2], y[::2]), 2 * x.numpy()[::-1][::2] + 1)

# From a kernel: the same memory, seen from both sides.
for taken in (torch.from_dlpack(result), torch.from_numpy(result)):
    assert taken.data_ptr() == result.ctypes.data
    taken[0, 0] = 77
    assert result[0, 0] == 77
product = certen.einsum("ij,kj->ik", x, y)
assert torch.from_dlpack(product).data_ptr() == product.ctypes.data
assert np.array_equal(product, x.numpy() @ y.numpy().T)

# `out` is a tensor, dense or not.
for out in (torch.zeros(3, 4, dtype=torch.float64), torch.zeros(4, 3, dtype=torch.float64).T):
    before = out.data_ptr()
    assert kernel(2.0, x, y, out=out) is out
    assert out.data_ptr() == before
    assert np.array_equal(out.numpy(), 2 * x.numpy() + 1)
wrong = torch.zeros(3, 4)
try:
    kernel(2.0, x, y, out=wrong)
except TypeError:
    pass
else:
    raise SystemExit("out of another type was taken")

# What has a gradient is not silently cut off from it.
needs = x.clone().requires_grad_()
try:
    kernel(2.0, needs, y)
except (BufferError, TypeError, ValueError):
    pass
else:
    raise SystemExit("a gradient was lost")
print("done")
"""


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_memory_is_shared_with_other_libraries(fresh, tmp_path, library):
    if library == "torch" and not os.environ.get("CERTEN_TEST_TORCH"):
        pytest.skip("CERTEN_TEST_TORCH is not set")
    run(fresh, "-m", "pip", "install", "--quiet", {"jax": "jax[cpu]", "torch": "torch"}[library])
    printed = run(fresh, "-c", {"jax": JAX, "torch": TORCH}[library], cwd=tmp_path)
    assert printed.endswith("done\n")


def test_pip_installs_a_clone(tmp_path):
    """`pip install .` in the files that git knows, and nothing else."""
    tree, folder = tmp_path / "certen", tmp_path / "venv"
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    run(python, "-m", "pip", "install", "--quiet", ".", cwd=tree)
    script = (
        "import certen, numpy; assert certen.einsum('i,i', numpy.ones(3), numpy.ones(3)) == 3; print(certen.__file__)"
    )
    assert str(folder) in run(python, "-c", script, cwd=tmp_path)
