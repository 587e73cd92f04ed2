"""The types that the package states: they hold in its own code, agree with the extension, and help users."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PYTHON = Path(__file__).resolve().parents[1]

USE = """
import certen
import numpy as np

i, j, k = certen.indices("i j k")
n = certen.size("n")
A = certen.tensor("A", np.float64, ("m", n, n + 1, 3))
x = certen.tensor("x", "f64", n)
s = certen.define("s", shape=n, where=n >= 1)
s[i] = sum(x[k] * 2 + i)
y: certen.Expression = certen.where((i > 0) & ~(x[i] < 1.5), -x[i] ** 2, abs(x[i]) // 2)
kernel: certen.Kernel = s.kernel(fp="strict")
kernel(np.ones(3), out=None, threads=2)
one: certen.Kernel = certen.compile("", fn="one")
certen.compile("")(np.ones(3))

@certen.kernel
def twice(x: object) -> None: ...

reveal_type(twice)
text: str = kernel.type + kernel.explain("loops", n=3)
count: int = kernel.flops(n=3)
"""

WRONG = {
    "certen.indices(3)": "arg-type",
    'certen.tensor("x", "f64", 1.5)': "arg-type",
    'certen.compile("", fp="fast")': "call-overload",
    'certen.index("i") + "a"': "operator",
    'certen.compile("", fn="f").no_such_thing': "attr-defined",
}


def mypy(*arguments):
    return subprocess.run([sys.executable, "-m", *arguments], cwd=PYTHON, capture_output=True, text=True, check=False)


def test_the_package_is_typed():
    ran = mypy("mypy", "--strict", "certen")
    assert ran.returncode == 0, ran.stdout


def test_the_stub_agrees_with_the_extension():
    ran = mypy("mypy.stubtest", "certen", "--ignore-missing-stub", "--allowlist", "stubtest.txt")
    assert ran.returncode == 0, ran.stdout


def test_uses_are_typed(tmp_path):
    (tmp_path / "use.py").write_text(USE)
    ran = mypy("mypy", "--strict", str(tmp_path / "use.py"))
    assert "error:" not in ran.stdout, ran.stdout
    assert 'Revealed type is "certen._certen.Kernel"' in ran.stdout


def test_wrong_uses_are_found(tmp_path):
    (tmp_path / "wrong.py").write_text("\n".join(["import certen", *WRONG]))
    ran = mypy("mypy", "--strict", str(tmp_path / "wrong.py"))
    for line, code in enumerate(WRONG.values(), 2):
        said = [message for message in ran.stdout.splitlines() if f"wrong.py:{line}: error" in message]
        assert said, ran.stdout
        assert f"[{code}]" in said[0]
