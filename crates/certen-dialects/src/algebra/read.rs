//! Reading what all notations have in common: a program is declarations, then statements `x = e`.
//!
//! A [`Grammar`] knows its declarations and expressions; everything else is here. After an error, reading goes on at
//! the next line that begins a declaration or a statement, so that one mistake gives one message. Guarantees: never
//! fails, whatever the text; without errors the program is exactly the text's.

use certen_index::parse_cond;
use certen_syntax::{Code, Cursor, Diagnostic, Diagnostics, FileId, Name, Sources, Span, lex};

use super::ast::{ExprId, Marker, Notation, Program, Stmt, Where};

pub(crate) type Parsed<T> = Result<T, Box<Diagnostic>>;

/// What a notation does in its own way.
pub(crate) trait Grammar: Default {
    /// The notation.
    const NOTATION: Notation;
    /// Words that begin a declaration, beside `where`.
    const DECLARE: &'static [&'static str];

    /// Reads what may stand before everything else, if it does.
    fn preamble(_reader: &mut Reader<'_, Self>) -> Parsed<()> {
        Ok(())
    }

    /// Reads a declaration after its first word.
    fn declaration(reader: &mut Reader<'_, Self>, word: &str) -> Parsed<()>;

    /// Reads an expression.
    fn expr(reader: &mut Reader<'_, Self>) -> Parsed<ExprId>;

    /// Checks what can only be checked when everything is read.
    fn end(_reader: &mut Reader<'_, Self>) {}
}

/// A program that is being read.
pub(crate) struct Reader<'a, G> {
    pub cursor: Cursor<'a>,
    pub program: Program,
    pub diagnostics: &'a mut Diagnostics,
    pub grammar: G,
}

/// Reads a program. What could not be read is left out, with an error.
pub(crate) fn read<G: Grammar>(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Program {
    let Some(source) = sources.get(file) else { return Program::default() };
    let tokens = lex(source, file, diagnostics);
    let program = Program { notation: G::NOTATION, ..Program::default() };
    let mut reader = Reader { cursor: Cursor::new(&tokens), program, diagnostics, grammar: G::default() };
    let preamble = G::preamble(&mut reader);
    reader.or_recover(0, preamble);
    while !reader.cursor.at_end() {
        let before = reader.cursor.taken();
        let item = reader.item();
        reader.or_recover(before, item);
    }
    G::end(&mut reader);
    reader.program.end = reader.cursor.peek().span;
    reader.program
}

impl<G: Grammar> Reader<'_, G> {
    fn item(&mut self) -> Parsed<()> {
        let first = self.cursor.peek();
        match first.word() {
            Some(word) if begins_declaration::<G>(word) => {
                if let Some(stmt) = self.program.stmts.first() {
                    let error = Diagnostic::error(Code::E0105, first.span, format!("`{word}` after a statement"));
                    self.diagnostics.push(error.also(stmt.target_span, "the first statement"));
                }
                self.cursor.take();
                if word == "where" { self.where_clause() } else { G::declaration(self, word) }
            }
            Some(_) => self.stmt(),
            None => Err(Box::new(self.cursor.expected(&item_name::<G>()))),
        }
    }

    /// After an error, skips to the next line that begins a declaration or a statement; stays if it was met there.
    fn or_recover(&mut self, before: usize, result: Parsed<()>) {
        let Err(error) = result else { return };
        self.diagnostics.push(*error);
        if self.cursor.taken() == before {
            self.cursor.take();
        }
        while !self.cursor.at_end() {
            let token = self.cursor.peek();
            match token.word() {
                Some(word) if begins_declaration::<G>(word) => return,
                Some(_) if token.first_on_line && self.cursor.peek_at(1).is("=") => return,
                _ => self.cursor.take(),
            };
        }
    }

    fn where_clause(&mut self) -> Parsed<()> {
        loop {
            let (cond, span) = self.spanned(parse_cond)?;
            self.program.wheres.push(Where { cond, span });
            if !self.cursor.eat(",") {
                return Ok(());
            }
        }
    }

    fn stmt(&mut self) -> Parsed<()> {
        let (target, target_span) = self.name(&item_name::<G>())?;
        self.cursor.expect_punct("=")?;
        let kept = self.program.exprs.len();
        match G::expr(self) {
            Ok(value) => {
                self.program.stmts.push(Stmt { target, target_span, value });
                Ok(())
            }
            Err(error) => {
                self.program.exprs.truncate(kept);
                self.program.spans.truncate(kept);
                Err(error)
            }
        }
    }

    /// A name that is not a word of the language.
    pub fn name(&mut self, what: &str) -> Parsed<(Name, Span)> {
        let (name, span) = self.cursor.expect_name(what)?;
        if G::NOTATION.reserved().contains(&name.as_str()) {
            let error = Diagnostic::error(Code::E0103, span, format!("`{name}` is a word of the language"));
            return Err(Box::new(error.label(format!("expected {what}"))));
        }
        Ok((name, span))
    }

    /// `["input"] ["output"] NAME ":"`
    pub fn marked_name(&mut self) -> Parsed<(Marker, Name, Span)> {
        let mut marker = Marker::default();
        // `alloc input : [3]` declares a tensor called input.
        while !self.cursor.peek_at(1).is(":") {
            match self.cursor.peek().word() {
                Some("input") if !marker.input => marker.input = true,
                Some("output") if !marker.output => marker.output = true,
                _ => break,
            }
            self.cursor.take();
        }
        let (name, span) = self.name("the name of a tensor")?;
        self.cursor.expect_punct(":")?;
        Ok((marker, name, span))
    }

    /// Something of `certen_index`, and where it stands.
    pub fn spanned<T>(&mut self, read: impl Fn(&mut Cursor<'_>) -> Result<T, Diagnostic>) -> Parsed<(T, Span)> {
        let from = self.cursor.peek().span;
        let before = self.cursor;
        let value = read(&mut self.cursor)?;
        let count = self.cursor.taken() - before.taken();
        let reserved = |word: &str| G::NOTATION.reserved().contains(&word) && !matches!(word, "true" | "false");
        let mut tokens = (0..count).map(|at| before.peek_at(at));
        if let Some(token) = tokens.find(|token| token.word().is_some_and(reserved)) {
            let text = format!("`{}` is a word of the language", token.word().unwrap_or_default());
            return Err(Box::new(Diagnostic::error(Code::E0103, token.span, text).label("expected a size")));
        }
        Ok((value, from.to(before.peek_at(count - 1).span)))
    }

    /// Whether the next statement begins here: an operand that should stand here is missing.
    pub fn at_next_stmt(&self) -> bool {
        let token = self.cursor.peek();
        token.word().is_some() && token.first_on_line && self.cursor.peek_at(1).is("=")
    }
}

fn begins_declaration<G: Grammar>(word: &str) -> bool {
    word == "where" || G::DECLARE.contains(&word)
}

fn item_name<G: Grammar>() -> String {
    format!("`{}` or a statement `x = …`", G::NOTATION.words().declare)
}
