//! Instances of rewrites: metavariables filled with generated terms, conditions and index expressions.
//!
//! A term is a text of Core with holes. What it reads is guarded, so that it means something for every index; indices
//! are used as data, so that a wrong one shows. Index expressions come from short lists with 0, 1, sizes that may be
//! 0, and negative numbers; for rewrites whose conditions chance would hardly meet there are recipes, which set
//! several metavariables together.

use std::collections::HashMap;

use certen_core::domain::splitmix;
use certen_derive::{ParameterKind, Rewrite};

use crate::template::{Filling, Instance, indices, literal, metavariables};

/// A stream of numbers from a seed.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(splitmix(seed))
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = splitmix(self.0);
        (self.0 >> 11) as usize % bound
    }

    pub fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    fn chance(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

const LOW: &[&str] = &["0", "0", "0", "1", "-1", "s3", "u", "-2", "2"];
const HIGH: &[&str] = &["s2", "s1", "s2 + 1", "3", "s3", "2", "u + 2", "0", "s1 - 2", "1", "-1"];
const POINT: &[&str] = &["0", "1", "s3", "u", "s2", "min(s2, 1)", "s2 - 1", "2"];
const AMOUNT: &[&str] = &["0", "1", "2", "s3", "-1", "s2", "u"];
const SHIFT: &[&str] = &["1", "-2", "s3", "u", "s2 + 1"];
const NUMBER: &[&str] = &["1", "2", "3", "5"];
const SIZE: &[&str] = &["s2", "s1", "3", "2", "1", "0", "s3", "s2 + 1", "5"];

/// Rewrites of numbers.
const SCALAR: [&str; 11] = [
    "guard_false",
    "guard_add",
    "guard_mul",
    "if_guard",
    "split_sum",
    "let_op",
    "times_one",
    "zero_plus",
    "swap_factors",
    "swap_summands",
    "tile_sum",
];

/// Several metavariables together: what each is, in order.
type Recipe = (&'static [&'static str], &'static [&'static [&'static str]]);

const SPLITS: Recipe = (
    &["lo", "m", "hi"],
    &[
        &["0", "s3", "s2"],
        &["0", "min(s2, 1)", "s2"],
        &["1", "2", "s2 + 2"],
        &["0", "0", "s1"],
        &["-1", "s1", "s1"],
        &["s3", "s2", "s2 + 1"],
        &["0", "4*floor_div(s2, 4)", "s2"],
        &["min(s2, 1)", "max(s2 - 1, min(s2, 1))", "s2"],
    ],
);

const PADS: Recipe = (
    &["k", "lo", "hi"],
    &[&["0", "0", "s2"], &["2", "1", "s2 + 1"], &["s3", "0", "s3"], &["1", "-1", "3"], &["3", "2", "2"]],
);

/// What conditions ask for, by rewrite.
fn recipe(name: &str) -> Option<Recipe> {
    Some(match name {
        "split_gen" | "split_sum" => SPLITS,
        "range_gen" => (
            &["lo", "hi", "lo2", "hi2"],
            &[
                &["0", "s1 - 2", "0", "max(s1 - 2, 0)"],
                &["1", "s2 - 1", "1", "1 + max(s2 - 2, 0)"],
                &["min(s2, 1)", "max(s2 - 1, min(s2, 1))", "1", "1 + max(s2 - 2, 0)"],
                &["0", "0", "2", "1"],
                &["0", "s2", "0", "max(s2, s3)"],
                // Other elements, as many.
                &["0", "3", "1", "4"],
            ],
        ),
        "beta" => (
            &["lo", "hi", "a"],
            &[
                &["0", "s1", "u"],
                &["1", "s1 + 1", "u"],
                &["-1", "s2", "0"],
                &["0", "s2 + 1", "s3"],
                &["u", "u + 3", "2"],
                &["2", "s1 + 3", "u + 1"],
                // Before the first element.
                &["0", "s2", "-1"],
            ],
        ),
        "select_guard" => (&["a"], &[&["u"], &["u"], &["0"], &["-1"]]),
        "trunc_concat" => (&["k"], &[&["0"], &["1"], &["s3"]]),
        "trunc_pad_r" | "trunc_pad_l" => (&["k"], &[&["0"], &["2"], &["s3"]]),
        "unfold_trunc_r" | "unfold_trunc_l" | "unfold_pad_r" | "unfold_pad_l" => PADS,
        "guard_true" | "if_true" => {
            (&["P"], &[&["0 <= u"], &["u < s1"], &["s3 <= s2"], &["u < s1 + 1 && -1 <= u"], &["u <= 1 || 1 < u"]])
        }
        "guard_false" | "if_false" => (&["P"], &[&["u < 0"], &["s1 <= u"], &["s2 < s3"], &["u == 1 && u == 2"]]),
        "guard_same" => (
            &["P", "Q"],
            &[
                &["u < 2", "u <= 1"],
                &["0 <= u && u < 3", "u < 3"],
                &["u == 1", "1 <= u && u <= 1"],
                &["u < s1 && s3 <= u", "s3 <= u"],
            ],
        ),
        "range_sum" => (
            &["lo", "hi", "P", "lo2", "hi2", "Q"],
            &[
                &["0", "s2", "$0 < s3", "0", "s3", "0 <= $0"],
                &["0", "s2", "u <= $0", "u", "s2", "$0 < s2"],
                &["u", "s2 + u", "$0 < s2", "0", "s2", "u <= $0"],
                &["0", "s1", "0 <= $0", "-2", "s1 + 3", "0 <= $0 && $0 < s1"],
                &["0", "s2", "$0 == 1", "1", "2", "$0 < s2"],
            ],
        ),
        "collapse_sum" => (
            &["lo", "hi", "P", "a"],
            &[
                &["0", "s2", "$0 == u", "u"],
                &["0", "s2", "u == $0 + 2 && $0 <= u", "u - 2"],
                &["-1", "3", "$0 == 1", "1"],
                &["0", "s1", "2*$0 == 2*u", "u"],
                &["s3", "s3 + 1", "0 <= $0", "s3"],
            ],
        ),
        _ => return None,
    })
}

/// A generated instance of a rewrite. It may be one that is ill-typed.
pub fn instance(rewrite: &Rewrite, rng: &mut Rng) -> Instance {
    let both = format!("{} = {}", rewrite.left, rewrite.right);
    let elem = rng.pick(&["f64", "f64", "f64", "i64", "f32", "i32"]);
    let mut made = Maker { rng, elem, names: 0 };
    let mut instance = Instance {
        upper: HashMap::new(),
        lower: HashMap::new(),
        elem,
        reduce: made.rng.pick(&["sum", "sum", "product", "minimum", "maximum"]),
        op: made.rng.pick(&["+", "-", "*", "min", "max"]),
        reshape: String::new(),
    };
    for name in indices(&both) {
        let kind = rewrite.parameters.iter().find(|(parameter, _)| *parameter == name).map(|(_, kind)| *kind);
        let number =
            kind == Some(ParameterKind::Number) || both.contains(&format!("split({name},")) || both.contains("0..k.");
        let shifted = rewrite.name.starts_with("shift");
        let list = match name.as_str() {
            "a" if shifted => SHIFT,
            "lo" | "lo2" => LOW,
            "hi" | "hi2" | "n" => HIGH,
            "m" => POINT,
            "k" if number => NUMBER,
            "k" => AMOUNT,
            _ => POINT,
        };
        instance.lower.insert(name, made.rng.pick(list).into());
    }
    // Shapes: numbers, or tensors that agree but for their outermost size.
    let scalar = SCALAR.contains(&rewrite.name) || (rewrite.name != "tile" && made.rng.chance(3));
    let tail: Vec<String> = (0..made.rng.below(3)).map(|_| made.rng.pick(SIZE).into()).collect();
    let outermost = made.rng.pick(SIZE);
    let reshape = made.reshape();
    instance.reshape = reshape.into();
    let lets: Vec<String> = let_names(&both);
    let mut shapes: HashMap<String, Vec<String>> = HashMap::new();
    let all = metavariables(&both);
    for (name, _) in &all {
        let mut shape = tail.clone();
        if !scalar {
            // Concatenated parts may differ in their outermost size, others agree.
            let own = if both.contains("concat(") { made.rng.pick(SIZE) } else { outermost };
            shape.insert(0, own.into());
        } else {
            shape.clear();
        }
        if rewrite.name == "split_flatten" && !made.rng.chance(4) {
            shape = vec![made.rng.pick(SIZE).into(), instance.lower["k"].clone()];
        }
        if rewrite.name == "select_guard" && !made.rng.chance(3) {
            shape = vec!["s1".into(), "2".into()];
        }
        if rewrite.name == "trunc_concat" && name == "B" && made.rng.chance(2) {
            shape.first_mut().into_iter().for_each(|size| *size = "s2 + 1".into());
        }
        // The value of a `let` has a shape of its own.
        if !lets.is_empty() && both.contains(&format!("= {name} in")) {
            shape = (0..made.rng.below(3)).map(|_| made.rng.pick(SIZE).into()).collect();
        }
        shapes.insert(name.clone(), shape);
    }
    for (name, count) in &all {
        let filling = if matches!(name.as_str(), "P" | "Q") {
            let holes: Vec<String> = (0..*count).map(|at| format!("${at}")).collect();
            Filling { text: made.cond(&holes), shape: Vec::new() }
        } else {
            // Which holes are tensors, and of which shape.
            let args = first_arguments(&both, name);
            let (mut index, mut tensor) = (Vec::new(), Vec::new());
            for (at, arg) in args.iter().enumerate() {
                // `B(A)` is applied to a tensor, and so is `B(x)` if x is the name of one.
                let value = let_value(&both, arg).unwrap_or_else(|| arg.clone());
                match shapes.get(&value) {
                    Some(shape) => tensor.push((format!("${at}"), shape.clone())),
                    None => index.push(format!("${at}")),
                }
            }
            let shape = shapes[name].clone();
            Filling { text: made.tensor(&shape, &index, &tensor, 2), shape }
        };
        instance.upper.insert(name.clone(), filling);
    }
    if let Some((names, choices)) = recipe(rewrite.name)
        && !made.rng.chance(4)
    {
        let choice = choices[made.rng.below(choices.len())];
        for (name, text) in names.iter().zip(choice) {
            if name.starts_with(['P', 'Q']) {
                instance.upper.insert((*name).into(), Filling { text: (*text).into(), shape: Vec::new() });
            } else {
                instance.lower.insert((*name).into(), (*text).into());
            }
        }
        // Sometimes with one of them wrong.
        if made.rng.chance(5) {
            let name = made.rng.pick(names);
            if instance.lower.contains_key(name) {
                let other = made.rng.pick(POINT);
                instance.lower.insert(name.into(), other.into());
            }
        }
    }
    instance
}

/// Names that a text binds with `let`.
fn let_names(text: &str) -> Vec<String> {
    text.split("let ").skip(1).filter_map(|rest| rest.split(' ').next()).map(Into::into).collect()
}

/// The metavariable that is the value of a name bound with `let`; also that of the one in its value.
fn let_value(text: &str, name: &str) -> Option<String> {
    let rest = text.split(&format!("let {name} = ")).nth(1)?;
    let value: String =
        rest.chars().skip_while(|c| !c.is_ascii_uppercase()).take_while(char::is_ascii_uppercase).collect();
    // `let x = (let y = A in B(y))`: what x is has the shape of B.
    if rest.starts_with('(') { Some("B".into()) } else { Some(value) }
}

/// What a metavariable is applied to where it stands first.
fn first_arguments(text: &str, name: &str) -> Vec<String> {
    let Some((_, rest)) = text.split_once(&format!("{name}(")) else { return Vec::new() };
    let inner = rest.split(')').next().unwrap_or_default();
    inner.split(", ").map(Into::into).collect()
}

struct Maker<'r> {
    rng: &'r mut Rng,
    elem: &'static str,
    names: usize,
}

impl Maker<'_> {
    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("g{}", self.names)
    }

    fn reshape(&mut self) -> &'static str {
        self.rng.pick(&[
            "flatten($0)",
            "transpose($0)",
            "split(2, $0)",
            "pad_l(1, $0)",
            "pad_r(s3, $0)",
            "trunc_l(1, $0)",
            "trunc_r(2, $0)",
        ])
    }

    fn index(&mut self, around: &[String]) -> String {
        let one = |maker: &mut Self| match around.is_empty() || maker.rng.chance(4) {
            true => maker.rng.pick(&["u", "s3", "1", "0", "s2"]).to_owned(),
            false => around[maker.rng.below(around.len())].clone(),
        };
        let (a, b) = (one(self), one(self));
        match self.rng.below(6) {
            0 => format!("{a} + 1"),
            1 => format!("{a} - {b}"),
            2 => format!("2*{a} - 1"),
            3 => format!("floor_div({a}, 2)"),
            _ => a,
        }
    }

    fn cond(&mut self, around: &[String]) -> String {
        let [a, b, c] = [(); 3].map(|()| self.index(around));
        match self.rng.below(5) {
            0 => format!("{a} <= {b}"),
            1 => format!("{a} < {b} && {b} <= {c}"),
            2 => format!("{a} == {b}"),
            3 => format!("{a} < {b} || {c} == 1"),
            _ => format!("0 <= {a}"),
        }
    }

    /// A tensor of a shape, of indices and tensors.
    fn tensor(
        &mut self,
        shape: &[String],
        around: &[String],
        tensors: &[(String, Vec<String>)],
        depth: usize,
    ) -> String {
        let Some((size, rest)) = shape.split_first() else { return self.scalar(around, tensors, depth) };
        if let Some((name, _)) = tensors.iter().find(|(_, of)| of == shape)
            && self.rng.chance(3)
        {
            return name.clone();
        }
        match self.rng.below(8) {
            0 if depth > 0 => {
                let cond = self.cond(around);
                format!("guard({cond}, {})", self.tensor(shape, around, tensors, depth - 1))
            }
            1 if depth > 0 && !rest.is_empty() => {
                let mut swapped = shape.to_vec();
                swapped.swap(0, 1);
                format!("transpose({})", self.tensor(&swapped, around, tensors, depth - 1))
            }
            2 if depth > 0 && matches!(size.as_str(), "2" | "3" | "5") => {
                let mut less = shape.to_vec();
                less[0] = "1".into();
                let first = self.tensor(&less, around, tensors, depth - 1);
                less[0] = (size.parse::<i64>().expect("a number") - 1).to_string();
                format!("concat({first}, {})", self.tensor(&less, around, tensors, depth - 1))
            }
            3 if depth > 0 && size == "s2 + 1" => {
                let mut less = shape.to_vec();
                less[0] = "s2".into();
                format!("pad_r(1, {})", self.tensor(&less, around, tensors, depth - 1))
            }
            _ => {
                let name = self.fresh();
                let mut inner = around.to_vec();
                inner.push(name.clone());
                format!("gen {name} in 0..{size}. {}", self.tensor(rest, &inner, tensors, depth))
            }
        }
    }

    fn scalar(&mut self, around: &[String], tensors: &[(String, Vec<String>)], depth: usize) -> String {
        let elem = self.elem;
        if !tensors.is_empty() && self.rng.below(3) > 0 {
            let (name, shape) = &tensors[self.rng.below(tensors.len())];
            return self.read(name, shape, around);
        }
        if depth == 0 {
            return match self.rng.below(4) {
                0 => "ts".into(),
                1 => literal(2, elem),
                _ => format!("index.{elem}({})", self.index(around)),
            };
        }
        let part = |maker: &mut Self| maker.scalar(around, tensors, depth - 1);
        match self.rng.below(10) {
            0 | 1 => self.read("tb", &["s2".into()], around),
            2 | 3 => self.read("ta", &["s1".into(), "s2".into()], around),
            4 => self.read("tc", &["2".into(), "s2".into(), "3".into()], around),
            5 => {
                let cond = self.cond(around);
                format!("guard({cond}, {})", part(self))
            }
            6 => {
                let name = self.fresh();
                let mut inner = around.to_vec();
                inner.push(name.clone());
                format!("(sum {name} in 0..s3. {})", self.scalar(&inner, tensors, depth - 1))
            }
            7 => format!("({} * {})", part(self), part(self)),
            8 => format!("({} - {})", part(self), part(self)),
            _ => format!("({} + {})", part(self), part(self)),
        }
    }

    /// An element, guarded.
    fn read(&mut self, name: &str, shape: &[String], around: &[String]) -> String {
        if shape.is_empty() {
            return name.into();
        }
        let at: Vec<String> = shape.iter().map(|_| self.index(around)).collect();
        let inside: Vec<String> =
            at.iter().zip(shape).map(|(at, size)| format!("0 <= {at} && {at} < {size}")).collect();
        format!("guard({}, {name}[{}])", inside.join(" && "), at.join(", "))
    }
}
