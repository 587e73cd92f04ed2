use std::num::NonZeroUsize;

use proptest::prelude::*;

use super::permute::{Stride, permute};
use super::*;
use crate::array::Array;
use crate::pool::with_threads;

/// Where the elements of a test's array lie: an array of random numbers, and a view of it with strides.
struct Laid {
    array: Array,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<i64>,
}

impl Laid {
    /// Strides that go backwards (-1), stand still (0) or leave gaps, outermost dimension first.
    fn new(elem: ElemType, shape: &[usize], ways: &[i64], seed: u64) -> Laid {
        let (mut strides, mut reach, mut offset) = (vec![0; shape.len()], 1i64, 0i64);
        for (at, &size) in shape.iter().enumerate().rev() {
            strides[at] = ways[at] * reach;
            if ways[at] < 0 {
                offset -= strides[at] * (size as i64 - 1).max(0);
            }
            reach *= ways[at].abs().max(1) * size.max(1) as i64;
        }
        let array = Array::random(elem, &[reach as usize], seed).unwrap();
        Laid { array, offset: offset as usize, shape: shape.to_vec(), strides }
    }

    fn view(&self) -> View<'_> {
        View::new(self.array.elem(), self.array.bytes(), self.offset, &self.shape, &self.strides).unwrap()
    }

    fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::new(self.array.elem(), self.array.bytes_mut(), self.offset, &self.shape, &self.strides).unwrap()
    }

    fn get<T: crate::array::Element>(&self, index: &[usize]) -> T {
        let steps = index.iter().zip(&self.strides).map(|(at, stride)| *at as i64 * stride);
        self.array.as_slice::<T>().unwrap()[(self.offset as i64 + steps.sum::<i64>()) as usize]
    }
}

/// The sum of products at one element, by the book: an accumulator for each sum, whatever the number of its loops.
fn element<T: Number + crate::array::Element>(nest: &Nest, factors: &[Laid], at: &mut Vec<usize>, sums: &[usize]) -> T {
    if nest.fused && !sums.is_empty() {
        let sizes = nest.sizes[at.len()..].to_vec();
        let terms = (0..sizes.iter().product()).map(|position| {
            let at = [at.as_slice(), &index_of(position, &sizes)].concat();
            factors_at::<T>(nest, factors, &at)
        });
        return terms.fold(T::ZERO, |sum, values| match values.as_slice() {
            [only] => sum.plus(*only),
            [first @ .., last] => sum.plus_product(first.iter().copied().reduce(T::times).unwrap(), *last),
            [] => sum,
        });
    }
    if let [loops, inner @ ..] = sums {
        let sizes = nest.sizes[at.len()..at.len() + loops].to_vec();
        let mut over = |positions: &mut dyn Iterator<Item = usize>| {
            let mut sum = T::ZERO;
            for position in positions {
                at.extend(index_of(position, &sizes));
                sum = sum.plus(element(nest, factors, at, inner));
                at.truncate(at.len() - loops);
            }
            sum
        };
        let count: usize = sizes.iter().product();
        if !nest.lanes || !inner.is_empty() {
            return over(&mut (0..count));
        }
        let lanes: Vec<T> = (0..8).map(|lane| over(&mut (0..count / 8).map(|q| 8 * q + lane))).collect();
        return lanes.into_iter().fold(T::ZERO, T::plus).plus(over(&mut (count / 8 * 8..count)));
    }
    factors_at(nest, factors, at).into_iter().reduce(T::times).unwrap()
}

/// The elements of the factors that a product is made of.
fn factors_at<T: crate::array::Element>(nest: &Nest, factors: &[Laid], at: &[usize]) -> Vec<T> {
    let read = |(laid, walks): (&Laid, &Vec<Option<usize>>)| -> T {
        laid.get(&walks.iter().map(|walk| walk.map_or(0, |walk| at[walk])).collect::<Vec<_>>())
    };
    factors.iter().zip(&nest.factors).map(read).collect()
}

/// The index of a position in row-major order.
fn index_of(position: usize, shape: &[usize]) -> Vec<usize> {
    let mut rest = position;
    let mut index: Vec<usize> = Vec::new();
    for size in shape.iter().rev() {
        index.insert(0, rest % size);
        rest /= size;
    }
    index
}

fn compare<T: Number + crate::array::Element>(nest: &Nest, factors: &[Laid], out: &mut Laid, show: impl Fn(T) -> u64) {
    compare_some(nest, factors, out, 1, show);
}

/// Compares one of so many elements.
fn compare_some<T: Number + crate::array::Element>(
    nest: &Nest,
    factors: &[Laid],
    out: &mut Laid,
    of: usize,
    show: impl Fn(T) -> u64,
) {
    let views: Vec<View<'_>> = factors.iter().map(Laid::view).collect();
    nest.run(&views, &mut out.view_mut()).unwrap();
    let shape = &nest.sizes[..nest.kept];
    for position in (0..shape.iter().product::<usize>()).step_by(of) {
        let mut at = index_of(position, shape);
        let expected: T = element(nest, factors, &mut at, &nest.sums);
        assert_eq!(show(out.get(&at)), show(expected), "{nest:?} at {at:?}");
    }
}

fn sizes(most: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![Just(0), Just(1), Just(1), 2usize..6, Just(7), Just(13)], 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Every element is the nested sum of products from left to right, whatever the strides.
    #[test]
    fn bits_are_those_of_nested_sums(
        kept in sizes(4),
        summed in prop::collection::vec(sizes(3).prop_filter("loops", |loops| !loops.is_empty()), 0..4),
        count in prop_oneof![3 => 1usize..3, 1 => 3usize..10],
        choices in prop::collection::vec(any::<u64>(), 64),
        elem in prop::sample::select(vec![ElemType::F32, ElemType::F64, ElemType::I32, ElemType::I64]),
    ) {
        let mut choices = choices.into_iter().cycle();
        let mut choose = |below: usize| (choices.next().unwrap() % below.max(1) as u64) as usize;
        let loops = [kept.clone(), summed.concat()].concat();
        let mut factors: Vec<Vec<Option<usize>>> = Vec::new();
        for _ in 0..count {
            let rank = choose(4);
            let one = |choose: &mut dyn FnMut(usize) -> usize| match loops.len() {
                0 => None,
                many => Some(choose(many + 1)).filter(|walk| *walk < many),
            };
            factors.push((0..rank).map(|_| one(&mut choose)).collect());
        }
        let nest = Nest::new(&kept, &summed, &factors).unwrap();
        let nest = match choose(4) {
            0 => nest,
            1 => nest.in_one_sum(),
            2 => nest.in_lanes(),
            _ => nest.fused([Cpu::Native, Cpu::Sse2, Cpu::Avx2][choose(3)]),
        };
        let mut laid = Vec::new();
        for (at, walks) in factors.iter().enumerate() {
            let shape: Vec<usize> = walks.iter().map(|walk| walk.map_or(1, |walk| loops[walk])).collect();
            let ways: Vec<i64> = shape.iter().map(|_| [1, 1, 1, -1, 0, 2, -3][choose(7)]).collect();
            laid.push(Laid::new(elem, &shape, &ways, at as u64));
        }
        let ways: Vec<i64> = kept.iter().map(|_| [1, 1, -1, 2][choose(4)]).collect();
        let mut out = Laid::new(elem, &kept, &ways, 99);
        match elem {
            ElemType::F32 => compare::<f32>(&nest, &laid, &mut out, |x| u64::from(x.to_bits())),
            ElemType::F64 => compare::<f64>(&nest, &laid, &mut out, f64::to_bits),
            ElemType::I32 => compare::<i32>(&nest, &laid, &mut out, |x| x as u64),
            _ => compare::<i64>(&nest, &laid, &mut out, |x| x as u64),
        }
    }
}

#[test]
fn many_factors_and_long_sums() {
    let laid = |shape: &[usize], seed| Laid::new(ElemType::F64, shape, &vec![1; shape.len()], seed);
    let nest = Nest::new(&[11, 13], &[vec![97]], &[vec![Some(0), Some(2)], vec![Some(2), Some(1)]]).unwrap();
    let factors = [laid(&[11, 97], 1), laid(&[97, 13], 2)];
    compare::<f64>(&nest, &factors, &mut laid(&[11, 13], 3), f64::to_bits);
    compare::<f64>(&nest.clone().fused(Cpu::Native), &factors, &mut laid(&[11, 13], 3), f64::to_bits);
    compare::<f64>(&nest.in_lanes(), &factors, &mut laid(&[11, 13], 3), f64::to_bits);
    let nest = Nest::new(&[5], &[], &vec![vec![Some(0)]; 64]).unwrap();
    let factors: Vec<Laid> = (0..64).map(|seed| laid(&[5], seed)).collect();
    compare::<f64>(&nest, &factors, &mut laid(&[5], 3), f64::to_bits);
    assert!(Nest::new(&[5], &[], &vec![vec![Some(0)]; 65]).is_none());
    assert!(Nest::new(&[5], &[], &[]).is_none());
    assert!(Nest::new(&[5], &[vec![]], &[vec![Some(0)]]).is_none());
    assert!(Nest::new(&[5], &[], &[vec![Some(1)]]).is_none());
}

#[test]
fn a_sum_of_minus_zero_is_zero() {
    let minus = Array::from_vec(&[1], vec![-0.0]).unwrap();
    let bits = |kept: &[usize], summed: &[usize]| {
        let summed: Vec<Vec<usize>> = summed.iter().map(|size| vec![*size]).collect();
        let nest = Nest::new(kept, &summed, &[vec![Some(0)]]).unwrap();
        let mut out = Array::from_vec(kept, vec![1.0]).unwrap();
        nest.run(&[View::from(&minus)], &mut ViewMut::from(&mut out)).unwrap();
        out.as_slice::<f64>().unwrap()[0].is_sign_negative()
    };
    assert!(bits(&[1], &[]) && !bits(&[], &[1]));
}

#[test]
fn what_does_not_fit_is_refused() {
    let nest = Nest::new(&[2], &[vec![3]], &[vec![Some(0), Some(1)], vec![None]]).unwrap();
    let array = |shape: &[usize]| Array::zeros(ElemType::F64, shape).unwrap();
    let run = |a: &Array, b: &Array, out: &mut ViewMut<'_>| {
        nest.run(&[View::from(a), View::from(b)], out).map_err(|error| error.to_string())
    };
    let (mut two, mut three) = (array(&[2]), array(&[3]));
    assert_eq!(run(&array(&[2, 3]), &array(&[1]), &mut ViewMut::from(&mut two)), Ok(()));
    let wrong = run(&array(&[3, 2]), &array(&[1]), &mut ViewMut::from(&mut two));
    assert_eq!(wrong, Err("input 1: expected the shape [2, 3], found [3, 2]".into()));
    assert!(run(&array(&[2, 3]), &array(&[2]), &mut ViewMut::from(&mut two)).is_err());
    assert!(run(&array(&[2, 3]), &array(&[1]), &mut ViewMut::from(&mut three)).is_err());
    assert!(nest.run(&[View::from(&array(&[2, 3]))], &mut ViewMut::from(&mut two)).is_err());
    let single = Array::zeros(ElemType::F32, &[1]).unwrap();
    assert!(run(&array(&[2, 3]), &single, &mut ViewMut::from(&mut two)).is_err());
    let mut bytes = [0; 8];
    let mut twice = ViewMut::new(ElemType::F64, &mut bytes, 0, &[2], &[0]).unwrap();
    assert!(run(&array(&[2, 3]), &array(&[1]), &mut twice).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Tiles have the bits of single elements, whatever the sizes, the order of loops, and strides.
    #[test]
    fn tiles_have_the_bits_of_nested_sums(
        sizes in [1usize..6, 1..30, 1..4, 1..40, 1..4],
        terms in (prop_oneof![1usize..20, Just(256), 250usize..600], 1usize..4),
        order in Just(vec![0usize, 1, 2, 3, 4]).prop_shuffle(),
        ways in prop::collection::vec(prop::sample::select(vec![1i64, 1, 1, 1, -1, 0, 2, -3]), 10),
        rotations in [0usize..5, 0..5],
        threads in 1usize..4,
        cpu in prop::sample::select(vec![Cpu::Sse2, Cpu::Avx2, Cpu::Avx512, Cpu::Native]),
        elem in prop::sample::select(vec![ElemType::F32, ElemType::F64, ElemType::I32, ElemType::I64]),
    ) {
        // Loop 0 is one of both factors, 1 and 2 are of the first, 3 and 4 of the second.
        let kept: Vec<usize> = order.iter().map(|which| sizes[*which]).collect();
        let walk = |which: usize| order.iter().position(|own| *own == which);
        let mut factors = vec![vec![walk(0), walk(1), walk(2), Some(5), Some(6)], vec![Some(5), walk(0), Some(6), walk(3), walk(4)]];
        for (factor, by) in factors.iter_mut().zip(rotations) {
            factor.rotate_left(by);
        }
        let terms = vec![terms.0, terms.1];
        let nest = Nest::new(&kept, std::slice::from_ref(&terms), &factors).unwrap().fused(cpu);
        let loops = [kept.clone(), terms].concat();
        let mut ways = ways.into_iter();
        let mut laid = |shape: &[usize], seed| Laid::new(elem, shape, &shape.iter().map(|_| ways.next().unwrap()).collect::<Vec<_>>(), seed);
        let arrays: Vec<Laid> = factors.iter().zip(1..).map(|(walks, seed)| {
            laid(&walks.iter().map(|walk| loops[walk.unwrap()]).collect::<Vec<_>>(), seed)
        }).collect();
        let mut out = Laid::new(elem, &kept, &vec![rotations[0] as i64 - 5; kept.len()], 99);
        with_threads(NonZeroUsize::new(threads).unwrap(), || match elem {
            ElemType::F32 => compare::<f32>(&nest, &arrays, &mut out, |x| u64::from(x.to_bits())),
            ElemType::F64 => compare::<f64>(&nest, &arrays, &mut out, f64::to_bits),
            ElemType::I32 => compare::<i32>(&nest, &arrays, &mut out, |x| x as u64),
            _ => compare::<i64>(&nest, &arrays, &mut out, |x| x as u64),
        });
    }
}

#[test]
fn tiles_in_parts_and_repeated_results() {
    let laid = |shape: &[usize], ways: &[i64], seed| Laid::new(ElemType::F64, shape, ways, seed);
    let walks = [vec![Some(0), Some(1), Some(3)], vec![Some(3), Some(0), Some(2)]];
    let nest = Nest::new(&[3, 67, 131], &[vec![97]], &walks).unwrap().fused(Cpu::Native);
    assert!(nest.is_tiled());
    for ways in [[1, 1, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]] {
        let factors = [laid(&[3, 67, 97], &[1, 1, 1], 1), laid(&[97, 3, 131], &ways, 2)];
        for threads in 1..4 {
            with_threads(NonZeroUsize::new(threads).unwrap(), || {
                compare::<f64>(&nest, &factors, &mut laid(&[3, 67, 131], &[1, 1, 1], 3), f64::to_bits);
            });
        }
    }
}

/// Blocks of rows, of lanes and of terms, with rests of each, for every instruction set.
#[test]
fn tiles_of_several_blocks() {
    let walks = [vec![Some(0), Some(2)], vec![Some(2), Some(1)]];
    let across = [vec![Some(2), Some(0)], vec![Some(1), Some(2)]];
    for (walks, rows, lanes, terms) in [(&walks, 211, 531, 300), (&across, 203, 19, 523), (&across, 4, 1100, 270)] {
        let shape = |walks: &[Option<usize>]| -> Vec<usize> {
            walks.iter().map(|walk| [rows, lanes, terms][walk.unwrap()]).collect()
        };
        for cpu in [Cpu::Avx2, Cpu::Avx512].into_iter().filter(|cpu| cpu.is_here()) {
            let nest = Nest::new(&[rows, lanes], &[vec![terms]], walks).unwrap().fused(cpu);
            for elem in [ElemType::F32, ElemType::F64] {
                let factors = [1, 2].map(|seed| Laid::new(elem, &shape(&walks[seed - 1]), &[1, 1], seed as u64));
                let mut out = Laid::new(elem, &[rows, lanes], &[1, 1], 3);
                match elem {
                    ElemType::F32 => compare_some::<f32>(&nest, &factors, &mut out, 23, |x| u64::from(x.to_bits())),
                    _ => compare_some::<f64>(&nest, &factors, &mut out, 23, f64::to_bits),
                }
            }
        }
    }
}

/// Copies an array with permuted dimensions, and compares each element.
fn check_permuted<T: Number + crate::array::Element + PartialEq + std::fmt::Debug>(laid: &Laid, vectors: usize) {
    let count = laid.shape.iter().product::<usize>();
    let mut copy = vec![T::ZERO; count];
    let mut loops = Vec::new();
    let mut to = 1;
    for (size, stride) in laid.shape.iter().zip(&laid.strides).rev() {
        loops.push(Stride { size: *size, from: (*stride as isize) * size_of::<T>() as isize, to });
        to *= size;
    }
    let view = laid.view();
    // SAFETY: the loops are those of the view, and the copy is as large.
    unsafe { permute(view.data(), copy.as_mut_ptr(), &loops, vectors) };
    for (position, found) in copy.into_iter().enumerate() {
        assert_eq!(found, laid.get::<T>(&index_of(position, &laid.shape)), "{:?} {:?}", laid.shape, laid.strides);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A copy in another order has every element at its place, whatever the sizes and strides.
    #[test]
    fn permuted_copies_are_copies(
        sizes in prop::collection::vec(prop::sample::select(vec![1usize, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 33, 64, 101]), 1..5),
        order in prop::collection::vec(any::<u32>(), 5),
        ways in prop::collection::vec(prop::sample::select(vec![1i64, 1, 1, 1, 1, -1, 2]), 5),
        threads in 1usize..3,
        elem in prop::sample::select(vec![ElemType::F32, ElemType::F64, ElemType::I32, ElemType::I64]),
    ) {
        prop_assume!(sizes.iter().product::<usize>() < 1 << 20);
        let mut dimensions: Vec<usize> = (0..sizes.len()).collect();
        dimensions.sort_by_key(|at| order[*at]);
        let laid = Laid::new(elem, &sizes, &ways[..sizes.len()], 5);
        let shape = dimensions.iter().map(|at| laid.shape[*at]).collect();
        let strides = dimensions.iter().map(|at| laid.strides[*at]).collect();
        let laid = Laid { shape, strides, ..laid };
        let vectors: Vec<usize> = Cpu::here().into_iter().map(Cpu::vector_bytes).chain([16]).collect();
        with_threads(NonZeroUsize::new(threads).unwrap(), || for vectors in vectors {
            match elem {
                ElemType::F32 => check_permuted::<f32>(&laid, vectors),
                ElemType::F64 => check_permuted::<f64>(&laid, vectors),
                ElemType::I32 => check_permuted::<i32>(&laid, vectors),
                _ => check_permuted::<i64>(&laid, vectors),
            }
        });
    }
}
