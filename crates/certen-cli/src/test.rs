//! `certen test`: what a `.ten` file claims in its comments.
//!
//! A line that begins with `//?` is a claim about expressions in the scope of its file, evaluated by the reference
//! evaluator:
//!
//! - `//? E == E`: both have the same shape and the same elements. Numbers are compared as numbers, whatever their type;
//!   NaN is equal to NaN. It is the last `==` outside brackets that divides the two.
//! - `//? E ~= E`: the same, but floats may differ by 1e-12 of the larger one, or by 1e-12 if both are small (1e-5 where
//!   one is an f32).
//! - `//? E : f64[2, 3]`: this type; `//? E : [2, 3]`: this shape.
//! - `//? E : E0207`: refused with this code.
//! - `//? E`: all elements are true.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use certen::road::core::DEFAULT_FUEL;
use certen::road::core::domain::Scalar;
use certen::road::syntax::{Blame, Code, Diagnostic, Diagnostics, Sources, TokenKind, lex};
use certen::{Backend, Call, ElemType, Expression, Failure, Module, Options, Origin, Output, RunOptions, Values};
use clap::Args;
use serde_json::{Value, json};

use crate::common::{Outcome, shown};
use crate::report::{Report, list};
use crate::show;

#[derive(Args)]
pub struct TestArgs {
    /// `.ten` files, or directories of them; of a directory, those that claim something
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// How many steps the evaluator may take for an expression
    #[arg(long, default_value_t = DEFAULT_FUEL)]
    fuel: u64,
    /// Print JSON on standard output
    #[arg(long)]
    json: bool,
}

/// What begins a claim.
const MARK: &str = "//?";

/// How far floats may be apart, relative to the larger one.
const NEAR: f64 = 1e-12;

/// The same where one of them is an f32.
const NEAR_F32: f64 = 1e-5;

pub fn test(args: &TestArgs) -> Outcome {
    let report = Report::new(args.json);
    let mut files = Vec::new();
    for path in &args.paths {
        if path.is_dir() {
            collect(path, &mut files).map_err(|error| {
                report.error(Diagnostic::error(Code::E0603, None, format!("{}: {error}", shown(path))))
            })?;
        } else {
            files.push(path.clone());
        }
    }
    let mut worst: Option<Blame> = None;
    let (mut passed, mut failed) = (0, 0);
    let (mut tests, mut diagnostics) = (Vec::new(), Vec::new());
    for path in &files {
        let results = match test_file(path, args.fuel) {
            Ok(results) => results,
            Err(failure) => {
                worst = worst.max(Some(report.gathered(&failure, &mut diagnostics)));
                continue;
            }
        };
        let wrong = results.iter().filter(|(_, verdict)| verdict.is_some()).count();
        passed += results.len() - wrong;
        failed += wrong;
        for (claim, verdict) in &results {
            let Some(verdict) = verdict else { continue };
            worst = worst.max(Some(Blame::Program));
            if !args.json {
                report.text(&format!("{}:{}: failed: {}\n{}", shown(path), claim.line, claim.text, verdict.text()));
            }
        }
        if args.json {
            tests.extend(results.iter().map(|(claim, verdict)| as_json(path, claim, verdict.as_ref())));
        } else if wrong == 0 {
            report.text(&format!("{}: {} passed\n", shown(path), results.len()));
        } else {
            report.text(&format!("{}: {wrong} failed, {} passed\n", shown(path), results.len() - wrong));
        }
    }
    if args.json {
        let ok = worst.is_none();
        report.json(&json!({
            "ok": ok, "diagnostics": diagnostics, "passed": passed, "failed": failed, "tests": tests
        }));
    } else if files.len() > 1 {
        report.text(&format!("{} files, {failed} failed, {passed} passed\n", files.len()));
    }
    worst.map_or(Ok(()), Err)
}

/// The `.ten` files of a directory that claim something, in order.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries = fs::read_dir(directory)?.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>()?;
    entries.sort();
    for path in entries {
        // A link to a directory may lead back.
        if path.is_dir() && !path.is_symlink() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "ten") && path.is_file() {
            let text = fs::read(&path)?;
            if String::from_utf8_lossy(&text).lines().any(|line| line.trim_start().starts_with(MARK)) {
                files.push(path);
            }
        }
    }
    Ok(())
}

/// A claim and where it stands.
struct Claim {
    line: usize,
    text: String,
    kind: Kind,
}

/// What is claimed of the expressions at these bytes of the file.
enum Kind {
    Equal(Range<usize>, Range<usize>),
    Near(Range<usize>, Range<usize>),
    Type(Range<usize>, Option<ElemType>, Vec<usize>),
    Refused(Range<usize>, Code),
    True(Range<usize>),
}

impl Kind {
    fn expressions(&self) -> Vec<Range<usize>> {
        match self {
            Kind::Equal(left, right) | Kind::Near(left, right) => vec![left.clone(), right.clone()],
            Kind::Type(e, ..) | Kind::Refused(e, _) | Kind::True(e) => vec![e.clone()],
        }
    }
}

/// The claims of a text.
fn claims(text: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let indent = line.len() - line.trim_start().len();
        if let Some(claim) = line[indent..].strip_prefix(MARK) {
            let at = start + indent + MARK.len();
            claims.push(Claim { line: number + 1, text: claim.trim().to_owned(), kind: kind(claim, at) });
        }
        start += line.len();
    }
    claims
}

/// What a claim's text says; it begins at this byte of the file.
fn kind(text: &str, at: usize) -> Kind {
    let piece = |range: Range<usize>| {
        let part = &text[range.clone()];
        let begin = at + range.start + (part.len() - part.trim_start().len());
        begin..begin + part.trim().len()
    };
    // No expression has a `~`.
    if let Some(near) = text.find("~=") {
        return Kind::Near(piece(0..near), piece(near + 2..text.len()));
    }
    let (mut colon, mut equal) = (None, None);
    let mut depth = 0i64;
    let mut sources = Sources::new();
    let file = sources.add("", text);
    let tokens = sources.get(file).map(|source| lex(source, file, &mut Diagnostics::new())).unwrap_or_default();
    for token in tokens {
        let TokenKind::Punct(punct) = token.kind else { continue };
        match punct {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            ":" if depth == 0 => colon = Some(token.span.start as usize),
            "==" if depth == 0 => equal = Some(token.span.start as usize),
            _ => {}
        }
    }
    if let Some(colon) = colon {
        let expected = text[colon + 1..].trim();
        if let Ok(code) = expected.parse::<Code>() {
            return Kind::Refused(piece(0..colon), code);
        }
        if let Some((elem, shape)) = concrete_type(expected) {
            return Kind::Type(piece(0..colon), elem, shape);
        }
    }
    match equal {
        Some(equal) => Kind::Equal(piece(0..equal), piece(equal + 2..text.len())),
        None => Kind::True(piece(0..text.len())),
    }
}

/// Reads `f64[2, 3]`, `f64` or `[2, 3]`.
fn concrete_type(text: &str) -> Option<(Option<ElemType>, Vec<usize>)> {
    let (elem, sizes) = match text.split_once('[') {
        Some((elem, rest)) => (elem.trim(), Some(rest.strip_suffix(']')?)),
        None => (text, None),
    };
    let elem = if elem.is_empty() { None } else { Some(elem.parse::<ElemType>().ok()?) };
    let sizes = match (elem, sizes.map(str::trim)) {
        (None, None) => return None,
        (_, None | Some("")) => Vec::new(),
        (_, Some(sizes)) => sizes.split(',').map(|size| size.trim().parse().ok()).collect::<Option<_>>()?,
    };
    Some((elem, sizes))
}

/// Why a claim does not hold.
enum Verdict {
    /// An expression is not accepted, or has no value.
    NoValue(Failure),
    /// It is accepted, but this was claimed.
    Accepted(Code),
    /// These were to be the same.
    Differ(Box<(Output, Output)>),
    /// It has another type than was claimed.
    Type(String),
    /// Not all elements are true.
    NotTrue(Box<Output>),
}

impl Verdict {
    /// For people, in lines.
    fn text(&self) -> String {
        match self {
            Verdict::NoValue(failure) => format!("{failure}\n"),
            Verdict::Accepted(code) => format!("  it is accepted, not refused with {code}\n"),
            Verdict::Differ(both) => {
                format!("  left:  {}\n  right: {}\n", show::value(&both.0, 9), show::value(&both.1, 9))
            }
            Verdict::Type(found) => format!("  its type is {found}\n"),
            Verdict::NotTrue(output) => format!("  it is {}\n", show::value(output, 8)),
        }
    }
}

fn as_json(path: &Path, claim: &Claim, verdict: Option<&Verdict>) -> Value {
    let mut value = json!({"file": shown(path), "line": claim.line, "text": claim.text, "passed": verdict.is_none()});
    match verdict {
        None => {}
        Some(Verdict::NoValue(failure)) => value["diagnostics"] = list(failure.sources(), failure.diagnostics()).into(),
        Some(Verdict::Accepted(code)) => value["message"] = json!(format!("accepted, not refused with {code}")),
        Some(Verdict::Type(found)) => value["message"] = json!(format!("the type is {found}")),
        Some(Verdict::Differ(both)) => {
            value["left"] = show::entry(&both.0);
            value["right"] = show::entry(&both.1);
        }
        Some(Verdict::NotTrue(output)) => value["left"] = show::entry(output),
    }
    value
}

/// The claims of a file, each with the reason why it does not hold.
fn test_file(path: &Path, fuel: u64) -> Result<Vec<(Claim, Option<Verdict>)>, Failure> {
    let (name, text) = certen::read_program(path)?;
    let claims = claims(&text);
    let expression = |range: Range<usize>| Expression {
        text: text.get(range.clone()).unwrap_or_default().to_owned(),
        origin: Origin::InFile(range.start),
        ..Expression::default()
    };
    let expressions: Vec<Expression> =
        claims.iter().flat_map(|claim| claim.kind.expressions()).map(expression).collect();
    let mut modules = Module::expressions(&name, text, &expressions, &Options::default())?.into_iter();
    let mut next = || modules.next();
    let judged = claims.into_iter().map(|claim| {
        let verdict = judge(&claim.kind, &mut next, fuel);
        (claim, verdict.err())
    });
    Ok(judged.collect())
}

type Next<'a> = dyn FnMut() -> Option<Result<Module, Failure>> + 'a;

fn judge(kind: &Kind, next: &mut Next<'_>, fuel: u64) -> Result<(), Verdict> {
    match kind {
        Kind::Equal(..) | Kind::Near(..) => {
            let (left, right) = (next(), next());
            let (Some(left), Some(right)) = (value(left, fuel)?, value(right, fuel)?) else { return Ok(()) };
            let near = matches!(kind, Kind::Near(..));
            let same = left.shape == right.shape && alike(&left.values, &right.values, near);
            if same { Ok(()) } else { Err(Verdict::Differ(Box::new((left, right)))) }
        }
        Kind::True(_) => {
            let Some(output) = value(next(), fuel)? else { return Ok(()) };
            let holds = scalars(&output.values).all(|value| value == Scalar::Bool(true));
            if holds { Ok(()) } else { Err(Verdict::NotTrue(Box::new(output))) }
        }
        Kind::Type(_, elem, shape) => {
            let Some(module) = next() else { return Ok(()) };
            let module = module.map_err(Verdict::NoValue)?;
            let types = module.core().types();
            let ty = module.core().outputs.first().and_then(|(_, source)| types.get(source));
            let Some(ty) = ty else { return Ok(()) };
            let sizes = ty.shape.iter().map(|size| usize::try_from(size.as_constant()?).ok());
            let same = elem.is_none_or(|elem| elem == ty.elem) && sizes.eq(shape.iter().map(|size| Some(*size)));
            if same { Ok(()) } else { Err(Verdict::Type(ty.to_string())) }
        }
        Kind::Refused(_, code) => match next() {
            Some(Err(failure)) if failure.diagnostics().iter().any(|d| d.code == *code) => Ok(()),
            Some(Err(failure)) => Err(Verdict::NoValue(failure)),
            Some(Ok(_)) => Err(Verdict::Accepted(*code)),
            None => Ok(()),
        },
    }
}

fn value(module: Option<Result<Module, Failure>>, fuel: u64) -> Result<Option<Output>, Verdict> {
    let Some(module) = module else { return Ok(None) };
    let options = RunOptions { backend: Backend::Interp, fuel, ..RunOptions::default() };
    let run = |module: Module| module.run_with(&Call::new(), &options);
    let (outputs, _) = module.and_then(run).map_err(Verdict::NoValue)?;
    Ok(outputs.into_iter().next())
}

fn scalars(values: &Values) -> impl Iterator<Item = Scalar> {
    let array = match values {
        Values::Array(array) => Some(array),
        _ => None,
    };
    array.into_iter().flat_map(|array| (0..array.len()).filter_map(|at| array.get(at)))
}

/// Whether the elements are the same, or near each other; there are equally many.
fn alike(left: &Values, right: &Values, near: bool) -> bool {
    scalars(left).zip(scalars(right)).all(|pair| match pair {
        (Scalar::Bool(a), Scalar::Bool(b)) => a == b,
        (Scalar::Bool(_), _) | (_, Scalar::Bool(_)) => false,
        (a, b) => match (whole(a), whole(b)) {
            (Some(a), Some(b)) => a == b,
            _ => {
                let narrow = matches!(a, Scalar::F32(_)) || matches!(b, Scalar::F32(_));
                // A literal adapts to the type of the other side.
                let round = |value: Scalar| if narrow { f64::from(value.to_f64() as f32) } else { value.to_f64() };
                let (a, b) = (round(a), round(b));
                let scale = a.abs().max(b.abs()).max(1.0) * if narrow { NEAR_F32 } else { NEAR };
                a == b || (a.is_nan() && b.is_nan()) || (near && (a - b).abs() <= scale)
            }
        },
    })
}

fn whole(value: Scalar) -> Option<i64> {
    match value {
        Scalar::I64(value) => Some(value),
        Scalar::I32(value) => Some(value.into()),
        Scalar::U8(value) => Some(value.into()),
        Scalar::F64(_) | Scalar::F32(_) | Scalar::Bool(_) => None,
    }
}
