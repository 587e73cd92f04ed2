//! Scalar terms as C expressions, with as few parentheses as C and its compilers' warnings allow.
//!
//! Terms are visited in arena order, parts first, so nothing recurses. A part that has become large or deep is put
//! into a `const` temporary before the statement: the operations and their order stay the same, so the bits do, and
//! neither a C compiler's stack nor our own time suffers from long sums or from parts that are used many times, as those
//! of powers are. In a
//! statement of thousands of operations each temporary is computed by a function of its own: C compilers take time in
//! the square of a basic block's length.

use std::collections::{BTreeSet, HashMap, HashSet};

use certen_core::{Binary, ElemType, Literal, Term, TermId, Unary};
use certen_loops::as_element;
use certen_syntax::{Code, Diagnostic, Name};

use crate::emit::Emitter;
use crate::file::signature;
use crate::helpers::{Helper, c_type};
use crate::index::CIndex;
use crate::vector::types::Lane;

/// Operations in one expression, and operations inside each other, beyond which it is put into a temporary.
const MAX_OPERATIONS: usize = 200;
const MAX_DEPTH: usize = 60;

/// Operations in one expression beyond which it is put into a temporary if it is used several times: library functions
/// count as more.
const MAX_REPEATED: usize = 4;

/// Terms in one statement beyond which its temporaries become functions.
const MAX_TERMS_IN_BLOCK: usize = 2000;

/// How tightly C holds an expression together, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    Conditional,
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Prefix,
    Primary,
}

/// A piece of C.
#[derive(Clone)]
pub(crate) struct Piece {
    pub(crate) text: String,
    level: Level,
    operations: usize,
    depth: usize,
    /// What each lane of the vector loop around has of it, if that varies.
    pub(crate) lane: Option<Lane>,
    /// The variables that it speaks of, as parameters and as arguments; only collected for large statements.
    variables: BTreeSet<(String, String)>,
}

impl Piece {
    pub(crate) fn new(text: String, level: Level) -> Piece {
        Piece { text, level, operations: 1, depth: 1, lane: None, variables: BTreeSet::new() }
    }

    /// One for each lane.
    pub(crate) fn in_lanes(text: String, level: Level, lane: Lane) -> Piece {
        Piece::new(text, level).of_lane(lane)
    }

    /// The same, one for each lane.
    pub(crate) fn of_lane(self, lane: Lane) -> Piece {
        Piece { lane: Some(lane), ..self }
    }

    /// As an operand that must hold together at least this tightly.
    pub(crate) fn at(&self, level: Level) -> String {
        if self.level < level { format!("({})", self.text) } else { self.text.clone() }
    }
}

impl Emitter<'_> {
    /// The value of a term as a C expression that can be assigned.
    pub(crate) fn value(&mut self, root: TermId) -> Result<String, Diagnostic> {
        Ok(self.piece_of(root)?.text)
    }

    /// The value of a term; temporaries that it needs are written before.
    pub(crate) fn piece_of(&mut self, root: TermId) -> Result<Piece, Diagnostic> {
        let terms = &self.program.terms;
        let mut pieces: HashMap<TermId, Piece> = HashMap::new();
        let order = terms.parts_first(root);
        let large = order.len() > MAX_TERMS_IN_BLOCK;
        let repeated = self.repeated(&order);
        for id in order {
            let term = terms.get(id);
            if matches!(term, Term::Ref(_, ty) if !ty.is_scalar()) {
                continue;
            }
            let before = std::mem::take(&mut self.function.used);
            let mut piece = match self.is_in_lanes(id, &pieces) {
                true => self.vector_piece(id, &pieces)?,
                false => self.piece(id, term, &pieces)?,
            };
            let used = std::mem::replace(&mut self.function.used, before);
            let parts: Vec<&Piece> = term.parts().iter().filter_map(|part| pieces.get(part)).collect();
            let own = if calls_library(term) { MAX_REPEATED + 1 } else { 1 };
            piece.operations = own + parts.iter().map(|part| part.operations).sum::<usize>();
            piece.depth = 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0);
            if large {
                piece.variables = parts.iter().flat_map(|part| part.variables.iter().cloned()).collect();
                let own = used.iter().map(|name| self.variable(*name, id));
                piece.variables.extend(own);
            }
            self.function.used.extend(used);
            let most = if repeated.contains(&id) { MAX_REPEATED } else { MAX_OPERATIONS };
            if piece.operations > most || piece.depth > MAX_DEPTH {
                let name = self.names.numbered("t");
                let ty = match piece.lane {
                    Some(lane) => self.register(lane)?,
                    None => c_type(terms.ty(id).elem).to_owned(),
                };
                let value = if large { self.part(&ty, &piece) } else { piece.text };
                self.line(&format!("const {ty} {name} = {value};"));
                piece = Piece { lane: piece.lane, ..Piece::new(name.clone(), Level::Primary) };
                if large {
                    piece.variables.insert((format!("{ty} {name}"), name));
                }
            }
            pieces.insert(id, piece);
        }
        pieces.remove(&root).ok_or_else(unsupported)
    }

    /// The terms of a value that it uses several times.
    fn repeated(&self, order: &[TermId]) -> HashSet<TermId> {
        let (mut once, mut repeated) = (HashSet::new(), HashSet::new());
        for part in order.iter().flat_map(|id| self.program.terms.get(*id).parts()) {
            if !once.insert(part) {
                repeated.insert(part);
            }
        }
        repeated
    }

    /// How a name that occurs in a leaf is passed to a function.
    fn variable(&self, name: Name, leaf: TermId) -> (String, String) {
        let c = self.names.get(name).to_owned();
        let declaration = match as_element(&self.program.terms, leaf) {
            Some((read, ty, _)) if read == name && self.is_local(name) => format!("{} {c}", c_type(ty.elem)),
            Some((read, ty, _)) if read == name => format!("const {} *restrict {c}", c_type(ty.elem)),
            _ => format!("int64_t {c}"),
        };
        (declaration, c)
    }

    /// A call of a new function that computes a piece.
    fn part(&mut self, ty: &str, piece: &Piece) -> String {
        let name = self.names.numbered("part");
        let (parameters, arguments): (Vec<String>, Vec<String>) = piece.variables.iter().cloned().unzip();
        let start = signature(&format!("CERTEN_NOINLINE {ty} {name}"), &parameters);
        self.functions += &format!("{start} {{\n    return {};\n}}\n\n", piece.text);
        format!("{name}({})", arguments.join(", "))
    }

    fn piece(&mut self, id: TermId, term: &Term, pieces: &HashMap<TermId, Piece>) -> Result<Piece, Diagnostic> {
        let terms = &self.program.terms;
        let part = |id: &TermId| pieces.get(id).ok_or_else(unsupported);
        Ok(match term {
            Term::Ref(..) | Term::Select(..) => {
                let (name, ty, indices) = as_element(terms, id).ok_or_else(unsupported)?;
                let text = if self.is_local(name) { self.c_name(name) } else { self.access(name, ty, indices)? };
                Piece::new(text, Level::Primary)
            }
            Term::Literal(literal, elem) => self.literal(*literal, *elem),
            Term::Undefined(elem) => self.literal(Literal::whole(0, *elem), *elem),
            Term::Index(ix, elem) => {
                let index = self.ix(ix)?;
                match (elem, &index) {
                    (ElemType::I64, CIndex::Constant(value)) => self.literal(Literal::Int(*value), *elem),
                    (ElemType::I64, CIndex::Product(_)) => Piece::new(index.text(), Level::Product),
                    (ElemType::I64, CIndex::Sum(_)) => Piece::new(index.text(), Level::Sum),
                    // A cast holds tighter than a product.
                    (_, CIndex::Product(text)) if text.contains('*') => {
                        Piece::new(format!("({})({text})", c_type(*elem)), Level::Prefix)
                    }
                    _ => Piece::new(format!("({}){}", c_type(*elem), index.factor()), Level::Prefix),
                }
            }
            Term::Unary(op, a) => self.unary(*op, terms.ty(*a).elem, part(a)?),
            Term::Binary(op @ (Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne), a, b)
                if self.is_decided(*a, *b) || self.is_decided(*b, *a) =>
            {
                self.compared(*op, terms.ty(*a).elem, part(a)?, part(b)?)
            }
            Term::Binary(op, a, b) => self.binary(*op, terms.ty(*a).elem, part(a)?, part(b)?, a == b),
            Term::Choose(cond, a, b) => {
                let (cond, a, b) = (part(cond)?, part(a)?, part(b)?);
                let text = format!("{} ? {} : {}", cond.at(Level::Or), a.at(Level::Or), b.at(Level::Or));
                Piece::new(text, Level::Conditional)
            }
            Term::Fma(a, b, c) => self.math("fma", terms.ty(*a).elem, &[part(a)?, part(b)?, part(c)?]),
            Term::Cast(to, a) => self.cast(terms.ty(*a).elem, *to, part(a)?),
            _ => return Err(unsupported()),
        })
    }

    /// `helper(a)` or `helper(a, b)`
    pub(crate) fn call(&mut self, helper: Helper, arguments: &[&Piece]) -> Piece {
        let arguments: Vec<&str> = arguments.iter().map(|piece| piece.text.as_str()).collect();
        Piece::new(format!("{}({})", self.helper(helper), arguments.join(", ")), Level::Primary)
    }

    /// A function of math.h whose bits are the library's.
    fn library(&mut self, function: &'static str, elem: ElemType) -> Helper {
        self.uses_math = true;
        let helper = Helper::Library(function, elem);
        self.helpers.insert(helper);
        helper
    }

    /// A function of math.h that compilers may know: its result is exact.
    fn math(&mut self, function: &str, elem: ElemType, arguments: &[&Piece]) -> Piece {
        self.uses_math = true;
        let suffix = if elem == ElemType::F32 { "f" } else { "" };
        let arguments: Vec<&str> = arguments.iter().map(|piece| piece.text.as_str()).collect();
        Piece::new(format!("{function}{suffix}({})", arguments.join(", ")), Level::Primary)
    }

    fn literal(&mut self, literal: Literal, elem: ElemType) -> Piece {
        let text = match literal {
            Literal::Bool(value) => u8::from(value).to_string(),
            Literal::Int(i64::MIN) => "INT64_MIN".into(),
            Literal::Int(value) if elem == ElemType::I32 && value == i64::from(i32::MIN) => "INT32_MIN".into(),
            Literal::Int(value) if i32::try_from(value).is_err() => format!("INT64_C({value})"),
            Literal::Int(value) => value.to_string(),
            Literal::Float(value) if value.is_nan() => {
                self.uses_math = true;
                "NAN".into()
            }
            Literal::Float(value) if value.is_infinite() => {
                self.uses_math = true;
                if value > 0.0 { "INFINITY".into() } else { "-INFINITY".into() }
            }
            // The shortest digits that read back as the same number.
            Literal::Float(value) if elem == ElemType::F32 => format!("{:?}f", value as f32),
            Literal::Float(value) => format!("{value:?}"),
        };
        let level = if text.starts_with('-') { Level::Prefix } else { Level::Primary };
        Piece::new(text, level)
    }

    fn unary(&mut self, op: Unary, elem: ElemType, a: &Piece) -> Piece {
        let function = match op {
            Unary::Neg if elem.is_int() => return self.call(Helper::Neg(elem), &[a]),
            Unary::Neg => {
                let operand = a.at(Level::Prefix);
                // Not `--a`.
                let operand = if operand.starts_with('-') { format!("({operand})") } else { operand };
                return Piece::new(format!("-{operand}"), Level::Prefix);
            }
            Unary::Not => return Piece::new(format!("!{}", a.at(Level::Prefix)), Level::Prefix),
            Unary::Abs if elem.is_int() => return self.call(Helper::Abs(elem), &[a]),
            Unary::Abs => "fabs",
            Unary::Floor => "floor",
            Unary::Ceil => "ceil",
            // To nearest, halves to even, in the rounding mode that programs start with.
            Unary::Round => "rint",
            Unary::Sqrt => "sqrt",
            Unary::Exp | Unary::Log | Unary::Sin | Unary::Cos | Unary::Tanh => {
                let function = self.library(op.name(), elem);
                return self.call(function, &[a]);
            }
        };
        self.math(function, elem, &[a])
    }

    fn binary(&mut self, op: Binary, elem: ElemType, a: &Piece, b: &Piece, same: bool) -> Piece {
        let infix = |sign: &str, level: Level, left: Level, right: Level| {
            Piece::new(format!("{} {sign} {}", a.at(left), b.at(right)), level)
        };
        let int = elem.is_int();
        match op {
            Binary::Add if int => self.call(Helper::Add(elem), &[a, b]),
            Binary::Sub if int => self.call(Helper::Sub(elem), &[a, b]),
            Binary::Mul if int => self.call(Helper::Mul(elem), &[a, b]),
            Binary::Add => infix("+", Level::Sum, Level::Sum, Level::Product),
            Binary::Sub => infix("-", Level::Sum, Level::Sum, Level::Product),
            Binary::Mul => infix("*", Level::Product, Level::Product, Level::Prefix),
            Binary::Div => infix("/", Level::Product, Level::Product, Level::Prefix),
            Binary::ControlledDiv => self.call(Helper::ControlledDiv(elem), &[a, b]),
            Binary::FloorDiv => self.call(Helper::FloorDiv(elem), &[a, b]),
            Binary::Mod => self.call(Helper::Mod(elem), &[a, b]),
            Binary::Min => self.call(Helper::Min(elem), &[a, b]),
            Binary::Max => self.call(Helper::Max(elem), &[a, b]),
            Binary::Pow => {
                self.library("pow", elem);
                self.call(Helper::Pow(elem), &[a, b])
            }
            Binary::And => infix("&&", Level::And, Level::And, Level::Comparison),
            // Compilers warn of `a && b || c`.
            Binary::Or if a.level == Level::Or => infix("||", Level::Or, Level::Or, Level::Comparison),
            Binary::Or => infix("||", Level::Or, Level::Comparison, Level::Comparison),
            // Compilers warn of comparisons of something with itself; only NaNs make them interesting.
            Binary::Eq | Binary::Le if same && !elem.is_float() => Piece::new("1".into(), Level::Primary),
            Binary::Ne | Binary::Lt if same && !elem.is_float() => Piece::new("0".into(), Level::Primary),
            Binary::Lt if !elem.has_arithmetic() => self.call(Helper::Less(elem), &[a, b]),
            Binary::Le if !elem.has_arithmetic() => self.call(Helper::LessEqual(elem), &[a, b]),
            Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne => {
                // Compilers warn of `!a == b`.
                let left = if a.text.starts_with('!') { Level::Primary } else { Level::Sum };
                infix(op.name(), Level::Comparison, left, Level::Sum)
            }
        }
    }

    /// Whether a compiler may see, and warn, that a comparison with a constant has one result: that of an integer which
    /// was a shorter one.
    fn is_decided(&self, a: TermId, b: TermId) -> bool {
        let terms = &self.program.terms;
        let constant = |id| matches!(terms.get(id), Term::Literal(..) | Term::Index(..));
        matches!(terms.get(a), Term::Cast(to, _) if to.is_int()) && constant(b)
    }

    /// A comparison that compilers do not look into.
    fn compared(&mut self, op: Binary, elem: ElemType, a: &Piece, b: &Piece) -> Piece {
        match op {
            Binary::Lt => self.call(Helper::Less(elem), &[a, b]),
            Binary::Le => self.call(Helper::LessEqual(elem), &[a, b]),
            Binary::Eq => self.call(Helper::Equal(elem), &[a, b]),
            _ => {
                let equal = self.call(Helper::Equal(elem), &[a, b]);
                Piece::new(format!("!{}", equal.text), Level::Prefix)
            }
        }
    }

    fn cast(&mut self, from: ElemType, to: ElemType, a: &Piece) -> Piece {
        match to {
            _ if from == to => a.clone(),
            // Truth values are bytes already.
            ElemType::U8 if from == ElemType::Bool => a.clone(),
            ElemType::Bool => Piece::new(format!("{} != 0", a.at(Level::Sum)), Level::Comparison),
            ElemType::I32 | ElemType::I64 | ElemType::U8 if from.is_float() => self.call(Helper::FromFloat(to), &[a]),
            _ => Piece::new(format!("({}){}", c_type(to), a.at(Level::Prefix)), Level::Prefix),
        }
    }
}

fn calls_library(term: &Term) -> bool {
    use Unary::{Cos, Exp, Log, Sin, Tanh};
    matches!(term, Term::Unary(Exp | Log | Sin | Cos | Tanh, _) | Term::Binary(Binary::Pow, ..))
}

pub(crate) fn unsupported() -> Diagnostic {
    Diagnostic::error(Code::E0702, None, "a value is not made of scalar operations")
}
