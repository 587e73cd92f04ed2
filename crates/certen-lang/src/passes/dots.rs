//! Eliminating dots: the rewrite `[[_]]_ED` of *Tensor Comprehensions in SaC*, Sec. 5.3.
//!
//! `[i, ., k] -> e | l <= [i, k] < u` becomes `[i, t1, k] -> e[t1] | l' <= [i, t1, k] < u'`: each dot gets a fresh
//! index, `merge` puts it and its range, `0 <= t < shape(e)[j]`, into the dot's place, and the body is selected at the
//! fresh indices. `...` stands for as many dots as there are dimensions left (`merge-d`); ranks are known here, so it
//! is the same rule with a number. Dots take the body's dimensions from left to right.
//!
//! The paper finds `shape(e)` by putting zeros for the indices; here it is part of the body's type.

use certen_core::TensorType;
use certen_index::Ix;
use certen_syntax::Name;

use super::bound_names;
use crate::tree::each_expr;
use crate::typed::{Expr, Kind, Partition, Program, Range, Slot};

/// Replaces every dot by an index.
pub fn run(program: &mut Program) {
    for function in &mut program.functions {
        let mut taken = bound_names(function);
        let mut count = 0;
        let mut fresh = || {
            let name = Name::numbered("t", &mut count, |name| taken.contains(&name));
            taken.insert(name);
            name
        };
        each_expr(&mut function.body, &mut |expr| {
            if let Kind::Comprehension(partitions) = &mut expr.kind {
                partitions.iter_mut().for_each(|partition| eliminate(partition, &mut fresh));
            }
        });
    }
}

fn eliminate(partition: &mut Partition, fresh: &mut dyn FnMut() -> Name) {
    if !partition.pattern.iter().any(|slot| matches!(slot, Slot::Dots(_))) {
        return;
    }
    let (mut pattern, mut ranges, mut selected) = (Vec::new(), Vec::new(), Vec::new());
    let mut own = std::mem::take(&mut partition.ranges).into_iter();
    let mut sizes = partition.body.ty.shape.iter();
    for slot in &partition.pattern {
        match slot {
            Slot::Index(_) => {
                pattern.push(*slot);
                ranges.extend(own.next());
            }
            Slot::Dots(dots) => {
                for size in sizes.by_ref().take(*dots) {
                    let name = fresh();
                    pattern.push(Slot::Index(name));
                    selected.push(Ix::var(name));
                    let (lower, upper) = (Ix::from(0), size.clone());
                    ranges.push(Range { lower, upper, lower_written: true, upper_written: true });
                }
            }
        }
    }
    let ty = TensorType::new(partition.body.ty.elem, sizes.cloned().collect::<Vec<Ix>>());
    (partition.pattern, partition.ranges) = (pattern, ranges);
    if !selected.is_empty() {
        let span = partition.body.span;
        // A placeholder: it is replaced at once.
        let nothing = Expr { kind: Kind::Index(Ix::from(0)), ty: TensorType::scalar(ty.elem), span };
        let body = std::mem::replace(&mut partition.body, nothing);
        partition.body = Expr { kind: Kind::Select(Box::new(body), selected), ty, span };
    }
}
