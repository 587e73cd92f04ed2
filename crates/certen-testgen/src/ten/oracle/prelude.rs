//! The functions of the prelude and the operators on whole tensors that generated programs use, written out by hand.

use std::collections::HashMap;

use super::super::tree::{Cond, IndexFunction, Ix};
use super::{Given, Outcome, Trouble, Value, entrywise, indices, reduce};

fn wrong<T>(text: &str) -> Outcome<T> {
    Err(Trouble::Type(text.into()))
}

/// The dimensions of a tensor that has at least so many.
fn sizes(a: &Value, least: usize) -> Outcome<&[i64]> {
    if a.shape.len() >= least { Ok(&a.shape) } else { wrong("rank") }
}

/// A tensor of a shape, each of whose elements is one of another, found by its index.
fn moved(a: &Value, shape: Vec<i64>, from: impl Fn(&[i64]) -> Vec<i64>) -> Outcome<Value> {
    Value::build(shape, |index| a.get(&from(index)))
}

fn with(index: &[i64], axis: usize, value: i64) -> Vec<i64> {
    let mut index = index.to_vec();
    index[axis] = value;
    index
}

fn without(index: &[i64], axis: usize) -> Vec<i64> {
    [&index[..axis], &index[axis + 1..]].concat()
}

fn inserted(index: &[i64], axis: usize, value: i64) -> Vec<i64> {
    [&index[..axis], &[value], &index[axis..]].concat()
}

pub(super) fn transposed(a: &Value) -> Outcome<Value> {
    swapped(a, 0, 1)
}

fn swapped(a: &Value, i: usize, j: usize) -> Outcome<Value> {
    let mut shape = sizes(a, i.max(j) + 1)?.to_vec();
    shape.swap(i, j);
    moved(a, shape, |index| {
        let mut index = index.to_vec();
        index.swap(i, j);
        index
    })
}

pub(super) fn flattened(a: &Value) -> Outcome<Value> {
    let shape = sizes(a, 2)?;
    Ok(Value { shape: [&[shape[0] * shape[1]], &shape[2..]].concat(), data: a.data.clone() })
}

pub(super) fn split(k: i64, a: &Value) -> Outcome<Value> {
    let shape = sizes(a, 1)?;
    let all = [&[shape[0].div_euclid(k) + i64::from(shape[0] % k != 0), k], &shape[1..]].concat();
    Value::build(all, |index| {
        let place = index[0] * k + index[1];
        if place < shape[0] { a.get(&[&[place], &index[2..]].concat()) } else { Ok(0.0) }
    })
}

pub(super) fn concatenated(axis: usize, a: &Value, b: &Value) -> Outcome<Value> {
    let (left, right) = (sizes(a, axis + 1)?, sizes(b, axis + 1)?);
    if without(left, axis) != without(right, axis) {
        return wrong("`++`");
    }
    Value::build(with(left, axis, left[axis] + right[axis]), |index| match index[axis] - left[axis] {
        place if place < 0 => a.get(index),
        place => b.get(&with(index, axis, place)),
    })
}

pub(super) fn shifted(name: &str, k: i64, a: &Value) -> Outcome<Value> {
    let size = sizes(a, 1)?[0];
    if k < 0 || (name.starts_with("trunc") && k > size) {
        return Err(Trouble::OutOfBounds(format!("{name} by {k} of {size}")));
    }
    let (length, from) = match name {
        "pad_l" => (size + k, -k),
        "pad_r" => (size + k, 0),
        "trunc_l" => (size - k, k),
        _ => (size - k, 0),
    };
    Value::build(with(&a.shape, 0, length), |index| match index[0] + from {
        place if (0..size).contains(&place) => a.get(&with(index, 0, place)),
        _ => Ok(0.0),
    })
}

/// `a @ b`
pub(super) fn product(a: &Value, b: &Value) -> Outcome<Value> {
    let spec = match (a.shape.len(), b.shape.len()) {
        (1, 1) => "i,i->",
        (2, 1) => "ij,j->i",
        (1, 2) => "i,ij->j",
        (2, 2) => "ij,jk->ik",
        _ => return wrong("`@`"),
    };
    einsum(spec, &[a.clone(), b.clone()])
}

pub(super) fn einsum(spec: &str, args: &[Value]) -> Outcome<Value> {
    let (inputs, output) = match spec.split_once("->") {
        Some((inputs, output)) => (inputs, output.to_string()),
        None => {
            let mut once: Vec<char> = spec.chars().filter(|c| *c != ',' && spec.matches(*c).count() == 1).collect();
            once.sort_unstable();
            (spec, once.into_iter().collect())
        }
    };
    let inputs: Vec<Vec<char>> = inputs.split(',').map(|input| input.chars().collect()).collect();
    let mut known: HashMap<char, i64> = HashMap::new();
    for (letters, arg) in inputs.iter().zip(args) {
        if letters.len() != arg.shape.len() {
            return wrong("einsum");
        }
        for (letter, size) in letters.iter().zip(&arg.shape) {
            if *known.entry(*letter).or_insert(*size) != *size {
                return wrong("einsum");
            }
        }
    }
    let output: Vec<char> = output.chars().collect();
    let mut summed: Vec<char> = known.keys().copied().filter(|letter| !output.contains(letter)).collect();
    summed.sort_unstable();
    let size = |letter: &char| known.get(letter).copied().unwrap_or(0);
    Value::build(output.iter().map(size).collect(), |outer| {
        let mut sum = 0.0;
        for inner in indices(&summed.iter().map(size).collect::<Vec<_>>()) {
            let at: HashMap<char, i64> =
                output.iter().copied().zip(outer.iter().copied()).chain(summed.iter().copied().zip(inner)).collect();
            let mut term = 1.0;
            for (letters, arg) in inputs.iter().zip(args) {
                term *= arg.get(&letters.iter().map(|letter| at[letter]).collect::<Vec<_>>())?;
            }
            sum += term;
        }
        Ok(sum)
    })
}

/// A function of the prelude.
pub(super) fn call(name: &str, args: &[Given]) -> Outcome<Value> {
    let negative = |arg: &Given| matches!(arg, Given::Ix(k) if *k < 0);
    let may_be = match name {
        "shift" | "rotate" => 1,
        "rotate_on" => 2,
        _ => 0,
    };
    if args.iter().position(negative).is_some_and(|at| at + 1 != may_be) {
        return wrong("a size, place or axis below 0");
    }
    match args {
        [Given::Data(x)] => of_one(name, x),
        [Given::Data(x), Given::Data(y)] => of_two(name, x, y),
        [Given::Ix(n)] if name == "iota" => Value::build(vec![*n], |index| Ok(index[0] as f64)),
        [Given::Ix(n)] if name == "eye" => {
            Value::build(vec![*n, *n], |index| Ok(f64::from(u8::from(index[0] == index[1]))))
        }
        [Given::Vec(v)] if name == "zeros" => Value::build(v.clone(), |_| Ok(0.0)),
        [Given::Vec(v)] if name == "ones" => Value::build(v.clone(), |_| Ok(1.0)),
        [Given::Vec(v), Given::Data(e)] if name == "full" => Value::build(v.clone(), |_| e.get(&[])),
        [Given::Vec(v), Given::Data(x)] => of_vector(name, v, x),
        [Given::Ix(k), Given::Data(x)] => of_index(name, *k, x),
        [Given::Ix(k), Given::Data(e), Given::Data(x)] if name == "shift" => {
            let size = sizes(x, 1)?[0];
            Value::build(x.shape.clone(), |index| match index[0] - k {
                place if (0..size).contains(&place) => x.get(&with(index, 0, place)),
                _ => e.get(&[]),
            })
        }
        [Given::Ix(axis), Given::Data(x), Given::Data(y)] if name == "concat" => concatenated(*axis as usize, x, y),
        [Given::Ix(1), Given::Data(x), Given::Data(y)] if name == "tensordot" => {
            let (Some(last), Some(first)) = (x.shape.last(), y.shape.first()) else { return wrong("tensordot") };
            if last != first {
                return wrong("tensordot");
            }
            let rank = x.shape.len() - 1;
            Value::build([&x.shape[..rank], &y.shape[1..]].concat(), |index| {
                let (left, right) = index.split_at(rank);
                (0..*last)
                    .try_fold(0.0, |sum, k| Ok(sum + x.get(&[left, &[k]].concat())? * y.get(&[&[k], right].concat())?))
            })
        }
        [Given::Ix(d), Given::Ix(k), Given::Data(x)] => of_axis(name, *d as usize, *k, x),
        // Other axes than are generated.
        [Given::Ix(_), Given::Data(_), Given::Data(_)] if name == "tensordot" => Err(Trouble::TooMuch),
        _ => wrong(name),
    }
}

fn of_one(name: &str, x: &Value) -> Outcome<Value> {
    match name {
        "reverse" => {
            let size = sizes(x, 1)?[0];
            moved(x, x.shape.clone(), |index| with(index, 0, size - 1 - index[0]))
        }
        "zeros_like" => Value::build(x.shape.clone(), |_| Ok(0.0)),
        "diagonal" => {
            let shape = sizes(x, 2)?;
            moved(x, shape[1..].to_vec(), |index| [&[index[0]], index].concat())
        }
        "trace" => reduce("sum", &[0], &of_one("diagonal", x)?),
        "diagonal_matrix" => {
            let size = sizes(x, 1)?[0];
            Value::build(vec![size, size], |index| if index[0] == index[1] { x.get(&index[..1]) } else { Ok(0.0) })
        }
        "lower_triangle" => {
            Value::build(x.shape.clone(), |index| if index[1] <= index[0] { x.get(index) } else { Ok(0.0) })
        }
        "diff" => {
            let shape = sizes(x, 1)?;
            Value::build(with(shape, 0, (shape[0] - 1).max(0)), |index| {
                Ok(x.get(&with(index, 0, index[0] + 1))? - x.get(index)?)
            })
        }
        "laplace1d" => {
            let shape = sizes(x, 1)?;
            Value::build(with(shape, 0, (shape[0] - 2).max(0)), |index| {
                let at = |by: i64| x.get(&with(index, 0, index[0] + by));
                Ok(at(0)? - 2.0 * at(1)? + at(2)?)
            })
        }
        _ => wrong(name),
    }
}

fn of_two(name: &str, x: &Value, y: &Value) -> Outcome<Value> {
    match name {
        "outer" => {
            let rank = x.shape.len();
            Value::build([x.shape.as_slice(), &y.shape].concat(), |index| {
                Ok(x.get(&index[..rank])? * y.get(&index[rank..])?)
            })
        }
        "dot" => reduce("sum", &[0], &entrywise(x, y, |a, b| a * b)?),
        "matmul" => product(x, y),
        "vstack" => concatenated(0, x, y),
        "hstack" => concatenated(1, x, y),
        "conv1d" => {
            let (n, k) = (sizes(x, 1)?[0], sizes(y, 1)?[0]);
            Value::build(vec![(n - k + 1).max(0)], |index| {
                (0..k).try_fold(0.0, |sum, j| Ok(sum + x.get(&[index[0] + j])? * y.get(&[j])?))
            })
        }
        _ => wrong(name),
    }
}

fn of_vector(name: &str, v: &[i64], x: &Value) -> Outcome<Value> {
    let shape = sizes(x, v.len())?.to_vec();
    let rest = &shape[v.len()..];
    let pairs = || v.iter().zip(&shape);
    let part = |sizes: Vec<i64>, start: Vec<i64>| {
        moved(x, [sizes.as_slice(), rest].concat(), |index| {
            let place = |(at, i): (usize, &i64)| i + start.get(at).copied().unwrap_or(0);
            index.iter().enumerate().map(place).collect()
        })
    };
    match name {
        "take" => {
            let start = pairs().map(|(v, size)| if *v < 0 { (size + v).max(0) } else { 0 }).collect();
            part(pairs().map(|(v, size)| v.abs().min(*size)).collect(), start)
        }
        "drop" => {
            let start = v.iter().map(|v| (*v).max(0)).collect();
            part(pairs().map(|(v, size)| (size - v.abs()).max(0)).collect(), start)
        }
        "sel" => x.at(v),
        _ => wrong(name),
    }
}

fn of_index(name: &str, k: i64, x: &Value) -> Outcome<Value> {
    match name {
        "rotate" => of_axis("rotate_on", 0, k, x),
        "reverse_on" => {
            let axis = k as usize;
            let size = sizes(x, axis + 1)?[axis];
            moved(x, x.shape.clone(), |index| with(index, axis, size - 1 - index[axis]))
        }
        "axes_to_back" => {
            let (front, back) = sizes(x, k as usize)?.split_at(k as usize);
            let count = back.len();
            moved(x, [back, front].concat(), |index| [&index[count..], &index[..count]].concat())
        }
        "window" => {
            let shape = sizes(x, 1)?;
            let all = [&[(shape[0] - k + 1).max(0), k], &shape[1..]].concat();
            moved(x, all, |index| [&[index[0] + index[1]], &index[2..]].concat())
        }
        "repeat" => {
            let size = sizes(x, 1)?[0];
            moved(x, with(&x.shape, 0, k * size), |index| with(index, 0, index[0].rem_euclid(size)))
        }
        "pad_clamp" | "pad_periodic" => {
            let size = sizes(x, 1)?[0];
            if size < if name == "pad_clamp" { 1 } else { k } {
                return wrong("where of a boundary");
            }
            moved(x, with(&x.shape, 0, size + 2 * k), |index| {
                let place = index[0] - k;
                with(index, 0, if name == "pad_clamp" { place.clamp(0, size - 1) } else { place.rem_euclid(size) })
            })
        }
        "diff_on" => {
            let axis = k as usize;
            let shape = sizes(x, axis + 1)?;
            Value::build(with(shape, axis, (shape[axis] - 1).max(0)), |index| {
                Ok(x.get(&with(index, axis, index[axis] + 1))? - x.get(index)?)
            })
        }
        _ => wrong(name),
    }
}

fn of_axis(name: &str, d: usize, k: i64, x: &Value) -> Outcome<Value> {
    match name {
        "rotate_on" => {
            let size = sizes(x, d + 1)?[d];
            if k.abs() > size {
                return wrong("where of rotate");
            }
            moved(x, x.shape.clone(), |index| with(index, d, (index[d] - k).rem_euclid(size)))
        }
        "project" => {
            let shape = sizes(x, d + 1)?;
            if !(0..shape[d]).contains(&k) {
                return wrong("where of project");
            }
            moved(x, without(shape, d), |index| inserted(index, d, k))
        }
        "expand" => moved(x, inserted(sizes(x, d)?, d, k), |index| without(index, d)),
        "swap_axes" => swapped(x, d, d + 1 + k as usize),
        _ => wrong(name),
    }
}

/// The boundary functions of the prelude.
pub(super) fn index_function(name: &str) -> Option<IndexFunction> {
    let i = || Ix::Name("i".into());
    let n = || Ix::Name("n".into());
    let sub = |a: Ix, b: Ix| Ix::Sub(a.into(), b.into());
    let twice = || Ix::Mul(Ix::Lit(2).into(), n().into());
    let cases = |below: Ix, above: Ix| {
        let inner = Ix::If(Cond::Cmp(">=", i(), n()).into(), above.into(), i().into());
        Ix::If(Cond::Cmp("<", i(), Ix::Lit(0)).into(), below.into(), inner.into())
    };
    let within = || vec![Cond::Cmp("<=", sub(Ix::Lit(0), n()), i()), Cond::Cmp("<", i(), twice())];
    let (wheres, body) = match name {
        "clamp" => {
            let inner = Ix::Max(i().into(), Ix::Lit(0).into());
            (vec![Cond::Cmp(">=", n(), Ix::Lit(1))], Ix::Min(inner.into(), sub(n(), Ix::Lit(1)).into()))
        }
        "periodic" => (within(), cases(Ix::Add(i().into(), n().into()), sub(i(), n()))),
        "mirror" => (within(), cases(sub(Ix::Lit(-1), i()), sub(sub(twice(), Ix::Lit(1)), i()))),
        _ => return None,
    };
    Some(IndexFunction { name: name.into(), params: vec!["i".into(), "n".into()], wheres, body })
}
