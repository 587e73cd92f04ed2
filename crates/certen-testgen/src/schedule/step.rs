//! The next step of a schedule: a primitive with arguments that make sense most of the time.
//!
//! How a primitive is written says what its arguments are: names of loops, numbers, names of buffers and stages, lists of
//! them. Loops of one step are near each other most of the time: one inside the other, or one after the other. A word
//! that says nothing gets any of them.

use certen_schedule::Primitive;
use certen_syntax::Name;

use super::draw::Draw;
use super::look::Look;

/// One in so many steps is nonsense.
const NONSENSE: usize = 25;

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
    let near = Near::of(draw, look);
    match primitive.name {
        "split" | "unroll_by" | "vectorize" if draw.chance(2) => vec![near.any(draw, look), block(draw)],
        _ => usage(draw, look, &near, primitive.usage),
    }
}

/// Arguments by the words of how a primitive is written.
fn usage(draw: &mut Draw, look: &Look, near: &Near, usage: &str) -> Vec<String> {
    let inside = usage.split_once('(').map_or("", |(_, rest)| rest.trim_end_matches(')'));
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
                    Kind::Loop if draw.chance(8) => (0..length).map(|_| near.any(draw, look)).collect(),
                    Kind::Loop => {
                        let chain: Vec<usize> = near.chain.iter().copied().take(length).collect();
                        let chain = if usage.starts_with("reorder") { draw.shuffled(chain) } else { chain };
                        chain.into_iter().map(|at| look.loops[at].path.clone()).collect()
                    }
                    _ if usage.starts_with("layout") => {
                        draw.shuffled(vec![0, 1]).iter().map(ToString::to_string).collect()
                    }
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
        Kind::Buffer => buffer(draw, look, true),
        Kind::Stage => draw.pick(&look.stages).map_or("x".into(), ToString::to_string),
        Kind::Unknown => match draw.below(3) {
            0 => near.any(draw, look),
            1 => block(draw),
            _ => buffer(draw, look, true),
        },
    }
}

/// A buffer: one that is allocated, most of the time.
fn buffer(draw: &mut Draw, look: &Look, parameters: bool) -> String {
    let named = |found: Option<&(Name, usize)>| found.map(|(name, _)| name.to_string());
    let own = named(draw.pick(&look.buffers));
    let given = named(draw.pick(&look.parameters));
    match own {
        Some(own) if !parameters || !draw.chance(4) => own,
        _ => given.unwrap_or("x".into()),
    }
}

/// Loops that are near each other.
struct Near {
    /// A loop.
    one: Option<usize>,
    /// One inside of it, or behind it.
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

    fn any(&self, draw: &mut Draw, look: &Look) -> String {
        let at = if look.loops.is_empty() { None } else { Some(draw.below(look.loops.len())) };
        Near::named(at, look)
    }
}
