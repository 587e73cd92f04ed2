//! The tensors and stages of one scope: one kernel.

use std::collections::BTreeSet;

use certen_core::ElemType;
use certen_syntax::{Code, Diagnostic, Name, Span};
use ruff_python_ast::{Expr, Parameters, Stmt};

use super::body::Body;
use super::scope::{Scope, elem};
use crate::apart;
use crate::index::Index;
use crate::kernel::{Effect, Kernel, Range, Statement, Tensor, Value};
use crate::language::Language;
use crate::python::{Arguments, Imports, Known, Script};
use crate::text::{Read, unsupported};

/// A scope on its way to a kernel.
pub(crate) struct Stages {
    pub tensors: Vec<Tensor>,
    pub statements: Vec<Statement>,
    /// Tensors whose names are those of the functions that made them.
    unnamed: BTreeSet<usize>,
    axes: u64,
    /// How many of the tensors are those of the scopes around.
    inherited: usize,
    /// Names of sizes: no two that are not known to be equal have one.
    sizes: BTreeSet<Name>,
}

/// Whether a function is TVM's.
pub(crate) fn is_tvm(path: &str) -> bool {
    path.starts_with("tvm.")
}

impl Stages {
    /// Nothing yet.
    pub fn new() -> Stages {
        let (tensors, statements, unnamed) = (Vec::new(), Vec::new(), BTreeSet::new());
        Stages { tensors, statements, unnamed, axes: 0, inherited: 0, sizes: BTreeSet::new() }
    }

    /// The stages of a function inside of a scope: it sees the tensors around it, and computes its own.
    pub fn inside(&self) -> Stages {
        Stages {
            tensors: self.tensors.clone(),
            statements: Vec::new(),
            unnamed: BTreeSet::new(),
            axes: self.axes,
            inherited: self.tensors.len(),
            sizes: self.sizes.clone(),
        }
    }

    /// A name for a size that is not known to be equal to any other.
    pub fn size(&mut self, name: &str) -> Name {
        let name = Name::fresh(name, |name| self.sizes.contains(&name));
        self.sizes.insert(name);
        name
    }

    /// A variable is given a tensor: that is what people call it.
    pub fn named(&mut self, tensor: usize, name: &str) {
        if self.unnamed.remove(&tensor) {
            self.tensors[tensor].name = Name::new(name);
        }
    }

    /// A call of a function of TVM.
    pub fn call<'a>(
        &mut self,
        script: &Script<'_>,
        imports: &Imports,
        scope: &Scope<'a>,
        path: &str,
        arguments: &Arguments<'a>,
        span: Span,
    ) -> Read<Known<'a>> {
        let function = path.rsplit('.').next().unwrap_or(path);
        let text = |at: usize, name: &str| match arguments.get(at, name).map(|argument| &argument.known) {
            Some(Known::Text(text)) => Some(text.clone()),
            _ => None,
        };
        match function {
            "var" | "size_var" | "Var" | "SizeVar" => {
                let name = text(0, "name").unwrap_or_else(|| "n".into());
                let word: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
                let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic());
                Ok(Known::Index(Index::Name(self.size(if is_word { &word } else { "n" }))))
            }
            "const" => Ok(arguments.get(0, "value").map_or(Known::Unknown, |argument| argument.known.clone())),
            "placeholder" => {
                let shape = self.shape(arguments, span)?;
                let elem = elem(text(1, "dtype").as_deref().unwrap_or("float32"), span)?;
                Ok(Known::Tensor(self.tensor(text(2, "name"), elem, shape, span, true)))
            }
            "reduce_axis" => {
                let domain = arguments.get(0, "dom").map(|argument| &argument.known);
                let Some(Known::List(ends)) = domain else {
                    return Err(unsupported(span, "an axis whose range is not written as a pair"));
                };
                let [Some(low), Some(high)] = &ends.iter().map(Known::index).collect::<Vec<_>>()[..] else {
                    return Err(unsupported(span, "an axis whose range is not written as a pair"));
                };
                self.axes += 1;
                let name = text(1, "name").unwrap_or_else(|| format!("rv{}", self.axes));
                // Two axes of one name are two axes.
                let name = Name::new(&format!("{name}.{}", self.axes));
                Ok(Known::Axis(Range { name, low: low.clone(), high: high.clone() }))
            }
            "compute" => self.compute(script, imports, scope, arguments, span),
            "scan" | "extern" | "extern_primfunc" | "hybrid" | "comm_reducer" | "gradient" | "script" => {
                Err(unsupported(span, format!("`te.{function}`")))
            }
            _ => Ok(Known::Unknown),
        }
    }

    fn tensor(&mut self, name: Option<String>, elem: ElemType, shape: Vec<Index>, span: Span, is_input: bool) -> usize {
        let at = self.tensors.len();
        if name.is_none() {
            self.unnamed.insert(at);
        }
        let name = name.unwrap_or_else(|| if is_input { "placeholder".into() } else { "compute".into() });
        let word: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let word = if word.starts_with(|c: char| c.is_ascii_digit() || c == '_') { format!("t{word}") } else { word };
        let name = Name::fresh(&word, |name| self.tensors.iter().any(|tensor| tensor.name == name));
        self.tensors.push(Tensor { name, elem, shape, span, is_input });
        at
    }

    fn shape(&self, arguments: &Arguments<'_>, span: Span) -> Read<Vec<Index>> {
        let shape = arguments.get(0, "shape").and_then(|argument| match &argument.known {
            Known::Unknown => None,
            known => known.shape(),
        });
        shape.ok_or_else(|| unsupported(span, "a shape that is not written as a tuple of sizes"))
    }

    fn compute<'a>(
        &mut self,
        script: &Script<'_>,
        imports: &Imports,
        scope: &Scope<'a>,
        arguments: &Arguments<'a>,
        span: Span,
    ) -> Read<Known<'a>> {
        let shape = self.shape(arguments, span)?;
        let function = arguments.get(1, "fcompute").map(|argument| (&argument.known, argument.expr));
        let (parameters, expr): (Option<&Parameters>, &Expr) = match function {
            Some((Known::Lambda(lambda), _)) => (lambda.parameters.as_deref(), &lambda.body),
            Some((Known::Function(function), expr)) => {
                let body: Vec<&Stmt> = function.body.iter().filter(|statement| !is_text(statement)).collect();
                match body[..] {
                    [Stmt::Return(result)] => match &result.value {
                        Some(value) => (Some(&function.parameters), value),
                        None => return Err(unsupported(script.span(expr), "a function of indices without a result")),
                    },
                    _ => {
                        let what = "a function of indices that is more than one `return`";
                        return Err(unsupported(script.span(expr), what));
                    }
                }
            }
            Some((_, expr)) => {
                return Err(unsupported(script.span(expr), "a function of indices that is not written here"));
            }
            None => return Err(unsupported(span, "a `compute` without a function of indices")),
        };
        let (names, all) = indices(parameters, shape.len(), span)?;
        let ranges: Vec<Range> =
            names.iter().zip(&shape).map(|(name, size)| Range::up_to(*name, size.clone())).collect();
        let mut inside: Scope<'a> = scope.clone();
        if let Some(all) = all {
            let indices = names.iter().map(|name| Known::Index(Index::Name(*name))).collect();
            inside.insert(all, Known::List(indices));
        } else {
            for (name, parameter) in names.iter().zip(parameters.into_iter().flat_map(Parameters::iter)) {
                inside.insert(parameter.name().as_str().to_owned(), Known::Index(Index::Name(*name)));
            }
        }
        let body = Body { script, imports, scope: &inside, tensors: &self.tensors };
        let value = body.value(expr)?;
        let elem = self.elem(&value);
        let name = match arguments.get(2, "name").map(|argument| &argument.known) {
            Some(Known::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let target = self.tensor(name, elem, shape, span, false);
        let effect = Effect::Define;
        self.statements.push(Statement { target, span, ranges, effect, body: value, agreements: Vec::new() });
        Ok(Known::Tensor(target))
    }

    /// The element type of what a stage computes.
    fn elem(&self, value: &Value) -> ElemType {
        value.natural(&self.tensors).filter(|elem| elem.has_arithmetic()).unwrap_or(ElemType::F32)
    }

    /// The kernel; none if nothing is computed.
    pub fn kernel(mut self, name: &str) -> Option<Kernel> {
        let span = self.statements.first()?.span;
        let mut read = BTreeSet::new();
        for statement in &self.statements {
            statement.body.each_read(&mut |access| {
                read.insert(access.tensor);
            });
        }
        let mut sizes = BTreeSet::new();
        for (at, tensor) in self.tensors.iter_mut().enumerate() {
            // Of the tensors around, those are inputs that it reads.
            if at < self.inherited {
                tensor.is_input = read.contains(&at);
            }
            if at >= self.inherited || tensor.is_input {
                tensor.shape.iter().for_each(|size| size.names(&mut sizes));
            }
        }
        for statement in &self.statements {
            let mut inside: BTreeSet<Name> = statement.ranges.iter().map(|range| range.name).collect();
            names(&statement.body, &mut inside, &mut sizes);
        }
        let outputs =
            self.statements.iter().map(|statement| statement.target).filter(|at| !read.contains(at)).collect();
        Some(Kernel {
            name: Name::new(name),
            language: Language::Python,
            span,
            sizes: sizes.into_iter().collect(),
            facts: Vec::new(),
            tensors: self.tensors,
            statements: self.statements,
            outputs,
            faults: Vec::new(),
            notes: Vec::new(),
            unwritten: None,
        })
    }
}

fn is_text(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Expr(expr) if matches!(&*expr.value, Expr::StringLiteral(_)))
}

/// The names of the indices, and of the one parameter that stands for all of them.
fn indices(parameters: Option<&Parameters>, rank: usize, span: Span) -> Read<(Vec<Name>, Option<String>)> {
    let Some(parameters) = parameters else {
        return if rank == 0 { Ok((Vec::new(), None)) } else { Err(wrong_rank(0, rank, span)) };
    };
    if let Some(all) = &parameters.vararg
        && parameters.args.is_empty()
    {
        let names = (0..rank).map(|at| apart::index(&format!("i{at}"))).collect();
        return Ok((names, Some(all.name.as_str().to_owned())));
    }
    if parameters.vararg.is_some() || parameters.kwarg.is_some() {
        return Err(unsupported(span, "a function of indices with `*` beside other parameters"));
    }
    let names: Vec<Name> = parameters.iter().map(|parameter| apart::index(parameter.name().as_str())).collect();
    if names.len() == rank { Ok((names, None)) } else { Err(wrong_rank(names.len(), rank, span)) }
}

fn wrong_rank(found: usize, rank: usize, span: Span) -> Box<Diagnostic> {
    let text = format!("the function has {found} indices, and the shape {rank} dimensions");
    Box::new(Diagnostic::error(Code::E0234, span, text))
}

/// Names in a value that are no indices: sizes.
fn names(value: &Value, inside: &mut BTreeSet<Name>, sizes: &mut BTreeSet<Name>) {
    let mut found = BTreeSet::new();
    match value {
        Value::Index(index) => index.names(&mut found),
        Value::Read(read) => read.at.iter().for_each(|index| index.names(&mut found)),
        Value::Choose { condition, .. } => condition.names(&mut found),
        Value::Reduce(_, ranges, body) => {
            for range in ranges {
                range.low.names(&mut found);
                range.high.names(&mut found);
            }
            let mut deeper = inside.clone();
            deeper.extend(ranges.iter().map(|range| range.name));
            names(body, &mut deeper, sizes);
        }
        _ => {}
    }
    sizes.extend(found.difference(inside).copied().collect::<Vec<_>>());
    if !matches!(value, Value::Reduce(..)) {
        value.parts().into_iter().for_each(|part| names(part, inside, sizes));
    }
}
