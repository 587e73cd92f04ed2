//! The text of `.ten` files, as `docs/reference/grammar.md` defines it.
//!
//! Recursive descent, with precedence climbing for operators (`expr`); the generators of comprehensions and with-loops,
//! whose subject is recognised by its names, are in `generator`; what people write out of habit from other languages
//! gets a message of its own in `slips`.
//!
//! Needs a stack for [`MAX_NESTING`] levels of expressions: callers run it on a thread with 64 MiB or more. Guarantees:
//! never fails, whatever the text; without errors the tree is exactly the text's, with exact spans; no expression is
//! nested deeper than [`MAX_NESTING`]. After a mistake inside a block reading goes on after the next `;` of the block,
//! and outside functions at the next line that begins a declaration, so that one mistake gives one message.

mod expr;
mod generator;
mod layout;
mod slips;

use certen_core::ElemType;
use certen_core::script::{derivation, tactic};
use certen_syntax::schedule::{Schedule, schedule};
use certen_syntax::{Code, Cursor, Diagnostic, Diagnostics, FileId, Name, Source, Span, Token, TokenKind, lex};

use crate::ast::{Block, Const, Dim, Elem, Expr, File, Function, Ident, Import, Item, Let, Param, Results, Type};
use layout::Layout;

/// How deeply expressions may be nested, where `a + b + c` are two levels.
pub const MAX_NESTING: usize = 2000;

/// Words that cannot be names, beside the element types.
const RESERVED: &[&str] = &[
    "fn", "let", "if", "else", "where", "const", "import", "with", "iterate", "times", "true", "false", "genarray",
    "modarray", "fold", "size", "schedule", "derive",
];

/// Whether a word cannot be a name.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word) || word.parse::<ElemType>().is_ok()
}

/// Reads a file. What could not be read is left out, with an error.
pub fn parse(source: &Source, file: FileId, diagnostics: &mut Diagnostics) -> File {
    let tokens = lex(source, file, diagnostics);
    Parser::new(&tokens, diagnostics).file()
}

/// Reads a text that is one expression; nothing if it has a mistake.
pub fn parse_expr(source: &Source, file: FileId, diagnostics: &mut Diagnostics) -> Option<Expr> {
    let mut found = Diagnostics::new();
    let tokens = lex(source, file, &mut found);
    let mut parser = Parser::new(&tokens, &mut found);
    let expr = parser.expr().and_then(|expr| parser.end().map(|()| expr));
    let expr = expr.map_err(|failed| parser.report(failed)).ok();
    let sound = !found.has_errors();
    diagnostics.extend(found.into_sorted());
    expr.filter(|_| sound)
}

/// Reads a text that is like the inside of a function's body, but may end without a result, in a `let`; nothing if it
/// has a mistake.
pub fn parse_block_text(source: &Source, file: FileId, diagnostics: &mut Diagnostics) -> Option<Block> {
    let mut found = Diagnostics::new();
    let tokens = lex(source, file, &mut found);
    let mut parser = Parser::new(&tokens, &mut found);
    let block = parser.open_block().map_err(|failed| parser.report(failed)).ok();
    let sound = !found.has_errors();
    diagnostics.extend(found.into_sorted());
    block.filter(|_| sound)
}

/// Why something could not be read.
enum Failed {
    /// It has been said already.
    Said,
    /// For this reason.
    Error(Box<Diagnostic>),
}

impl From<Diagnostic> for Failed {
    fn from(error: Diagnostic) -> Failed {
        Failed::Error(Box::new(error))
    }
}

type Parsed<T> = Result<T, Failed>;

/// That a name is not a word of the language.
fn no_word(name: Name, span: Span, what: &str) -> Parsed<()> {
    if !is_reserved(name.as_str()) {
        return Ok(());
    }
    Err(wrong(span, format!("`{name}` is a word of the language")).label(format!("expected {what}")).into())
}

/// A syntax error.
fn wrong(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::E0103, span, message)
}

/// Where the parser is among nested expressions.
#[derive(Clone, Copy, Default)]
struct Nesting {
    /// How many expressions are open.
    level: usize,
    /// The height of what was read of the innermost open one: the levels inside it.
    height: usize,
    /// Whether this is the bound of `iterate t < k (u = …)`, where `k (u = …` is not a call.
    in_step_bound: bool,
}

/// What a block is part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockOf {
    /// A function or an iteration: it may give several values.
    Several,
    /// An expression.
    One,
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    diagnostics: &'a mut Diagnostics,
    layout: Layout,
    nesting: Nesting,
    /// 2 if a declaration was just met in a block; after it, when this is 1, may be the rest of the block.
    left_open: u8,
}

impl<'a> Parser<'a> {
    fn new(tokens: &'a [Token], diagnostics: &'a mut Diagnostics) -> Parser<'a> {
        let layout = Layout::new(tokens);
        Parser { cursor: Cursor::new(tokens), diagnostics, layout, nesting: Nesting::default(), left_open: 0 }
    }

    fn report(&mut self, failed: Failed) {
        if let Failed::Error(error) = failed {
            self.diagnostics.push(*error);
        }
    }

    /// From a place to the token that was taken last.
    fn since(&self, start: Span) -> Span {
        self.cursor.previous().map_or(start, |last| start.to(last.span))
    }

    /// That something else was expected here; with help, if this is a habit from another language.
    fn unexpected<T>(&self, what: &str) -> Parsed<T> {
        Err(slips::unexpected(&self.cursor, what).into())
    }

    fn expect(&mut self, punct: &str) -> Parsed<Span> {
        if self.cursor.peek().is(punct) { Ok(self.cursor.take().span) } else { self.unexpected(&format!("`{punct}`")) }
    }

    /// Takes a closing bracket, or one of the separators that were possible instead is missing.
    fn close(&mut self, punct: &str, or: &str, open: Span) -> Parsed<Span> {
        if self.cursor.peek().is(punct) {
            return Ok(self.cursor.take().span);
        }
        Err(slips::unclosed(&self.cursor, &format!("{or}`{punct}`"), open).into())
    }

    /// Comma-separated things up to a closing bracket, which is taken. The last may have a comma after it.
    fn list<T>(&mut self, close: &str, open: Span, one: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut list = Vec::new();
        while !self.cursor.peek().is(close) {
            list.push(one(self)?);
            if !self.cursor.eat(",") {
                break;
            }
        }
        self.close(close, "`,` or ", open)?;
        Ok(list)
    }

    /// A name that is not a word of the language.
    fn name(&mut self, what: &str) -> Parsed<Ident> {
        let TokenKind::Name(name) = self.cursor.peek().kind else { return self.unexpected(what) };
        if is_reserved(name.as_str()) {
            return Err(slips::reserved(&self.cursor, what).into());
        }
        Ok(Ident { name, span: self.cursor.take().span })
    }

    fn end(&mut self) -> Parsed<()> {
        if self.cursor.at_end() { Ok(()) } else { self.unexpected("the end of the text") }
    }

    fn file(&mut self) -> File {
        let mut file = File::default();
        while !self.cursor.at_end() {
            match self.item() {
                Ok(item) => file.items.push(item),
                Err(failed) => {
                    self.report(failed);
                    self.nesting = Nesting::default();
                    while !self.cursor.at_end() && !self.at_item() {
                        self.cursor.take();
                    }
                }
            }
        }
        file
    }

    /// Whether a line begins here that begins a declaration.
    fn at_item(&self) -> bool {
        self.cursor.begins_item()
    }

    fn item(&mut self) -> Parsed<Item> {
        let start = self.cursor;
        let first = self.cursor.take();
        let rest_of_block = self.left_open == 1;
        self.left_open = self.left_open.saturating_sub(1);
        match first.word() {
            Some("import") => {
                let token = self.cursor.peek();
                let TokenKind::Text(path) = token.kind else {
                    return self.unexpected("the path of a file in quotation marks");
                };
                self.cursor.take();
                self.semicolon()?;
                Ok(Item::Import(Import { path: path.as_str().to_owned(), span: token.span }))
            }
            Some("const") => {
                let name = self.name("the name of a constant")?;
                let ty = if self.cursor.eat(":") { Some(self.ty()?) } else { None };
                self.expect("=")?;
                let value = self.expr()?;
                self.semicolon()?;
                Ok(Item::Const(Const { name, ty, value }))
            }
            Some("fn") => self.function(first.span).map(Item::Function),
            Some("schedule") => {
                self.cursor = start;
                self.schedule().map(Item::Schedule)
            }
            Some("derive") => {
                self.cursor = start;
                let derived = derivation(&mut self.cursor, self.diagnostics).ok_or(Failed::Said)?;
                no_word(derived.name, derived.name_span, "the name of what is derived")?;
                Ok(Item::Derive(derived))
            }
            Some("derivation") => {
                self.cursor = start;
                tactic(&mut self.cursor, self.diagnostics).map(Item::Tactic).ok_or(Failed::Said)
            }
            _ if rest_of_block => Err(Failed::Said),
            _ => Err(slips::no_item(first).into()),
        }
    }

    fn schedule(&mut self) -> Parsed<Schedule> {
        let schedule = schedule(&mut self.cursor, self.diagnostics).ok_or(Failed::Said)?;
        if schedule.function.is_none() {
            let error = wrong(schedule.head.end_point(), "expected the name of a function, found `{`");
            return Err(error
                .help("a schedule in a `.ten` file says which function it is for: `schedule f { … }`")
                .into());
        }
        Ok(schedule)
    }

    fn function(&mut self, start: Span) -> Parsed<Function> {
        let name = self.name("the name of a function")?;
        let params = self.params("a parameter")?;
        let results = if self.cursor.eat("->") { self.results()? } else { Results::Inferred };
        let associative = if self.cursor.eat_word("associative") {
            let open = self.expect("(")?;
            let identity = self.expr()?;
            self.close(")", "", open)?;
            Some(identity)
        } else {
            None
        };
        let mut wheres = Vec::new();
        if self.cursor.eat_word("where") {
            loop {
                wheres.push(self.expr()?);
                if !self.cursor.eat(",") {
                    break;
                }
            }
        }
        let span = self.since(start);
        if !self.cursor.peek().is("{") {
            if self.cursor.peek().is(":") {
                let error = self.cursor.expected("`->`, `where` or `{`");
                return Err(error.help("the type of the result stands after `->`").into());
            }
            return self.unexpected(if wheres.is_empty() { "`->`, `where` or `{`" } else { "`,` or `{`" });
        }
        let body = self.block(BlockOf::Several)?;
        Ok(Function { name, params, results, associative, wheres, body, span })
    }

    fn params(&mut self, what: &str) -> Parsed<Vec<Param>> {
        let open = self.expect("(")?;
        self.list(")", open, |parser| {
            let name = parser.name(what)?;
            if !parser.cursor.eat(":") {
                let error = slips::unexpected(&parser.cursor, "`:` and a type");
                return Err(error.help(format!("write its type, as in `{}: f64[n]`", name.name)).into());
            }
            Ok(Param { name, ty: parser.ty()? })
        })
    }

    fn results(&mut self) -> Parsed<Results> {
        if !self.cursor.peek().is("(") {
            return self.ty().map(Results::One);
        }
        let open = self.cursor.peek().span;
        let results = self.params("the name of a result")?;
        if results.is_empty() {
            let error = wrong(self.since(open), "a function gives at least one value");
            return Err(error.help("leave `->` out to have the type found").into());
        }
        Ok(Results::Named(results))
    }

    fn ty(&mut self) -> Parsed<Type> {
        let token = self.cursor.peek();
        let Some(elem) = token.word().and_then(elem) else {
            return Err(slips::no_type(&self.cursor).into());
        };
        self.cursor.take();
        let open = self.cursor.peek();
        let mut dims = Vec::new();
        if self.cursor.eat("[") {
            dims = self.list("]", open.span, Self::dim)?;
            if dims.is_empty() {
                let error = wrong(self.since(open.span), "a type with no dimensions in its brackets");
                let word = token.word().unwrap_or_default();
                return Err(error.help(format!("a scalar is written `{word}`")).into());
            }
        }
        if self.cursor.peek().is("[") {
            let error = slips::unexpected(&self.cursor, "the end of the type");
            return Err(error.help("all dimensions stand in one pair of brackets, as in `f64[n, m]`").into());
        }
        Ok(Type { elem, dims, span: self.since(token.span) })
    }

    fn dim(&mut self) -> Parsed<Dim> {
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|ahead| self.cursor.peek_at(ahead));
        if first.is("...") {
            let error = slips::unexpected(&self.cursor, "a dimension");
            return Err(error.help("write `s...` to name the sizes of any number of dimensions, or `*`").into());
        }
        for (punct, make) in [(".", Dim::One as fn(Span) -> Dim), ("*", Dim::Any), ("+", Dim::Some)] {
            if first.is(punct) {
                return Ok(make(self.cursor.take().span));
            }
        }
        let named = first.word().is_some();
        if named && second.is("...") {
            let shape = self.name("a name")?;
            self.cursor.take();
            return Ok(Dim::Rest(shape));
        }
        let least = match third.kind {
            _ if named && second.is(":") => 0,
            TokenKind::Int(value) if named && second.is(">") && fourth.is(":") => {
                usize::try_from(value).unwrap_or(usize::MAX).saturating_add(1)
            }
            _ => return self.nested(expr::SUM).map(Dim::Size),
        };
        let rank = self.name("a rank")?;
        while !self.cursor.eat(":") {
            self.cursor.take();
        }
        Ok(Dim::Ranked { rank, least, shape: self.name("the name of a shape")? })
    }

    fn block(&mut self, of: BlockOf) -> Parsed<Block> {
        let open = self.expect("{")?;
        self.framed(|parser| parser.block_behind(open, of))
    }

    /// A block whose `{` was just taken.
    fn block_behind(&mut self, open: Span, of: BlockOf) -> Parsed<Block> {
        let depth = self.layout.depth(self.cursor.taken());
        let nesting = self.nesting;
        let mut block = Block { lets: Vec::new(), results: Vec::new(), span: open };
        let mut sound = true;
        while !self.cursor.peek().is("}") {
            if self.cursor.at_end() || self.at_item() {
                self.left_open = 2;
                let error = self.cursor.expected("`}`").also(open, "to close this");
                let error =
                    if self.cursor.at_end() { error } else { error.note("functions have no declarations inside") };
                return Err(if sound { error.into() } else { Failed::Said });
            }
            if let Err(failed) = self.statement(&mut block, of, open) {
                self.report(failed);
                sound = false;
                self.nesting = nesting;
                self.skip_statement(depth)?;
            }
        }
        let close = self.cursor.take().span;
        block.span = open.to(close);
        if block.results.is_empty() && sound {
            let error = wrong(close, "this block has no result").also(open, "the block begins here");
            self.diagnostics.push(error.help("its last line is an expression without `let` and `;`"));
        }
        self.grow(open)?;
        Ok(block)
    }

    /// A binding, or the result, which is after all bindings.
    fn statement(&mut self, block: &mut Block, of: BlockOf, open: Span) -> Parsed<()> {
        if self.cursor.peek().word() == Some("let") {
            let binding = self.binding()?;
            block.lets.push(binding);
            return Ok(());
        }
        slips::no_statement(&self.cursor)?;
        block.results = self.values(of)?;
        match self.cursor.peek() {
            token if token.is("}") => Ok(()),
            token if token.is(";") && self.cursor.peek_at(1).is("}") => {
                let error = wrong(token.span, "the result of a block stands without `;`");
                Err(error.help("leave the `;` out").into())
            }
            token if token.is(";") => Err(slips::no_effect(token.span).into()),
            token if token.is("=") => Err(slips::no_assignment(token.span).into()),
            _ => Err(slips::unclosed(&self.cursor, "`}`", open).into()),
        }
    }

    /// Skips the rest of a statement: after the next `;` of the block, or to its end.
    fn skip_statement(&mut self, depth: u32) -> Parsed<()> {
        loop {
            let token = self.cursor.peek();
            if self.cursor.at_end() || self.at_item() {
                return Err(Failed::Said);
            }
            let here = self.layout.depth(self.cursor.taken());
            if here < depth || (here == depth && token.is("}")) {
                return Ok(());
            }
            self.cursor.take();
            if here == depth && token.is(";") {
                return Ok(());
            }
        }
    }

    /// `let x = e;`, `let x: T = e;` or `let (a, b) = e;`
    fn binding(&mut self) -> Parsed<Let> {
        self.cursor.take();
        let token = self.cursor.peek();
        let mut ty = None;
        let names = if self.cursor.eat("(") {
            let names = self.list(")", token.span, |parser| parser.name("a name"))?;
            if names.is_empty() {
                return Err(wrong(self.since(token.span), "this `let` names nothing").into());
            }
            names
        } else {
            slips::no_change(&self.cursor)?;
            let name = self.name("a name, or several in parentheses")?;
            if self.cursor.eat(":") {
                ty = Some(self.ty()?);
            }
            vec![name]
        };
        if self.cursor.peek().is(",") {
            let error = slips::unexpected(&self.cursor, "`=`");
            return Err(error.help("several names stand in parentheses: `let (a, b) = …;`").into());
        }
        self.expect("=")?;
        let value = self.expr()?;
        self.semicolon()?;
        Ok(Let { names, ty, value })
    }

    /// The `;` after a declaration or binding. If the next line begins without one, only that is wrong.
    fn semicolon(&mut self) -> Parsed<()> {
        if self.cursor.eat(";") {
            return Ok(());
        }
        let found = self.cursor.peek();
        let forgotten = found.word() == Some("let") || (found.first_on_line && !found.is("}"));
        match self.cursor.previous() {
            Some(last) if forgotten && !slips::is_slip(&self.cursor) => {
                let error = wrong(last.span.end_point(), format!("expected `;`, found {}", found.describe()));
                self.diagnostics.push(error.label("expected `;`"));
                Ok(())
            }
            _ => self.unexpected("`;`"),
        }
    }

    /// What a block gives: an expression, or several in parentheses.
    fn values(&mut self, of: BlockOf) -> Parsed<Vec<Expr>> {
        let open = self.cursor.peek();
        if of == BlockOf::One || !open.is("(") || !self.layout.holds_comma(self.cursor.taken()) {
            return Ok(vec![self.expr()?]);
        }
        self.cursor.take();
        let mut values = vec![self.expr()?];
        while self.cursor.eat(",") && !self.cursor.peek().is(")") {
            values.push(self.expr()?);
        }
        self.close(")", "`,` or ", open.span)?;
        Ok(values)
    }

    /// A block without braces that is the whole text.
    fn open_block(&mut self) -> Parsed<Block> {
        let start = self.cursor.peek().span;
        let mut block = Block { lets: Vec::new(), results: Vec::new(), span: start };
        while self.cursor.peek().word() == Some("let") {
            let binding = self.binding()?;
            block.lets.push(binding);
        }
        if !self.cursor.at_end() {
            slips::no_statement(&self.cursor)?;
            block.results = self.values(BlockOf::Several)?;
        }
        self.end()?;
        block.span = self.since(start);
        Ok(block)
    }

    /// One more expression is open.
    fn enter(&mut self, at: Span) -> Parsed<()> {
        self.nesting.level += 1;
        if self.nesting.level > MAX_NESTING { Err(too_deep(at)) } else { Ok(()) }
    }

    /// Reads something whose height does not add up with what was read beside it.
    fn framed<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let around = std::mem::take(&mut self.nesting.height);
        let result = read(self)?;
        self.nesting.height = self.nesting.height.max(around);
        Ok(result)
    }

    /// What was read of the innermost open expression becomes part of one node.
    fn grow(&mut self, at: Span) -> Parsed<()> {
        self.nesting.height += 1;
        if self.nesting.height > MAX_NESTING { Err(too_deep(at)) } else { Ok(()) }
    }
}

fn too_deep(at: Span) -> Failed {
    let error = wrong(at, format!("expressions are nested more than {MAX_NESTING} levels deep here"));
    error.note("`a + b + c` are two levels").help("give parts of it names with `let`").into()
}

/// What a word says about the elements of a type.
fn elem(word: &str) -> Option<Elem> {
    match word {
        "any" => Some(Elem::Any),
        "num" => Some(Elem::Num),
        "float" => Some(Elem::Float),
        "size" => Some(Elem::Size),
        _ => word.parse().ok().map(Elem::Is),
    }
}
