//! Loops of which a condition picks one iteration.
//!
//! `for j in 0..n { if j == d + i + 1 { … } }` does something in one iteration at most, that in which `j` is `d + i + 1`. It becomes
//! that iteration, under the condition that the loop comes to it. So a diagonal of a matrix, as those on which tables of dynamic
//! programs are filled, takes as many steps as it has elements, not as many as the matrix.
//!
//! Applies: to loops that have nothing in them but such a condition, an equation in which the index stands once, perhaps beside
//! others, and nothing where it does not hold. Guarantees: the same iterations do the same things in the same order.

use certen_core::TypeError;
use certen_index::{Cond, Ix};
use certen_loops::{LoopProgram, Stmt, declared_at_top, statements, within};
use certen_syntax::Name;

use crate::edit::Edit;

/// The program without loops for single iterations; none if there are no such loops, or an expression does not fit in 64 bits.
pub fn solved(program: &LoopProgram) -> Option<LoopProgram> {
    if !statements(&program.body).any(|stmt| equation(stmt).is_some()) {
        return None;
    }
    let mut program = program.clone();
    let body = std::mem::take(&mut program.body);
    program.body = block(&mut program, body).ok()?;
    Some(program)
}

/// What a loop of a single iteration is: its index there, the condition under which it comes to that, and what it does.
struct Single<'a> {
    index: Name,
    at: Ix,
    when: Cond,
    then: &'a [Stmt],
}

/// The single iteration of a loop.
fn equation(stmt: &Stmt) -> Option<Single<'_>> {
    let Stmt::For { index, range, body, .. } = stmt else { return None };
    let [Stmt::If { cond, then, otherwise }] = body.as_slice() else { return None };
    // What is declared would be so beside other things.
    if !otherwise.is_empty() {
        return None;
    }
    let parts = match cond {
        Cond::And(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    let (chosen, at) = parts.iter().enumerate().find_map(|(number, part)| {
        let Cond::Eq(ix) = part else { return None };
        let (step, rest) = ix.linear_in(*index).filter(|(step, rest)| step.abs() == 1 && !rest.mentions(*index))?;
        Some((number, rest.scale(-step).ok()?))
    })?;
    let rest = parts.iter().enumerate().filter(|(number, _)| *number != chosen).map(|(_, part)| part.clone());
    let when = within(*index, range).ok()?.and(rest.fold(Cond::always(), Cond::and));
    let when = when.substitute(&|name| (name == *index).then(|| at.clone())).ok()?;
    let is_whole = when.is_always() && declared_at_top(then).next().is_some();
    (!is_whole).then_some(Single { index: *index, at, when, then })
}

fn block(program: &mut LoopProgram, stmts: Vec<Stmt>) -> Result<Vec<Stmt>, TypeError> {
    let mut done = Vec::with_capacity(stmts.len());
    for mut stmt in stmts {
        if let Some(Single { index, at, when, then }) = equation(&stmt) {
            let then = Edit::index(index, at).block(program, then)?;
            let then = block(program, then)?;
            match when.is_always() {
                true => done.extend(then),
                false => done.push(Stmt::If { cond: when, then, otherwise: Vec::new() }),
            }
            continue;
        }
        stmt.map_blocks(|_, inner| block(program, inner))?;
        done.push(stmt);
    }
    Ok(done)
}
