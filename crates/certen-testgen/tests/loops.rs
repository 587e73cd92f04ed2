//! Loops compute what Core means, exactly; every access of theirs is proved in bounds; their text can be read back.

mod common;

use certen_core::domain::{Element, Exact, Field, Partial, Rational};
use certen_core::{Domain, Tensor};
use certen_loops::{FpMode, Interpreter, LoopProgram, lower, parallelise, parse_loops, verify};
use certen_syntax::{Name, Sources};
use certen_testgen::{Sample, cases};
use common::{FUEL, checked, core, evaluate, for_samples};

fn lowered(sample: &Sample) -> LoopProgram {
    let loops = parallelise(
        lower(&core(&checked(sample)), FpMode::Relaxed).expect("elaborated programs can be lowered"),
        |_| true,
    );
    let complaints = verify(&loops);
    assert!(complaints.is_empty(), "{loops}\n{complaints:?}");
    loops
}

fn agree<D: Domain>(seed: u8, domain: &D, element: impl Fn(&Sample, usize) -> Tensor<D::Value>) {
    for_samples(cases(), seed, |sample| {
        let loops = lowered(sample);
        let given = |at: usize| (Name::new(sample.name(at)), element(sample, at));
        let inputs = || sample.inputs().into_iter().map(given).collect::<Vec<_>>();
        let expected = evaluate(&core(&checked(sample)), domain, &sample.sizes(), inputs());
        let interpreter = Interpreter::new(&loops, domain, sample.sizes(), inputs()).expect("a call of the program");
        let found = interpreter.with_fuel(FUEL).run().expect("the loops have values");
        // An output that has the name of an input is called something else here; the order is the same.
        let tensors = |outputs: Vec<(Name, Tensor<D::Value>)>| outputs.into_iter().map(|(_, t)| t).collect::<Vec<_>>();
        assert_eq!(tensors(found), tensors(expected), "{loops}");
    });
}

/// Loops compute whole tensors, Core only what is read: a division by zero must be a value, not a fault.
#[test]
fn loops_agree_with_core_in_rationals() {
    agree(31, &Partial(Rational), |sample, at| sample.elements(at).map(|value| Some(Exact::from(*value))));
}

#[test]
fn loops_agree_with_core_in_the_field() {
    let element = |bits: &u64| Some(Element::reduce(*bits));
    agree(32, &Partial(Field { seed: 3 }), |sample, at| sample.bits(at).map(element));
}

#[test]
fn loops_agree_with_core_with_undefined_values() {
    agree(34, &Partial(Rational), |sample, at| {
        sample.bits(at).map(|bits| (bits % 8 != 0).then(|| Exact::from((bits >> 8) as i64 % 3)))
    });
}

#[test]
fn printing_loops_and_reading_them_gives_the_same_loops() {
    for_samples(cases(), 33, |sample| {
        let loops = lowered(sample);
        let printed = loops.to_string();
        let mut sources = Sources::new();
        let file = sources.add("generated.loops", printed.as_str());
        let again = parse_loops(&sources, file).unwrap_or_else(|errors| panic!("{printed}\n{errors:?}"));
        assert_eq!(again.to_string(), printed);
        assert!(verify(&again).is_empty(), "{printed}");
    });
}
