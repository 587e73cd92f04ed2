//! What programs mean at given sizes, and side conditions by trying all values.

use certen_core::domain::{Element, Exact, Field, Machine, Rational, Scalar, splitmix};
use certen_core::{Domain, ElemType, EvalError, Evaluator, Program, Tensor, parse_program};
use certen_derive::Law;
use certen_index::{parse_cond, parse_ix};
use certen_syntax::{Cursor, Diagnostics, Name, Sources, lex};

use crate::template::Instance;

/// Sizes: none, one, primes, less and more rows than columns; the third is at most the second.
pub const RUNS: [[i64; 3]; 7] = [[0, 0, 0], [1, 1, 0], [1, 1, 1], [2, 3, 1], [3, 2, 2], [2, 5, 3], [3, 7, 7]];
const SIZES: [&str; 3] = ["s1", "s2", "s3"];
/// Sizes at which only conditions are looked at: such as hold for small numbers only.
const LARGER: [[i64; 3]; 3] = [[7, 8, 2], [13, 11, 6], [23, 6, 5]];

/// A program whose result is a term for each index `u` of a range.
pub fn program(term: &str, elem: &str) -> Result<Program, String> {
    let text = format!(
        "core t\nsize s1, s2, s3\nwhere s1 >= 0, s2 >= 0, s3 >= 0, s3 <= s2\ninput ta : {elem}[s1, s2]\ninput tb : {elem}[s2]\n\
         input tc : {elem}[2, s2, 3]\ninput ts : {elem}\nresult = gen u in 0..s1. {term}\noutput result\n"
    );
    let mut sources = Sources::new();
    let file = sources.add("t.core", text.as_str());
    parse_program(&sources, file).map_err(|errors| {
        let messages: Vec<String> = errors.iter().map(|error| error.message.clone()).collect();
        format!("{}\n{text}", messages.join("; "))
    })
}

fn value(run: &[i64; 3], name: Name) -> Option<i64> {
    if name.as_str() == "u" {
        return Some(run[0] - 1);
    }
    SIZES.iter().position(|size| *size == name.as_str()).map(|at| run[at])
}

fn evaluate<D: Domain>(
    program: &Program,
    domain: &D,
    run: &[i64; 3],
    element: &dyn Fn(u64, ElemType) -> D::Value,
) -> Result<Tensor<D::Value>, EvalError> {
    let mut inputs = Vec::new();
    for (number, input) in program.inputs.iter().enumerate() {
        let shape = input.ty.shape_at(&|name| value(run, name))?;
        let count: usize = shape.iter().product();
        let data = (0..count).map(|at| element(((number as u64) << 32) + at as u64, input.ty.elem)).collect();
        inputs.push((input.name, Tensor::new(shape, data).ok_or(EvalError::Memory)?));
    }
    let names = SIZES.iter().zip(run).map(|(name, size)| (Name::new(name), *size));
    // A program of which `u` is a size is looked at where that is as large as can be.
    let sizes = names.chain([(Name::new("u"), run[0] - 1)]).filter(|(name, _)| program.sizes.contains(name));
    let outputs = Evaluator::new(program, domain, sizes, inputs)?.with_fuel(3_000_000).run()?;
    outputs.into_iter().next().map(|(_, tensor)| tensor).ok_or(EvalError::Memory)
}

/// Machine numbers: small integers, and floats of which every sum and product rounds. If that is asked for, among them
/// are infinities, NaNs and negative zeros, and integers at both ends of their type, of which sums and products wrap.
fn machine(at: u64, elem: ElemType, planted: bool) -> Scalar {
    let mixed = splitmix(at);
    let whole = (mixed >> 8) as i64 % 23 - 11;
    let special = [f64::INFINITY, f64::NAN, -0.0, f64::NEG_INFINITY, 1e300];
    match elem.is_float() {
        true if planted && mixed.is_multiple_of(3) => {
            Scalar::from_f64(special[(mixed >> 8) as usize % special.len()], elem)
        }
        true => Scalar::from_f64(whole as f64 / 7.0, elem),
        false if planted && mixed.is_multiple_of(3) => {
            let (least, most) =
                if elem == ElemType::I32 { (i32::MIN.into(), i32::MAX.into()) } else { (i64::MIN, i64::MAX) };
            Scalar::from_i64([most, least, most - 1, least + 1][(mixed >> 8) as usize % 4], elem)
        }
        false => Scalar::from_i64(whole, elem),
    }
}

/// Whether two programs differ at some sizes, and how. Exact laws keep every bit of machine numbers, also of
/// infinities and NaNs; those of a ring are compared in the prime field, or where values have an order, in the
/// rationals. Integers wrap, which is a ring: they are machine numbers always.
pub fn difference(left: &Program, right: &Program, elem: &str, law: Law) -> Option<String> {
    let ordered = |program: &Program| {
        let text = program.to_string();
        ["min(", "max(", "minimum", "maximum"].iter().any(|word| text.contains(word))
    };
    let ordered = ordered(left) || ordered(right);
    // Where `u` is a size, there is one.
    let least = if left.sizes.contains(&Name::new("u")) { 1 } else { 0 };
    RUNS.iter().filter(|run| run[0] >= least).find_map(|run| {
        if law == Law::Exact || !elem.starts_with('f') {
            [true, false].into_iter().find_map(|planted| {
                compare(left, right, &Machine, run, &|at, elem| machine(at, elem, planted), Scalar::same_bits)
            })
        } else if ordered {
            compare(left, right, &Rational, run, &|at, _| Exact::from((splitmix(at) % 13) as i64 - 6), PartialEq::eq)
        } else {
            compare(left, right, &Field { seed: 7 }, run, &|at, _| Element::reduce(splitmix(at)), PartialEq::eq)
        }
    })
}

fn compare<D: Domain>(
    left: &Program,
    right: &Program,
    domain: &D,
    run: &[i64; 3],
    element: &dyn Fn(u64, ElemType) -> D::Value,
    same: fn(&D::Value, &D::Value) -> bool,
) -> Option<String> {
    let [a, b] = [left, right].map(|program| evaluate(program, domain, run, element));
    let (a, b) = match (a, b) {
        (Ok(a), Ok(b)) => (a, b),
        // A minimum of nothing has no value on either side.
        (Err(EvalError::EmptyReduction), Err(EvalError::EmptyReduction)) => return None,
        (a, b) => return Some(format!("at {run:?}: {:?} and {:?}", a.err(), b.err())),
    };
    if a.shape() != b.shape() {
        return Some(format!("at {run:?}: shapes {:?} and {:?}", a.shape(), b.shape()));
    }
    let at = a.data().iter().zip(b.data()).position(|(a, b)| !same(a, b))?;
    Some(format!("at {run:?}, element {at}: {:?} and {:?}", a.data()[at], b.data()[at]))
}

/// Whether a side condition holds for all sizes that are tried, all values of `u` in its range, and all that it
/// quantifies. What does not speak of `u` has to hold also where there is no `u`, for shapes do not know the context;
/// unless there always is one.
pub fn holds(condition: &str, instance: &Instance, always_u: bool) -> bool {
    let text = instance.fill(condition);
    let mut sources = Sources::new();
    let file = sources.add("condition", text.as_str());
    let tokens = lex(sources.get(file).expect("added"), file, &mut Diagnostics::new());
    let mut cursor = Cursor::new(&tokens);
    let mut forall = None;
    let mut conds = Vec::new();
    if cursor.eat_word("forall") {
        let name = cursor.expect_name("an index").expect("an index").0;
        cursor.expect_word("in").expect("`in`");
        let lo = parse_ix(&mut cursor).expect("a lower bound");
        cursor.expect_punct("..").expect("`..`");
        forall = Some((name, lo, parse_ix(&mut cursor).expect("an upper bound")));
        if !cursor.eat(",") {
            cursor.expect_punct(":").expect("`:`");
        }
    }
    loop {
        conds.push(parse_cond(&mut cursor).unwrap_or_else(|error| panic!("{text}: {}", error.message)));
        if !cursor.eat(":") && !cursor.eat(",") {
            break;
        }
    }
    let goal = conds.pop().expect("a goal");
    let only_with_u = always_u || text.split(|c: char| !c.is_alphanumeric()).any(|word| word == "u");
    RUNS.iter().chain(&LARGER).all(|run| {
        (0..if only_with_u { run[0] } else { 1 }).all(|u| {
            let known = |name: Name| if name.as_str() == "u" { Some(u) } else { value(run, name) };
            let range = match &forall {
                None => 0..1,
                Some((_, lo, hi)) => lo.eval(&known).expect("a value")..hi.eval(&known).expect("a value"),
            };
            range.clone().all(|i| {
                let known = |name: Name| match &forall {
                    Some((bound, ..)) if *bound == name => Some(i),
                    _ => known(name),
                };
                !conds.iter().all(|cond| cond.eval(&known).expect("a truth value"))
                    || goal.eval(&known).expect("a truth value")
            })
        })
    })
}
