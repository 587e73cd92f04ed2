//! A property: the tree of a loop expression and the loops that its steps make are the same nest, name by name and
//! bound by bound, for random loop expressions.

use std::fmt::Write as _;

use certen_core::ElemType;
use certen_index::Ix;
use certen_loops::{FpMode, LoopProgram, Site, Stmt, sites};
use certen_syntax::{Diagnostics, Name, Sources, render_all};

use crate::front::read;
use crate::nest::{Item, Mode};
use crate::{nests, to_core};

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % most as u64) as usize
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

/// The beginning of a random program: three statements of two or three dimensions, and their nests.
fn statements(random: &mut Random) -> String {
    let sizes: Vec<&str> = (0..3).map(|_| random.one_of(&["N", "M", "8", "7", "1", "3", "12", "5"])).collect();
    let rank = 2 + random.below(2);
    let shape = sizes[..rank].join(", ");
    let tensors = ["A", "C", "D", "E"].map(|name| format!("{name} = tensor([{shape}])\n"));
    let mut text = tensors.concat();
    for target in ["C", "D", "E"] {
        let mut names = ["i", "j", "k"];
        names.rotate_left(random.below(3));
        if random.below(4) == 0 {
            names.swap(0, 1);
        }
        let list = names[..rank].join(", ");
        let _ = writeln!(text, "{target} = add(A, A, [[{list}], [{list}]] -> [{list}])");
    }
    text + "l0 = build(C)\nl1 = build(D)\nl2 = build(E)\n"
}

/// A random loop expression, which may be malformed.
fn expression(random: &mut Random, from: usize, count: usize) -> String {
    let (r, v) = (1 + random.below(4), 1 + random.below(5));
    match random.below(15) {
        0 | 1 => format!("stripmine(l{from}, {r}, {v})"),
        2 | 3 => format!("interchange(l{from}, {r}, {})", r + 1 + random.below(2)),
        4 | 5 => format!("fuse_outer(l{from}, l{}, {})", random.below(count), 1 + random.below(3)),
        6 | 7 => format!("fuse_inner(l{from}, {r})"),
        8 => format!("unroll(l{from}, {r})"),
        9 => format!("unroll(l{from}, {r}, {v})"),
        10 => format!("unroll_and_jam(l{from}, {r}, {v})"),
        11 => format!("{}(l{from}, {})", random.one_of(&["tile", "peel"]), 1 + random.below(3)),
        12 => format!("interchange_n(l{from}, {r}, {})", random.below(3)),
        13 => format!("stripmine_n(l{from}, {}, {v})", 1 + random.below(2)),
        _ => format!("skew(l{from}, {r}, {}, {})", r + 1, random.one_of(&["1", "2", "-1"])),
    }
}

fn front(text: &str) -> Result<crate::front::Front, String> {
    let mut sources = Sources::new();
    let file = sources.add("t.teml", text);
    let mut diagnostics = Diagnostics::new();
    let front = read(&sources, file, Name::new("t"), ElemType::F64, &mut diagnostics);
    let errors = diagnostics.into_sorted();
    if let Some(error) = errors.iter().find(|error| error.is_error()) {
        assert!(error.primary.is_some() && error.code.to_string().starts_with("E024"), "{text}{error:?}");
    }
    front.ok_or_else(|| render_all(&sources, &errors, false))
}

/// A random program: as many loop expressions, one on the other, as fit.
fn program(random: &mut Random) -> String {
    let mut text = statements(random);
    let mut count = 3;
    for _ in 0..4 + random.below(16) {
        // Mostly the last nest, so that expressions pile up.
        let from = if random.below(6) == 0 { random.below(count) } else { count - 1 };
        let next = format!("{text}l{count} = {}\n", expression(random, from, count));
        if front(&next).is_ok() {
            text = next;
            count += 1;
        }
    }
    format!("{text}codegen(l{})\n", count - 1)
}

/// A loop or statement: its depth, and what it is.
type Line = (usize, String);

fn range(lo: &Ix, hi: &Ix) -> String {
    format!("{lo}..{hi}")
}

/// The loops and statements of some stages.
fn of_program(program: &LoopProgram, stages: &[Name]) -> Vec<Line> {
    let is_meant = |site: &Site<'_>| {
        site.nest.is_some_and(|nest| stages.contains(&nest)) && site.around.iter().all(|around| around.block == 0)
    };
    let mut out = Vec::new();
    for site in sites(&program.body).into_iter().filter(is_meant) {
        let text = match site.stmt {
            Stmt::For { index, range: found, .. } => format!("{index} in {}", range(&found.lo, &found.hi)),
            Stmt::If { cond, .. } => format!("if {cond}"),
            Stmt::Assign { .. } => "statement".into(),
            _ => continue,
        };
        out.push((site.around.len(), text));
    }
    out
}

fn of_tree(items: &[Item], depth: usize, out: &mut Vec<Line>) {
    for item in items {
        match item {
            Item::Label(_) => {}
            Item::Leaf(_) => out.push((depth, "statement".into())),
            Item::Guard(guard) => {
                out.push((depth, format!("if {}", guard.cond)));
                of_tree(&guard.body, depth + 1, out);
            }
            Item::Loop(found) => {
                out.push((depth, format!("{} in {}", found.index, range(&found.lo, &found.hi))));
                of_tree(&found.body, depth + 1, out);
            }
        }
    }
}

/// How many steps make the nest of a program, if it agrees with its tree, or why not.
fn agreement(text: &str) -> Result<usize, String> {
    let front = front(text)?;
    let meaning = to_core::meaning(&front.statements).map_err(|errors| format!("{errors:?}"))?;
    let mut paths = nests::Paths::new(&front.statements, &meaning).map_err(|errors| format!("{errors:?}"))?;
    let mut taken = 0;
    for (route, trees) in front.routes.iter().zip(&front.nests) {
        let mut route = route.clone();
        // What is not in the list of loops is built as it is.
        let listed: Vec<usize> = route.entries.iter().flat_map(|entry| entry.assignments.clone()).collect();
        let rest = (0..front.statements.assignments.len()).filter(|at| !listed.contains(at));
        route.entries.extend(rest.map(|at| crate::assignment::Entry { assignments: vec![at], steps: Vec::new() }));
        let stages: Vec<Name> = listed.iter().map(|&at| front.statements.assignments[at].id).collect();
        let path = paths.path(route).map_err(|errors| format!("{errors:?}"))?;
        let steps: Vec<String> = path.steps.iter().map(|step| step.to_string()).collect();
        let scheduled = certen_schedule::apply(path.loops, &path.steps, FpMode::Relaxed).map_err(|refused| {
            format!("{}\n{:?}\n{}", refused.diagnostic.message, refused.diagnostic.notes, steps.join("; "))
        })?;
        let mut expected = Vec::new();
        of_tree(&trees[0].items, 0, &mut expected);
        let found = of_program(&scheduled.program, &stages);
        if expected != found {
            return Err(format!("{}\ntree: {expected:#?}\nloops:\n{}", steps.join("; "), scheduled.program));
        }
        taken += path.steps.len();
    }
    Ok(taken)
}

#[test]
fn trees_and_loops_agree() {
    let mut random = Random(8);
    let mut taken = 0;
    for _ in 0..80 {
        let text = program(&mut random);
        match agreement(&text) {
            Ok(count) => taken += count,
            Err(why) => panic!("{text}\n{why}"),
        }
    }
    assert!(taken > 200, "only {taken} steps in 80 programs");
}

#[test]
fn modes_come_last_and_find_their_loops() {
    let text = "A = tensor([N, M])\nC = tensor([N, M])\nD = tensor([N, M])\nC = entrywise_add(A, A)\n\
                D = entrywise_mul(A, A)\nl0 = build(C)\nl1 = build(D)\nl2 = vectorize(l0, 2)\nl3 = vectorize(l1, 2, 8)\n\
                l4 = fuse_outer(l2, l3, 1)\nl5 = parallelize(l4, 1)\nl6 = stripmine(l5, 1, 16)\ncodegen(l6)\n";
    let mut sources = Sources::new();
    let file = sources.add("t.teml", text);
    let mut diagnostics = Diagnostics::new();
    let front = read(&sources, file, Name::new("t"), ElemType::F32, &mut diagnostics).unwrap();
    let steps: Vec<String> = front.routes[0].entries[0].steps.iter().map(|step| step.to_string()).collect();
    let expected = [
        "fuse_outer(C.i1, D.i1, 1)",
        "split(C.i1, 16)",
        "parallelize(C.i1.o)",
        "vectorize(C.i2, 8)",
        "vectorize(D.i2, 8)",
    ];
    assert_eq!(steps, expected);
    let Item::Loop(outer) = &front.nests[0][0].items[1] else { panic!("{:?}", front.nests) };
    assert_eq!(outer.mode, Mode::Parallel);
}
