//! What is true of a nest, by brute force: its values at many sizes against the evaluator's, and who touches what.
//!
//! Control and indices of loops do not depend on data, so that a walk over the loops at given sizes meets every access
//! that a run makes. Iterations of a loop that is not serial conflict where one writes what another uses; without such a
//! conflict every order has the same values.

use std::collections::HashMap;

use certen_core::domain::{Element, Exact, Field, Partial, Rational, splitmix};
use certen_core::{Domain, ElemType, EvalError, Evaluator, Fault, Named, Parameter, Program, Tensor, Terms};
use certen_index::{Cond, Facts, Ix, Verdict};
use certen_loops::{Interpreter, LoopProgram, Mode, Stmt, Use, statements};
use certen_syntax::Name;

use crate::draw::Draw;

/// Sizes with their values.
pub type Sizes = Vec<(Name, i64)>;

/// What brute force finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Truth {
    /// The same values at so many points, and no conflict.
    Same(usize),
    /// Another value: where, and which.
    Differs(String),
    /// Two iterations that are not independent.
    Races(String),
    /// An access outside its buffer, or something that is not there.
    Leaves(String),
    /// No point could be compared.
    Nothing,
}

/// What a nest is compared with.
#[derive(Clone, Copy, Debug)]
pub enum Meaning<'a> {
    /// A program, by the reference evaluator.
    Core(&'a Program),
    /// The loops before the first step, by the interpreter.
    Loops(&'a LoopProgram),
}

impl Meaning<'_> {
    fn sizes(&self) -> &[Name] {
        match self {
            Meaning::Core(program) => &program.sizes,
            Meaning::Loops(program) => &program.sizes,
        }
    }

    fn facts(&self) -> &[Cond] {
        match self {
            Meaning::Core(program) => &program.facts,
            Meaning::Loops(program) => &program.facts,
        }
    }

    fn terms(&self) -> &Terms {
        match self {
            Meaning::Core(program) => &program.terms,
            Meaning::Loops(program) => &program.terms,
        }
    }

    fn inputs(&self) -> &[Parameter] {
        match self {
            Meaning::Core(program) => &program.inputs,
            Meaning::Loops(program) => &program.inputs,
        }
    }

    fn run<D: Domain>(&self, domain: &D, sizes: &Sizes, inputs: Named<D::Value>) -> Result<Named<D::Value>, EvalError> {
        let sizes = sizes.iter().copied();
        match self {
            Meaning::Core(program) => Evaluator::new(program, domain, sizes, inputs)?.with_fuel(FUEL).run(),
            Meaning::Loops(program) => Interpreter::new(program, domain, sizes, inputs)?.with_fuel(FUEL).run(),
        }
    }
}

/// Steps of the evaluator and of the interpreter at one point after which it is left out.
const FUEL: u64 = 300_000;

/// Steps of a walk at one point.
const WALK: usize = 100_000;

/// The smallest and largest sizes of those that are all tested. Few sizes may be negative.
const LEAST: i64 = -3;
const MOST: i64 = 6;

/// Sizes to look at, at most so many: all small ones if these are few, else some of them; and some larger ones.
pub fn points(meaning: Meaning<'_>, seed: u64, most: usize) -> Vec<Sizes> {
    let mut draw = Draw::new(seed);
    let count = meaning.sizes().len();
    let allowed = |sizes: &Sizes| {
        let value = |name| sizes.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        meaning.facts().iter().all(|fact| fact.eval(&value).unwrap_or(false))
    };
    let named = |values: &[i64]| -> Sizes { meaning.sizes().iter().copied().zip(values.iter().copied()).collect() };
    let mut known = Facts::new();
    meaning.facts().iter().for_each(|fact| known.assume(fact.clone()));
    let positive = meaning.sizes().iter().filter(|size| {
        let negative = Cond::le(&Ix::var(**size), &Ix::from(-1)).and_then(|cond| cond.not());
        negative.is_ok_and(|goal| known.prove(&goal) == Verdict::Yes)
    });
    let positive: Vec<Name> = positive.copied().collect();
    let ranges: Vec<(i64, usize)> = meaning
        .sizes()
        .iter()
        .map(|size| if positive.contains(size) { 0 } else { LEAST })
        .map(|least| (least, (MOST - least + 1) as usize))
        .collect();
    let all = ranges.iter().fold(1usize, |all, (_, values)| all.saturating_mul(*values));
    let small = |mut at: usize| -> Vec<i64> {
        let value = |(least, values): &(i64, usize)| {
            let value = least + (at % values) as i64;
            at /= values;
            value
        };
        ranges.iter().map(value).collect()
    };
    let mut points: Vec<Sizes> = Vec::new();
    let mut add = |sizes: Sizes| {
        if points.len() < most && allowed(&sizes) && !points.contains(&sizes) {
            points.push(sizes);
        }
    };
    // Larger ones first: there are few of them.
    for larger in [11, 13, 9] {
        let values: Vec<i64> = (0..count).map(|_| *draw.pick(&[larger, 5, 7, 1, larger - 1]).unwrap_or(&1)).collect();
        add(named(&values));
    }
    if all <= most {
        (0..all).for_each(|at| add(named(&small(at))));
    } else {
        (0..4 * most).for_each(|_| add(named(&small(draw.below(all)))));
    }
    if count == 0 {
        add(Vec::new());
    }
    points
}

/// Compares a nest with what a program means.
pub fn truth(meaning: Meaning<'_>, nest: &LoopProgram, points: &[Sizes], seed: u64) -> Truth {
    let (mut same, concurrent) = (0, has_concurrent(&nest.body));
    let ordered = meaning.terms().uses_order();
    for (at, sizes) in points.iter().enumerate() {
        if concurrent && let Err(found) = Walk::run(nest, sizes) {
            return found;
        }
        let salt = splitmix(seed ^ at as u64);
        let field = || {
            compared(meaning, nest, &Partial(Field { seed: 3 }), sizes, |input, position, elem| {
                let bits = splitmix(salt ^ splitmix(((input as u64) << 40) | position as u64));
                Some(if elem == ElemType::Bool { Element::Bool(bits & 1 == 1) } else { Element::reduce(bits) })
            })
        };
        let rational = || {
            compared(meaning, nest, &Partial(Rational), sizes, |input, position, elem| {
                let bits = splitmix(salt ^ splitmix(((input as u64) << 40) | position as u64));
                Some(if elem == ElemType::Bool {
                    Exact::Bool(bits & 1 == 1)
                } else {
                    Exact::from((bits % 7) as i64 - 3)
                })
            })
        };
        let found = match ordered && at % 2 == 1 {
            true => rational().or_else(field),
            false => field(),
        };
        match found {
            Some(Ok(())) => same += 1,
            Some(Err(found)) => return found,
            None => {}
        }
    }
    if same == 0 { Truth::Nothing } else { Truth::Same(same) }
}

/// Compares at one point; nothing if one of both takes too long there, or has no value in this domain.
fn compared<D: Domain>(
    meaning: Meaning<'_>,
    nest: &LoopProgram,
    domain: &D,
    sizes: &Sizes,
    element: impl Fn(usize, usize, ElemType) -> D::Value,
) -> Option<Result<(), Truth>> {
    let size = |name| sizes.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let mut inputs = Vec::new();
    for (at, input) in meaning.inputs().iter().enumerate() {
        let shape = input.ty.shape_at(&size).ok()?;
        let count = shape.iter().product();
        let data = (0..count).map(|position| element(at, position, input.ty.elem)).collect();
        inputs.push((input.name, Tensor::new(shape, data)?));
    }
    let expected = meaning.run(domain, sizes, inputs.clone()).ok()?;
    let interpreter = Interpreter::new(nest, domain, sizes.iter().copied(), inputs);
    let found = match interpreter.and_then(|interpreter| interpreter.with_fuel(4 * FUEL).run()) {
        Ok(found) => found,
        Err(EvalError::Fuel | EvalError::Memory) => return None,
        Err(EvalError::Fault(Fault::Unsupported(_) | Fault::TooLarge)) => return None,
        Err(error) => return Some(Err(Truth::Leaves(format!("{error} at {}", shown(sizes))))),
    };
    for ((name, expected), (_, found)) in expected.iter().zip(&found) {
        if let Some(position) = (0..expected.data().len()).find(|at| expected.data().get(*at) != found.data().get(*at))
        {
            let at = expected.shape();
            let text = format!(
                "{name} of shape {at:?}, element {position}: {:?} instead of {:?} at {}",
                found.data().get(position),
                expected.data()[position],
                shown(sizes)
            );
            return Some(Err(Truth::Differs(text)));
        }
    }
    Some(Ok(()))
}

fn shown(sizes: &Sizes) -> String {
    sizes.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
}

fn has_concurrent(block: &[Stmt]) -> bool {
    statements(block).any(|stmt| matches!(stmt, Stmt::For { mode, .. } if *mode != Mode::Serial))
}

/// Who has touched an element in a loop that is not serial.
struct Touched {
    iteration: i64,
    written: bool,
    /// By more than one iteration.
    shared: bool,
}

/// A loop that is not serial, while it runs.
struct Frame {
    index: Name,
    iteration: i64,
    /// What was made from here on belongs to an iteration.
    first_own: usize,
    touched: HashMap<(usize, Vec<i64>), Touched>,
}

/// A walk over the loops at given sizes.
struct Walk<'a> {
    nest: &'a LoopProgram,
    values: HashMap<Name, i64>,
    /// Buffers and locals by numbers of the walk's own.
    things: HashMap<Name, usize>,
    made: usize,
    frames: Vec<Frame>,
    steps: usize,
}

enum Stop {
    Found(Truth),
    Enough,
}

impl<'a> Walk<'a> {
    fn run(nest: &'a LoopProgram, sizes: &Sizes) -> Result<(), Truth> {
        let values = sizes.iter().copied().collect();
        let mut walk = Walk { nest, values, things: HashMap::new(), made: 0, frames: Vec::new(), steps: 0 };
        nest.inputs.iter().chain(&nest.outputs).for_each(|parameter| walk.make(parameter.name));
        match walk.block(&nest.body) {
            Err(Stop::Found(Truth::Races(text))) => Err(Truth::Races(format!("{text} at {}", shown(sizes)))),
            Err(Stop::Found(found)) => Err(found),
            Ok(()) | Err(Stop::Enough) => Ok(()),
        }
    }

    fn make(&mut self, name: Name) {
        self.things.insert(name, self.made);
        self.made += 1;
    }

    fn at(&self, ix: &Ix) -> Result<i64, Stop> {
        ix.eval(&|name| self.values.get(&name).copied())
            .map_err(|error| Stop::Found(Truth::Leaves(format!("{ix}: {error}"))))
    }

    fn block(&mut self, block: &'a [Stmt]) -> Result<(), Stop> {
        for stmt in block {
            self.steps += 1;
            if self.steps > WALK {
                return Err(Stop::Enough);
            }
            match stmt {
                Stmt::Alloc(name, _) => self.make(*name),
                Stmt::Swap(a, b) => {
                    for name in [*a, *b] {
                        self.touch(name, &[-1], true)?;
                    }
                    if let (Some(one), Some(two)) = (self.things.get(a).copied(), self.things.get(b).copied()) {
                        self.things.extend([(*a, two), (*b, one)]);
                    }
                }
                Stmt::For { index, range, mode, body } => {
                    let (lo, hi) = (self.at(&range.lo)?, self.at(&range.hi)?);
                    let concurrent = *mode != Mode::Serial;
                    if concurrent {
                        let (iteration, first_own) = (lo, self.made);
                        let touched = HashMap::new();
                        self.frames.push(Frame { index: *index, iteration, first_own, touched });
                    }
                    for iteration in lo..hi {
                        self.values.insert(*index, iteration);
                        if concurrent && let Some(frame) = self.frames.last_mut() {
                            frame.iteration = iteration;
                        }
                        self.block(body)?;
                    }
                    self.values.remove(index);
                    if concurrent {
                        self.frames.pop();
                    }
                }
                Stmt::If { cond, then, otherwise } => {
                    let holds = cond.eval(&|name| self.values.get(&name).copied());
                    let holds = holds.map_err(|error| Stop::Found(Truth::Leaves(format!("{cond}: {error}"))))?;
                    self.block(if holds { then } else { otherwise })?;
                }
                _ => {
                    let nest = self.nest;
                    for (name, indices, how) in stmt.uses(&nest.terms) {
                        self.access(name, indices, how != Use::Read)?;
                    }
                    if let Stmt::Local { name, .. } = stmt {
                        self.make(*name);
                    }
                }
            }
        }
        Ok(())
    }

    fn access(&mut self, name: Name, indices: &[Ix], write: bool) -> Result<(), Stop> {
        if self.frames.is_empty() {
            return Ok(());
        }
        let indices = indices.iter().map(|ix| self.at(ix)).collect::<Result<Vec<i64>, _>>()?;
        self.touch(name, &indices, write)
    }

    fn touch(&mut self, name: Name, indices: &[i64], write: bool) -> Result<(), Stop> {
        let Some(&thing) = self.things.get(&name) else { return Ok(()) };
        for frame in self.frames.iter_mut().filter(|frame| thing < frame.first_own) {
            let iteration = frame.iteration;
            let new = || Touched { iteration, written: write, shared: false };
            let touched = frame.touched.entry((thing, indices.to_vec())).or_insert_with(new);
            let other = touched.iteration != iteration || touched.shared;
            if other && (write || touched.written) {
                let text = format!(
                    "{name}{indices:?} is used by the iterations {} and {iteration} of {}",
                    touched.iteration, frame.index
                );
                return Err(Stop::Found(Truth::Races(text)));
            }
            touched.shared |= other;
            touched.written |= write;
        }
        Ok(())
    }
}
