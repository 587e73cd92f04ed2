"""Certen's kernels with schedules written by hand: a row of its own, which says how much a schedule by hand is worth.

Where steps alone cannot say it, the program is rewritten too: operands packed into panels, rows padded to whole
vectors, a function for each element of a batch. `lanes` is the number of elements in a vector.
"""

from __future__ import annotations

from collections.abc import Callable

from .kernels import DTYPES, Problem

# From vectors of so many bytes on there are twice as many registers: schedules for AVX-512 are others than for AVX2.
_LONG = 64


def _vectors(*loops: str) -> str:
    """Vectors in a loop, and in what fission has left before and after it."""
    return "".join(f"; vectorize({loop}{part})" for loop in loops for part in ("", ".before", ".after"))


def _product(rows: int, columns: int, packed: str, block: int = 0) -> str:
    """A register tile, with one operand packed in panels; in blocks of rows for the threads, or whole."""
    if block:
        steps = f"split(i, {block}); tile([i.i, j], [{rows}, {columns}]); reorder([l, i.i.i, j.i])"
        steps += "; interchange(i.i.o, j.o)"
    else:
        steps = f"tile([i, j], [{rows}, {columns}]); reorder([l, i.i, j.i]); interchange(i.o, j.o)"
    steps += f"; stage({packed}, j.o){_vectors('j.i')}; vectorize({packed}_staged.c1)"
    return steps + f"; parallelize({'i.o' if block else 'j.o'}); fma(l)"


def _panels() -> str:
    """Tiles over panels that the program packs. The last block of rows, which is smaller, has tiles of its own."""
    steps = "split(i, 96); peel(i.o, tail); split(i.i, 6); split(i.i.tail, 4)"
    steps += "; reorder([i.o, q, i.i.o, i.i.i, p]); reorder([l, i.i.i, p])"
    steps += "; reorder([q.tail, i.i.tail.o, i.i.tail.i, p.tail]); reorder([l.tail, i.i.tail.i, p.tail])"
    return steps + f"{_vectors('p', 'p.tail')}; vectorize(Bq.p); parallelize(i.o); fma(result)"


def _packed(problem: Problem, width: int, matrix: str) -> str:
    """One matrix in panels of so many columns."""
    s = problem.sizes
    bounds = f"[{s['n'] // width}, {s['k']}, {width}]"
    return f"let Bq = stored({{ [q, l, p] -> {matrix}[l, {width}*q + p] | [q, l, p] < {bounds} }});"


def _mm(problem: Problem, lanes: int, long: bool) -> tuple[str, str]:
    if long:
        return problem.text(fixed=True), _product(4, 4 * lanes, "B")
    s, t, w = problem.sizes, problem.dtype, 2 * lanes
    text = f"""
fn kernel(A: {t}[{s["m"]}, {s["k"]}], B: {t}[{s["k"]}, {s["n"]}]) -> {t}[{s["m"]}, {s["n"]}] {{
    {_packed(problem, w, "B")}
    {{ [i] -> flatten({{ [q, p] -> sum({{ [l] -> A[i, l] * Bq[q, l, p] }}) | [q, p] < [{s["n"] // w}, {w}] }}) }}
}}"""
    return text, _panels()


def _tmm(problem: Problem, lanes: int, long: bool) -> tuple[str, str]:
    if long:
        steps = f"split(i, 256); tile([i.i, j], [4, {4 * lanes}]); reorder([l, i.i.i, j.i]); interchange(i.i.o, j.o)"
        steps += "; stage(B, j.o); stage(A, i.o, [1, 0]); tile([A_staged.c0, A_staged.c1], [8, 8])"
        return problem.text(fixed=True), steps + _vectors("j.i") + "; vectorize(B_staged.c1); parallelize(i.o); fma(l)"
    s, t, w = problem.sizes, problem.dtype, 2 * lanes
    text = f"""
fn kernel(A: {t}[{s["k"]}, {s["m"]}], B: {t}[{s["k"]}, {s["n"]}]) -> {t}[{s["m"]}, {s["n"]}] {{
    let At = stored({{ [i, l] -> A[l, i] }});
    {_packed(problem, w, "B")}
    {{ [i] -> flatten({{ [q, p] -> sum({{ [l] -> At[i, l] * Bq[q, l, p] }}) | [q, p] < [{s["n"] // w}, {w}] }}) }}
}}"""
    return text, _panels() + "; tile([At.i, At.l], [8, 8]); parallelize(At.i.o)"


def _bmm(problem: Problem, lanes: int, long: bool) -> tuple[str, str]:
    columns = 8 if lanes < 8 else 24
    steps = f"tile([i, j], [4, {columns}]); reorder([l, i.i, j.i]); stage(B, z); vectorize(B_staged.c2, 8)"
    return problem.text(fixed=True), steps + _vectors("j.i") + "; parallelize(z); fma(l)"


def _gconv(problem: Problem, lanes: int, long: bool) -> tuple[str, str]:
    steps = f"vectorize(x, {max(lanes, 8)}); unroll_and_jam(o, {8 if long else 4}); parallelize(b); fma(result)"
    return problem.text(fixed=True), ("stage(W, s, [0, 2, 3, 4, 1]); " if long else "") + steps


def _gconv_dw(problem: Problem, lanes: int, long: bool) -> tuple[str, str]:
    steps = f"split(x, {min(4 * lanes, 32)}); split(y, 2); reorder([b, s, o, y.o, x.o, y.i, x.i])"
    steps += "; reorder([z, u, v, y.i, x.i]); vectorize(x.i)"
    for part in ("before", "after", "before_1", "after_1", "before_2", "after_2"):
        steps += f"; vectorize(x.i.{part})"
    return problem.text(fixed=True), steps + "; parallelize(b); fma(v)"


def _mttkrp(problem: Problem, lanes: int, long: bool) -> tuple[str, str]:
    s, t, w, rows = problem.sizes, problem.dtype, 2 * lanes, 10 if long else 5
    m, k, r, n = s["m"], s["k"], s["p"], s["n"]
    panels = -(-n // w)
    text = f"""
fn kernel(B: {t}[{m}, {k}, {r}], C: {t}[{k}, {n}], D: {t}[{r}, {n}]) -> {t}[{m}, {n}] {{
    let Dq = stored({{ [q, b, p] -> guard({w}*q + p < {n}, D[b, {w}*q + p]) | [q, b, p] < [{panels}, {r}, {w}] }});
    let Cq = stored({{ [q, a, p] -> guard({w}*q + p < {n}, C[a, {w}*q + p]) | [q, a, p] < [{panels}, {k}, {w}] }});
    let t = {{ [i, q, a, p] -> sum({{ [b] -> B[i, a, b] * Dq[q, b, p] }}) }};
    let s = stored({{ [i, q, p] -> sum({{ [a] -> Cq[q, a, p] * t[i, q, a, p] }}) }});
    {{ [i, j] -> s[i, floor_div(j, {w}), mod(j, {w})] | [i, j] < [{m}, {n}] }}
}}"""
    # compute_at leaves loops that begin at a multiple of a.o: skew by a negative factor makes them begin at 0, else
    # nothing is unrolled.
    steps = f"split(s.a, {rows}); reorder([s.i, s.q, s.a.o, s.a.i, s.p]); compute_at(t, s.a.o)"
    steps += f"; skew(s.a.o, t.a, -{rows}); reorder([t.b, t.a, t.p]){_vectors('t.p', 's.p')}"
    return text, steps + "; parallelize(s.i); fma(t.b)"


def _sddmm(problem: Problem, lanes: int, long: bool) -> tuple[str, str]:
    if long:
        return problem.text(fixed=True), _product(4, 4 * lanes, "D", 512)
    s, t, w = problem.sizes, problem.dtype, 2 * lanes
    m, n, k = s["m"], s["n"], s["k"]
    text = f"""
fn kernel(B: {t}[{m}, {n}], C: {t}[{m}, {k}], D: {t}[{k}, {n}]) -> {t}[{m}, {n}] {{
    {_packed(problem, w, "D")}
    {{ [i] -> flatten({{
        [q, p] -> B[i, {w}*q + p] * sum({{ [l] -> C[i, l] * Bq[q, l, p] }}) | [q, p] < [{n // w}, {w}]
    }}) }}
}}"""
    return text, _panels()


def _interp(problem: Problem, lanes: int, long: bool) -> tuple[str, str]:
    """Lanes along i in the first two sums and along k in the last: no row of 7 is ever loaded as a vector."""
    e, n, t = problem.sizes["e"], problem.sizes["n"], problem.dtype
    w = n + 1
    text = f"""
fn element(P: {t}[{n}, {n}], Pt: {t}[{n}, {w}], u: {t}[{n}, {n}, {n}]) -> {t}[{n}, {n}, {n}] {{
    let t1 = stored({{ [j, k, i] -> sum({{ [a] -> Pt[a, i] * u[a, j, k] }}) }});
    let t2 = stored({{ [j, k, i] -> sum({{ [b] -> P[j, b] * t1[b, k, i] }}) }});
    let r = stored({{ [i, j, k] -> sum({{ [c] -> Pt[c, k] * t2[j, c, i] }}) | [i, j, k] < [{n}, {n}, {w}] }});
    {{ [i, j, k] -> r[i, j, k] | [i, j, k] < [{n}, {n}, {n}] }}
}}

fn kernel(P: {t}[{n}, {n}], u: {t}[{e}, {n}, {n}, {n}]) -> {t}[{e}, {n}, {n}, {n}] {{
    let Pt = stored({{
        [a, k] -> P[k, a] | [0, 0] <= [a, k] < [{n}, {n}];
        [a, k] -> 0 | [0, 0] <= [a, k] < [{n}, {w}]
    }});
    {{ [z] -> element(P, Pt, u[z]) }}
}}"""
    steps = "reorder([t1.j, t1.a, t1.k, t1.i]); reorder([t2.k, t2.j, t2.i]); reorder([t2.b, t2.j, t2.i])"
    steps += f"; reorder([r.i#1, r.c, r.j#1, r.k#1]){_vectors('t1.i', 't2.i')}"
    steps += "; vectorize(r.k#1); vectorize(r.k.before); vectorize(r.k.after)"
    return text, steps + "; parallelize(z); fma(t1); fma(t2); fma(r)"


def _helm(problem: Problem, lanes: int, long: bool) -> tuple[str, str]:
    """Lanes along i in the first two sums, along k from then on; rows of 13 are computed as 16."""
    e, n, t = problem.sizes["e"], problem.sizes["n"], problem.dtype
    w = n + 3
    cube, wide = f"[{n}, {n}, {n}]", f"[{n}, {n}, {w}]"
    inside, padded = f"[0, 0] <= [a, k] < [{n}, {n}]", f"[0, 0] <= [a, k] < [{n}, {w}]"
    text = f"""
fn element(S: {t}[{n}, {n}], Sp: {t}[{n}, {w}], St: {t}[{n}, {w}], D: {t}{wide}, u: {t}{cube}) -> {t}{cube} {{
    let t1 = stored({{ [j, k, i] -> sum({{ [a] -> St[a, i] * u[a, j, k] }}) }});
    let t2 = stored({{ [j, k, i] -> sum({{ [a] -> S[j, a] * t1[a, k, i] }}) }});
    let t3 = stored({{ [i, j, k] -> D[i, j, k] * sum({{ [a] -> St[a, k] * t2[j, a, i] }}) | [i, j, k] < {wide} }});
    let v1 = stored({{ [i, j, k] -> sum({{ [a] -> S[a, i] * t3[a, j, k] }}) }});
    let v2 = stored({{ [i, j, k] -> sum({{ [a] -> S[a, j] * v1[i, a, k] }}) }});
    let v3 = stored({{ [i, j, k] -> sum({{ [a] -> Sp[a, k] * v2[i, j, a] }}) | [i, j, k] < {wide} }});
    {{ [i, j, k] -> v3[i, j, k] | [i, j, k] < {cube} }}
}}

fn kernel(S: {t}[{n}, {n}], D: {t}{cube}, u: {t}[{e}, {n}, {n}, {n}]) -> {t}[{e}, {n}, {n}, {n}] {{
    let Sp = stored({{ [a, k] -> S[a, k] | {inside}; [a, k] -> 0 | {padded} }});
    let St = stored({{ [a, k] -> S[k, a] | {inside}; [a, k] -> 0 | {padded} }});
    let Dp = stored({{
        [i, j, k] -> D[i, j, k] | [0, 0, 0] <= [i, j, k] < {cube};
        [i, j, k] -> 0 | [0, 0, 0] <= [i, j, k] < {wide}
    }});
    {{ [z] -> element(S, Sp, St, Dp, u[z]) }}
}}"""
    if not long:
        stages = [("t1", "jki", ""), ("t2", "kji", ""), ("t3", "ijk", ""), ("v1", "jik", ""), ("v2", "ijk", "")]
        steps = "".join(
            _in_registers(stage, order, lanes, which) for stage, order, which in [*stages, ("v3", "ijk", "#1")]
        )
        return text, steps + "parallelize(z)"
    steps = "reorder([t1.j, t1.a, t1.k, t1.i]); reorder([t2.k, t2.j, t2.i]); reorder([t2.a, t2.j, t2.i])"
    steps += "; reorder([t3.i, t3.a, t3.j, t3.k]); reorder([v1.j, v1.i, v1.k]); reorder([v1.a, v1.i, v1.k])"
    steps += "; reorder([v2.i, v2.a, v2.j, v2.k]); reorder([v3.i#1, v3.a, v3.j#1, v3.k#1])"
    steps += _vectors("t1.i", "t2.i", "t3.k", "v1.k", "v2.k")
    steps += "; vectorize(v3.k#1); vectorize(v3.k.before); vectorize(v3.k.after); parallelize(z)"
    return text, steps + "".join(f"; fma({stage})" for stage in ("t1", "t2", "t3", "v1", "v2", "v3"))


def _in_registers(stage: str, order: str, lanes: int, which: str) -> str:
    """A stage of helm: of its loops, the second stays in registers, and the third has the lanes."""
    outer, rows, lane = (f"{stage}.{loop}{which}" for loop in order)
    parts = f"{stage}.{order[2]}"
    steps = f"split({lane}, {lanes}); reorder([{outer}, {parts}.o, {rows}, {parts}.i])"
    return steps + f"; reorder([{stage}.a, {rows}, {parts}.i]){_vectors(parts + '.i')}; fma({stage}); "


def _blur(problem: Problem, lanes: int, long: bool) -> tuple[str, str]:
    return problem.text(fixed=True), "inline(rows); vectorize(j, 16); parallelize(i)"


def _coars(problem: Problem, lanes: int, long: bool) -> tuple[str, str]:
    return problem.text(fixed=True), "inline(a); inline(b); inline(c); vectorize(j, 16); parallelize(i)"


_HAND: dict[str, Callable[[Problem, int, bool], tuple[str, str]]] = {
    "mm": _mm,
    "tmm": _tmm,
    "bmm": _bmm,
    "gconv": _gconv,
    "gconv_dw": _gconv_dw,
    "mttkrp": _mttkrp,
    "sddmm": _sddmm,
    "interp": _interp,
    "helm": _helm,
    "blur": _blur,
    "coars": _coars,
}


def by_hand(problem: Problem, vector_bytes: int) -> tuple[str, str]:
    """The program and its schedule."""
    lanes = vector_bytes // DTYPES[problem.dtype].itemsize
    return _HAND[problem.name](problem, lanes, vector_bytes >= _LONG)
