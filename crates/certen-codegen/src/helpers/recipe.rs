//! Functions of mathematics: their recipes as C, for a number and for all lanes of a vector.
//!
//! One list of operations is printed in two spellings; each operation is exact in C too, so both have the bits that the
//! interpreter of recipes has. What is rare is a function of its own, which vectors call if one of their lanes needs it.

use std::fmt::Write;

use certen_core::ElemType;
use certen_math::{Function, Kind, One, Precision, Recipe, Step, Table, Two};

use super::vectors::{Lane, LaneShape, VectorCall, VectorOp};
use super::{Helper, c_type};
use crate::text::filled;

/// More steps are not made in lanes if they are rare: the exponential of what is hidden by a mask has fewer.
const MAX_RARE_IN_LANES: usize = 48;

/// The precision of an element type.
pub(crate) fn precision(elem: ElemType) -> Precision {
    if elem == ElemType::F32 { Precision::Single } else { Precision::Double }
}

fn elem(precision: Precision) -> ElemType {
    if precision == Precision::Single { ElemType::F32 } else { ElemType::F64 }
}

/// The type of as many bits.
fn bits(precision: Precision) -> &'static str {
    if precision == Precision::Single { "uint32_t" } else { "uint64_t" }
}

/// A table, as it is known in C.
pub(super) fn table_name(table: Table) -> String {
    format!("certen_{}", table.name())
}

pub(super) fn table(table: Table) -> String {
    let numbers: Vec<String> = table.elements().iter().map(|number| format!("{number:?}")).collect();
    let begin = format!("static const double {}[{}] = {{\n    ", table_name(table), numbers.len());
    filled(&begin, &numbers, ", ", "\n};\n", 4)
}

/// How a recipe is spelled: for a number, or for vectors of a shape.
#[derive(Clone, Copy)]
enum Spelling {
    Number,
    Lanes(LaneShape),
}

/// A recipe that is printed.
struct Printer<'a> {
    function: Function,
    recipe: &'a Recipe,
    spelling: Spelling,
    kinds: Vec<Kind>,
}

impl<'a> Printer<'a> {
    fn new(function: Function, of: ElemType, spelling: Spelling) -> Printer<'a> {
        let recipe = function.recipe(precision(of));
        Printer { function, recipe, spelling, kinds: recipe.kinds().unwrap_or_default() }
    }

    /// Of a part of it.
    fn of<'b>(&self, recipe: &'b Recipe) -> Printer<'b> {
        Printer { function: self.function, recipe, spelling: self.spelling, kinds: recipe.kinds().unwrap_or_default() }
    }

    /// The element type of arguments and results.
    fn elem(&self) -> ElemType {
        elem(self.recipe.precision)
    }

    /// Whether what is rare is computed lane by lane: as it is for numbers always, or because lanes are too narrow for it, or
    /// it is long, so that C compilers would take time for it.
    fn one_by_one(&self) -> bool {
        let is_short = |recipe: &Recipe| {
            recipe.working == self.recipe.working && recipe.rare.is_none() && recipe.steps.len() <= MAX_RARE_IN_LANES
        };
        let rare = self.recipe.rare.as_ref();
        matches!(self.spelling, Spelling::Number) || rare.is_some_and(|rare| !is_short(&rare.recipe))
    }

    /// The type of arguments and results, and the type of floats in which it computes.
    fn float(&self, precision: Precision) -> String {
        match self.spelling {
            Spelling::Number => c_type(elem(precision)).into(),
            Spelling::Lanes(shape) => Lane::Value(elem(precision)).vector(shape).register(),
        }
    }

    fn mask(&self) -> String {
        let bytes = elem(self.recipe.working).bytes();
        match self.spelling {
            Spelling::Number => "int".into(),
            Spelling::Lanes(shape) => Lane::Mask(bytes).vector(shape).register(),
        }
    }

    fn bits(&self) -> &'static str {
        if let Spelling::Lanes(_) = self.spelling { "bits" } else { bits(self.recipe.working) }
    }

    /// A function over vectors of floats, or masks.
    fn call(&self, call: VectorOp, shape: LaneShape) -> VectorCall {
        let elem = elem(self.recipe.working);
        let lane = if call == VectorOp::Any { Lane::Mask(elem.bytes()) } else { Lane::Value(elem) };
        VectorCall { call, lane, shape }.canonical()
    }

    /// What the text uses.
    fn needs(&self) -> Vec<Helper> {
        let working = elem(self.recipe.working);
        let has = |f: fn(&Step) -> bool| self.recipe.steps.iter().any(f);
        let mut needs: Vec<Helper> = Vec::new();
        for step in &self.recipe.steps {
            if let Step::Look(table, _) = step {
                needs.push(Helper::Table(*table));
            }
        }
        match self.spelling {
            Spelling::Number => {
                if has(|step| matches!(step, Step::One(One::ToBits, _))) {
                    needs.push(Helper::ToBits(working));
                }
                if has(|step| matches!(step, Step::One(One::FromBits, _))) {
                    needs.push(Helper::FromBits(working));
                }
            }
            Spelling::Lanes(shape) => {
                let mut vector = |lane: Lane| needs.push(Helper::Vector(lane.vector(shape)));
                vector(Lane::Value(working));
                vector(Lane::Mask(working.bytes()));
                if has(|step| matches!(step, Step::One(One::Single, _))) {
                    vector(Lane::Value(ElemType::F32));
                }
                let mut call = |op: VectorOp| needs.push(Helper::VectorCall(self.call(op, shape)));
                if has(|step| matches!(step, Step::Fma(..))) {
                    call(VectorOp::Fma);
                }
                if has(|step| matches!(step, Step::Select(..))) || self.recipe.rare.is_some() {
                    call(VectorOp::Select);
                }
                if has(|step| matches!(step, Step::One(One::Sqrt, _))) {
                    call(VectorOp::Unary(certen_core::Unary::Sqrt));
                }
                if self.recipe.rare.is_some() {
                    call(VectorOp::Any);
                }
            }
        }
        if let Some(rare) = &self.recipe.rare {
            match self.one_by_one() {
                true => needs.push(Helper::Rare(self.function, self.elem())),
                false => needs.extend(self.of(&rare.recipe).needs()),
            }
        }
        needs
    }

    /// The text of a function under a name, after that for what is rare if it is in lanes too.
    fn text(&self, name: &str, comment: &str) -> String {
        let rare = self.recipe.rare.as_ref();
        let in_lanes = rare.filter(|_| !self.one_by_one());
        let mut text = in_lanes.map_or_else(String::new, |rare| {
            let comment = format!("{comment}, for arguments that are rare");
            self.of(&rare.recipe).text(&format!("{name}_rare"), &comment)
        });
        let (result, names) = (self.float(self.recipe.precision), &["x", "y"][..self.recipe.arguments.clamp(1, 2)]);
        let parameters: Vec<String> = names.iter().map(|name| format!("{result} {name}")).collect();
        // Only what is called once, or by chance, is worth the space of its own code.
        let how = match self.spelling {
            Spelling::Lanes(_) if !name.ends_with("_rare") => "static inline",
            _ => "CERTEN_NOINLINE",
        };
        let _ = writeln!(text, "/* {comment} */\n{how} {result} {name}({}) {{", parameters.join(", "));
        if let Spelling::Lanes(_) = self.spelling {
            let (w, bits) = (self.float(self.recipe.working), bits(self.recipe.working));
            let _ = writeln!(text, "    typedef {bits} bits __attribute__((vector_size(sizeof({w}))));");
        }
        self.steps(&mut text);
        self.end(&mut text, &format!("{name}_rare"), names);
        text
    }

    fn steps(&self, text: &mut String) {
        for (at, step) in self.recipe.steps.iter().enumerate() {
            let ty = match self.kinds[at] {
                Kind::Float => self.float(self.recipe.working),
                Kind::Bits => self.bits().into(),
                Kind::Truth => self.mask(),
            };
            let _ = match (self.spelling, *step) {
                (Spelling::Lanes(shape), Step::Look(table, place)) => {
                    let (lanes, table) = (shape.lanes(), table_name(table));
                    writeln!(text, "    {ty} v{at} = {{0}};").and_then(|()| {
                        writeln!(text, "    for (int at = 0; at < {lanes}; at++) v{at}[at] = {table}[v{place}[at]];")
                    })
                }
                _ => writeln!(text, "    const {ty} v{at} = {};", self.step(*step)),
            };
        }
    }

    /// The result, and what takes its place where that is rare.
    fn end(&self, text: &mut String, rare_name: &str, names: &[&str]) {
        let (working, precision, given) = (self.recipe.working, self.recipe.precision, names.join(", "));
        let end = self.converted(format!("v{}", self.recipe.result), working, precision);
        let Some(rare) = &self.recipe.rare else {
            let _ = writeln!(text, "    return {end};\n}}\n");
            return;
        };
        let when = rare.when;
        let _ = match self.spelling {
            Spelling::Number => writeln!(text, "    return v{when} ? {rare_name}({given}) : {end};"),
            Spelling::Lanes(shape) if self.one_by_one() => {
                let any = self.call(VectorOp::Any, shape).name();
                let (of_one, lanes) = (Helper::Rare(self.function, self.elem()).name(), shape.lanes());
                let given: Vec<String> = names.iter().map(|name| format!("{name}[at]")).collect();
                writeln!(
                    text,
                    "    {} result = {end};\n    if ({any}(v{when})) {{\n        \
                     for (int at = 0; at < {lanes}; at++) if (v{when}[at]) result[at] = {of_one}({});\n    }}\n    \
                     return result;",
                    self.float(precision),
                    given.join(", ")
                )
            }
            Spelling::Lanes(shape) => {
                let (any, select) = (self.call(VectorOp::Any, shape).name(), self.call(VectorOp::Select, shape).name());
                let other = self.converted(format!("{rare_name}({given})"), precision, working);
                let both = format!("{select}(v{when}, {other}, v{})", self.recipe.result);
                let both = self.converted(both, working, precision);
                writeln!(text, "    if ({any}(v{when})) return {both};\n    return {end};")
            }
        };
        let _ = writeln!(text, "}}\n");
    }

    fn converted(&self, value: String, from: Precision, to: Precision) -> String {
        match self.spelling {
            _ if from == to => value,
            Spelling::Number => format!("({}){value}", self.float(to)),
            Spelling::Lanes(_) => format!("__builtin_convertvector({value}, {})", self.float(to)),
        }
    }

    /// The expression of a step.
    fn step(&self, step: Step) -> String {
        let working = self.recipe.working;
        let (w, bits) = (self.float(working), self.bits());
        let suffix = if working == Precision::Single { "f" } else { "" };
        let in_lanes = if let Spelling::Lanes(shape) = self.spelling { Some(shape) } else { None };
        match step {
            Step::Argument(at) => self.converted(["x", "y"][at.min(1)].into(), self.recipe.precision, working),
            Step::Float(value) => {
                let value = f64::from_bits(value);
                let text =
                    if working == Precision::Single { format!("{:?}f", value as f32) } else { format!("{value:?}") };
                if in_lanes.is_some() { format!("{text} - ({w}){{0}}") } else { text }
            }
            Step::Integer(value) => {
                let text =
                    if working == Precision::Single { format!("{value:#x}u") } else { format!("UINT64_C({value:#x})") };
                if in_lanes.is_some() { format!("{text} + ({bits}){{0}}") } else { text }
            }
            Step::One(op, a) => match (op, in_lanes) {
                (One::Neg, _) => format!("-v{a}"),
                (One::Abs, None) => format!("fabs{suffix}(v{a})"),
                (One::Abs, Some(_)) => {
                    let most = if working == Precision::Single { "INT32_MAX" } else { "INT64_MAX" };
                    format!("({w})((bits)v{a} & {most})")
                }
                (One::Sqrt, None) => format!("sqrt{suffix}(v{a})"),
                (One::Sqrt, Some(shape)) => {
                    format!("{}(v{a})", self.call(VectorOp::Unary(certen_core::Unary::Sqrt), shape).name())
                }
                (One::Single, _) => {
                    let single = self.converted(format!("v{a}"), working, Precision::Single);
                    self.converted(single, Precision::Single, working)
                }
                (One::ToBits, None) => format!("{}(v{a})", Helper::ToBits(elem(working)).name()),
                (One::FromBits, None) => format!("{}(v{a})", Helper::FromBits(elem(working)).name()),
                (One::ToBits, Some(_)) => format!("(bits)v{a}"),
                (One::FromBits, Some(_)) => format!("({w})v{a}"),
                (One::Up(places), _) => format!("v{a} << {places}"),
                (One::Down(places), _) => format!("v{a} >> {places}"),
                (One::Not, None) => format!("!v{a}"),
                (One::Not, Some(_)) => format!("~v{a}"),
            },
            Step::Two(op, a, b) => {
                let sign = match op {
                    Two::Add | Two::Plus => "+",
                    Two::Sub | Two::Minus => "-",
                    Two::Mul => "*",
                    Two::Div => "/",
                    Two::Less => "<",
                    Two::LessEqual => "<=",
                    Two::Equal | Two::Same => "==",
                    Two::And | Two::Both => "&",
                    Two::Or | Two::Either => "|",
                    Two::Xor => "^",
                };
                match (op.kinds(), in_lanes) {
                    ((Kind::Float | Kind::Bits, Kind::Truth), Some(_)) => {
                        format!("({})(v{a} {sign} v{b})", self.mask())
                    }
                    _ => format!("v{a} {sign} v{b}"),
                }
            }
            Step::Fma(a, b, c) => match in_lanes {
                None => format!("fma{suffix}(v{a}, v{b}, v{c})"),
                Some(shape) => format!("{}(v{a}, v{b}, v{c})", self.call(VectorOp::Fma, shape).name()),
            },
            Step::Select(mask, a, b) => match (in_lanes, self.kinds[a]) {
                (None, _) => format!("v{mask} ? v{a} : v{b}"),
                (Some(shape), Kind::Float) => {
                    format!("{}(v{mask}, v{a}, v{b})", self.call(VectorOp::Select, shape).name())
                }
                (Some(_), _) => format!("((bits)v{mask} & v{a}) | (~(bits)v{mask} & v{b})"),
            },
            Step::Look(table, at) => format!("{}[v{at}]", table_name(table)),
        }
    }
}

/// The bits of a float, or the float that has them.
pub(super) fn conversion(of: ElemType, to_bits: bool) -> String {
    let (float, bits) = (c_type(of), bits(precision(of)));
    let (name, from, to) = match to_bits {
        true => (Helper::ToBits(of).name(), float, bits),
        false => (Helper::FromBits(of).name(), bits, float),
    };
    format!(
        "/* The bits of a, as {to} */\nstatic inline {to} {name}({from} a) {{\n    \
         const union {{\n        {from} from;\n        {to} to;\n    }} same = {{.from = a}};\n    return same.to;\n}}\n"
    )
}

/// What the function for numbers uses.
pub(super) fn needs(function: Function, of: ElemType) -> Vec<Helper> {
    Printer::new(function, of, Spelling::Number).needs()
}

/// The function for numbers.
pub(super) fn text(function: Function, of: ElemType) -> String {
    let name = Helper::Function(function, of).name();
    Printer::new(function, of, Spelling::Number).text(&name, &format!("{} of numbers", function.name()))
}

/// What is rare of a function for numbers, and of that.
fn rare(function: Function, of: ElemType) -> Vec<Printer<'static>> {
    let printer = Printer::new(function, of, Spelling::Number);
    let parts = std::iter::successors(printer.recipe.rare.as_ref(), |rare| rare.recipe.rare.as_ref());
    parts.map(|rare| printer.of(&rare.recipe)).collect()
}

/// What the function for what is rare uses.
pub(super) fn rare_needs(function: Function, of: ElemType) -> Vec<Helper> {
    let needs = rare(function, of).into_iter().flat_map(|printer| printer.needs());
    needs.filter(|need| !matches!(need, Helper::Rare(..))).collect()
}

/// The function for what is rare, after that for what is rarer.
pub(super) fn rare_text(function: Function, of: ElemType) -> String {
    let parts = rare(function, of);
    let name = |at: usize| format!("{}{}", Helper::Function(function, of).name(), "_rare".repeat(at + 1));
    let comment = format!("{} of numbers that are rare", function.name());
    let texts = parts.iter().enumerate().rev().map(|(at, printer)| printer.text(&name(at), &comment));
    texts.collect()
}

/// What the function for vectors uses.
pub(super) fn vector_needs(function: Function, of: ElemType, shape: LaneShape) -> Vec<Helper> {
    Printer::new(function, of, Spelling::Lanes(shape)).needs()
}

/// The function for vectors.
pub(super) fn vector_text(function: Function, of: ElemType, shape: LaneShape, name: &str) -> String {
    Printer::new(function, of, Spelling::Lanes(shape)).text(name, &format!("{} of each lane", function.name()))
}
