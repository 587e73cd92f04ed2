//! Certificates that were changed are rejected: every field, in every way that a walk over the JSON can think of.
//!
//! Each change is tried as it is, where the seal tells, and with the seal made anew, where the checker has to tell by
//! what the field means. Loops are also changed by a forger who makes everything else anew, tests included; what the
//! checker lets through then has to be as good as the original.

#![allow(clippy::print_stdout, reason = "what was counted is told")]

use std::path::Path;

use certen::road::checker::{Certificate, Obligation, check, obligations, read_nest, seal, tests};
use certen::road::core::domain::{Element, Field};
use certen::road::core::{Evaluator, Parameter, Tensor};
use certen::road::index::{Cond, Facts, Verdict};
use certen::road::loops::{Interpreter, verify};
use certen::{Choice, Module, Name, Options};
use serde_json::{Value, json};

/// Programs with accesses of many kinds: strides, quotients, minima, tails, parallel loops, reductions, locals.
const PROGRAMS: [(&str, Option<&str>); 8] = [
    ("examples/smooth.ten", Some("twice")),
    ("examples/constant.teil", None),
    ("examples/linalg/triangular_solve.ten", None),
    ("examples/images/pyramid.ten", None),
    ("examples/learning/max_pool.ten", None),
    ("examples/atl/tensor_add.ten", Some("split_tensor_add")),
    ("examples/physics/ising.ten", None),
    ("tests/programs/ten/tables/blur.ten", Some("blur")),
];

fn module(path: &str, function: Option<&str>) -> Module {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    Module::from_file(path, &Options { function: function.map(Name::new), ..Options::default() }).unwrap()
}

/// Programs with schedules.
const SCHEDULED: [(&str, Option<&str>, &str); 3] = [
    ("examples/schedules/blur.ten", None, "split(i, 3); compute_at(rows, i.o); parallelize(i.o)"),
    ("examples/linalg/gemm.ten", None, "split(i, 3); split(j, 2); reorder([i.o, j.o, i.i, j.i])"),
    ("examples/fluids/restrict.ten", None, "split(i, 3); parallelize(i.o)"),
];

fn scheduled(path: &str, function: Option<&str>, schedule: &str) -> Module {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let schedule = Choice::named(schedule).unwrap();
    let options = Options { function: function.map(Name::new), schedule, ..Options::default() };
    Module::from_file(path, &options).unwrap()
}

/// All changes of a value, each with a word for people; those of its parts among them.
fn changes(value: &Value) -> Vec<(String, Value)> {
    let mut changed: Vec<(String, Value)> = Vec::new();
    let mut add = |what: &str, value: Value| changed.push((what.into(), value));
    match value {
        Value::Null => add("no longer null", json!(0)),
        Value::Bool(truth) => add("the opposite", json!(!truth)),
        Value::Number(number) => {
            for by in [-1, 1, 1000] {
                number.as_i64().into_iter().for_each(|number| add(&format!("{by:+}"), json!(number + by)));
            }
            add("a text", json!(number.to_string()));
            add("a float", json!(0.5));
            add("huge", json!(u64::MAX));
        }
        Value::String(text) => {
            for (what, changed) in other_texts(text) {
                add(&what, json!(changed));
            }
            add("null", Value::Null);
        }
        Value::Array(items) => {
            add("null", Value::Null);
            for (at, item) in items.iter().enumerate() {
                let mut edited = |what: &str, edit: &dyn Fn(&mut Vec<Value>)| {
                    let mut items = items.clone();
                    edit(&mut items);
                    add(&format!("[{at}] {what}"), items.into());
                };
                edited("removed", &|items| drop(items.remove(at)));
                edited("twice", &|items| items.insert(at, item.clone()));
                if items.get(at + 1).is_some_and(|next| next != item) {
                    edited("after the next", &|items| items.swap(at, at + 1));
                }
                // The inside of long lists is more of the same.
                for (what, changed) in changes(item).into_iter().filter(|_| at < 5 || at + 1 == items.len()) {
                    edited(&what, &|items| items[at] = changed.clone());
                }
            }
        }
        Value::Object(fields) => {
            let mut more = fields.clone();
            more.insert("more".into(), json!(1));
            add("one more field", more.into());
            for (name, item) in fields.iter().filter(|(name, _)| *name != "about") {
                let mut less = fields.clone();
                less.shift_remove(name);
                add(&format!("no {name}"), less.into());
                for (what, changed) in changes(item) {
                    let mut other = fields.clone();
                    other.insert(name.clone(), changed);
                    add(&format!("{name} {what}"), other.into());
                }
            }
        }
    }
    changed
}

fn other_texts(text: &str) -> Vec<(String, String)> {
    let mut found = vec![("longer", format!("{text}x")), ("with a space", format!("{text} "))];
    let mut letters: Vec<char> = text.chars().collect();
    if let Some(first) = letters.first().copied() {
        found.push(("empty", String::new()));
        found.push((
            "with another beginning",
            format!("{}{}", if first == 'i' { 'j' } else { 'i' }, &text[first.len_utf8()..]),
        ));
        letters.pop();
        found.push(("without its end", letters.iter().collect()));
    }
    let mut found: Vec<(String, String)> = found.into_iter().map(|(what, text)| (what.to_string(), text)).collect();
    found.extend(other_numbers(text));
    found.extend(other_lines(text));
    found.retain(|(_, changed)| changed != text);
    found
}

/// The text with each of its numbers, up to some, one larger and one smaller.
fn other_numbers(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let starts = text.char_indices().filter(|(at, c)| {
        c.is_ascii_digit() && !text[..*at].ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
    });
    for (at, _) in starts.take(60) {
        let end = text[at..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |length| at + length);
        let Ok(number) = text[at..end].parse::<i64>() else { continue };
        for other in [number - 1, number + 1] {
            found.push((format!("with {other} for {number}"), format!("{}{other}{}", &text[..at], &text[end..])));
        }
    }
    found
}

/// The text without each of its lines, and with each of them twice.
fn other_lines(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut found = Vec::new();
    for at in (0..lines.len()).filter(|_| lines.len() > 1) {
        found.push((format!("without line {at}"), [&lines[..at], &lines[at + 1..]].concat().concat()));
        found.push((format!("with line {at} twice"), [&lines[..=at], &lines[at..]].concat().concat()));
    }
    found
}

fn sealed(certificate: &Value) -> Value {
    let mut certificate = certificate.clone();
    if let Some(fields) = certificate.as_object_mut()
        && fields.contains_key("seal")
    {
        let seal = seal(fields);
        fields.insert("seal".into(), seal.into());
    }
    certificate
}

#[test]
fn changed_fields_are_rejected() {
    rejected(5);
}

#[test]
#[ignore = "slow"]
fn every_changed_field_is_rejected() {
    rejected(1);
}

/// Tries every so many of the changes.
fn rejected(stride: usize) {
    let plain = PROGRAMS.map(|(path, function)| (path, module(path, function)));
    let scheduled = SCHEDULED.map(|(path, function, schedule)| (path, scheduled(path, function, schedule)));
    let mut count = 0;
    for (path, module) in plain.into_iter().chain(scheduled) {
        let certificate = module.certificate().unwrap();
        let original = certificate.json();
        check(&original.to_string(), module.core()).unwrap();
        check(&certificate.text(), module.core()).unwrap();
        for (what, changed) in changes(&original).into_iter().step_by(stride) {
            let again = sealed(&changed);
            assert!(check(&changed.to_string(), module.core()).is_err(), "{path}: {what}");
            // A changed seal that is made anew is the old one.
            if again != original {
                assert!(check(&again.to_string(), module.core()).is_err(), "{path}: {what}, sealed");
                count += 1;
            }
        }
    }
    println!("{count} changes rejected, with the old seal and with a new one");
    assert!(count > 15_000 / stride, "{count}");
}

#[test]
fn what_is_for_people_does_not_count() {
    let module = module("examples/smooth.ten", Some("smooth"));
    let certificate = module.certificate().unwrap();
    for about in [json!(null), json!({"by": ["me", 7, {"deep": true}]}), json!("text")] {
        let certificate = Certificate { about, ..certificate.clone() };
        check(&certificate.text(), module.core()).unwrap();
    }
    let mut without = certificate.json();
    without.as_object_mut().unwrap().shift_remove("about");
    assert_eq!(check(&without.to_string(), module.core()).unwrap_err().at, "about");
}

#[test]
fn one_certificate_has_one_spelling() {
    let module = module("examples/smooth.ten", Some("smooth"));
    let text = module.certificate().unwrap().json().to_string();
    let twice = text.replacen("{", "{\"certificate\":1,", 1);
    assert!(check(&twice, module.core()).is_err(), "a field that stands there twice");
    assert!(check(&text.replacen(":1,", ":1.0,", 1), module.core()).is_err(), "another spelling of a number");
    assert!(check(&text.replacen("core smooth", "core \\u0073mooth", 1), module.core()).is_err(), "an escape");
    check(&text.replace("],[", "] ,\n\t["), module.core()).unwrap();
    let other = self::module("examples/smooth.ten", Some("twice"));
    assert_eq!(check(&text, other.core()).unwrap_err().at, "core");
}

/// A forger changes the loops and makes seed, tests and seal anew.
#[test]
fn forged_loops_get_through_only_if_they_are_as_good() {
    let (mut rejected, mut accepted) = (0, 0);
    for (path, function) in PROGRAMS {
        let module = module(path, function);
        let original = module.certificate().unwrap();
        let mut texts = other_texts(&original.nest);
        texts.push(("serial".into(), original.nest.replace("parallel for", "for")));
        texts.push(("parallel".into(), original.nest.replace("    for", "    parallel for")));
        for (what, nest) in texts {
            let mut forged = Certificate { nest, ..original.clone() };
            if let Ok(nest) = read_nest(&forged.nest) {
                forged.tests = tests(module.core(), &nest, forged.seed()).unwrap_or_default();
            }
            match check(&forged.text(), module.core()) {
                Err(_) => rejected += 1,
                Ok(_) => {
                    accepted += 1;
                    agrees(&module, &forged.nest).unwrap_or_else(|error| panic!("{path}, {what}: {error}"));
                }
            }
        }
    }
    println!("{rejected} forged loops rejected, {accepted} that are as good accepted");
    assert!(rejected > 300);
}

/// The tests of a certificate may not reach every element of a table, so each has to be one of the program's.
#[test]
fn forged_tables_are_rejected() {
    let module = module("tests/programs/core/tables/in_bounds.core", None);
    let original = module.certificate().unwrap();
    let nest = original.nest.replace("(1.0, 2.0, 3.0)", "(1.0, 2.0, 4.0)");
    assert_ne!(nest, original.nest);
    let tests = tests(module.core(), &read_nest(&nest).unwrap(), original.seed()).unwrap_or_default();
    let rejection = check(&Certificate { nest, tests, ..original }.text(), module.core()).unwrap_err();
    assert_eq!((rejection.at.as_str(), rejection.why.as_str()), ("nest", "the program has no table like K"));
}

/// The checker finds what the verifier finds: in loops that were changed, each refuses what the other refuses.
#[test]
fn checker_and_verifier_agree() {
    let (mut accepted, mut refused, mut differences) = (0, 0, Vec::new());
    let plain = PROGRAMS.map(|(path, function)| module(path, function));
    let scheduled = SCHEDULED.map(|(path, function, schedule)| scheduled(path, function, schedule));
    for module in plain.into_iter().chain(scheduled) {
        let text = module.loops().unwrap().to_string();
        let mut texts = other_texts(&text);
        for (from, to) in
            [("parallel for", "for"), ("for", "parallel for"), ("for", "vector for"), ("<", "<="), ("min", "max")]
        {
            let places = text.match_indices(from).map(|(at, _)| at);
            let changed = places.map(|at| format!("{}{to}{}", &text[..at], &text[at + from.len()..]));
            texts.extend(changed.map(|changed| (format!("{to} for {from}"), changed)));
        }
        for (what, nest) in texts {
            let Ok(nest) = read_nest(&nest) else { continue };
            let verified = verify(&nest).is_empty();
            let checked = obligations(&nest).is_ok_and(|found| found.iter().all(is_proved));
            *(if verified { &mut accepted } else { &mut refused }) += 1;
            if verified != checked {
                differences.push(format!("{what}, verifier {verified}, checker {checked}:\n{nest}"));
            }
        }
    }
    println!("{accepted} changed loops accepted by both, {refused} refused by both");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(accepted > 50 && refused > 200);
}

fn is_proved(obligation: &Obligation) -> bool {
    let mut facts = Facts::new();
    obligation.facts.iter().for_each(|fact| facts.assume(fact.clone()));
    [&obligation.goal, &Cond::never()].into_iter().any(|goal| facts.prove(goal) == Verdict::Yes)
}

/// The verifier accepts loops, and they compute what the program means at sizes that the checker does not try.
fn agrees(module: &Module, nest: &str) -> Result<(), String> {
    let nest = read_nest(nest).map_err(|rejection| rejection.to_string())?;
    if let Some(error) = verify(&nest).first() {
        return Err(error.message.clone());
    }
    let core = module.core();
    let sizes: Vec<(Name, i64)> = core.sizes.iter().enumerate().map(|(at, name)| (*name, 6 + 4 * at as i64)).collect();
    let size = |name| sizes.iter().find(|(size, _)| *size == name).map(|(_, value)| *value);
    let input = |parameter: &Parameter| {
        let shape = parameter.ty.shape_at(&size).unwrap();
        let count: usize = shape.iter().product();
        let tensor = Tensor::new(shape, (0..count).map(|at| Element::reduce(at as u64 * 7919 + 3)).collect());
        (parameter.name, tensor.unwrap())
    };
    let inputs: Vec<_> = core.inputs.iter().map(input).collect();
    let field = Field { seed: 5 };
    let Ok(expected) = Evaluator::new(core, &field, sizes.clone(), inputs.clone()).and_then(Evaluator::run) else {
        return Ok(());
    };
    let found = Interpreter::new(&nest, &field, sizes, inputs).and_then(Interpreter::run).map_err(|e| e.to_string())?;
    let same = expected.iter().zip(&found).all(|((_, expected), (_, found))| expected == found);
    if same { Ok(()) } else { Err("it computes something else".into()) }
}

#[test]
fn hostile_certificates_are_rejected_and_do_no_harm() {
    let module = module("examples/smooth.ten", Some("smooth"));
    let rejected = |text: &str| check(text, module.core()).unwrap_err();
    let good = module.certificate().unwrap().json();
    for text in ["", "{", "[]", "null", "{}", "\u{0}", "{\"certificate\":1}", "\"certificate\""] {
        rejected(text);
    }
    rejected(&"[".repeat(200_000));
    rejected(&format!("{{\"certificate\":{}}}", "[".repeat(100_000)));
    rejected(&format!("{{\"certificate\":{}}}", "9".repeat(100_000)));
    let with = |field: &str, value: Value| {
        let mut json = good.clone();
        json[field] = value;
        sealed(&json).to_string()
    };
    let claim = |witness: Value| json!([{"what": good["bounds"][0]["what"], "witness": witness}]);
    rejected(&with("bounds", Value::Array(vec![json!({}); 100_000])));
    rejected(&with("bounds", claim(Value::Array(vec![json!(["sign", "i"]); 100_000]))));
    rejected(&with("bounds", claim(json!([["either", 4, u64::MAX]]))));
    rejected(&with("bounds", claim(json!([["either", 4, 4_000_000_000u64], ["end", 0]]))));
    rejected(&with("bounds", claim(json!([["given", "i", 4_000_000_000u64], ["end", 0]]))));
    rejected(&with("bounds", claim(json!([["low", "i", "i", 0], ["end", 0]]))));
    rejected(&with("bounds", claim(json!([["low", "i", "i", i64::MIN], ["end", 0]]))));
    rejected(&with("bounds", claim(json!([["high", "i", "i", i64::MAX], ["end", 0]]))));
    rejected(&with("bounds", claim(json!([["min", "i", 0], ["end", 0]]))));
    rejected(&with("bounds", claim(json!([["reached_max", "i"], ["end", 0]]))));
    rejected(&with("bounds", claim(json!([["sum", "i", i64::MAX, 0], ["end", 0]]))));
    rejected(&with("bounds", claim(json!([["given", format!("{}i", "(".repeat(100_000)), 0], ["end", 0]]))));
    rejected(&with("bounds", claim(json!([["given", format!("i{}", "*i".repeat(100_000)), 0], ["end", 0]]))));
    rejected(&with("bounds", claim(json!([["given", "9".repeat(100_000), 0], ["end", 0]]))));
    rejected(&with("nest", json!("loops smooth\n".to_string() + &"if true {\n".repeat(100_000))));
    rejected(&with("nest", json!(format!("loops smooth\noutput y : f64[]\ny = {}1.0\n", "-".repeat(100_000)))));
    rejected(&with("tests", Value::Array(vec![good["tests"][0].clone(); 100_000])));
    rejected(&with(
        "steps",
        json!([{"step": "s", "conditions": [{"what": "w", "status": "proved", "proofs": [
        {"facts": vec!["0 <= n"; 10_000], "goal": "n >= 0", "witness": []}]}]}]),
    ));
    let nest = read_nest("loops f\n").unwrap();
    assert!(obligations(&nest).unwrap().is_empty());
}
