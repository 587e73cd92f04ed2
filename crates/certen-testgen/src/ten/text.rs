//! The text of generated programs. Parentheses stand only where they are needed.

use std::fmt::Write;

use super::tree::{
    Arg, Block, Cond, Elem, Expr, Function, IndexFunction, Iterate, Ix, IxVec, Let, Part, Program, Sel, Slot, Type,
    TypeDim, WithOp, Written,
};

/// How tightly a postfix operator binds.
const POSTFIX: u8 = 9;

fn precedence(op: &str) -> Option<u8> {
    Some(match op {
        "||" => 1,
        "&&" => 2,
        "<" | "<=" | ">" | ">=" | "==" | "!=" => 3,
        "++" => 4,
        "+" | "-" => 5,
        "*" | "/" | "@" => 6,
        _ => return None,
    })
}

fn wrapped(text: String, own: u8, wanted: u8) -> String {
    if own < wanted { format!("({text})") } else { text }
}

fn list<T>(parts: &[T], show: impl Fn(&T) -> String) -> String {
    parts.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn ix(e: &Ix, wanted: u8) -> String {
    let infix =
        |op: &str, a: &Ix, b: &Ix, own: u8| wrapped(format!("{} {op} {}", ix(a, own), ix(b, own + 1)), own, wanted);
    match e {
        Ix::Lit(value) => wrapped(value.to_string(), if *value < 0 { 7 } else { 10 }, wanted),
        Ix::Name(name) => name.clone(),
        Ix::Add(a, b) => infix("+", a, b, 5),
        Ix::Sub(a, b) => infix("-", a, b, 5),
        Ix::Mul(a, b) => infix("*", a, b, 6),
        Ix::Min(a, b) => format!("min({}, {})", ix(a, 0), ix(b, 0)),
        Ix::Max(a, b) => format!("max({}, {})", ix(a, 0), ix(b, 0)),
        Ix::FloorDiv(a, k) => format!("floor_div({}, {k})", ix(a, 0)),
        Ix::Mod(a, k) => format!("mod({}, {k})", ix(a, 0)),
        Ix::Call(name, args) => format!("{name}({})", list(args, |arg| ix(arg, 0))),
        Ix::If(c, a, b) => wrapped(format!("if {} {{ {} }} else {{ {} }}", cond(c, 0), ix(a, 0), ix(b, 0)), 0, wanted),
    }
}

/// An index-level expression as text.
pub(in crate::ten) fn index(e: &Ix) -> String {
    ix(e, 0)
}

fn cond(c: &Cond, wanted: u8) -> String {
    let infix = |op: &str, a: &Cond, b: &Cond, own: u8| {
        wrapped(format!("{} {op} {}", cond(a, own), cond(b, own + 1)), own, wanted)
    };
    match c {
        Cond::Cmp(op, a, b) => wrapped(format!("{} {op} {}", ix(a, 4), ix(b, 4)), 3, wanted),
        Cond::All(op, a, b) => wrapped(format!("{} {op} {}", vector(a, 4), vector(b, 4)), 3, wanted),
        Cond::And(a, b) => infix("&&", a, b, 2),
        Cond::Or(a, b) => infix("||", a, b, 1),
        Cond::Not(a) => format!("!{}", cond(a, 7)),
    }
}

fn vector(v: &IxVec, wanted: u8) -> String {
    match v {
        IxVec::Name(name) => name.clone(),
        IxVec::List(parts) => format!("[{}]", list(parts, |part| ix(part, 0))),
        IxVec::One(one) => ix(one, wanted),
        IxVec::Shape(name) => format!("shape({name})"),
        IxVec::Op(op, a, b) => match precedence(op) {
            Some(own) => wrapped(format!("{} {op} {}", vector(a, own), vector(b, own + 1)), own, wanted),
            None => format!("{op}({}, {})", vector(a, 0), vector(b, 0)),
        },
    }
}

fn number(value: i64, elem: Elem, wanted: u8) -> String {
    let text = if elem == Elem::F64 { format!("{value}.0") } else { value.to_string() };
    wrapped(text, if value < 0 { 7 } else { 10 }, wanted)
}

fn expr(e: &Expr, wanted: u8) -> String {
    match e {
        Expr::Var(name) => name.clone(),
        Expr::Num(value, elem) => number(*value, *elem, wanted),
        Expr::Bool(value) => value.to_string(),
        Expr::Index(i, Elem::F64) => format!("f64({})", ix(i, 0)),
        Expr::Index(i, _) => ix(i, wanted),
        Expr::Cond(c) => cond(c, wanted),
        Expr::Stack(parts) => format!("[{}]", list(parts, |part| expr(part, 0))),
        Expr::Unary(op @ ("-" | "!"), a) => wrapped(format!("{op}{}", expr(a, 8)), 7, wanted),
        Expr::Unary(name, a) => format!("{name}({})", expr(a, 0)),
        Expr::Binary(op, a, b) => match precedence(op) {
            Some(own) => {
                let left = if own == 3 { own + 1 } else { own };
                wrapped(format!("{} {op} {}", expr(a, left), expr(b, own + 1)), own, wanted)
            }
            None => format!("{op}({}, {})", expr(a, 0), expr(b, 0)),
        },
        Expr::Select(a, sels) => format!("{}[{}]", expr(a, POSTFIX), list(sels, selector)),
        Expr::Comprehension(parts) => format!("{{ {} }}", parts.iter().map(partition).collect::<Vec<_>>().join("; ")),
        Expr::With(parts, op) => wrapped(with(parts, op), 0, wanted),
        Expr::If(c, a, b) => wrapped(format!("if {} {} else {}", cond(c, 0), braced(a), braced(b)), 0, wanted),
        Expr::IfData(c, a, b) => wrapped(format!("if {} {} else {}", expr(c, 1), braced(a), braced(b)), 0, wanted),
        Expr::Guard(c, a) => format!("guard({}, {})", cond(c, 0), expr(a, 0)),
        Expr::Choose(c, a, b) => format!("select({}, {}, {})", expr(c, 0), expr(a, 0), expr(b, 0)),
        Expr::Cast(elem, a) => format!("{}({})", elem.word(), expr(a, 0)),
        Expr::Reduce(op, None, a) => format!("{op}({})", expr(a, 0)),
        Expr::Reduce(op, Some(axes), a) => match axes.as_slice() {
            [axis] => format!("{op}({}, axis = {axis})", expr(a, 0)),
            axes => format!("{op}({}, axis = [{}])", expr(a, 0), list(axes, i64::to_string)),
        },
        Expr::Iterate(iterate) => wrapped(iteration(iterate), 0, wanted),
        Expr::Shift(name, k, a) => format!("{name}({}, {})", ix(k, 0), expr(a, 0)),
        Expr::Split(k, a) => format!("split({k}, {})", expr(a, 0)),
        Expr::Reshape(shape, a) => format!("reshape({}, {})", vector(shape, 0), expr(a, 0)),
        Expr::Einsum(spec, args) => format!("einsum(\"{spec}\", {})", list(args, |arg| expr(arg, 0))),
        Expr::Call(name, args) => format!("{name}({})", list(args, argument)),
        Expr::Block(block) => braces(block),
    }
}

fn argument(arg: &Arg) -> String {
    match arg {
        Arg::Data(e) => expr(e, 0),
        Arg::Ix(i) => ix(i, 0),
        Arg::Vec(v) => vector(v, 0),
    }
}

fn selector(sel: &Sel) -> String {
    match sel {
        Sel::At(i) => ix(i, 0),
        Sel::Vec(v) => vector(v, 0),
        Sel::Dot => ".".into(),
        Sel::Dots => "...".into(),
        Sel::Slice(from, to) => {
            let end = |end: &Option<Ix>| end.as_ref().map_or(String::new(), |end| ix(end, 5));
            format!("{}..{}", end(from), end(to))
        }
    }
}

/// A branch of `if`.
fn braced(e: &Expr) -> String {
    match e {
        Expr::Block(block) => braces(block),
        e => format!("{{ {} }}", expr(e, 0)),
    }
}

fn lets(block: &Block) -> String {
    let one = |binding: &Let| {
        let names = match binding.names.as_slice() {
            [name] => name.clone(),
            names => format!("({})", names.join(", ")),
        };
        let ty = binding.ty.as_ref().map_or(String::new(), |ty| format!(": {}", type_text(ty)));
        format!("let {names}{ty} = {}; ", expr(&binding.value, 0))
    };
    block.lets.iter().map(one).collect()
}

fn results(block: &Block) -> String {
    match block.results.as_slice() {
        [one] => expr(one, 0),
        several => format!("({})", list(several, |e| expr(e, 0))),
    }
}

fn braces(block: &Block) -> String {
    format!("{{ {}{} }}", lets(block), results(block))
}

fn iteration(iterate: &Iterate) -> String {
    let times = match &iterate.step {
        None => format!("{} times", ix(&iterate.times, 5)),
        Some(step) => format!("{step} < {}", ix(&iterate.times, 5)),
    };
    let state = |(name, first): &(String, Expr)| format!("{name} = {}", expr(first, 1));
    let states = match iterate.states.as_slice() {
        [one] => state(one),
        several => format!("({})", list(several, state)),
    };
    format!("iterate {times} {states} {}", braces(&iterate.body))
}

/// `lower <= subject < upper`, with what is written of it; nothing if nothing is.
fn relation<T>(
    subject: &str,
    lower: &(T, Written),
    upper: &(T, Written),
    show: impl Fn(&T, i64) -> String,
) -> Option<String> {
    let low = match lower.1 {
        Written::Yes => format!("{} <= ", show(&lower.0, 0)),
        Written::Other => format!("{} < ", show(&lower.0, -1)),
        Written::Dot => ". <= ".into(),
        Written::No => String::new(),
    };
    let high = match upper.1 {
        Written::Yes => format!(" < {}", show(&upper.0, 0)),
        Written::Other => format!(" <= {}", show(&upper.0, -1)),
        Written::Dot => " < .".into(),
        Written::No => String::new(),
    };
    if low.is_empty() && high.is_empty() {
        return None;
    }
    Some(format!("{low}{subject}{high}"))
}

fn moved(v: &IxVec, by: i64) -> String {
    match (v, by) {
        (v, 0) => vector(v, 4),
        (IxVec::List(parts), by) => vector(&IxVec::List(parts.iter().map(|p| p.clone().shifted(by)).collect()), 4),
        (v, by) => vector(&IxVec::Op("+", v.clone().into(), IxVec::One(Ix::Lit(by)).into()), 4),
    }
}

/// The bounds of all indices of a list pattern as vectors, if all are alike.
fn jointly(part: &Part) -> Option<String> {
    let mut names = Vec::new();
    let mut lowers: Vec<&(Ix, Written)> = Vec::new();
    let mut uppers: Vec<&(Ix, Written)> = Vec::new();
    for slot in &part.slots {
        match slot {
            Slot::Index(name, lower, upper) => {
                names.push(name.clone());
                lowers.push(lower);
                uppers.push(upper);
            }
            Slot::Rest(..) => return None,
            Slot::Dot | Slot::Dots => {}
        }
    }
    let join = |ends: &[&(Ix, Written)]| {
        let how = ends.first()?.1;
        let same = ends.iter().all(|end| end.1 == how);
        same.then(|| (IxVec::List(ends.iter().map(|end| end.0.clone()).collect()), how))
    };
    relation(&format!("[{}]", names.join(", ")), &join(&lowers)?, &join(&uppers)?, moved)
}

fn generator(part: &Part) -> Option<String> {
    if part.joint
        && let Some(text) = jointly(part)
    {
        return Some(text);
    }
    let one = |slot: &Slot| match slot {
        Slot::Index(name, lower, upper) => relation(name, lower, upper, |i, by| ix(&i.clone().shifted(by), 4)),
        Slot::Rest(name, lower, upper) => relation(name, lower, upper, moved),
        Slot::Dot | Slot::Dots => None,
    };
    let all: Vec<String> = part.slots.iter().filter_map(one).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn pattern(part: &Part, dots: bool) -> String {
    if let [Slot::Rest(name, ..)] = part.slots.as_slice() {
        return name.clone();
    }
    let slot = |slot: &Slot| match slot {
        Slot::Index(name, ..) => Some(name.clone()),
        Slot::Rest(name, ..) => Some(format!("{name}...")),
        Slot::Dot => dots.then(|| ".".into()),
        Slot::Dots => dots.then(|| "...".into()),
    };
    format!("[{}]", part.slots.iter().filter_map(slot).collect::<Vec<_>>().join(", "))
}

fn partition(part: &Part) -> String {
    let mut text = format!("{} -> {}", pattern(part, true), expr(&part.body, 0));
    if let Some(generator) = generator(part) {
        let _ = write!(text, " | {generator}");
    }
    text
}

fn with(parts: &[Part], op: &WithOp) -> String {
    let mut text = "with { ".to_string();
    for part in parts {
        let bounds = match part.slots.as_slice() {
            [Slot::Rest(name, lower, upper)] => relation(name, lower, upper, moved),
            _ => jointly(part),
        };
        let _ = write!(text, "({}) : {}; ", bounds.unwrap_or_default(), expr(&part.body, 0));
    }
    text + &match op {
        WithOp::Genarray(shape, None) => format!("}} : genarray({})", vector(shape, 0)),
        WithOp::Genarray(shape, Some(e)) => format!("}} : genarray({}, {})", vector(shape, 0), expr(e, 0)),
        WithOp::Modarray(e) => format!("}} : modarray({})", expr(e, 0)),
        WithOp::Fold(op, e) => format!("}} : fold({op}, {})", expr(e, 0)),
    }
}

fn type_text(ty: &Type) -> String {
    let dim = |dim: &TypeDim| match dim {
        TypeDim::Size(size) => ix(size, 0),
        TypeDim::Rest(name) => format!("{name}..."),
        TypeDim::Ranked(d, some, s) => format!("{d}{}:{s}", if *some { ">0" } else { "" }),
        TypeDim::One => ".".into(),
        TypeDim::Many(some) => if *some { "+" } else { "*" }.into(),
    };
    match ty.dims.as_slice() {
        [] => ty.elem.word().into(),
        dims => format!("{}[{}]", ty.elem.word(), list(dims, dim)),
    }
}

fn wheres(conds: &[Cond]) -> String {
    if conds.is_empty() { String::new() } else { format!(" where {}", list(conds, |c| cond(c, 0))) }
}

fn function(f: &Function) -> String {
    let param = |(name, ty): &(String, Type)| format!("{name}: {}", type_text(ty));
    let mut text = format!("fn {}({})", f.name, list(&f.params, param));
    if f.stated {
        match f.results.as_slice() {
            [(_, ty)] => {
                let _ = write!(text, " -> {}", type_text(ty));
            }
            several => {
                let _ = write!(text, " -> ({})", list(several, param));
            }
        }
    }
    if let Some(identity) = f.associative {
        let _ = write!(text, " associative({identity})");
    }
    text += &wheres(&f.wheres);
    let body = lets(&f.body).replace("; let ", ";\n    let ");
    let gap = if body.is_empty() { "" } else { "\n    " };
    let _ = writeln!(text, " {{\n    {}{gap}{}\n}}", body.trim_end(), results(&f.body));
    text
}

fn index_function(f: &IndexFunction) -> String {
    let params = list(&f.params, |name| format!("{name}: size"));
    format!("fn {}({params}) -> size{} {{\n    {}\n}}\n", f.name, wheres(&f.wheres), ix(&f.body, 0))
}

impl Program {
    /// The program's text.
    pub fn text(&self) -> String {
        let index = self.index_functions.iter().map(index_function);
        index.chain(self.functions.iter().map(function)).collect::<Vec<_>>().join("\n")
    }
}
