"""How kernels are shown in notebooks and at the prompt."""

from html.parser import HTMLParser

import pytest

import certen
from certen import _html

MATMUL = "fn matmul(A: f64[l, m], B: f64[m, n]) -> f64[l, n] { { [i, j] -> sum({ [k] -> A[i,k] * B[k,j] }) } }"


class Outline(HTMLParser):
    """The elements of a page, and the text of each `summary` and of what follows it."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.text, self.sections = [], [], "", {}
        self.feed(page)
        self.close()
        assert not self.open, f"these are not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        assert not any(name.startswith("on") or "script" in str(value) for name, value in attrs)
        if tag == "summary":
            self.title = ""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if "summary" in self.open:
            self.title += data
        elif "details" in self.open:
            self.sections[self.title] = self.sections.get(self.title, "") + data


def test_a_kernel_in_html():
    kernel = certen.compile(MATMUL)
    page = Outline(kernel._repr_html_())
    assert set(page.tags) == {"div", "b", "code", "details", "summary", "pre"}
    assert "certen.Kernel matmul(A: f64[l, m], B: f64[m, n]) -> f64[l, n]" in page.text
    assert f"operations: {kernel.flops}" in page.text
    assert list(page.sections) == ["Program", "Loops", "C code"]
    assert page.sections["Program"] == MATMUL
    assert "for k in 0..m {" in page.sections["Loops"]
    assert "for (int64_t k = 0; k < m; k++)" in page.sections["C code"]


def test_what_comes_from_a_program_is_escaped():
    source = "// </code><script>alert(1)</script> & <b>\n" + MATMUL
    written = certen.compile(source)._repr_html_()
    assert "<script" not in written
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &lt;b&gt;" in written
    assert Outline(written).sections["Program"] == source


def test_no_colours_of_its_own():
    written = certen.compile(MATMUL)._repr_html_()
    assert "color: inherit" in written
    assert "background: transparent" in written
    assert "#" not in written.split("<pre")[0]


def test_a_kernel_of_open_rank_has_no_loops_yet():
    kernel = certen.compile("fn twice(x: f64[s...]) -> f64[s...] { 2 * x }")
    page = Outline(kernel._repr_html_())
    assert "twice(x: f64[s...]) -> f64[s...]" in page.text
    assert list(page.sections) == ["Program"]


def test_warnings_are_shown():
    class Warned:
        name, type, source, c_source = "f", "f(x: f64) -> f64", "fn f(x: f64) -> f64 { x }", "/* */"
        warnings = ["warning[W0301]: `y` is < never > used"]  # noqa: RUF012

        def explain(self, stage):
            raise certen.CompileError("no loops")

        @property
        def flops(self):
            raise OverflowError("there are more than can be counted")

    page = _html.kernel(Warned())
    assert "<code>warning[W0301]: `y` is &lt; never &gt; used</code>" in page
    assert list(Outline(page).sections) == ["Program", "C code"]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (MATMUL, "<certen.Kernel matmul(A: f64[l, m], B: f64[m, n]) -> f64[l, n]>"),
        ("fn one() -> f64 { 1.0 }", "<certen.Kernel one() -> f64>"),
        (
            "fn two(x: f64[n]) -> (a: f64, b: f64[n]) where n >= 1 { (max(x), x) }",
            "<certen.Kernel two(x: f64[n]) -> (a: f64, b: f64[n]) where n >= 1>",
        ),
    ],
)
def test_a_kernel_at_the_prompt(source, shown):
    assert repr(certen.compile(source)) == shown
