"""Runs what the documentation shows: doctests of all modules, and the Python blocks of all pages."""

import ast
import builtins
import contextlib
import doctest
import importlib
import inspect
import io
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import certen

ROOT = Path(__file__).resolve().parents[2]
MODULES = ["certen", *(f"certen.{module.name}" for module in pkgutil.iter_modules(certen.__path__))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run(examples, name, namespace):
    """Runs doctests in a namespace that stays."""
    test = doctest.DocTestParser().get_doctest(examples, namespace, name, name, 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report = io.StringIO()
    runner.run(test, out=report.write, clear_globs=False)
    namespace.update(test.globs)
    assert runner.failures == 0, report.getvalue()
    return runner.tries


def documented(module):
    """What a module defines, with the docstrings of its classes' members."""
    for name, item in [(module.__name__, module), *vars(module).items()]:
        if item is module or (
            (inspect.isclass(item) or callable(item))
            and getattr(item, "__module__", None) in (module.__name__, "certen")
        ):
            yield name, item
            if inspect.isclass(item):
                yield from ((f"{name}.{key}", value) for key, value in vars(item).items() if not key.startswith("_"))


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_docstrings(module):
    loaded = importlib.import_module(module)
    for name, item in documented(loaded):
        doc = inspect.getdoc(item)
        if doc and ">>>" in doc:
            run(doc, f"{module}.{name}", {})


def public():
    """The names that users see; packages inside are there once something has imported them."""
    return [name for name, item in vars(certen).items() if not name.startswith("_") and not inspect.ismodule(item)]


def test_everything_public_is_documented_with_an_example():
    missing = []
    for name in public():
        item = getattr(certen, name)
        if ">>>" not in (inspect.getdoc(item) or ""):
            missing.append(name)
        if inspect.isclass(item):
            members = ((key, value) for key, value in vars(item).items() if not key.startswith("_"))
            missing += [
                f"{name}.{key}"
                for key, value in members
                if (callable(value) or isinstance(value, property)) and not inspect.getdoc(value)
            ]
    assert missing == []
    assert certen.__all__ == sorted(certen.__all__)


def test_a_star_import_leaves_pythons_names_alone():
    assert not set(certen.__all__) & set(dir(builtins))
    missing = set(public()) - set(certen.__all__)
    assert sorted(missing) == ["abs", "all", "any", "compile", "max", "min", "pow", "round", "sum"]


def blocks(path):
    """The Python blocks of a page, with the line each begins at."""
    text = path.read_text(encoding="utf-8")
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, block.start()) + 2, block.group(1)


PAGES = [str(path.relative_to(ROOT)) for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")] if list(blocks(path))]


def test_the_pages_about_python_are_found():
    guide = {"docs/guide/calling.md", "docs/guide/first-program.md"}
    assert {"README.md", "docs/reference/python.md", *guide} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for line, block in blocks(ROOT / page):
        name = f"{page}:{line}"
        if ">>>" in block:
            assert run(block, name, namespace) > 0
        else:
            code = compile(ast.parse(block, name), name, "exec")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, namespace)


def test_the_benchmark_runs():
    """Only that it does: times are for quiet machines."""
    benchmark = [sys.executable, ROOT / "python/benchmarks/against_numpy.py", "--quick"]
    ran = subprocess.run(benchmark, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "kernel: blur" in ran.stdout
