//! Bound inference written out: the rewrite `[[_]]_BI` of *Tensor Comprehensions in SaC*, Sec. 5.2.
//!
//! A partition `i -> e` becomes `i -> e | l <= i < u`. What a generator leaves out is found from the selections in e:
//! `find-shapes` takes for each index the smallest of the sizes that it selects in; the lower bound is `u * 0`; in a
//! partition that is not the last, what cannot be found is `.`, the end of the result's range. The checker does this
//! inference, because the types of all expressions around depend on it, and leaves its result in
//! [`Range`](crate::typed::Range); this pass marks every end as written, so that from here on all of them are shown.

use crate::tree::each_expr;
use crate::typed::{Kind, Program};

/// Writes out the bounds of all indices.
pub fn run(program: &mut Program) {
    for function in &mut program.functions {
        each_expr(&mut function.body, &mut |expr| {
            if let Kind::Comprehension(partitions) = &mut expr.kind {
                for range in partitions.iter_mut().flat_map(|partition| &mut partition.ranges) {
                    (range.lower_written, range.upper_written) = (true, true);
                }
            }
        });
    }
}
