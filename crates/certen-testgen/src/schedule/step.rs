//! The next step of a schedule: a primitive with arguments that make sense most of the time.
//!
//! How a primitive is written says what its arguments are: names of loops, numbers, names of buffers and stages, lists of
//! them. Loops of one step are near each other most of the time: one inside the other, or one after the other. A word
//! that says nothing gets any of them.

use certen_schedule::Primitive;
use certen_syntax::Name;

use super::look::{Look, Seen};
use crate::draw::Draw;

/// One in so many steps is nonsense.
const NONSENSE: usize = 25;

/// Whether there is something that a step is for, where it is seldom there.
pub(super) fn applies(look: &Look, name: &str) -> bool {
    match name {
        "inline" | "compute_at" | "store_at" | "layout" => !look.buffers.is_empty(),
        "join_sums" => !look.that(|seen| seen.adds_sums).is_empty(),
        "mirror" => !square(look).is_empty(),
        "overwrite" => !look.that(|seen| seen.chooses).is_empty(),
        "round" => !look.tiled().is_empty(),
        "separate" => !look.that(|seen| !seen.sums.is_empty()).is_empty(),
        "share" => !look.that(|seen| !seen.chosen.is_empty()).is_empty(),
        _ => true,
    }
}

/// Loops with nothing but loops of the same length inside.
fn square(look: &Look) -> Vec<&Seen> {
    look.that(|seen| {
        let mut inner = seen.children.iter().map(|child| &look.loops[*child]);
        seen.perfect && !seen.children.is_empty() && inner.all(|inner| inner.length == seen.length)
    })
}

/// A step that makes what `round` is for: a loop that makes sums becomes one over blocks, then its sums a tile.
pub(super) fn towards_round(draw: &mut Draw, look: &Look) -> Option<String> {
    let sums = look.that(|seen| seen.makes_sums);
    let blocks: Vec<&&Seen> = sums.iter().filter(|seen| seen.path.ends_with(".i")).collect();
    if let Some(block) = draw.pick(&blocks) {
        let sum = &look.loops[*block.children.first()?];
        return Some(format!("reorder([{}, {}])", sum.path, block.path));
    }
    Some(format!("split({}, {})", draw.pick(&sums)?.path, block(draw)))
}

/// The text of a step, and whether it is meant to be right.
pub(super) fn step(draw: &mut Draw, look: &Look, primitive: &Primitive) -> (String, bool) {
    let args = arguments(draw, look, primitive);
    if !draw.chance(NONSENSE) {
        return (format!("{}({})", primitive.name, args.join(", ")), true);
    }
    let mut args = args;
    let odd = draw.word(&["0", "-3", "nowhere", "[]", "x.y.z", "1000000", "i#9", "9223372036854775807", "[[1], i]"]);
    let at = draw.below(args.len() + 1);
    match args.get_mut(at) {
        Some(arg) => *arg = odd.into(),
        None => args.push(odd.into()),
    }
    (format!("{}({})", primitive.name, args.join(", ")), false)
}

/// Block sizes: 1 to 9, and mostly such that divide little.
fn block(draw: &mut Draw) -> String {
    draw.pick(&[2, 3, 4, 5, 7, 3, 2, 1, 6, 8, 9]).unwrap_or(&2).to_string()
}

fn arguments(draw: &mut Draw, look: &Look, primitive: &Primitive) -> Vec<String> {
    // One arm for each step: a table.
    let near = Near::of(draw, look);
    let path = |at: Option<usize>| Near::named(at, look);
    let (any, pair) = (near.any(draw, look), near.inside(draw, look));
    let number = block(draw);
    match primitive.name {
        "split" if draw.chance(4) => vec![any, number, draw.word(&["inwards", "inwards", "whole"]).into()],
        "split" | "unroll_and_jam" => vec![any, number],
        "vectorize" | "parallelize" if draw.chance(2) => vec![any],
        "vectorize" | "parallelize" => vec![any, number],
        "interchange" | "fission" => vec![path(pair.0), path(pair.1)],
        "skew" => vec![path(pair.0), path(pair.1), draw.within(-2, 3).to_string()],
        "overwrite" => {
            let choices = look.that(|seen| seen.chooses);
            vec![draw.pick(&choices).map_or(any, |seen| seen.path.clone())]
        }
        "separate" => {
            let sums = look.that(|seen| !seen.sums.is_empty());
            let Some(seen) = draw.pick(&sums) else { return vec![any, "acc".into()] };
            let around = seen.parent.filter(|at| look.loops[*at].perfect && draw.chance(2));
            let local = draw.pick(&seen.sums).map_or("acc", |local| local.as_str());
            vec![around.map_or_else(|| seen.path.clone(), |at| path(Some(at))), local.into()]
        }
        "share" => {
            let Some(seen) = draw.pick(&look.that(|seen| !seen.chosen.is_empty())).copied() else {
                return vec![any, "value".into()];
            };
            vec![seen.path.clone(), draw.pick(&seen.chosen).map_or("value", |local| local.as_str()).into()]
        }
        "mirror" => {
            let found = draw.pick(&square(look)).map(|seen| (seen.path.clone(), seen.children.first().copied()));
            let (rows, columns) = found.map_or((path(pair.0), path(pair.1)), |(rows, inner)| (rows, path(inner)));
            vec![rows, columns, number, block(draw)]
        }
        "tile" => {
            let loops = near.within_each_other(draw, look);
            let sizes: Vec<String> = loops.iter().map(|_| block(draw)).collect();
            vec![format!("[{}]", loops.join(", ")), format!("[{}]", sizes.join(", "))]
        }
        "reorder" => {
            let loops = near.within_each_other(draw, look);
            vec![format!("[{}]", draw.shuffled(loops).join(", "))]
        }
        "fuse_outer" => {
            let rows = if draw.chance(3) { look.followed() } else { look.rows() };
            let one = draw.pick(&rows).or(look.followed().first()).copied();
            let two = one.and_then(|one| look.loops[one].next);
            let mut args = vec![path(one), path(two)];
            if draw.chance(3) {
                args.push(draw.within(1, 2).to_string());
            }
            args
        }
        "fuse_inner" => {
            // A loop in which a loop follows another that is as long.
            let rows: Vec<usize> = look.rows().iter().filter_map(|at| look.loops[*at].parent).collect();
            vec![draw.pick(&rows).map_or(any, |at| look.loops[*at].path.clone())]
        }
        "unroll" => {
            // Whole loops are unrolled where that can be done.
            let short: Vec<usize> = (0..look.loops.len()).filter(|at| look.loops[*at].trips().is_some()).collect();
            match draw.pick(&short) {
                Some(at) if !draw.chance(3) => vec![look.loops[*at].path.clone()],
                _ => vec![any, number],
            }
        }
        "peel" => match draw.below(3) {
            0 => vec![any, "tail".into()],
            1 => vec![any, "first".into(), number],
            _ => vec![any, "last".into(), number],
        },
        "inline" => vec![own(draw, look).0],
        "compute_at" => {
            let (stage, _) = own(draw, look);
            let reader = reader(draw, look, &stage).unwrap_or(any);
            vec![stage, reader]
        }
        "store_at" => {
            // What was computed at a loop has a buffer inside loops.
            let (stage, _) =
                draw.pick(&look.inner).map_or_else(|| own(draw, look), |(name, at)| (name.to_string(), *at));
            vec![stage, if draw.chance(2) { "root".into() } else { any }]
        }
        "stage" => {
            let (buffer, rank, user) = used(draw, look, |seen| &seen.reads);
            let mut args = vec![buffer, user.unwrap_or(any)];
            if draw.chance(3) {
                args.push(order(draw, rank));
            }
            args
        }
        "pack" => {
            let (buffer, before, loops) = packed(draw, look).unwrap_or_else(|| ("x".into(), any, Vec::new()));
            let multiple = draw.chance(3).then_some(number);
            [buffer, before, format!("[{}]", loops.join(", "))].into_iter().chain(multiple).collect()
        }
        "stream" => vec![look.parameters.last().map_or_else(|| "x".into(), |(output, _)| output.to_string())],
        "join_sums" => {
            let sums = look.that(|seen| seen.adds_sums);
            vec![draw.pick(&sums).map_or(any, |seen| seen.path.clone())]
        }
        "round" => {
            let mut args = vec![draw.pick(&look.tiled()).map_or(any, |seen| seen.path.clone())];
            if draw.chance(4) {
                args.push(number);
            }
            args
        }
        "registers" => {
            let (buffer, _, user) = used(draw, look, |seen| &seen.writes);
            vec![buffer, user.unwrap_or(any)]
        }
        "layout" => {
            let (stage, rank) = own(draw, look);
            match draw.chance(2) {
                true => vec![stage, order(draw, rank)],
                false => vec![stage, "pad".into(), number],
            }
        }
        _ => {
            let ways = ways(primitive);
            let way = draw.word(&ways);
            by_words(draw, look, &near, way)
        }
    }
}

/// The ways in which a primitive is written: what stands in parentheses in each.
fn ways(primitive: &Primitive) -> Vec<&'static str> {
    let begin = |at: &str| at.strip_prefix(primitive.name).is_some_and(|rest| rest.starts_with('('));
    let starts = primitive.usage.char_indices().map(|(at, _)| &primitive.usage[at..]).filter(|at| begin(at));
    starts.filter_map(|at| at.split_once('(')?.1.split_once(')')).map(|(inside, _)| inside).collect()
}

/// Arguments by the words of how a primitive is written.
fn by_words(draw: &mut Draw, look: &Look, near: &Near, inside: &str) -> Vec<String> {
    let mut args = Vec::new();
    let mut loops = 0;
    let mut rest = inside;
    // How long lists are: those of one step are equally long.
    let length = near.chain.len().clamp(1, 1 + draw.below(3));
    while !rest.is_empty() {
        let (item, behind) = match rest.strip_prefix('[') {
            Some(list) => {
                let (item, behind) = list.split_once(']').unwrap_or((list, ""));
                (Err(item), behind)
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (Ok(&rest[..end]), &rest[end..])
            }
        };
        match item {
            Ok(word) => args.push(argument(draw, look, near, word.trim(), &mut loops)),
            Err(list) => {
                let word = list.split(',').next().unwrap_or("").trim();
                let things: Vec<String> = match kind(word) {
                    Kind::Loop => near.within_each_other(draw, look),
                    _ => (0..length).map(|_| argument(draw, look, near, word, &mut loops)).collect(),
                };
                args.push(format!("[{}]", things.join(", ")));
            }
        }
        rest = behind.trim_start_matches([',', ' ']);
    }
    args
}

enum Kind {
    Loop,
    Number,
    Buffer,
    Stage,
    Unknown,
}

fn kind(word: &str) -> Kind {
    match word.trim_end_matches('?') {
        "loop" | "loops" | "outer" | "inner" | "first" | "second" | "one" | "other" | "at" | "i" | "j" => Kind::Loop,
        "size" | "sizes" | "factor" | "factors" | "count" | "times" | "lanes" | "width" | "amount" | "n" | "number" => {
            Kind::Number
        }
        "buffer" | "tensor" | "array" => Kind::Buffer,
        "stage" | "producer" | "consumer" => Kind::Stage,
        _ => Kind::Unknown,
    }
}

fn argument(draw: &mut Draw, look: &Look, near: &Near, word: &str, loops: &mut usize) -> String {
    match kind(word) {
        Kind::Loop => {
            *loops += 1;
            match *loops {
                1 => near.first(look),
                2 if !draw.chance(6) => near.second(look),
                _ => near.any(draw, look),
            }
        }
        Kind::Number => block(draw),
        Kind::Buffer => buffer(draw, look).0,
        Kind::Stage => draw.pick(&look.stages).map_or("x".into(), ToString::to_string),
        Kind::Unknown => match draw.below(3) {
            0 => near.any(draw, look),
            1 => block(draw),
            _ => buffer(draw, look).0,
        },
    }
}

/// The name of a buffer with its rank.
fn named(found: Option<&(Name, usize)>) -> Option<(String, usize)> {
    found.map(|(name, rank)| (name.to_string(), *rank))
}

/// A buffer: one that is allocated, most of the time.
fn buffer(draw: &mut Draw, look: &Look) -> (String, usize) {
    let (own, given) = (named(draw.pick(&look.buffers)), named(draw.pick(&look.parameters)));
    let own = if draw.chance(3) { None } else { own };
    own.or(given).unwrap_or(("x".into(), 1))
}

/// A buffer that is allocated; now and then another.
fn own(draw: &mut Draw, look: &Look) -> (String, usize) {
    match draw.chance(15) {
        true => buffer(draw, look),
        false => named(draw.pick(&look.buffers)).unwrap_or_else(|| buffer(draw, look)),
    }
}

/// A loop of another stage that reads a stage.
fn reader(draw: &mut Draw, look: &Look, stage: &str) -> Option<String> {
    let reads = |seen: &&Seen| seen.reads.iter().any(|(name, _)| name.as_str() == stage);
    let other = |seen: &&Seen| seen.stage.is_none_or(|name| name.as_str() != stage);
    let readers: Vec<&str> = look.loops.iter().filter(reads).filter(other).map(|seen| seen.path.as_str()).collect();
    draw.pick(&readers).map(ToString::to_string)
}

/// A buffer that a loop uses in some way, and that loop; now and then any.
fn used(draw: &mut Draw, look: &Look, uses: fn(&Seen) -> &Vec<(Name, usize)>) -> (String, usize, Option<String>) {
    let users: Vec<&Seen> = look.loops.iter().filter(|seen| !uses(seen).is_empty()).collect();
    match draw.pick(&users) {
        Some(user) if !draw.chance(12) => {
            let (name, rank) = named(draw.pick(uses(user))).unwrap_or(("x".into(), 1));
            (name, rank, Some(user.path.clone()))
        }
        _ => {
            let (name, rank) = buffer(draw, look);
            (name, rank, None)
        }
    }
}

/// A buffer, a loop that reads it, and the loops in it that the element has the indices of: in their order or another. Now and
/// then one of them is missing.
fn packed(draw: &mut Draw, look: &Look) -> Option<(String, String, Vec<String>)> {
    let read = draw.pick(&look.reads)?;
    let last = read.around.iter().position(|at| Some(at) == read.along.last())?;
    let before = draw.below(last + 1);
    let mut loops: Vec<usize> = read.along.iter().filter(|at| read.around[before..].contains(at)).copied().collect();
    if draw.chance(2) {
        loops = draw.shuffled(loops);
    }
    if draw.chance(12) {
        loops.pop();
    }
    let path = |at: usize| look.loops[at].path.clone();
    Some((read.buffer.to_string(), path(read.around[before]), loops.into_iter().map(path).collect()))
}

/// An order of dimensions.
fn order(draw: &mut Draw, rank: usize) -> String {
    let dimensions = draw.shuffled((0..rank).collect());
    let dimensions: Vec<String> = dimensions.iter().map(ToString::to_string).collect();
    format!("[{}]", dimensions.join(", "))
}

/// Loops that are near each other.
struct Near {
    /// A loop.
    one: Option<usize>,
    /// One inside it, or after it.
    two: Option<usize>,
    /// The loops that are perfectly nested, from the first one in.
    chain: Vec<usize>,
}

impl Near {
    fn of(draw: &mut Draw, look: &Look) -> Near {
        let all: Vec<usize> = (0..look.loops.len()).collect();
        // Most steps are about two loops, of which one is the body of the other, or the next.
        let pairs: Vec<usize> = all.iter().copied().filter(|at| !look.loops[*at].children.is_empty()).collect();
        let rows: Vec<usize> = all.iter().copied().filter(|at| look.loops[*at].next.is_some()).collect();
        let one = match draw.below(4) {
            0 | 1 if !pairs.is_empty() => draw.pick(&pairs).copied(),
            2 if !rows.is_empty() => draw.pick(&rows).copied(),
            _ => draw.pick(&all).copied(),
        };
        let Some(at) = one else { return Near { one: None, two: None, chain: Vec::new() } };
        let seen = &look.loops[at];
        let inner = draw.pick(&seen.children).copied();
        let two = match draw.below(2) {
            0 => inner.or(seen.next),
            _ => seen.next.or(inner),
        };
        Near { one, two, chain: look.chain(at) }
    }

    fn named(at: Option<usize>, look: &Look) -> String {
        at.and_then(|at| look.loops.get(at)).map_or("i".into(), |seen| seen.path.clone())
    }

    fn first(&self, look: &Look) -> String {
        Near::named(self.one, look)
    }

    fn second(&self, look: &Look) -> String {
        Near::named(self.two.or(self.one), look)
    }

    /// A loop and one inside it, directly most of the time.
    fn inside(&self, draw: &mut Draw, look: &Look) -> (Option<usize>, Option<usize>) {
        let pairs: Vec<usize> = (0..look.loops.len()).filter(|at| !look.loops[*at].children.is_empty()).collect();
        let Some(one) = draw.pick(&pairs).copied() else { return (self.one, self.two) };
        let mut two = draw.pick(&look.loops[one].children).copied();
        while let Some(inner) = two
            && draw.chance(3)
            && let Some(deeper) = draw.pick(&look.loops[inner].children)
        {
            two = Some(*deeper);
        }
        (Some(one), two)
    }

    /// Some loops that are inside each other, outermost first; now and then any loops.
    fn within_each_other(&self, draw: &mut Draw, look: &Look) -> Vec<String> {
        let most = 2 + draw.below(3);
        let mut found = Vec::new();
        if draw.chance(20) {
            return (0..most).map(|_| self.any(draw, look)).collect();
        }
        let (mut next, _) = self.inside(draw, look);
        while let Some(at) = next {
            if found.len() < most && !draw.chance(5) {
                found.push(look.loops[at].path.clone());
            }
            next = draw.pick(&look.loops[at].children).copied();
        }
        if found.is_empty() { vec![self.first(look)] } else { found }
    }

    fn any(&self, draw: &mut Draw, look: &Look) -> String {
        let at = if look.loops.is_empty() { None } else { Some(draw.below(look.loops.len())) };
        Near::named(at, look)
    }
}
