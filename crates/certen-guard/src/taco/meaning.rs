//! What an index expression means: where its indices go, and over which part of it each is summed.

use std::collections::BTreeSet;

use certen_syntax::{Code, Diagnostic, Name, Span};

use super::parse::{Access, Assignment, Ex, File, Variable};
use crate::apart;
use crate::index::Index;
use crate::kernel::{
    Agreement, Effect, Kernel, Op, Range, Read as KernelRead, Reduction, Side, Statement, Tensor, Value,
};
use crate::language::Language;
use crate::text::{Read, dimension, unsupported};

const READING: &str = "TACO walks a window without looking at the dimension: it reads past its end";

/// The kernel of one expression.
pub(super) fn kernel(file: &File, assignment: &Assignment, name: &str) -> Read<Kernel> {
    let Assignment { target, adds, value } = assignment;
    let mut maker = Maker { file, uses: Vec::new(), tensors: Vec::new() };
    maker.collect(value);
    let reads_target = maker.tensors.contains(&target.tensor) || *adds;
    maker.access(target);
    maker.tensors.sort_unstable();
    let kept = target_indices(target)?;
    let summed: Vec<Name> = maker.summed(value, &kept);
    let body = maker.value(value, &summed)?;
    let ranges = kept.iter().map(|index| maker.range(*index)).collect();
    let place = maker.place(target.tensor);
    let agreements = maker.agreements();
    let mut notes = Vec::new();
    let mut tensors = Vec::new();
    let mut sizes: Vec<Name> = Vec::new();
    for at in &maker.tensors {
        let declared = &file.tensors[*at];
        let mut names = BTreeSet::new();
        declared.shape.iter().for_each(|size| size.names(&mut names));
        sizes.extend(names.into_iter().filter(|size| !sizes.contains(size)).collect::<Vec<_>>());
        let is_input = *at != target.tensor || reads_target;
        let (name, elem, shape, span) = (declared.name, declared.elem, declared.shape.clone(), declared.span);
        if let Some(span) = declared.sparse {
            let text =
                format!("`{name}` has a sparse format: its bounds are those of a dense tensor, and it runs as one");
            notes.push(Diagnostic::warning(Code::W1001, span, text));
        }
        tensors.push(Tensor { name, elem, shape, span, is_input });
    }
    let effect = if *adds { Effect::Combine(Reduction::Sum) } else { Effect::Define };
    let statement = Statement { target: place, span: target.span, ranges, effect, body, agreements };
    Ok(Kernel {
        name: Name::new(name),
        language: Language::Taco,
        span: target.span,
        sizes,
        facts: Vec::new(),
        tensors,
        statements: vec![statement],
        outputs: vec![place],
        faults: Vec::new(),
        notes,
        unwritten: None,
    })
}

/// The indices of the left side, each once.
fn target_indices(target: &Access) -> Read<Vec<Name>> {
    let mut kept: Vec<Name> = Vec::new();
    for variable in &target.at {
        if variable.window.is_some() {
            return Err(unsupported(variable.span, "a window on the left side"));
        }
        if kept.contains(&variable.name) {
            return Err(unsupported(variable.span, "an index that stands twice on the left side"));
        }
        kept.push(variable.name);
    }
    Ok(kept)
}

/// A use of an index: a dimension of a tensor, and how many values of the index it has.
struct Use {
    index: Name,
    tensor: usize,
    dimension: usize,
    size: Index,
    span: Span,
}

struct Maker<'a> {
    file: &'a File,
    uses: Vec<Use>,
    /// Tensors that occur, by their positions in the file.
    tensors: Vec<usize>,
}

impl Maker<'_> {
    fn collect(&mut self, ex: &Ex) {
        match ex {
            Ex::Number(_) => {}
            Ex::Access(access) => self.access(access),
            Ex::Neg(a) | Ex::Sum(_, a) => self.collect(a),
            Ex::Binary(_, a, b, _) => {
                self.collect(a);
                self.collect(b);
            }
            Ex::Call(_, parts, _) => parts.iter().for_each(|part| self.collect(part)),
        }
    }

    fn access(&mut self, access: &Access) {
        if !self.tensors.contains(&access.tensor) {
            self.tensors.push(access.tensor);
        }
        let shape = &self.file.tensors[access.tensor].shape;
        for (dimension, (Variable { name, span, window }, size)) in access.at.iter().zip(shape).enumerate() {
            let size = match window {
                None => size.clone(),
                Some([low, high, step]) => {
                    let (length, step) = (high.clone() - low.clone(), step.number().unwrap_or(1));
                    if step == 1 { length } else { Index::Div(Box::new(length + Index::Num(step - 1)), step) }
                }
            };
            self.uses.push(Use { index: *name, tensor: access.tensor, dimension, size, span: *span });
        }
    }

    fn place(&self, tensor: usize) -> usize {
        self.tensors.iter().position(|at| *at == tensor).unwrap_or(0)
    }

    /// The indices that are summed without a word: those of the right side that nothing binds.
    fn summed(&self, value: &Ex, kept: &[Name]) -> Vec<Name> {
        let mut free = Vec::new();
        free_indices(value, &mut Vec::new(), &mut free);
        free.retain(|index| !kept.contains(index));
        free
    }

    /// The range of an index: what an option says, else the size of the dimension where it stands first.
    fn range(&self, index: Name) -> Range {
        let stated = self.file.variables.iter().find(|(name, ..)| *name == index).map(|(_, size, _)| size);
        let first = self.uses.iter().find(|found| found.index == index).map(|found| &found.size);
        Range::up_to(apart::index(index.as_str()), stated.or(first).cloned().unwrap_or(Index::Num(1)))
    }

    fn agreements(&self) -> Vec<Agreement> {
        let mut agreements = Vec::new();
        let side = |found: &Use| Side {
            what: dimension(found.dimension, self.file.tensors[found.tensor].name),
            tensor: Some((self.place(found.tensor), found.dimension)),
            size: found.size.clone(),
            span: found.span,
        };
        for (at, found) in self.uses.iter().enumerate() {
            let stated = self.file.variables.iter().find(|(name, ..)| *name == found.index);
            let first = match (stated, self.uses[..at].iter().find(|other| other.index == found.index)) {
                (Some((name, size, span)), _) => {
                    Side { what: format!("`-d={name}`"), tensor: None, size: size.clone(), span: *span }
                }
                (None, Some(first)) => side(first),
                (None, None) => continue,
            };
            let second = side(found);
            let reading = format!(
                "the code that TACO makes takes the range of `{}` from {}; where {} is shorter, it goes past its end",
                found.index, first.what, second.what
            );
            agreements.push(Agreement { by: format!("`{}`", found.index), first, second, reading });
        }
        agreements
    }

    /// An expression, with the indices that are to be summed in it or in a part of it.
    fn value(&self, ex: &Ex, summed: &[Name]) -> Read<Value> {
        let parts: Vec<&Ex> = match ex {
            Ex::Number(_) | Ex::Access(_) => Vec::new(),
            Ex::Neg(a) | Ex::Sum(_, a) => vec![a],
            Ex::Binary(_, a, b, _) => vec![a, b],
            Ex::Call(_, parts, _) => parts.iter().collect(),
        };
        let has = |part: &Ex, index: Name| {
            let mut free = Vec::new();
            free_indices(part, &mut Vec::new(), &mut free);
            free.contains(&index)
        };
        let mut here = Vec::new();
        let mut below: Vec<Vec<Name>> = vec![Vec::new(); parts.len()];
        for index in summed {
            let having: Vec<usize> = (0..parts.len()).filter(|at| has(parts[*at], *index)).collect();
            match having[..] {
                [only] => {
                    let hidden = match ex {
                        Ex::Call(function, _, span) => Some((span, format!("in `{function}(…)`"))),
                        Ex::Binary(Op::Div, _, _, span) if only == 1 => Some((span, "in a divisor".to_owned())),
                        _ => None,
                    };
                    if let Some((span, place)) = hidden {
                        let construct =
                            format!("a sum over `{index}` that is not written, {place}: write `sum({index}, …)`");
                        return Err(unsupported(*span, construct));
                    }
                    below[only].push(*index);
                }
                _ => here.push(self.range(*index)),
            }
        }
        let part = |at: usize| self.value(parts[at], &below[at]);
        let value = match ex {
            Ex::Number(number) => Value::Number(*number),
            Ex::Access(access) => Value::Read(self.reading(access)),
            Ex::Neg(_) => Value::Neg(Box::new(part(0)?)),
            Ex::Sum(index, _) => Value::Reduce(Reduction::Sum, vec![self.range(*index)], Box::new(part(0)?)),
            Ex::Binary(op, ..) => Value::binary(*op, part(0)?, part(1)?),
            Ex::Call(function, ..) => {
                let mut values: Vec<Value> = (0..parts.len()).map(part).collect::<Read<_>>()?;
                let op = match function.as_str() {
                    "min" => Some(Op::Min),
                    "max" => Some(Op::Max),
                    "pow" => Some(Op::Pow),
                    _ => None,
                };
                match (op, values.len()) {
                    (Some(op), 2) => {
                        let second = values.remove(1);
                        Value::binary(op, values.remove(0), second)
                    }
                    _ => Value::Call(*function, values),
                }
            }
        };
        Ok(if here.is_empty() { value } else { Value::Reduce(Reduction::Sum, here, Box::new(value)) })
    }

    fn reading(&self, access: &Access) -> KernelRead {
        let at = access.at.iter().map(|variable| match &variable.window {
            None => Index::Name(apart::index(variable.name.as_str())),
            Some([low, _, step]) => low.clone() + step.clone() * Index::Name(apart::index(variable.name.as_str())),
        });
        KernelRead { tensor: self.place(access.tensor), at: at.collect(), span: access.span, reading: READING }
    }
}

/// The indices of an expression that no sum in it binds, in the order of their first use.
fn free_indices(ex: &Ex, bound: &mut Vec<Name>, free: &mut Vec<Name>) {
    match ex {
        Ex::Number(_) => {}
        Ex::Access(access) => {
            for variable in &access.at {
                if !bound.contains(&variable.name) && !free.contains(&variable.name) {
                    free.push(variable.name);
                }
            }
        }
        Ex::Neg(a) => free_indices(a, bound, free),
        Ex::Sum(index, a) => {
            bound.push(*index);
            free_indices(a, bound, free);
            bound.pop();
        }
        Ex::Binary(_, a, b, _) => {
            free_indices(a, bound, free);
            free_indices(b, bound, free);
        }
        Ex::Call(_, parts, _) => parts.iter().for_each(|part| free_indices(part, bound, free)),
    }
}
