//! A conversation in the `.ten` language: declarations and bindings that stay, expressions that are compiled among them.
//!
//! Texts are kept, not values: an expression is compiled together with all that was said before, so a session is always
//! a program that the checker has accepted as a whole. What is refused leaves everything as it was.

use certen_lang::ast::Item;
use certen_lang::parse::{parse, parse_block_text};
use certen_syntax::{Diagnostics, Name, Sources, TokenKind, lex};

use crate::deep::deeply;
use crate::failure::Failure;
use crate::options::Options;
use crate::pipeline::Module;
use crate::ten::{Expression, Origin};

/// What messages call the declarations of a session; imports are looked for in the current directory.
const DECLARATIONS: &str = "declarations.ten";

/// What messages call the bindings of a session and what follows them.
const INPUT: &str = "input";

/// Declarations and bindings.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// Texts of declarations, and what they declare.
    declarations: Vec<(String, Vec<Declared>)>,
    /// Texts of `let`s.
    bindings: Vec<String>,
}

/// What a declaration declares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Declared {
    /// A function or constant of this name.
    Name(Name),
    /// Those of the file with this path.
    Import(String),
    /// The schedule of a function, and its name if it is a variant.
    Schedule {
        /// The function.
        function: Name,
        /// The name of the variant.
        variant: Option<Name>,
    },
}

/// What a text comes to.
#[derive(Debug)]
pub enum Reply {
    /// It is empty.
    Nothing,
    /// This was declared.
    Declared(Vec<Declared>),
    /// These were bound: each name with a program that computes it.
    Bound(Vec<(Name, Module)>),
    /// It is an expression: the program that computes it.
    Expression(Box<Module>),
}

impl Session {
    /// Nothing said yet.
    pub fn new() -> Session {
        Session::default()
    }

    /// Takes a text: a declaration or bindings, which stay, or an expression, perhaps with bindings of its own.
    ///
    /// # Errors
    /// If it is not accepted; then nothing is changed.
    pub fn say(&mut self, text: &str) -> Result<Reply, Failure> {
        match first_word(text) {
            None => Ok(Reply::Nothing),
            Some("fn" | "const" | "import" | "schedule") => self.declare(text),
            Some("let") => self.bind(text),
            Some(_) => self.expression(text).map(|module| Reply::Expression(Box::new(module))),
        }
    }

    /// Compiles an expression; nothing stays of it.
    ///
    /// # Errors
    /// If it is not accepted.
    pub fn expression(&self, text: &str) -> Result<Module, Failure> {
        self.compile(&format!("{}{text}", self.bindings.concat()))
    }

    fn compile(&self, text: &str) -> Result<Module, Failure> {
        let expression =
            Expression { text: text.to_owned(), origin: Origin::Called(INPUT.into()), ..Expression::default() };
        let declarations: String = self.declarations.iter().map(|(text, _)| text.as_str()).collect();
        Module::expression(DECLARATIONS, declarations, expression, &Options::default())
    }

    fn declare(&mut self, text: &str) -> Result<Reply, Failure> {
        let text = ended(text);
        let declared = declared(&text);
        let mut next = self.clone();
        // What is declared anew replaces what it was.
        next.declarations.retain(|(_, before)| !before.iter().any(|one| declared.contains(one)));
        next.declarations.push((text, declared.clone()));
        next.compile(&format!("{}0", next.bindings.concat()))?;
        *self = next;
        Ok(Reply::Declared(declared))
    }

    fn bind(&mut self, text: &str) -> Result<Reply, Failure> {
        let Some((names, has_result)) = bound(text).or_else(|| bound(&ended(text))) else {
            // The compiler says what is wrong.
            return self.expression(text).map(|module| Reply::Expression(Box::new(module)));
        };
        if has_result {
            return self.expression(text).map(|module| Reply::Expression(Box::new(module)));
        }
        let text = ended(text);
        let compile = |name: Name| Ok((name, self.expression(&format!("{text}{name}"))?));
        let modules = names.into_iter().map(compile).collect::<Result<_, Failure>>()?;
        self.bindings.push(text);
        Ok(Reply::Bound(modules))
    }
}

/// Whether every bracket of a text is closed, so that it can be read as a whole.
pub fn is_complete(text: &str) -> bool {
    let mut sources = Sources::new();
    let file = sources.add("", text);
    let tokens = sources.get(file).map(|source| lex(source, file, &mut Diagnostics::new())).unwrap_or_default();
    let open = |token: &certen_syntax::Token| match token.kind {
        TokenKind::Punct("(" | "[" | "{") => 1,
        TokenKind::Punct(")" | "]" | "}") => -1,
        _ => 0,
    };
    tokens.iter().map(open).sum::<i64>() <= 0
}

/// The first word or sign of a text.
fn first_word(text: &str) -> Option<&'static str> {
    let mut sources = Sources::new();
    let file = sources.add("", text);
    let tokens = lex(sources.get(file)?, file, &mut Diagnostics::new());
    match tokens.first()?.kind {
        TokenKind::Name(name) => Some(name.as_str()),
        TokenKind::End => text.chars().any(|c| !c.is_whitespace()).then_some(""),
        _ => Some(""),
    }
}

/// A text on a line of its own that ends as a statement does: functions, schedules and derivations end with `}`, all others with `;`.
fn ended(text: &str) -> String {
    let mut sources = Sources::new();
    let file = sources.add("", text);
    let tokens = sources.get(file).map(|source| lex(source, file, &mut Diagnostics::new())).unwrap_or_default();
    let last = tokens.iter().rev().find(|token| token.kind != TokenKind::End);
    let mut text = text.to_owned();
    if let Some(last) = last
        .filter(|last| !last.is(";") && !matches!(first_word(&text), Some("fn" | "schedule" | "derive" | "derivation")))
    {
        // A comment may stand after it.
        text.insert(last.span.end as usize, ';');
    }
    text + "\n"
}

/// What the items of a text declare.
fn declared(text: &str) -> Vec<Declared> {
    deeply(|| {
        let mut sources = Sources::new();
        let file = sources.add("", text);
        let Some(source) = sources.get(file) else { return Vec::new() };
        let items = parse(source, file, &mut Diagnostics::new()).items;
        let declared = items.into_iter().filter_map(|item| match item {
            Item::Import(import) => Some(Declared::Import(import.path)),
            Item::Const(constant) => Some(Declared::Name(constant.name.name)),
            Item::Function(function) => Some(Declared::Name(function.name.name)),
            Item::Derive(derivation) => Some(Declared::Name(derivation.name)),
            Item::Tactic(tactic) => Some(Declared::Name(tactic.name)),
            Item::Schedule(schedule) => {
                Some(Declared::Schedule { function: schedule.function?, variant: schedule.variant })
            }
        });
        declared.collect()
    })
}

/// The names that the `let`s of a text bind, and whether a result follows; none if it cannot be read.
fn bound(text: &str) -> Option<(Vec<Name>, bool)> {
    deeply(|| {
        let mut sources = Sources::new();
        let file = sources.add("", text);
        let block = parse_block_text(sources.get(file)?, file, &mut Diagnostics::new())?;
        let names = block.lets.iter().flat_map(|binding| &binding.names).map(|name| name.name);
        Some((names.collect(), !block.results.is_empty()))
    })
}
