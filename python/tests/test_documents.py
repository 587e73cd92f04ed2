"""What the documentation says about Python is true."""

import doctest
import importlib
import pkgutil
import re

import pytest
from conftest import ROOT, run_python

certen = pytest.importorskip("certen")

DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "python").glob("*.md")])
MODULES = sorted(module.name for module in pkgutil.iter_modules(certen.__path__))


def blocks(text: str) -> list[str]:
    return re.findall(r"^```(?:python|py)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_examples_of_documents_run(path, tmp_path, monkeypatch):
    """Blocks with `>>>` are compared with what they show; the others of a document run one after the other."""
    monkeypatch.chdir(ROOT)
    scripts = []
    for block in blocks(path.read_text()):
        if ">>>" in block:
            parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            found = []
            runner.run(parser.get_doctest(block, {}, path.name, str(path), 0), out=found.append)
            assert not runner.failures, "".join(found)
        else:
            scripts.append(block)
    if scripts:
        run_python("\n".join(scripts))


@pytest.mark.parametrize("name", ["", *MODULES])
def test_examples_of_docstrings_run(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    module = importlib.import_module(f"certen.{name}".rstrip("."))
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_everything_public_is_documented():
    for name in certen.__all__:
        if not name.startswith("__"):
            assert (getattr(certen, name).__doc__ or "").strip(), name
