//! Kernels as people write them, as programs of Core: stencils, contractions, reductions, softmax, triangles, time steps.
//!
//! Sizes are symbolic most of the time. Ranges, offsets and the number of stages are drawn; each text is read by Core's
//! own parser, which checks it.

use std::fmt::Write as _;

use certen_core::{Program, parse_program};
use certen_syntax::Sources;

use crate::draw::Draw;

/// A kernel under construction.
struct Kernel<'d> {
    draw: &'d mut Draw,
    /// Declared sizes, with their least values.
    sizes: Vec<(&'static str, i64)>,
    inputs: String,
    body: String,
    outputs: Vec<String>,
    elem: &'static str,
}

/// A kernel.
///
/// # Panics
/// If it is no program of Core, which is a mistake in this file.
pub(super) fn kernel(draw: &mut Draw) -> Program {
    parsed(&text(draw))
}

/// The simplest one.
pub(super) fn simple() -> Program {
    parsed("core kernel\nsize n\nwhere n >= 0\ninput x : f64[n]\ny = gen i in 0..n. x[i] + x[i]\noutput y\n")
}

fn parsed(text: &str) -> Program {
    let mut sources = Sources::new();
    let file = sources.add("kernel.core", text);
    parse_program(&sources, file).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
}

fn text(draw: &mut Draw) -> String {
    let elem = if draw.chance(4) { "i64" } else { "f64" };
    let mut kernel =
        Kernel { draw, sizes: Vec::new(), inputs: String::new(), body: String::new(), outputs: Vec::new(), elem };
    match kernel.draw.below(20) {
        0 | 1 => kernel.stencil(),
        2 | 3 => kernel.blur(),
        4 | 5 => kernel.contraction(),
        6 => kernel.reduction(),
        7 => kernel.softmax(),
        8 => kernel.chain(),
        9 => kernel.transposed(),
        10 => kernel.triangle(),
        11 => kernel.steps(),
        12 => kernel.convolution(),
        13 => kernel.summed_tensors(),
        14 => kernel.reshaped(),
        15 | 16 => kernel.sum_of_sums(),
        17 | 18 => kernel.square(),
        _ => kernel.strided(),
    }
    kernel.finish()
}

impl Kernel<'_> {
    /// A size: symbolic, or a number now and then.
    fn size(&mut self, name: &'static str, least: i64) -> String {
        if self.draw.chance(7) {
            return self.draw.within(least.max(2), 7).to_string();
        }
        if !self.sizes.iter().any(|(known, _)| *known == name) {
            self.sizes.push((name, least));
        }
        name.into()
    }

    fn input(&mut self, name: &str, shape: &[String]) {
        let _ = writeln!(self.inputs, "input {name} : {}[{}]", self.elem, shape.join(", "));
    }

    fn bind(&mut self, name: &str, term: &str) {
        let _ = writeln!(self.body, "{name} = {term}");
    }

    fn number(&mut self) -> String {
        let value = self.draw.within(-3, 3);
        if self.elem == "f64" { format!("f64({value}.5)") } else { format!("{}({value})", self.elem) }
    }

    /// A weighted sum of some elements.
    fn weighted(&mut self, elements: &[String]) -> String {
        let mut sum = String::new();
        for (at, element) in elements.iter().enumerate() {
            let sign = if at == 0 { "" } else { [" + ", " - "][self.draw.below(2)] };
            let weight = if self.draw.chance(2) { format!("{} * ", self.number()) } else { String::new() };
            let _ = write!(sum, "{sign}{weight}{element}");
        }
        sum
    }

    fn finish(self) -> String {
        let mut text = "core kernel\n".to_string();
        for (name, least) in &self.sizes {
            let _ = writeln!(text, "size {name}\nwhere {name} >= {least}");
        }
        // Sizes stand before facts, and these before inputs.
        let (sizes, facts): (Vec<&str>, Vec<&str>) = text.lines().skip(1).partition(|line| line.starts_with("size"));
        let mut outputs = String::new();
        for output in &self.outputs {
            let _ = writeln!(outputs, "output {output}");
        }
        format!("core kernel\n{}\n{}\n{}{}{outputs}", sizes.join("\n"), facts.join("\n"), self.inputs, self.body)
    }

    /// Up to three stages in one dimension, each reading its neighbourhood in the one before.
    fn stencil(&mut self) {
        let n = self.size("n", 0);
        let stages = self.draw.within(1, 3);
        let reach: Vec<i64> = (0..stages).map(|_| self.draw.within(0, 3)).collect();
        let mut wider: i64 = reach.iter().sum();
        self.input("x", &[format!("{n} + {wider}")]);
        let mut before = "x".to_string();
        for (at, reach) in reach.into_iter().enumerate() {
            wider -= reach;
            let stage = format!("s{at}");
            let count = self.draw.within(1, 3);
            let reads: Vec<String> =
                (0..count).map(|_| format!("{before}[i + {}]", self.draw.within(0, reach))).collect();
            let sum = self.weighted(&reads);
            self.bind(&stage, &format!("gen i in 0..{n} + {wider}. {sum}"));
            before = stage;
        }
        self.outputs.push(before);
        if stages > 1 && self.draw.chance(4) {
            self.outputs.push("s0".into());
        }
    }

    /// Two or three stages in two dimensions.
    fn blur(&mut self) {
        let (m, n) = (self.size("m", 0), self.size("n", 0));
        let (down, right) = (self.draw.within(0, 2), self.draw.within(1, 2));
        self.input("x", &[format!("{m} + {down}"), format!("{n} + {right}")]);
        let reads: Vec<String> = (0..=right).map(|at| format!("x[i, j + {at}]")).collect();
        let rows = self.weighted(&reads);
        let turned = self.draw.chance(4);
        let reads =
            (0..=down).map(|at| if turned { format!("rows[j, i + {at}]") } else { format!("rows[i + {at}, j]") });
        let reads: Vec<String> = reads.collect();
        let columns = self.weighted(&reads);
        match turned {
            true => self.bind("rows", &format!("gen j in 0..{n}. gen i in 0..{m} + {down}. {rows}")),
            false => self.bind("rows", &format!("gen i in 0..{m} + {down}. gen j in 0..{n}. {rows}")),
        }
        self.bind("y", &format!("gen i in 0..{m}. gen j in 0..{n}. {columns}"));
        if self.draw.chance(3) {
            let half = self.number();
            self.bind("z", &format!("gen i in 0..{m}. gen j in 0..{n}. y[i, j] * {half} + x[i, j]"));
            self.outputs.push("z".into());
        } else {
            self.outputs.push("y".into());
        }
    }

    /// A product of two matrices, of a matrix and a vector, or of three matrices, with something done to the result.
    fn contraction(&mut self) {
        let (m, n, q) = (self.size("m", 0), self.size("n", 0), self.size("q", 0));
        let (a_turned, b_turned) = (self.draw.chance(3), self.draw.chance(3));
        self.input("a", &if a_turned { [q.clone(), m.clone()] } else { [m.clone(), q.clone()] });
        self.input("b", &if b_turned { [n.clone(), q.clone()] } else { [q.clone(), n.clone()] });
        let a = if a_turned { "a[k, i]" } else { "a[i, k]" };
        let b = if b_turned { "b[j, k]" } else { "b[k, j]" };
        self.bind("c", &format!("gen i in 0..{m}. gen j in 0..{n}. sum k in 0..{q}. {a} * {b}"));
        match self.draw.below(4) {
            0 => {
                let (bias, least) = (self.number(), self.number());
                self.bind("y", &format!("gen i in 0..{m}. gen j in 0..{n}. max(c[i, j] + {bias}, {least})"));
                self.outputs.push("y".into());
            }
            1 => {
                self.input("d", std::slice::from_ref(&n));
                self.bind("y", &format!("gen i in 0..{m}. sum j in 0..{n}. c[i, j] * d[j]"));
                self.outputs.push("y".into());
            }
            _ => self.outputs.push("c".into()),
        }
    }

    /// A sum over two indices, of products or of single elements.
    fn sum_of_sums(&mut self) {
        let (m, q, p) = (self.size("m", 0), self.size("q", 0), self.size("p", 0));
        self.input("a", &[m.clone(), q.clone(), p.clone()]);
        self.input("b", &[q.clone(), p.clone()]);
        let term = self.draw.word(&["a[i, k, l] * b[k, l]", "a[i, k, l]", "b[k, l] * b[k, l]"]);
        let restricted = if self.draw.chance(4) { " where l <= k" } else { "" };
        let weight = if self.draw.chance(4) { format!("{} * ", self.number()) } else { String::new() };
        let sum = format!("sum k in 0..{q}. {weight}(sum l in 0..{p}{restricted}. {term})");
        self.bind("y", &format!("gen i in 0..{m}. {sum}"));
        self.outputs.push("y".into());
    }

    /// A matrix that is symmetric or almost, perhaps with something else on its diagonal or a side of it.
    fn square(&mut self) {
        let (n, p) = (self.size("n", 0), self.size("p", 0));
        self.input("a", &[p.clone(), n.clone()]);
        self.input("v", std::slice::from_ref(&n));
        let term = self.draw.word(&[
            "a[k, i] * a[k, j]",
            "a[k, j] * a[k, i]",
            "a[k, i] * v[i] * (a[k, j] * v[j])",
            "a[k, i] + a[k, j]",
            "a[k, i] - a[k, j]",
            "a[k, i] * v[j]",
        ]);
        let weight = if self.draw.chance(3) { format!("{} * ", self.number()) } else { String::new() };
        let mut value = format!("{weight}(sum k in 0..{p}. {term})");
        if self.draw.chance(2) {
            let (cond, other) = (self.draw.word(&["i == j", "i == 0", "j < i", "i + 1 == j"]), self.number());
            value = match self.draw.chance(3) {
                true => format!("if {cond} then {value} else v[i]"),
                false => format!("if {cond} then {other} else {value}"),
            };
        }
        self.bind("y", &format!("gen i in 0..{n}. gen j in 0..{n}. {value}"));
        self.outputs.push("y".into());
    }

    /// One or two reductions, of rows, of columns or of everything.
    fn reduction(&mut self) {
        let ops = ["sum", "product", "minimum", "maximum", "all", "any"];
        let op = self.draw.word(&ops);
        let (m, n) = (self.size("m", 0), self.size("n", 1));
        self.input("x", &[m.clone(), n.clone()]);
        self.input("v", std::slice::from_ref(&n));
        let element = if matches!(op, "all" | "any") { "x[i, j] < v[j]" } else { "x[i, j] * v[j]" };
        let restricted = if matches!(op, "sum" | "product" | "all" | "any") && self.draw.chance(3) {
            [" where i + j < 4", " where j != i", " where j > 0"][self.draw.below(3)]
        } else {
            ""
        };
        self.bind("r", &format!("gen i in 0..{m}. {op} j in 0..{n}{restricted}. {element}"));
        if !matches!(op, "all" | "any") && self.draw.chance(2) {
            self.bind("t", &format!("sum i in 0..{m}. r[i]"));
            self.outputs.push("t".into());
        }
        self.outputs.push("r".into());
    }

    fn softmax(&mut self) {
        self.elem = "f64";
        let (m, n) = (self.size("m", 0), self.size("n", 1));
        self.input("x", &[m.clone(), n.clone()]);
        self.bind("top", &format!("gen i in 0..{m}. maximum j in 0..{n}. x[i, j]"));
        self.bind("e", &format!("gen i in 0..{m}. gen j in 0..{n}. exp(x[i, j] - top[i])"));
        self.bind("s", &format!("gen i in 0..{m}. sum j in 0..{n}. e[i, j]"));
        self.bind("y", &format!("gen i in 0..{m}. gen j in 0..{n}. e[i, j] / s[i]"));
        self.outputs.push("y".into());
    }

    /// Stages of the same shape, some read backwards.
    fn chain(&mut self) {
        let n = self.size("n", 0);
        self.input("x", std::slice::from_ref(&n));
        let mut before = vec!["x".to_string()];
        for at in 0..self.draw.within(2, 4) {
            let read = |kernel: &mut Self| {
                let from = before[kernel.draw.below(before.len())].clone();
                if kernel.draw.chance(4) { format!("{from}[{n} - 1 - i]") } else { format!("{from}[i]") }
            };
            let (one, two) = (read(self), read(self));
            let op = self.draw.word(&["+", "-", "*"]);
            let stage = format!("s{at}");
            let guarded = self.draw.chance(5);
            match guarded {
                true => self.bind(&stage, &format!("gen i in 0..{n}. guard(i > 1, {one} {op} {two})")),
                false => self.bind(&stage, &format!("gen i in 0..{n}. {one} {op} {two}")),
            }
            before.push(stage);
        }
        self.outputs.extend(before.pop());
        if self.draw.chance(4) {
            self.outputs.extend(before.pop());
        }
    }

    fn transposed(&mut self) {
        let (m, n) = (self.size("m", 0), self.size("n", 0));
        self.input("x", &[m.clone(), n.clone()]);
        let two = self.number();
        self.bind("t", &format!("gen i in 0..{n}. gen j in 0..{m}. x[j, i] * {two}"));
        self.outputs.push("t".into());
        if self.draw.chance(2) {
            self.bind("y", &format!("gen i in 0..{m}. gen j in 0..{n}. t[j, i] + x[i, j]"));
            self.outputs = vec!["y".into()];
        } else if self.draw.chance(2) {
            self.bind("y", "transpose(t)");
            self.outputs = vec!["y".into()];
        }
    }

    /// Ranges and conditions that depend on an index.
    fn triangle(&mut self) {
        let n = self.size("n", 0);
        self.input("x", &[n.clone(), n.clone()]);
        self.input("v", std::slice::from_ref(&n));
        let term = match self.draw.below(6) {
            0 => format!("gen i in 0..{n}. sum j in 0..i + 1. x[i, j] * v[j]"),
            1 => format!("gen i in 0..{n}. sum j in i..{n}. x[j, i] * v[j]"),
            2 => format!("gen i in 0..{n}. gen j in 0..{n}. guard(j <= i, x[i, j] * v[j])"),
            3 => format!("gen i in 0..{n}. gen j in 0..{n}. if i < j then x[i, j] else x[j, i]"),
            4 => format!("gen i in 0..{n}. maximum j in 0..i + 1. v[j]"),
            _ => format!("gen i in 0..{n}. gen j in 0..{n}. sum k in 0..{n} where k <= i. x[i, k] * x[k, j]"),
        };
        self.bind("y", &term);
        self.outputs.push("y".into());
        if term.starts_with(&format!("gen i in 0..{n}. gen j")) && self.draw.chance(2) {
            self.bind("z", &format!("gen i in 0..{n}. sum j in 0..{n}. y[i, j]"));
            self.outputs.push("z".into());
        }
    }

    /// A number of time steps.
    fn steps(&mut self) {
        let n = self.size("n", 0);
        self.input("x", std::slice::from_ref(&n));
        let times = if self.draw.chance(2) { self.draw.within(1, 3).to_string() } else { self.size("k", 0) };
        let sum = self.weighted(&["u[i - 1]".into(), "u[i]".into(), "u[i + 1]".into()]);
        let next = format!("gen i in 0..{n}. if 1 <= i && i < {n} - 1 then {sum} else u[i]");
        self.bind("y", &format!("iterate t in 0..{times} (u = gen i in 0..{n}. x[i]) then (u = {next}) give u"));
        let two = self.number();
        if self.draw.chance(3) {
            self.bind("z", &format!("gen i in 0..{n}. y[i] * {two}"));
            self.outputs.push("z".into());
        } else {
            self.outputs.push("y".into());
        }
    }

    fn convolution(&mut self) {
        let n = self.size("n", 0);
        let taps = self.draw.within(2, 4);
        if self.draw.chance(2) {
            self.input("x", &[format!("{n} + {}", taps - 1)]);
            self.input("w", &[taps.to_string()]);
            self.bind("y", &format!("gen i in 0..{n}. sum k in 0..{taps}. x[i + k] * w[k]"));
        } else {
            // The edge is zero.
            self.input("x", std::slice::from_ref(&n));
            self.input("w", &[taps.to_string()]);
            self.bind("p", &format!("pad_l(1, pad_r({}, x))", taps - 2));
            self.bind("y", &format!("gen i in 0..{n}. sum k in 0..{taps}. p[i + k] * w[k]"));
        }
        self.outputs.push("y".into());
    }

    /// Whole tensors added up, in place.
    fn summed_tensors(&mut self) {
        let (n, q) = (self.size("n", 0), self.size("q", 0));
        self.input("x", &[q.clone(), n.clone()]);
        self.input("v", std::slice::from_ref(&q));
        match self.draw.below(3) {
            0 => self.bind("y", &format!("sum k in 0..{q}. gen i in 0..{n}. x[k, i] * v[k]")),
            1 => self.bind("y", &format!("sum k in 0..{q}. gen i in 0..{n}. guard(k <= i, x[k, i])")),
            _ => self.bind("y", &format!("sum k in 0..{q}. gen i in 0..{n}. gen j in 0..3. x[k, i] + v[k]")),
        }
        self.outputs.push("y".into());
    }

    /// Through ATL's reshape operators.
    fn reshaped(&mut self) {
        let (m, n) = (self.size("m", 0), self.size("n", 0));
        self.input("x", &[m.clone(), n.clone()]);
        self.input("v", std::slice::from_ref(&n));
        let two = self.number();
        match self.draw.below(4) {
            0 => self.bind("y", &format!("flatten(gen i in 0..{m}. gen j in 0..{n}. x[i, j] + v[j])")),
            1 => self.bind("y", &format!("split(3, gen j in 0..{n}. v[j] * {two})")),
            2 => self.bind("y", &format!("concat(gen i in 0..{n}. v[i] * {two}, v)")),
            _ => self.bind("y", &format!("pad_l(2, transpose(gen i in 0..{m}. gen j in 0..{n}. x[i, j] + v[j]))")),
        }
        self.outputs.push("y".into());
    }

    /// Every other element, pairs of elements, blocks.
    fn strided(&mut self) {
        let n = self.size("n", 0);
        self.input("x", &[format!("2 * {n}")]);
        self.bind("a", &format!("gen i in 0..{n}. x[2 * i] + x[2 * i + 1]"));
        match self.draw.below(3) {
            0 => self.outputs.push("a".into()),
            1 => {
                self.bind("y", &format!("gen i in 0..2 * {n}. x[i] - a[floor_div(i, 2)]"));
                self.outputs.push("y".into());
            }
            _ => {
                self.bind("y", &format!("sum i in 0..{n}. select(a[i] < x[i], a[i], x[i])"));
                self.outputs.push("y".into());
            }
        }
    }
}
