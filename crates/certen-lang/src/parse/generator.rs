//! Patterns and generators: `[i, ., j] -> e | 0 <= [i, j] < [n, m]` (SaC, Sec. 2 and 4).
//!
//! Which term of a relation is bounded is seen by its names: it is the pattern without its dots, or one of the
//! pattern's names. Relations that are written the other way round (`n > i >= 0`) are turned.

use certen_syntax::{Span, TokenKind};

use super::expr::CONCAT;
use super::{Failed, Parsed, Parser, slips, wrong};
use crate::ast::{Bound, Expr, ExprKind, Ident, Partition, Pattern, Relation, Slot, Subject};

/// A side of a relation.
enum Term {
    Dot(Span),
    Expr(Expr),
    /// A list with dots in it, which can only be the subject.
    Dotted(Vec<Slot>, Span),
}

/// How two terms are related.
#[derive(Clone, Copy)]
struct Comparison {
    /// Whether the smaller one stands on the left.
    rising: bool,
    /// Whether they may be equal.
    equal: bool,
    span: Span,
}

/// What is written between the commas of a generator.
struct WrittenRelation {
    first: Term,
    comparison: Comparison,
    second: Term,
    more: Option<(Comparison, Term)>,
    span: Span,
}

/// The names of a pattern, and whether each stands for several indices.
fn names(slots: &[Slot]) -> impl Iterator<Item = (Ident, bool)> {
    slots.iter().filter_map(|slot| match slot {
        Slot::Index(name) => Some((*name, false)),
        Slot::Rest(name) => Some((*name, true)),
        Slot::Dot(_) | Slot::Dots(_) => None,
    })
}

impl Parser<'_> {
    /// Whether a pattern and `->` stand so far ahead.
    pub(super) fn pattern_stands_at(&self, ahead: usize) -> bool {
        let behind = if self.cursor.peek_at(ahead).is("[") {
            self.slots_stand_at(ahead).map(|(end, _)| end)
        } else {
            self.cursor.peek_at(ahead).word().map(|_| ahead + 1)
        };
        behind.is_some_and(|end| self.cursor.peek_at(end).is("->"))
    }

    /// The end of the list of names and dots that stands so far ahead, and whether there are dots.
    fn slots_stand_at(&self, ahead: usize) -> Option<(usize, bool)> {
        let mut at = ahead + 1;
        let mut dots = false;
        loop {
            match self.cursor.peek_at(at).kind {
                TokenKind::Name(_) | TokenKind::Punct(",") => {}
                TokenKind::Punct("." | "..." | "..") => dots = true,
                TokenKind::Punct("]") => return Some((at + 1, dots)),
                _ => return None,
            }
            at += 1;
        }
    }

    /// The partitions of a comprehension whose `{` was taken.
    pub(super) fn partitions(&mut self, open: Span) -> Parsed<Vec<Partition>> {
        let mut partitions = Vec::new();
        while !self.cursor.peek().is("}") {
            partitions.push(self.partition(open)?);
            if !self.cursor.eat(";") {
                break;
            }
        }
        self.close("}", "`|`, `;` or ", open)?;
        Ok(partitions)
    }

    fn partition(&mut self, open: Span) -> Parsed<Partition> {
        let start = self.cursor.peek().span;
        let pattern = self.pattern()?;
        if !self.cursor.eat("->") {
            let error = slips::unexpected(&self.cursor, "`->` after the pattern");
            return Err(error.also(open, "in the comprehension that begins here").into());
        }
        let body = self.expr()?;
        let mut generator = Vec::new();
        if self.cursor.eat("|") {
            loop {
                let written = self.written()?;
                generator.push(relation(written, &pattern)?);
                if !self.cursor.eat(",") {
                    break;
                }
            }
        }
        Ok(Partition { pattern, body, generator, span: self.since(start) })
    }

    fn pattern(&mut self) -> Parsed<Pattern> {
        if !self.cursor.peek().is("[") {
            return self.name("a pattern: a name, or names and dots in brackets").map(Pattern::Vector);
        }
        let (slots, span) = self.slots()?;
        Ok(Pattern::List(slots, span))
    }

    fn slots(&mut self) -> Parsed<(Vec<Slot>, Span)> {
        let open = self.expect("[")?;
        let slots = self.list("]", open, |parser| {
            let token = parser.cursor.peek();
            match token.kind {
                TokenKind::Punct(".") => Ok(Slot::Dot(parser.cursor.take().span)),
                TokenKind::Punct("...") => Ok(Slot::Dots(parser.cursor.take().span)),
                TokenKind::Punct("..") => {
                    let error = parser.cursor.expected("an index, `.` or `...`");
                    Err(error.help("`.` is one dimension of the body, `...` are all others").into())
                }
                _ => {
                    let name = parser.name("an index, `.` or `...`")?;
                    Ok(if parser.cursor.eat("...") { Slot::Rest(name) } else { Slot::Index(name) })
                }
            }
        })?;
        let mut several = slots.iter().filter_map(|slot| match slot {
            Slot::Dots(span) => Some(*span),
            Slot::Rest(name) => Some(name.span),
            Slot::Index(_) | Slot::Dot(_) => None,
        });
        if let (Some(first), Some(second)) = (several.next(), several.next()) {
            let error = wrong(second, "a pattern can hold one `...`").also(first, "the first one");
            return Err(error.note("two would leave open how many dimensions each of them takes").into());
        }
        Ok((slots, self.since(open)))
    }

    fn term(&mut self) -> Parsed<Term> {
        let token = self.cursor.peek();
        if token.is(".") {
            return Ok(Term::Dot(self.cursor.take().span));
        }
        if token.is("[") && self.slots_stand_at(0).is_some_and(|(_, dots)| dots) {
            let (slots, span) = self.slots()?;
            return Ok(Term::Dotted(slots, span));
        }
        self.nested(CONCAT).map(Term::Expr)
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let token = self.cursor.peek();
        let (rising, equal) = match token.kind {
            TokenKind::Punct("<") => (true, false),
            TokenKind::Punct("<=") => (true, true),
            TokenKind::Punct(">") => (false, false),
            TokenKind::Punct(">=") => (false, true),
            _ => return None,
        };
        self.cursor.take();
        Some(Comparison { rising, equal, span: token.span })
    }

    fn written(&mut self) -> Parsed<WrittenRelation> {
        let start = self.cursor.peek().span;
        let first = self.term()?;
        let Some(comparison) = self.comparison() else {
            let what = "`<` or `<=` and a bound, as in `0 <= i < n`";
            return Err(slips::unexpected(&self.cursor, what).into());
        };
        let second = self.term()?;
        let more = match self.comparison() {
            Some(comparison) => Some((comparison, self.term()?)),
            None => None,
        };
        Ok(WrittenRelation { first, comparison, second, more, span: self.since(start) })
    }

    /// `(lo <= pattern < hi) : e`
    pub(super) fn with_generator(&mut self) -> Parsed<(Pattern, Relation, Expr)> {
        let open = self.expect("(")?;
        let written = self.written()?;
        let span = written.span;
        let Some((last, third)) = written.more else {
            let error = wrong(span, "a generator of a with-loop has both bounds");
            return Err(error.help("write `.` for a bound that is the end of the result: `(. <= iv < .)`").into());
        };
        let pattern = match written.second {
            Term::Expr(Expr { kind: ExprKind::Name(name), span }) => Pattern::Vector(Ident { name, span }),
            Term::Expr(Expr { kind: ExprKind::List(parts), span }) => {
                let index = |part: &Expr| match part.kind {
                    ExprKind::Name(name) => Ok(Slot::Index(Ident { name, span: part.span })),
                    _ => Err(wrong(part.span, "the middle of a generator is made of names").help(MIDDLE)),
                };
                Pattern::List(parts.iter().map(index).collect::<Result<_, _>>()?, span)
            }
            Term::Dotted(slots, span) => {
                if let Some(Slot::Dot(dot) | Slot::Dots(dot)) =
                    slots.iter().find(|slot| matches!(slot, Slot::Dot(_) | Slot::Dots(_)))
                {
                    let error = wrong(*dot, "the pattern of a with-loop has no dots");
                    return Err(error.help("dimensions of the body come last; a comprehension can place them").into());
                }
                Pattern::List(slots, span)
            }
            Term::Dot(span) | Term::Expr(Expr { span, .. }) => {
                return Err(wrong(span, "the middle of a generator is made of names").help(MIDDLE).into());
            }
        };
        let lower = (bound(written.first)?, written.comparison);
        let relation = ranged(Some(lower), Subject::All, Some((last, bound(third)?)), span)?;
        self.close(")", "", open)?;
        self.expect(":")?;
        Ok((pattern, relation, self.expr()?))
    }
}

const MIDDLE: &str = "the indices stand in the middle: `(lower <= [i, j] < upper)`";

/// Finds out what a relation bounds.
fn relation(written: WrittenRelation, pattern: &Pattern) -> Parsed<Relation> {
    let WrittenRelation { first, comparison, second, more, span } = written;
    if let Some((last, third)) = more {
        return match subject(&second, pattern)? {
            Some(subject) => ranged(Some((bound(first)?, comparison)), subject, Some((last, bound(third)?)), span),
            None => Err(unbounded(span, pattern)),
        };
    }
    match (subject(&first, pattern)?, subject(&second, pattern)?) {
        (Some(Subject::One(one)), Some(Subject::One(other))) => {
            let message =
                format!("this generator compares two indices of its pattern, `{}` and `{}`", one.name, other.name);
            Err(wrong(span, message).help("a bound is made of sizes and of indices from outside").into())
        }
        (Some(subject), _) => ranged(None, subject, Some((comparison, bound(second)?)), span),
        (None, Some(subject)) => ranged(Some((bound(first)?, comparison)), subject, None, span),
        (None, None) => Err(unbounded(span, pattern)),
    }
}

/// The relation of bounds that stand left and right of a subject.
fn ranged(
    left: Option<(Bound, Comparison)>,
    subject: Subject,
    right: Option<(Comparison, Bound)>,
    span: Span,
) -> Parsed<Relation> {
    if let (Some((_, one)), Some((other, _))) = (&left, &right)
        && one.rising != other.rising
    {
        let error = wrong(other.span, "the two bounds of this generator lie on the same side");
        return Err(error.also(one.span, "the first one").help("write `lower <= i < upper`").into());
    }
    let rising = left.as_ref().map(|(_, c)| c.rising).or(right.as_ref().map(|(c, _)| c.rising)).unwrap_or(true);
    let left = left.map(|(bound, comparison)| (bound, comparison.equal));
    let right = right.map(|(comparison, bound)| (bound, comparison.equal));
    let (lower, upper) = if rising { (left, right) } else { (right, left) };
    Ok(Relation { lower, subject, upper, span })
}

/// What a term is of a pattern, if it is anything.
fn subject(term: &Term, pattern: &Pattern) -> Parsed<Option<Subject>> {
    let slots = match (pattern, term) {
        (Pattern::Vector(vector), Term::Expr(Expr { kind: ExprKind::Name(name), .. })) => {
            return Ok((*name == vector.name).then_some(Subject::All));
        }
        (Pattern::Vector(_), _) => return Ok(None),
        (Pattern::List(slots, _), _) => slots,
    };
    match term {
        Term::Dot(_) => Ok(None),
        Term::Expr(Expr { kind: ExprKind::Name(name), span }) => {
            let found = names(slots).any(|(ident, _)| ident.name == *name);
            Ok(found.then_some(Subject::One(Ident { name: *name, span: *span })))
        }
        Term::Expr(Expr { kind: ExprKind::List(parts), .. }) => {
            let same = parts.len() == names(slots).count()
                && parts
                    .iter()
                    .zip(names(slots))
                    .all(|(part, (ident, _))| matches!(part.kind, ExprKind::Name(name) if name == ident.name));
            Ok(same.then_some(Subject::All))
        }
        Term::Expr(_) => Ok(None),
        Term::Dotted(written, span) => {
            let same = names(written).map(|(ident, _)| ident.name).eq(names(slots).map(|(ident, _)| ident.name));
            if same && written.len() != names(written).count() {
                let error = wrong(*span, "a generator bounds the indices of its pattern, not its dots");
                return Err(error.help(format!("write `{}`", show(slots))).into());
            }
            Ok(same.then_some(Subject::All))
        }
    }
}

fn bound(term: Term) -> Parsed<Bound> {
    match term {
        Term::Dot(span) => Ok(Bound::Dot(span)),
        Term::Expr(expr) => Ok(Bound::At(expr)),
        Term::Dotted(_, span) => Err(wrong(span, "a bound is an index or index vector, or `.` as a whole").into()),
    }
}

fn unbounded(span: Span, pattern: &Pattern) -> Failed {
    let all = match pattern {
        Pattern::Vector(name) => name.name.to_string(),
        Pattern::List(slots, _) => show(slots),
    };
    let error = wrong(span, "this generator bounds no index of its pattern");
    let one = match pattern {
        Pattern::Vector(_) => String::new(),
        Pattern::List(..) => " or one of its indices".into(),
    };
    error.help(format!("what is bounded is `{all}`{one}, as in `0 <= {all} < …`")).into()
}

/// A pattern without its dots.
fn show(slots: &[Slot]) -> String {
    let parts: Vec<String> =
        names(slots).map(|(ident, rest)| format!("{}{}", ident.name, if rest { "..." } else { "" })).collect();
    format!("[{}]", parts.join(", "))
}
