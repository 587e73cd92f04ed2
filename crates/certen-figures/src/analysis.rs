//! What the analyses of the model language's Sec. 5 have found out, statement by statement, for people.
//!
//! For each statement: which assignments its reads see ([`flow`](certen_dialects::algebra::flow)), whether it is dead,
//! whether it can be computed in place ([`in_place`](mod@crate::in_place)), and what it shares with others
//! ([`sharing`](certen_dialects::algebra::sharing)).

use std::collections::HashSet;
use std::fmt;

use certen_dialects::algebra::flow::Origin;
use certen_dialects::algebra::sharing::{Holder, Sharing};
use certen_dialects::algebra::{Expr, ExprId, Typed};
use certen_syntax::{Name, Sources, Span};

use crate::in_place::{InPlace, in_place};

/// How many names and how many shared values are listed for one statement.
const MAX_LISTED: usize = 20;

/// The longest piece of the program's text that is shown.
const MAX_SNIPPET: usize = 60;

/// What is known of a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Analysis {
    /// The line it stands in.
    pub line: usize,
    /// The tensor that it assigns.
    pub target: Name,
    /// The tensors that it reads, each once, and where they were last defined; at most twenty.
    pub reads: Vec<(Name, Defined)>,
    /// Whether its value reaches an output.
    pub live: bool,
    /// Whether it can be computed directly into the memory of its target.
    pub in_place: bool,
    /// Why, or why not.
    pub why: String,
    /// What it shares with other statements or computes once; at most twenty.
    pub shared: Vec<String>,
}

/// Where the value of a tensor comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defined {
    /// The assignment in this line.
    Line(usize),
    /// The caller.
    Input,
    /// Nowhere; only statements that reach no output read such a tensor.
    Nowhere,
}

impl fmt::Display for Defined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Defined::Line(line) => write!(f, "line {line}"),
            Defined::Input => write!(f, "input"),
            Defined::Nowhere => write!(f, "uninitialised"),
        }
    }
}

impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let live = if self.live { "live" } else { "dead, its value reaches no output" };
        writeln!(f, "line {}: `{}` is {live}", self.line, self.target)?;
        let reads: Vec<String> = self.reads.iter().map(|(name, from)| format!("{name} ({from})")).collect();
        let more = if reads.len() == MAX_LISTED { ", …" } else { "" };
        writeln!(f, "    reads {}{more}", reads.join(", "))?;
        writeln!(f, "    {}: {}", if self.in_place { "in place" } else { "not in place" }, self.why)?;
        self.shared.iter().try_for_each(|line| writeln!(f, "    {line}"))
    }
}

/// What is known of each of the first `limit` statements. The sources are those that the program was read from.
pub fn analysis(typed: &Typed, sources: &Sources, limit: usize) -> Vec<Analysis> {
    let analyst = Analyst { typed, sources, sharing: Sharing::of(typed) };
    let inputs: HashSet<Name> = typed.inputs().iter().copied().collect();
    (0..typed.program.stmts.len().min(limit)).map(|at| analyst.stmt(at, &inputs)).collect()
}

/// The same as text; says how many statements are left out.
pub fn analysis_text(typed: &Typed, sources: &Sources, limit: usize) -> String {
    let shown: String = analysis(typed, sources, limit).iter().map(Analysis::to_string).collect();
    match typed.program.stmts.len().saturating_sub(limit) {
        0 => shown,
        more => format!("{shown}… and {more} more\n"),
    }
}

struct Analyst<'a> {
    typed: &'a Typed,
    sources: &'a Sources,
    sharing: Sharing,
}

impl Analyst<'_> {
    fn stmt(&self, at: usize, inputs: &HashSet<Name>) -> Analysis {
        let program = &self.typed.program;
        let target = program.stmts[at].target;
        let mut reads = Vec::new();
        let mut seen = HashSet::new();
        for id in program.exprs_of(at) {
            let (Expr::Var(name), Some(origin)) = (program.expr(id), self.typed.flow.reads[id.index()]) else {
                continue;
            };
            if reads.len() < MAX_LISTED && seen.insert(*name) {
                let from = match origin {
                    Origin::Stmt(from) => Defined::Line(self.stmt_line(from)),
                    Origin::Initial if inputs.contains(name) => Defined::Input,
                    Origin::Initial => Defined::Nowhere,
                };
                reads.push((*name, from));
            }
        }
        let in_place = in_place(self.typed, at);
        let why = match &in_place {
            InPlace::NotRead => format!("`{target}` is not read"),
            InPlace::SameElement => format!("`{target}` is read only at the element that is written"),
            InPlace::No(conflict) => {
                let place = self.sources.locate(program.span(conflict.read));
                let place = place.map_or_else(String::new, |(_, at)| format!(" ({}:{})", at.line, at.column));
                conflict.reason(target) + &place
            }
        };
        Analysis {
            line: self.stmt_line(at),
            target,
            reads,
            live: self.typed.flow.live[at],
            in_place: in_place.is_allowed(),
            why,
            shared: self.shared(at),
        }
    }

    fn shared(&self, at: usize) -> Vec<String> {
        let program = &self.typed.program;
        let root = program.stmts[at].value;
        let holder = self.sharing.stmts[at];
        if let Some(holder) = holder.filter(|holder| *holder != Holder::Stmt(at)) {
            return vec![format!("computes nothing: the value is {}", self.holder(holder))];
        }
        let mut lines = Vec::new();
        let mut todo = vec![root];
        let first = self.sharing.shared.partition_point(|shared| shared.stmt < at);
        for shared in self.sharing.shared[first..].iter().take_while(|shared| shared.stmt == at) {
            lines.push(format!("can be computed once: {} = {}", shared.name, self.snippet(shared.expr)));
            todo.extend(program.expr(shared.expr).parts());
        }
        let mut seen: HashSet<ExprId> = HashSet::new();
        let mut listed = HashSet::new();
        while let Some(id) = todo.pop().filter(|_| lines.len() < MAX_LISTED) {
            let inner = program.inner(id);
            match self.sharing.held[id.index()].or(self.sharing.held[inner.index()]) {
                _ if matches!(program.expr(inner), Expr::Var(_)) || !seen.insert(inner) => {}
                Some(holder) => {
                    let here = matches!(holder, Holder::Shared(n) if self.sharing.shared[n].stmt == at);
                    if !here && listed.insert(holder) {
                        lines.push(format!("already known: {} is {}", self.snippet(inner), self.holder(holder)));
                    }
                }
                None => {
                    let parts: Vec<ExprId> = program.expr(inner).parts().collect();
                    todo.extend(parts.into_iter().rev());
                }
            }
        }
        lines.truncate(MAX_LISTED);
        lines
    }

    fn holder(&self, holder: Holder) -> String {
        match holder {
            Holder::Input(name) => format!("the input {name}"),
            Holder::Stmt(at) => format!("{} of line {}", self.typed.program.stmts[at].target, self.stmt_line(at)),
            Holder::Shared(at) => {
                let shared = &self.sharing.shared[at];
                format!("{} of line {}", shared.name, self.line(self.typed.program.span(shared.expr)))
            }
        }
    }

    fn stmt_line(&self, at: usize) -> usize {
        self.line(self.typed.program.stmts[at].target_span)
    }

    fn line(&self, span: Span) -> usize {
        self.sources.get(span.file).map_or(0, |source| source.line(span.start))
    }

    /// The text of an expression on one line, or its beginning.
    fn snippet(&self, id: ExprId) -> String {
        let lines = self.sources.snippet(self.typed.program.span(id)).lines();
        let words = lines.flat_map(|line| line.split("//").next().unwrap_or("").split_whitespace());
        let mut text = String::new();
        for word in words {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(word);
            if text.chars().count() > MAX_SNIPPET {
                return text.chars().take(MAX_SNIPPET).chain(['…']).collect();
            }
        }
        text
    }
}
