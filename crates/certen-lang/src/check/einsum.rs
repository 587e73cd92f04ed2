//! Contractions without names for the operands' indices: `einsum("ij,jk->ik", A, B)` and `A @ B`.
//!
//! Both become a comprehension over the indices that stay, with the sum of products over those that do not.

use certen_core::{Binary, ReduceOp, TensorType};
use certen_index::{Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::Checked;
use super::builtin::text_of;
use super::scope::Checker;
use super::types::shape_text;
use super::value::{Draft, Flex, block_expr};
use crate::ast;
use crate::typed::{self, Expr, Kind};

impl Checker<'_, '_> {
    pub fn einsum(&mut self, spec: &ast::Expr, operands: &[ast::Expr], span: Span) -> Checked<Draft> {
        let (inputs, output) = self.letters(spec, operands.len())?;
        let mut drafts = Vec::new();
        let mut sizes: Vec<(char, Ix, usize)> = Vec::new();
        for (at, (letters, operand)) in inputs.iter().zip(operands).enumerate() {
            let draft = self.data(operand)?;
            if draft.rank() != letters.len() {
                let shown: String = letters.iter().collect();
                let text = format!("`{shown}` stands for {}, and this has {}", dimensions(letters.len()), draft.rank());
                let error = Diagnostic::error(Code::E0206, operand.span, text)
                    .note(format!("its shape is {}", shape_text(&draft.expr.ty.shape)));
                return self.fail(error);
            }
            for (letter, size) in letters.iter().zip(draft.expr.ty.shape.iter()) {
                match sizes.iter().find(|(known, ..)| known == letter) {
                    None => sizes.push((*letter, size.clone(), at)),
                    Some((_, known, first)) => {
                        if let verdict @ (Verdict::No(_) | Verdict::Unknown) = self.facts().prove_equal(known, size) {
                            let text = format!("`{letter}` has two sizes, {known} and {size}");
                            let mut error =
                                Diagnostic::error(Code::E0206, operand.span, text).label(format!("here it is {size}"));
                            if let Some(first) = operands.get(*first).filter(|_| *first != at) {
                                error = error.also(first.span, format!("here it is {known}"));
                            }
                            if let Some(clause) = self.equal_clause(known, size) {
                                error = error.help(clause);
                            }
                            if let Verdict::No(sizes) = verdict
                                && !sizes.0.is_empty()
                            {
                                error = error.note(format!("they differ for example where {sizes}"));
                            }
                            return self.fail(error);
                        }
                    }
                }
            }
            drafts.push(draft);
        }
        self.contraction(drafts, &inputs, &output, &sizes, span)
    }

    /// The letters of each operand and of the output.
    fn letters(&mut self, spec: &ast::Expr, operands: usize) -> Checked<(Vec<Vec<char>>, Vec<char>)> {
        let Some(text) = text_of(spec) else {
            return self.error(Code::E0235, spec.span, "the first argument of `einsum` is a text: \"ij,jk->ik\"");
        };
        let malformed = |function: &mut Self, text: String| {
            let error = Diagnostic::error(Code::E0235, spec.span, text).note("for example \"ij,jk->ik\"");
            function.fail(error)
        };
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (inputs, output) = match compact.split_once("->") {
            Some((inputs, output)) => (inputs.to_string(), Some(output.to_string())),
            None => (compact, None),
        };
        let inputs: Vec<Vec<char>> = inputs.split(',').map(|input| input.chars().collect()).collect();
        let letters = inputs.iter().flatten().copied().chain(output.iter().flat_map(|output| output.chars()));
        if let Some(other) = letters.clone().find(|c| !c.is_ascii_alphabetic()) {
            let help = if other == '.' { "; `...` is not in this version" } else { "" };
            return malformed(self, format!("`{other}` is no letter{help}"));
        }
        if inputs.len() != operands {
            return malformed(self, format!("{} operands are described, and {} given", inputs.len(), operands));
        }
        // As in NumPy, what is not written is every letter that occurs once, in alphabetical order.
        let output: Vec<char> = match output {
            Some(output) => output.chars().collect(),
            None => {
                let mut all: Vec<char> = inputs.iter().flatten().copied().collect();
                all.sort_unstable();
                let once = |c: &char| all.iter().filter(|other| *other == c).count() == 1;
                all.iter().copied().filter(once).collect()
            }
        };
        for (at, c) in output.iter().enumerate() {
            if output[..at].contains(c) {
                return malformed(self, format!("`{c}` stands twice in the output"));
            }
            if !inputs.iter().flatten().any(|other| other == c) {
                return malformed(self, format!("`{c}` of the output is in no operand"));
            }
        }
        Ok((inputs, output))
    }

    /// The sum of products over the letters that are not in the output.
    fn contraction(
        &mut self,
        mut drafts: Vec<Draft>,
        inputs: &[Vec<char>],
        output: &[char],
        sizes: &[(char, Ix, usize)],
        span: Span,
    ) -> Checked<Draft> {
        let Some((first, others)) = drafts.split_first_mut() else {
            return self.error(Code::E0235, span, "`einsum` needs an operand");
        };
        for other in others {
            self.unify(first, other, span)?;
        }
        let (elem, flex) = (first.elem(), first.flex);
        if Binary::Mul.result(elem).is_none() {
            return self.error(Code::E0232, span, format!("products of elements of type {elem}"));
        }
        let mut lets = Vec::new();
        let mut operands = Vec::new();
        for mut draft in drafts {
            self.settle(&mut draft, elem, flex)?;
            if flex != Flex::No {
                draft.flex = Flex::No;
            }
            let (own, draft) = self.named(draft, "x");
            lets.extend(own);
            operands.push(draft.expr);
        }
        let names: Vec<(char, Name)> =
            sizes.iter().map(|(c, ..)| (*c, self.fresh(Name::new(&c.to_string())))).collect();
        let index = |c: char| names.iter().find(|(known, _)| *known == c).map(|(_, name)| *name);
        let indices = inputs.iter().map(|letters| letters.iter().filter_map(|c| index(*c)).map(Ix::var).collect());
        let factors = operands.into_iter().zip(indices).map(|(operand, indices)| element(operand, indices, span));
        let scalar = TensorType::scalar(elem);
        let product = factors.reduce(|product, factor| {
            let kind = Kind::Binary(Binary::Mul, Box::new(product), Box::new(factor));
            Expr { kind, ty: scalar.clone(), span }
        });
        let Some(product) = product else {
            return self.error(Code::E0235, span, "`einsum` needs an operand");
        };
        let over = |letters: &[char], body: Expr| -> Expr {
            if letters.is_empty() {
                return body;
            }
            let size = |c: &char| sizes.iter().find(|(known, ..)| known == c).map(|(_, size, _)| size.clone());
            let shape: Vec<Ix> = letters.iter().filter_map(size).collect();
            let range = |upper: &Ix| typed::Range {
                lower: Ix::from(0),
                upper: upper.clone(),
                lower_written: false,
                upper_written: true,
            };
            let ranges = shape.iter().map(range).collect();
            let pattern = letters.iter().filter_map(|c| index(*c)).map(typed::Slot::Index).collect();
            let partition = typed::Partition { pattern, ranges, body };
            Expr { kind: Kind::Comprehension(vec![partition]), ty: TensorType::new(elem, shape), span }
        };
        let summed: Vec<char> = sizes.iter().map(|(c, ..)| *c).filter(|c| !output.contains(c)).collect();
        let inner = over(&summed, product);
        let body = if summed.is_empty() {
            inner
        } else {
            let kind = Kind::Reduce(ReduceOp::Sum, (0..summed.len()).collect(), Box::new(inner));
            Expr { kind, ty: scalar, span }
        };
        let made = over(output, body);
        self.release(&names.iter().map(|(_, name)| *name).collect::<Vec<_>>());
        Ok(Draft::fixed(block_expr(lets, made)))
    }

    /// `A @ B`: the last dimension of the first is summed with the first of a vector, or the last but one of a matrix.
    pub fn matrix_product(&mut self, left: Draft, right: Draft, span: Span) -> Checked<Draft> {
        let (inputs, output): (&[&str; 2], &str) = match (left.rank(), right.rank()) {
            (1, 1) => (&["k", "k"], ""),
            (2, 1) => (&["ik", "k"], "i"),
            (1, 2) => (&["k", "kj"], "j"),
            (2, 2) => (&["ik", "kj"], "ij"),
            (a, b) => {
                let text = format!("`@` is of matrices and vectors, not of tensors with {a} and {b} dimensions");
                let error = Diagnostic::error(Code::E0206, span, text)
                    .help("for batches: `einsum(\"bik,bkj->bij\", x, y)`, or a comprehension over the batch");
                return self.fail(error);
            }
        };
        let inner = (left.expr.ty.shape[left.rank() - 1].clone(), right.expr.ty.shape[0].clone());
        if let verdict @ (Verdict::No(_) | Verdict::Unknown) = self.facts().prove_equal(&inner.0, &inner.1) {
            let mut error = Diagnostic::error(Code::E0206, span, "the inner sizes of a matrix product differ")
                .also(left.expr.span, format!("this has the shape {}", shape_text(&left.expr.ty.shape)))
                .also(right.expr.span, format!("this has the shape {}", shape_text(&right.expr.ty.shape)));
            if let Verdict::No(sizes) = verdict
                && !sizes.0.is_empty()
            {
                error = error.note(format!("{} is not {} for example where {sizes}", inner.0, inner.1));
            }
            let last = &right.expr.ty.shape[right.rank() - 1];
            if right.rank() == 2 && self.facts().prove_equal(&inner.0, last) == Verdict::Yes {
                error = error.help("the right operand fits if it is transposed: `transpose(…)`");
            } else if let Some(clause) = self.equal_clause(&inner.0, &inner.1) {
                error = error.help(clause);
            }
            return self.fail(error);
        }
        let inputs: Vec<Vec<char>> = inputs.iter().map(|letters| letters.chars().collect()).collect();
        let mut sizes: Vec<(char, Ix, usize)> = Vec::new();
        for (at, (letters, draft)) in inputs.iter().zip([&left, &right]).enumerate() {
            for (letter, size) in letters.iter().zip(draft.expr.ty.shape.iter()) {
                if !sizes.iter().any(|(known, ..)| known == letter) {
                    sizes.push((*letter, size.clone(), at));
                }
            }
        }
        let output: Vec<char> = output.chars().collect();
        self.contraction(vec![left, right], &inputs, &output, &sizes, span)
    }
}

/// An element of an operand.
fn element(operand: Expr, indices: Vec<Ix>, span: Span) -> Expr {
    let ty = TensorType::scalar(operand.ty.elem);
    let kind = match operand.kind {
        _ if indices.is_empty() => return operand,
        Kind::Select(base, before) => Kind::Select(base, before.into_iter().chain(indices).collect()),
        _ => Kind::Select(Box::new(operand), indices),
    };
    Expr { kind, ty, span }
}

fn dimensions(count: usize) -> String {
    if count == 1 { "1 dimension".into() } else { format!("{count} dimensions") }
}
