//! Programs with one mistake, and texts that are hardly programs.

use super::tree::{Arg, Elem, Expr, Ix, IxVec, Program, Sel, Slot, Written};

/// What can be wrong with a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TenMistake {
    /// An index, an end of a slice, an argument that is an index: one more or one less.
    Index,
    /// A bound of a comprehension or with-loop that reaches one further.
    Bound,
    /// Two sizes of a declared type are exchanged.
    Swapped,
    /// A name that is not declared.
    Unknown,
    /// A call without its last argument.
    MissingArgument,
    /// A result of another element type than is stated.
    WrongElement,
    /// Two `...` in a selection or pattern.
    TwoDots,
}

impl TenMistake {
    /// Every mistake.
    pub const ALL: [TenMistake; 7] = [
        TenMistake::Index,
        TenMistake::Bound,
        TenMistake::Swapped,
        TenMistake::Unknown,
        TenMistake::MissingArgument,
        TenMistake::WrongElement,
        TenMistake::TwoDots,
    ];

    /// Whether it is wrong wherever it stands; of the others it depends on the sizes.
    pub fn is_certain(self) -> bool {
        !matches!(self, TenMistake::Index | TenMistake::Bound | TenMistake::Swapped)
    }

    /// Makes it at one of the places where it can be made, in a program with all bounds written; nothing if there are none.
    pub fn make(self, program: &Program, choice: u64) -> Option<Program> {
        let mut program = program.clone();
        let count = {
            let mut places = Places { left: None, met: 0, up: false };
            self.visit(&mut program, &mut places);
            places.met
        };
        if count == 0 {
            return None;
        }
        let mut places = Places { left: Some(choice as usize % count), met: 0, up: (choice >> 32).is_multiple_of(2) };
        self.visit(&mut program, &mut places);
        Some(program)
    }

    fn visit(self, program: &mut Program, places: &mut Places) {
        match self {
            TenMistake::Swapped => {
                for function in &mut program.functions {
                    let results = if function.stated { function.results.as_mut_slice() } else { &mut [] };
                    // What `main` is given is right by what its own types say.
                    let params = if function.name == "main" { &mut [] } else { function.params.as_mut_slice() };
                    for (_, ty) in params.iter_mut().chain(results) {
                        for at in 1..ty.dims.len() {
                            if places.here() {
                                ty.dims.swap(at - 1, at);
                            }
                        }
                    }
                }
            }
            TenMistake::WrongElement => {
                for function in &mut program.functions {
                    for (value, (_, ty)) in function.body.results.iter_mut().zip(&function.results) {
                        if places.here() {
                            let other = match ty.elem {
                                Elem::I64 => Elem::F64,
                                Elem::F64 | Elem::Bool => Elem::I64,
                                Elem::Any | Elem::Num | Elem::Size => Elem::Bool,
                            };
                            *value = Expr::Cast(other, value.clone().into());
                            function.stated = true;
                        }
                    }
                }
            }
            _ if self.is_certain() => {
                for function in &mut program.functions {
                    let lets = function.body.lets.iter_mut().map(|binding| &mut binding.value);
                    lets.chain(&mut function.body.results).for_each(|e| self.visit_live(e, places));
                }
            }
            _ => program.each(&mut |e| self.visit_expr(e, places)),
        }
    }

    /// Outside branches: one that what is known rules out is not looked at.
    fn visit_live(self, e: &mut Expr, places: &mut Places) {
        self.visit_expr(e, places);
        if !matches!(e, Expr::If(..)) {
            e.parts_mut().into_iter().for_each(|part| self.visit_live(part, places));
        }
    }

    fn visit_expr(self, e: &mut Expr, places: &mut Places) {
        match (self, e) {
            (TenMistake::Index, Expr::Select(_, sels)) => {
                for sel in sels {
                    match sel {
                        Sel::At(i) => places.move_by_one(i),
                        Sel::Vec(IxVec::List(parts)) => parts.iter_mut().for_each(|i| places.move_by_one(i)),
                        Sel::Slice(from, to) => from.iter_mut().chain(to).for_each(|i| places.move_by_one(i)),
                        Sel::Vec(_) | Sel::Dot | Sel::Dots => {}
                    }
                }
            }
            (TenMistake::Index, Expr::Call(_, args)) => {
                for arg in args {
                    if let Arg::Ix(i) = arg {
                        places.move_by_one(i);
                    }
                }
            }
            (TenMistake::Index, Expr::Shift(_, k, _)) => places.move_by_one(k),
            (TenMistake::Bound, Expr::Comprehension(parts) | Expr::With(parts, _)) => {
                for slot in parts.iter_mut().flat_map(|part| &mut part.slots) {
                    let Slot::Index(_, (lower, low), (upper, high)) = slot else { continue };
                    if matches!(low, Written::Yes | Written::Other) && places.here() {
                        *lower = lower.clone().shifted(-1);
                    }
                    if matches!(high, Written::Yes | Written::Other) && places.here() {
                        *upper = upper.clone().shifted(1);
                    }
                }
            }
            (TenMistake::Unknown, Expr::Var(name)) if places.here() => *name = "unknown".into(),
            (TenMistake::MissingArgument, Expr::Call(_, args)) if !args.is_empty() && places.here() => drop(args.pop()),
            (TenMistake::TwoDots, Expr::Select(_, sels)) if places.here() => sels.extend([Sel::Dots, Sel::Dots]),
            (TenMistake::TwoDots, Expr::Comprehension(parts)) if places.here() => {
                if let Some(part) = parts.last_mut() {
                    part.slots.extend([Slot::Dots, Slot::Dots]);
                }
            }
            _ => {}
        }
    }
}

/// Counts places, or stops at one.
struct Places {
    /// How many more are passed by.
    left: Option<usize>,
    met: usize,
    up: bool,
}

impl Places {
    fn here(&mut self) -> bool {
        self.met += 1;
        self.left == Some(self.met - 1)
    }

    fn move_by_one(&mut self, i: &mut Ix) {
        if self.here() {
            *i = i.clone().shifted(if self.up { 1 } else { -1 });
        }
    }
}

const WORDS: [&str; 40] = [
    "fn",
    "let",
    "if",
    "else",
    "where",
    "iterate",
    "times",
    "with",
    "size",
    "const",
    "import",
    "true",
    "num",
    "f64",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "->",
    "|",
    "||",
    "..",
    "...",
    ".",
    ",",
    ";",
    ":",
    "=",
    "==",
    "<",
    "<=",
    "+",
    "++",
    "@",
    "^",
    "0",
    "9223372036854775807",
    "\"",
];

/// A text with some tokens deleted, doubled, exchanged or replaced.
pub fn scramble(text: &str, choice: u64) -> String {
    let mut tokens: Vec<String> = Vec::new();
    for c in text.chars() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        match tokens.last_mut() {
            Some(last) if word(c) && last.chars().all(word) => last.push(c),
            _ => tokens.push(c.to_string()),
        }
    }
    let mut state = choice;
    let mut below = |count: usize| {
        state = certen_core::domain::splitmix(state);
        state as usize % count.max(1)
    };
    for _ in 0..1 + below(4) {
        let at = below(tokens.len());
        if tokens.is_empty() {
            break;
        }
        match below(5) {
            0 => drop(tokens.remove(at)),
            1 => tokens.insert(at, tokens[at].clone()),
            2 => {
                let other = below(tokens.len());
                tokens.swap(at, other);
            }
            3 => tokens[at] = WORDS[below(WORDS.len())].into(),
            _ => {
                // A run of tokens somewhere else.
                let end = (at + 1 + below(8)).min(tokens.len());
                let run: Vec<String> = tokens[at..end].to_vec();
                let to = below(tokens.len());
                tokens.splice(to..to, run);
            }
        }
    }
    tokens.concat()
}
