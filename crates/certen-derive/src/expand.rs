//! Named pieces of scripts, unfolded: their steps with arguments for their parameters.

use certen_index::Ix;
use certen_syntax::{Code, Diagnostic, Name, Span, near};

use crate::rules::{named, rewrites};
use certen_core::script::{AddressKind, AddressPart, ScriptArg, ScriptArgKind, ScriptStep, Tactic};

/// How deeply pieces of scripts may use other pieces.
const MAX_DEPTH: usize = 32;

/// More steps are not taken.
const MAX_STEPS: usize = 10_000;

/// The texts of arguments and places may have so many characters, in all steps that one stands for: a piece that
/// writes its parameter twice doubles a pattern, and so does the next one.
const MAX_TEXT: usize = 200_000;

/// The rewrites that a step stands for.
///
/// # Errors
/// E0901 if there is nothing of its name, or with other arguments, or if it is too large.
pub(crate) fn expand(step: &ScriptStep, tactics: &[Tactic]) -> Result<Vec<ScriptStep>, Diagnostic> {
    let mut done = Vec::new();
    let mut todo = vec![(step.clone(), 0)];
    let mut written = 0;
    while let Some((step, depth)) = todo.pop() {
        if named(step.name.as_str()).is_some() {
            done.push(step);
            continue;
        }
        let Some(tactic) = tactics.iter().rev().find(|tactic| tactic.name == step.name) else {
            return Err(unknown(&step, tactics));
        };
        if depth == MAX_DEPTH || done.len() + todo.len() + tactic.steps.len() > MAX_STEPS {
            let message =
                format!("`{}` is too large: it has more than {MAX_STEPS} steps, or contains itself", tactic.name);
            return Err(Diagnostic::error(Code::E0901, step.span, message));
        }
        if step.backwards || step.everywhere {
            let how = if step.backwards { "backwards" } else { "everywhere" };
            let message = format!("`{}` is a piece of a script, which cannot be taken {how}", step.name);
            return Err(Diagnostic::error(Code::E0901, step.span, message).help("write it at its single steps"));
        }
        if tactic.parameters.len() != step.args.len() {
            return Err(other_arguments(&step, tactic));
        }
        let given: Vec<(Name, &ScriptArg)> = tactic.parameters.iter().copied().zip(&step.args).collect();
        for inner in tactic.steps.iter().rev() {
            let mut inner = replaced(&written_at(inner, step.span), &given)?;
            inner.at.extend(step.at.iter().cloned());
            written += length(&inner);
            if written > MAX_TEXT {
                return Err(long(step.span));
            }
            todo.push((inner, depth + 1));
        }
    }
    Ok(done)
}

/// A step that stands where the piece is used: what is wrong with it is the matter of who uses it, and the piece may be in
/// a file that they do not have.
fn written_at(step: &ScriptStep, span: Span) -> ScriptStep {
    let mut new = ScriptStep { span, ..step.clone() };
    new.args.iter_mut().for_each(|arg| arg.span = span);
    new.at.iter_mut().for_each(|place| place.span = span);
    new
}

fn other_arguments(step: &ScriptStep, tactic: &Tactic) -> Diagnostic {
    let names: Vec<&str> = tactic.parameters.iter().map(|name| name.as_str()).collect();
    let message = format!("`{}` is called {}({})", tactic.name, tactic.name, names.join(", "));
    let count = step.args.len();
    let error = Diagnostic::error(Code::E0901, step.span, message)
        .label(format!("{count} {}", if count == 1 { "argument" } else { "arguments" }));
    match tactic.span.file == step.span.file {
        true => error.also(tactic.span, "it is here"),
        false => error.note(format!("it is\n{tactic}")),
    }
}

fn long(span: Span) -> Diagnostic {
    let message = format!("this is too large: its patterns have more than {MAX_TEXT} characters");
    Diagnostic::error(Code::E0901, span, message)
}

/// The characters of the patterns of a step.
fn length(step: &ScriptStep) -> usize {
    let args = step.args.iter().map(|arg| match &arg.kind {
        ScriptArgKind::Pattern(text) => text.len(),
        ScriptArgKind::Ix(_) | ScriptArgKind::Cond(_) => 0,
    });
    let places = step.at.iter().map(|place| match &place.kind {
        AddressKind::Pattern(text) => text.len(),
        AddressKind::Binder(_) => 0,
    });
    args.chain(places).sum()
}

fn unknown(step: &ScriptStep, tactics: &[Tactic]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0901, step.span, format!("there is no rewrite `{}`", step.name));
    let known = rewrites().iter().map(|rewrite| rewrite.name);
    let known: Vec<&str> = known.chain(tactics.iter().map(|tactic| tactic.name.as_str())).collect();
    match near(step.name.as_str(), known) {
        Some(near) => error.meant(step.name, near),
        None => error.help("`certen help rewrites` lists all rewrites"),
    }
}

/// A step with arguments substituted for names.
fn replaced(step: &ScriptStep, given: &[(Name, &ScriptArg)]) -> Result<ScriptStep, Diagnostic> {
    let mut new = step.clone();
    for arg in &mut new.args {
        *arg = replaced_arg(arg, given)?;
    }
    for place in &mut new.at {
        place.kind = replaced_place(place, given)?;
    }
    Ok(new)
}

fn replaced_arg(arg: &ScriptArg, given: &[(Name, &ScriptArg)]) -> Result<ScriptArg, Diagnostic> {
    let ix = |name: Name| {
        given.iter().find(|(parameter, _)| *parameter == name).and_then(|(_, arg)| match &arg.kind {
            ScriptArgKind::Ix(ix) => Some(ix.clone()),
            _ => None,
        })
    };
    let too_large = |_| Diagnostic::error(Code::E0901, arg.span, "this argument is too large");
    let kind = match &arg.kind {
        // A name alone may stand for anything.
        ScriptArgKind::Ix(own) if let Some(name) = own.as_var() => {
            match given.iter().find(|(parameter, _)| *parameter == name) {
                Some((_, arg)) => return Ok((*arg).clone()),
                None => ScriptArgKind::Ix(own.clone()),
            }
        }
        ScriptArgKind::Ix(own) => ScriptArgKind::Ix(own.substitute(&ix).map_err(too_large)?),
        ScriptArgKind::Cond(own) => ScriptArgKind::Cond(own.substitute(&ix).map_err(too_large)?),
        ScriptArgKind::Pattern(text) => {
            ScriptArgKind::Pattern(replaced_text(text, given).ok_or_else(|| long(arg.span))?)
        }
    };
    Ok(ScriptArg { kind, span: arg.span })
}

fn replaced_place(place: &AddressPart, given: &[(Name, &ScriptArg)]) -> Result<AddressKind, Diagnostic> {
    let wrong = |span: Span| Diagnostic::error(Code::E0901, span, "a place is a name or a pattern in braces");
    match &place.kind {
        AddressKind::Pattern(text) => {
            replaced_text(text, given).map(AddressKind::Pattern).ok_or_else(|| long(place.span))
        }
        AddressKind::Binder(name) => match given.iter().find(|(parameter, _)| parameter == name) {
            None => Ok(AddressKind::Binder(*name)),
            Some((_, arg)) => match &arg.kind {
                ScriptArgKind::Ix(ix) => ix.as_var().map(AddressKind::Binder).ok_or_else(|| wrong(arg.span)),
                ScriptArgKind::Pattern(text) => Ok(AddressKind::Pattern(text.clone())),
                ScriptArgKind::Cond(_) => Err(wrong(arg.span)),
            },
        },
    }
}

/// A text with arguments substituted for names; none if it is too long.
fn replaced_text(text: &str, given: &[(Name, &ScriptArg)]) -> Option<String> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut new, mut rest) = (String::new(), text);
    while !rest.is_empty() {
        if new.len() > MAX_TEXT {
            return None;
        }
        let word = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
        if word == 0 {
            let other = rest.find(is_letter).unwrap_or(rest.len());
            new += &rest[..other];
            rest = &rest[other..];
            continue;
        }
        match given.iter().find(|(parameter, _)| parameter.as_str() == &rest[..word]) {
            Some((_, arg)) => match &arg.kind {
                ScriptArgKind::Ix(ix) if Ix::is_sum(ix) => new += &format!("({ix})"),
                ScriptArgKind::Ix(ix) => new += &ix.to_string(),
                ScriptArgKind::Cond(cond) => new += &format!("({cond})"),
                ScriptArgKind::Pattern(text) => new += &format!("({text})"),
            },
            None => new += &rest[..word],
        }
        rest = &rest[word..];
    }
    Some(new)
}
