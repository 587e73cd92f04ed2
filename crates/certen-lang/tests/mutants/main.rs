//! Mutation test of bounds: what is out of bounds is refused with a counterexample that is one, and nothing else is.
//!
//! Every program in `tests/mutants` and every example is accepted. Each number and name of the index level in it is changed by one, up and
//! down ([`mutate`]). An oracle that knows nothing of the prover ([`trace`]) then walks over every access at small sizes,
//! and says whether the mutant leaves a tensor. The checker must refuse exactly those that do, and the sizes that its
//! message shows must make the oracle find a fault too. What is accepted is run ([`run`]).

mod mutate;
mod padding;
mod run;
mod trace;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use certen_lang::typed::Function;
use certen_lang::{CheckedFile, Library, unproved};
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Sources, Span};
use trace::{Fault, Sizes, What, allowed, trace};

/// What speaks of bounds.
const BOUNDS: [Code; 5] = [Code::E0207, Code::E0238, Code::E0239, Code::E0240, Code::E0241];

/// How many expressions the oracle looks at in one function of a mutant.
const STEPS: u64 = 40_000;

/// What the checker says of a text, and its functions without proofs, if they can be made.
struct Checked {
    found: Vec<Diagnostic>,
    functions: Option<Vec<Function>>,
    /// How it runs, if it is accepted.
    ran: Result<(), String>,
}

fn check(path: &Path, text: &str) -> Checked {
    let mut sources = Sources::new();
    let file = sources.add(path.display().to_string(), text);
    let mut diagnostics = Diagnostics::new();
    let imports = &mut |from: &str, path: &str| {
        let path = Path::new(from).with_file_name("").join(path);
        Ok((path.display().to_string(), fs::read_to_string(path).map_err(|error| error.to_string())?))
    };
    let library = Library::load(&mut sources, file, imports, &mut diagnostics);
    let mut functions = None;
    let mut ran = Ok(());
    if !diagnostics.has_errors() {
        let mut others = Diagnostics::new();
        let made = unproved(&library, &mut others);
        functions = (!others.has_errors()).then_some(made);
        if let Some(mut checked) = CheckedFile::new(library, &mut diagnostics) {
            ran = run::runs(&mut checked);
        }
    }
    if let Some(functions) = &mut functions {
        // Those of the prelude are not looked at, only the calls of them; their places are kept.
        functions.iter_mut().filter(|function| function.span.file != file).for_each(|function| {
            function.body.lets.clear();
            function.body.results.clear();
        });
    }
    Checked { found: diagnostics.into_sorted(), functions, ran }
}

/// Sizes to try: all up to 3, then larger ones that are near each other or 1.
fn sizes(function: &Function) -> Vec<Sizes> {
    let names: Vec<(Name, bool)> = function.sizes.iter().map(|size| (size.name, size.given)).collect();
    let mut all = Vec::new();
    for largest in 0..=8i64 {
        let values: Vec<i64> = if largest <= 3 { (0..=largest).collect() } else { vec![1, largest - 1, largest] };
        let mut tuples: Vec<Sizes> = vec![Vec::new()];
        for (name, given) in &names {
            let least = if *given { [-1].as_slice() } else { &[] };
            let longer = |tuple: &Sizes, value: &i64| {
                let mut tuple = tuple.clone();
                tuple.push((*name, *value));
                tuple
            };
            let next = tuples.iter().flat_map(|tuple| values.iter().chain(least).map(move |value| (tuple, value)));
            tuples = next.map(|(tuple, value)| longer(tuple, value)).collect();
        }
        tuples.retain(|tuple| largest == 0 || tuple.iter().any(|(_, value)| *value == largest));
        all.extend(tuples.into_iter().filter(|tuple| allowed(function, tuple)));
    }
    all
}

/// The first fault at small sizes.
fn brute_force(functions: &[Function]) -> Option<Fault> {
    functions.iter().find_map(|function| {
        let mut steps = STEPS;
        sizes(function).iter().find_map(|sizes| trace(functions, function, sizes, 1, &mut steps).pop())
    })
}

/// `name = number` for each of the names in a note.
fn numbers(note: &str) -> BTreeMap<Name, i64> {
    let mut found = BTreeMap::new();
    for part in note.split([',', ':']) {
        let Some((name, value)) = part.split_once(" = ") else { continue };
        let name = name.rsplit(' ').next().unwrap_or(name);
        if let Ok(value) = value.trim().parse() {
            found.insert(Name::new(name), value);
        }
    }
    found
}

/// `[1, 2]` after a phrase.
fn vector(note: &str, behind: &str) -> Option<Vec<i64>> {
    let from = &note[note.find(behind)? + behind.len()..];
    let inside = from.strip_prefix(" [")?.split(']').next()?;
    inside.split(", ").map(|number| number.parse().ok()).collect()
}

/// Whether a message shows an example.
fn shows_example(found: &Diagnostic) -> bool {
    found.notes.iter().any(|note| note.contains("for example") || note.contains("the access is"))
}

/// Whether what a message shows is so: sizes that the function allows, at which the oracle finds a fault; for an access,
/// that one.
fn replays(functions: &[Function], found: &Diagnostic) -> Result<(), String> {
    let note = found.notes.iter().find(|note| note.contains("the access is") || note.contains(" example where"));
    let shown = note.map(|note| numbers(note)).unwrap_or_default();
    let place: Span = found.primary.as_ref().ok_or("no place")?.span;
    let start = |function: &Function| (function.span.file == place.file).then_some(function.span.start);
    let own = functions.iter().filter_map(start).filter(|start| *start <= place.start).max().ok_or("no function")?;
    let access = note.and_then(|note| Some((vector(note, "the access is")?, vector(note, "and the shape")?)));
    let is_so = |fault: &Fault| match (&access, found.code) {
        // `x[i][j]` is one access to the oracle.
        (Some((index, shape)), _) => match &fault.what {
            What::Access(indices, sizes) => {
                indices.starts_with(index) && sizes == shape && fault.span.start == place.start
            }
            _ => false,
        },
        (None, Code::E0238) => fault.what == What::Leaves,
        // A function on indices is written out where it is called: what it asks for is seen by what it is used for.
        (None, Code::E0239) => matches!(fault.what, What::Called | What::Access(..)),
        (None, Code::E0240) => fault.what == What::Nothing,
        (None, Code::E0241) => fault.what == What::Cut,
        (None, _) => fault.what == What::Amount,
    };
    let mut steps = 100 * STEPS;
    let mut tried = Vec::new();
    // A function that works for any rank is there several times.
    for function in functions.iter().filter(|function| start(function) == Some(own)) {
        let mut all = sizes(function);
        all.push(function.sizes.iter().map(|size| (size.name, 0)).collect());
        // Sizes that the message does not speak of may be anything; those that it does speak of may be large.
        all.iter_mut().flatten().for_each(|(name, value)| *value = shown.get(name).copied().unwrap_or(*value));
        all.retain(|sizes| allowed(function, sizes));
        all.sort();
        all.dedup();
        if all.iter().any(|sizes| trace(functions, function, sizes, usize::MAX, &mut steps).iter().any(is_so)) {
            return Ok(());
        }
        tried.extend(all);
    }
    match tried.is_empty() {
        true => Err("the sizes shown are not allowed".into()),
        false => Err(format!("this is not so at the sizes shown: {tried:?}")),
    }
}

/// The programs in some directories, and what they are called.
fn programs(directories: &[&str]) -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut todo: Vec<PathBuf> = directories.iter().map(|directory| root.join(directory)).collect();
    let mut files = Vec::new();
    while let Some(directory) = todo.pop() {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|ending| ending == "ten") {
                files.push((path.strip_prefix(&root).unwrap().display().to_string(), path));
            }
        }
    }
    files.sort();
    files
}

/// Tiles of 64 become tiles of 2: at the oracle's sizes the others would never fit.
fn small_tiles(text: String) -> String {
    match text.contains("tiles of 64 x 64") {
        true => text.replace("f64", "F").replace("64", "2").replace("66", "4").replace('F', "f64"),
        false => text,
    }
}

/// What the oracle says, and what the checker does.
type Cell = (&'static str, &'static str);

#[test]
#[expect(clippy::print_stdout, reason = "the table is what people want to see")]
fn exactly_what_is_out_of_bounds_is_refused() {
    let files = programs(&["tests/mutants", "examples"]);
    let mut table: BTreeMap<Cell, Vec<String>> = BTreeMap::new();
    let mut wrong = String::new();
    for (name, path) in &files {
        let stated = small_tiles(fs::read_to_string(path).unwrap());
        let text = mutate::without_results(&stated);
        let original = check(path, &text);
        assert!(original.found.is_empty(), "{name} is not accepted: {:#?}", original.found);
        assert_eq!(original.functions.as_deref().and_then(brute_force), None, "{name} is out of bounds");
        for mutant in mutate::mutants(&text) {
            let checked = check(path, &mutant.text);
            let who = format!("{name}: {}", mutant.change);
            let bounds = checked.found.iter().find(|found| BOUNDS.contains(&found.code));
            let other = checked.found.first().filter(|_| bounds.is_none());
            let fault = checked.functions.as_deref().and_then(brute_force);
            let replayed = match (&checked.functions, bounds) {
                (Some(functions), Some(found)) => Some(replays(functions, found)),
                _ => None,
            };
            let oracle = match (&checked.functions, &fault, &replayed) {
                (None, ..) => "no oracle",
                (_, Some(_), _) | (_, _, Some(Ok(()))) => "outside",
                _ => "inside",
            };
            let verdict = match (bounds, other) {
                (Some(_), _) => "refused for bounds",
                (None, Some(_)) => "refused otherwise",
                (None, None) => "accepted",
            };
            let told = || checked.found.iter().map(|f| format!("\n    {} {} {:?}", f.code, f.message, f.notes));
            match (oracle, verdict, replayed) {
                ("outside", "accepted", _) | ("inside", "refused for bounds", _) | ("no oracle", "accepted", _) => {
                    wrong += &format!("{who}: {oracle}, {verdict}: {fault:?}{}\n", told().collect::<String>());
                }
                (_, _, Some(Err(why))) => wrong += &format!("{who}: {why}{}\n", told().collect::<String>()),
                _ => {}
            }
            if let Err(why) = &checked.ran {
                wrong += &format!("{who}: {why}\n");
            }
            let why = other.map_or(String::new(), |found| format!(" {}", found.code));
            table.entry((oracle, verdict)).or_default().push(who + &why);
        }
    }
    let count = |oracle, verdict| table.get(&(oracle, verdict)).map_or(0, Vec::len);
    let verdicts = ["accepted", "refused for bounds", "refused otherwise"];
    let mut shown = format!("{} programs\n{:<12}", files.len(), "");
    verdicts.iter().for_each(|verdict| shown += &format!("{verdict:>20}"));
    for oracle in ["inside", "outside", "no oracle"] {
        shown += &format!("\n{oracle:<12}");
        verdicts.iter().for_each(|verdict| shown += &format!("{:>20}", count(oracle, *verdict)));
    }
    println!("{shown}");
    if std::env::var_os("CERTEN_MUTANTS").is_some() {
        table.iter().for_each(|(cell, mutants)| println!("\n{cell:?}\n{}", mutants.join("\n")));
    }
    assert!(wrong.is_empty(), "{shown}\n\n{wrong}");
    assert!(files.len() >= 30 && count("outside", "refused for bounds") >= 100 && count("inside", "accepted") >= 100);
}

/// What the wrong programs among the tests are told is so, too: every example in a message is one.
#[test]
fn examples_in_messages_are_examples() {
    let (mut replayed, mut wrong) = (0, String::new());
    for (name, path) in programs(&["tests/programs/ten"]) {
        let checked = check(&path, &fs::read_to_string(&path).unwrap());
        let Some(functions) = checked.functions else { continue };
        let shown = checked.found.iter().filter(|found| BOUNDS.contains(&found.code) && shows_example(found));
        for found in shown {
            match replays(&functions, found) {
                Ok(()) => replayed += 1,
                Err(why) => wrong += &format!("{name}: {why}: {} {:?}\n", found.message, found.notes),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(replayed >= 10, "only {replayed} examples were found");
}
