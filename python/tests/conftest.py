"""What the tests share: the extension, or NumPy in its place for einsum; the slow set; the files of the repository.

    pytest python/tests            what runs on each change
    pytest python/tests -m ""      everything

`CERTEN_CASES` is the number of generated cases, `CERTEN_SEED` replays one. With `CERTEN_DRY_RUN` the tests of einsum
run against NumPy itself: what fails then is wrong in the tests.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DRY_RUN = "CERTEN_DRY_RUN" in os.environ


def load(path: Path) -> ModuleType:
    """A Python file as a module, without leaving compiled files beside it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = written
    return module


def parameters(kernel) -> list[str]:
    """The names of a kernel's parameters, in order."""
    return [getattr(parameter, "name", parameter) for parameter in kernel.parameters]


def run_python(script: str, *args: str, env: dict | None = None, timeout: float = 120) -> str:
    """What a script prints in a process of its own, which has to end well."""
    command = [sys.executable, "-c", script, *args]
    env = {**os.environ, **(env or {})}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout, check=False)
    assert ran.returncode == 0, f"status {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="session")
def einsum():
    """The function under test."""
    if DRY_RUN:
        # With `optimize`, NumPy differs from itself in small things.
        return lambda *args, optimize=False, **kwargs: np.einsum(*args, **kwargs)
    import certen

    return certen.einsum


@pytest.fixture(scope="session")
def contract_path():
    """The function under test."""
    if DRY_RUN:
        return np.einsum_path
    import certen

    return certen.contract_path


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of compiled code, for processes that are started in the test."""
    monkeypatch.setenv("CERTEN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
