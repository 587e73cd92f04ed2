use std::sync::atomic::Ordering;

use certen_core::domain::Machine;
use certen_core::{Evaluator, Tensor};
use proptest::prelude::*;

use super::*;

fn contraction(text: &str, shapes: &[&[usize]], order: &Order) -> Result<Contraction, EinsumError> {
    Contraction::new(&Subscripts::parse(text, shapes.len())?, shapes, ElemType::F64, order)
}

/// The steps of an order, as the report shows them.
fn steps(text: &str, shapes: &[&[usize]], order: &Order) -> String {
    let report = contraction(text, shapes, order).unwrap().report();
    let lines = report.lines().skip(10).map(|line| line.split_whitespace().nth(1).unwrap());
    lines.collect::<Vec<_>>().join(" ")
}

#[test]
fn orders() {
    let chain: &[&[usize]] = &[&[10, 100], &[100, 5], &[5, 50]];
    let star: &[&[usize]] = &[&[2, 3], &[2, 5], &[2, 7]];
    let path = |entries: &[&[usize]]| Order::Path(entries.iter().map(|entry| entry.to_vec()).collect());
    for (text, shapes, order, expected) in [
        ("ij,jk,kl->il", chain, Order::AsWritten, "ij,jk,kl->il"),
        ("ij,jk,kl->il", chain, Order::Best, "ij,jk->ik kl,ik->il"),
        ("ij,jk,kl->il", chain, path(&[&[1, 2], &[0, 1]]), "jk,kl->jl ij,jl->il"),
        ("ij,jk,kl->il", chain, path(&[&[1, 0], &[1, 0]]), "ij,jk->ik kl,ik->il"),
        ("ij,jk,kl->il", chain, path(&[&[0, 1, 2]]), "ij,jk,kl->il"),
        // An operand alone: nothing to be done, or an index to be summed.
        ("ij,jk,kl->il", chain, path(&[&[0], &[0, 1], &[0, 1], &[0]]), "jk,kl->jl ij,jl->il"),
        ("ij,jk,kl->l", chain, path(&[&[0], &[0, 2], &[0, 1]]), "ij->j jk,j->k kl,k->l"),
        // What one factor alone has is summed before it is multiplied.
        ("ij,jk->k", &chain[..2], Order::Best, "ij->j j,jk->k"),
        ("ij,jk->k", &chain[..2], Order::AsWritten, "ij,jk->k"),
        ("ij,ik,il->", star, Order::Greedy, "ij->i ik->i i,i->i il->i i,i->"),
        // An intermediate result that would be too large is not made: what is left is contracted at once.
        ("ij,jk,kl->il", chain, Order::BestWithin(50), "ij,jk->ik kl,ik->il"),
        ("ij,jk,kl->il", chain, Order::BestWithin(49), "ij,jk,kl->il"),
        ("ij,jk,kl,lm->im", &[&[2, 9], &[9, 3], &[3, 9], &[9, 9]], Order::GreedyWithin(17), "ij,jk->ik kl,lm,ik->im"),
        // Nothing to be gained.
        ("ij,ik,il->ijkl", star, Order::Best, "ij,ik,il->ijkl"),
        ("ij->ji", &chain[..1], Order::Best, "ij->ji"),
    ] {
        assert_eq!(steps(text, shapes, &order), expected, "{text} {order:?}");
    }
    let best = contraction("ij,jk,kl->il", chain, &Order::Best).unwrap();
    assert_eq!(best.path(), [vec![0, 1], vec![0, 1]]);
    // Stretched dimensions do not count.
    assert_eq!(steps("ij,jk->ik", &[&[2, 1], &[3, 5]], &Order::Best), "jk->k ij,k->ik");
}

#[test]
fn paths_that_are_none() {
    let error = |entries: &[&[usize]]| {
        let path = Order::Path(entries.iter().map(|entry| entry.to_vec()).collect());
        contraction("i,i,i->i", &[&[2], &[2], &[2]], &path).unwrap_err().to_string()
    };
    assert_eq!(error(&[&[0, 3]]), "step 0 of the path takes operand 3, but there are operands 0 to 2 then");
    assert_eq!(error(&[&[0, 1, 2], &[1]]), "step 1 of the path takes operand 1, but there is 1 operand");
    assert_eq!(error(&[&[0, 1], &[1, 1]]), "step 1 of the path takes operand 1 twice");
    assert_eq!(error(&[&[]]), "step 0 of the path takes no operand");
    assert_eq!(error(&[&[0, 1]]), "the path ends too early: 2 operands are left to be contracted");
    assert_eq!(error(&[]), "the path ends too early: 3 operands are left to be contracted");
}

#[test]
fn arrays_that_do_not_fit() {
    let product = contraction("ij,jk->ik", &[&[2, 3], &[3, 5]], &Order::Best).unwrap();
    let array = |shape: &[usize]| Array::zeros(ElemType::F64, shape).unwrap();
    let run = |operands: &[&Array], out: &mut Array| {
        let views: Vec<View<'_>> = operands.iter().map(|array| View::from(*array)).collect();
        product.run(&views, out.into(), None).map_err(|failure| failure.diagnostics()[0].message.clone())
    };
    let (a, b) = (array(&[2, 3]), array(&[3, 5]));
    assert_eq!(run(&[&a, &b], &mut array(&[2, 5])), Ok(()));
    let text = "operand 1 has shape [2, 3], but the contraction is for [3, 5]";
    assert_eq!(run(&[&a, &a], &mut array(&[2, 5])), Err(text.into()));
    let text = "the output has shape [5, 2], but the result has [2, 5]";
    assert_eq!(run(&[&a, &b], &mut array(&[5, 2])), Err(text.into()));
    let text = "the contraction is of 2 operands, but 1 are given";
    assert_eq!(run(&[&a], &mut array(&[2, 5])), Err(text.into()));
    let single = Array::zeros(ElemType::F32, &[2, 3]).unwrap();
    let text = "operand 0 has elements of type f32, but the contraction is of f64";
    assert_eq!(run(&[&single, &b], &mut array(&[2, 5])), Err(text.into()));
    let bools = Contraction::new(&Subscripts::parse("i", 1).unwrap(), &[&[2]], ElemType::Bool, &Order::Best);
    assert_eq!(bools.unwrap_err(), EinsumError::Element(ElemType::Bool));
}

#[test]
fn what_cannot_be_in_memory_is_an_error() {
    // The result is a number, but the path makes an outer product of 2^60 or 2^66 elements first.
    for size in [1 << 30, 1 << 33] {
        let path = Order::Path(vec![vec![0, 1], vec![0, 1, 2]]);
        let shapes: [&[usize]; 4] = [&[size], &[size], &[size, 1], &[size, 1]];
        let sum = contraction("i,j,ik,jk->", &shapes, &path).unwrap();
        let zero = [0; 8];
        let view = |shape: &[usize]| View::new(ElemType::F64, &zero, 0, shape, &vec![0; shape.len()]).unwrap();
        let operands = shapes.map(view);
        let mut out = Array::zeros(ElemType::F64, &[]).unwrap();
        let failure = sum.run(&operands, (&mut out).into(), None).unwrap_err();
        assert_eq!(failure.diagnostics()[0].code, Code::E0408, "{failure}");
    }
}

/// Pairs of indices that are one, where arrays whose memory does not show them as one are copied for native code; and
/// sums in lanes, with and without something left at the end.
#[test]
fn pairs_and_lanes() {
    let programs: [(&str, usize, &[&[usize]]); 9] = [
        ("abij,ijcd->abcd", 3, &[&[2, 3, 5, 7], &[5, 7, 3, 2]]),
        ("abc,abd->cd", 3, &[&[5, 7, 3], &[5, 7, 2]]),
        ("ij->", 1, &[&[7, 11]]),
        ("ij,ij->", 1, &[&[4, 6], &[4, 6]]),
        ("ij,ji->", 2, &[&[9, 23], &[23, 9]]),
        ("ij->i", 2, &[&[5, 29]]),
        ("aij,ij->a", 2, &[&[3, 5, 7], &[5, 7]]),
        ("ijk->j", 3, &[&[17, 3, 9]]),
        ("ii", 1, &[&[13, 13]]),
    ];
    for (text, indices, shapes) in programs {
        for ways in [[1, 1, 1, 1], [1, -1, 1, 1], [1, 1, 1, -1], [0, 1, 1, 0], [-1, -1, -1, -1]] {
            let operand = |shape: &&[usize]| Array::random(ElemType::F64, shape, shape.len() as u64).unwrap();
            let operands: Vec<Array> = shapes.iter().map(operand).collect();
            let ways = shapes.iter().map(|shape| ways[..shape.len()].to_vec()).collect();
            let case = Case { text: text.into(), elem: ElemType::F64, operands, ways };
            let contraction = case.contraction(&Order::Best);
            assert_eq!(contraction.groups.len(), indices);
            let meaning = case.meaning(&contraction);
            let module = contraction.module().unwrap();
            for columns in [false, true] {
                let native = case.result(&contraction, columns, |mut out| {
                    assert!(contraction.run_native(&module, &case.views(), &mut out, None).unwrap());
                });
                let run = |mut out: ViewMut<'_>| contraction.run_loops(&case.views(), &mut out).unwrap();
                let loops = case.result(&contraction, columns, run);
                assert!(agree(&loops, &meaning, &contraction), "{text}: {loops:?}, not {meaning:?}");
                assert_eq!(bits(&native), bits(&loops), "{text} native");
            }
        }
    }
}

/// Steps over a batch of small elements are taken together, by code that serves every batch, with the bits of the loops.
#[test]
fn chains_run_in_lanes_of_their_batch() {
    let sizes = |batch| {
        move |letter| match letter {
            'z' => batch,
            'a' | 'i' => 3,
            'b' | 'j' => 5,
            _ => 4,
        }
    };
    let shapes = |text: &str, batch: usize| -> Vec<Vec<usize>> {
        let terms = text.split("->").next().unwrap_or_default().split(',');
        terms.map(|term| term.chars().map(sizes(batch)).collect()).collect()
    };
    let steps_of = |text: &str, batch| {
        let shapes = shapes(text, batch);
        contraction(text, &shapes.iter().map(Vec::as_slice).collect::<Vec<_>>(), &Order::Best).unwrap()
    };
    for text in ["ia,jb,kc,zabc->zijk", "zab,ai,bj->zij", "jb,zab,ia->zij", "zab,ia,jb->zji"] {
        let whole = steps_of(text, 70).module().unwrap();
        let mut served = Vec::new();
        for batch in [70, 32, 129] {
            let contraction = steps_of(text, batch);
            assert!(contraction.plan.is_chain, "{text} {batch}");
            let operand = |shape: Vec<usize>| Array::random(ElemType::F64, &shape, shape.len() as u64).unwrap();
            let operands: Vec<Array> = shapes(text, batch).into_iter().map(operand).collect();
            let ways = operands.iter().map(|array| vec![1; array.shape().len()]).collect();
            let case = Case { text: text.into(), elem: ElemType::F64, operands, ways };
            let native = case.result(&contraction, false, |mut out| {
                assert!(contraction.run_native(&whole, &case.views(), &mut out, None).unwrap());
            });
            let loops = case.loops(&contraction);
            assert_eq!(bits(&native), bits(&loops), "{text} {batch}");
            assert!(agree(&loops, &case.meaning(&contraction), &contraction), "{text} {batch}");
            let sizes: Vec<i64> = contraction.einsum.indices().iter().map(|index| index.size as i64).collect();
            served.push(whole.specialised(&sizes).unwrap().unwrap());
        }
        assert!(served.iter().all(|module| Arc::ptr_eq(module, &served[0])), "{text}");
        assert_eq!(served[0].core().sizes.len(), 1, "{text}: all but the batch are numbers");
    }
    // A small batch; one that does not come first; a product of two matrices first; what is no product with a matrix; large elements.
    assert!(!steps_of("ia,jb,kc,zabc->zijk", 31).plan.is_chain);
    assert!(!steps_of("jb,azb,ia->zij", 70).plan.is_chain);
    assert!(!steps_of("zab,bc,ck->zak", 70).plan.is_chain);
    assert!(!steps_of("zab,zai,bj->zij", 70).plan.is_chain);
    let large: [&[usize]; 3] = [&[70, 40, 40], &[40, 40], &[40, 40]];
    assert!(!contraction("zab,ai,bj->zij", &large, &Order::Best).unwrap().plan.is_chain);
}

#[test]
fn enough_work_is_compiled() {
    let forms = |text: &str, sizes: [usize; 3]| {
        let [l, m, n] = sizes;
        contraction(text, &[&[l, m], &[m, n]], &Order::AsWritten).unwrap()
    };
    // Fewer products than tiles gain with; letters that no other test uses, and a form of its own: the third index comes first in the result.
    let small = forms("pq,qr->rp", [3, 2, 7]);
    let shared = small.compiled.clone().unwrap();
    let due = |done: u64| {
        shared.work.store(done, Ordering::Relaxed);
        shared.is_due(small.work)
    };
    assert_eq!(small.work, 3 * 2 * 7);
    assert!(!due(0) && !due(compiled::WORTH_COMPILING - 3 * 2 * 7 - 1) && due(compiled::WORTH_COMPILING - 3 * 2 * 7));
    let operands = [Array::iota(ElemType::F64, &[3, 2]).unwrap(), Array::iota(ElemType::F64, &[2, 7]).unwrap()];
    let run = || {
        let mut out = Array::zeros(ElemType::F64, &[7, 3]).unwrap();
        small.run(&operands.each_ref().map(View::from), (&mut out).into(), None).unwrap();
        out
    };
    // A run counts, and never compiles.
    let before = run();
    assert_eq!(shared.work.load(Ordering::Relaxed), compiled::WORTH_COMPILING);
    assert!(shared.module.get().is_none());
    small.prepare();
    assert!(shared.module.get().unwrap().as_ref().unwrap().is_compiled());
    assert!(!shared.is_due(small.work));
    assert_eq!(run(), before);
    // Another shape and other letters are the same form; another element type is not.
    assert!(Arc::ptr_eq(&shared, forms("ab,bc->ca", [5, 2, 6]).compiled.as_ref().unwrap()));
    assert!(!Arc::ptr_eq(&shared, forms("ab,bc->ac", [5, 2, 6]).compiled.as_ref().unwrap()));
    // What is no row is not compiled at all.
    assert!(contraction("ij->i", &[&[2, 3]], &Order::Best).unwrap().compiled.is_none());
}

/// An einsum with operands, made of choices.
#[derive(Debug)]
struct Case {
    text: String,
    elem: ElemType,
    operands: Vec<Array>,
    /// How each dimension of each operand lies in memory: forwards, backwards or standing still.
    ways: Vec<Vec<i64>>,
}

fn case(choices: &[u64], elem: ElemType) -> Case {
    let mut choices = choices.iter().cycle();
    let mut choose = |below: usize| (choices.next().copied().unwrap_or(0) % below.max(1) as u64) as usize;
    let letters = ['i', 'j', 'k', 'B', 'a'];
    let mut sizes: Vec<usize> = letters.iter().map(|_| [0, 1, 2, 2, 3, 3, 5, 7][choose(8)]).collect();
    // Long enough for lanes.
    sizes[2] = [1, 3, 8, 9, 19][choose(5)];
    let rest = [choose(3) + 1, choose(2) + 1];
    let mut case = Case { text: String::new(), elem, operands: Vec::new(), ways: Vec::new() };
    let (mut used, mut dots) = (Vec::new(), false);
    for operand in 0..choose(4) + 1 {
        if operand > 0 {
            case.text.push(',');
        }
        let term: Vec<usize> = (0..choose(4)).map(|_| choose(letters.len())).collect();
        // A stretched index is stretched wherever it stands in the operand.
        let stretched: Vec<bool> = letters.iter().map(|_| choose(6) == 0).collect();
        let mut shape: Vec<usize> = term.iter().map(|l| if stretched[*l] { 1 } else { sizes[*l] }).collect();
        let mut text: Vec<String> = term.iter().map(|letter| letters[*letter].to_string()).collect();
        if choose(4) == 0 {
            let at = choose(text.len() + 1);
            text.insert(at, "...".into());
            let skipped = choose(3);
            shape.splice(at..at, rest[skipped..].iter().map(|size| if choose(3) == 0 { 1 } else { *size }));
            dots = true;
        }
        used.extend(term);
        case.text += &text.concat();
        case.ways.push(shape.iter().map(|_| [1, 1, 1, -1, 0][choose(5)]).collect());
        case.operands.push(Array::random(elem, &shape, operand as u64 + 17).unwrap());
    }
    if choose(4) > 0 {
        used.sort_unstable();
        used.dedup();
        used.retain(|_| choose(2) == 0);
        used.sort_by_key(|_| choose(1000));
        case.text += "->";
        case.text += if dots { "..." } else { "" };
        case.text.extend(used.into_iter().map(|letter| letters[letter]));
    }
    case
}

impl Case {
    fn contraction(&self, order: &Order) -> Contraction {
        let shapes: Vec<&[usize]> = self.operands.iter().map(Array::shape).collect();
        Contraction::new(&Subscripts::parse(&self.text, shapes.len()).unwrap(), &shapes, self.elem, order).unwrap()
    }

    /// The operands as they lie: each array's memory, walked along in other ways.
    fn views<'a>(&'a self) -> Vec<View<'a>> {
        let view = |(array, ways): (&'a Array, &Vec<i64>)| {
            let (mut strides, mut dense, mut offset) = (vec![0; ways.len()], 1, 0);
            for (at, &size) in array.shape().iter().enumerate().rev() {
                strides[at] = ways[at] * dense;
                if ways[at] < 0 {
                    offset += dense * (size as i64 - 1).max(0);
                }
                dense *= size.max(1) as i64;
            }
            View::new(self.elem, array.bytes(), offset as usize, array.shape(), &strides).unwrap()
        };
        self.operands.iter().zip(&self.ways).map(view).collect()
    }

    /// A result that `run` writes to, its columns one after the other if that is asked for.
    fn result(&self, contraction: &Contraction, columns: bool, run: impl FnOnce(ViewMut<'_>)) -> Array {
        let shape = contraction.output_shape();
        let mut memory = vec![7; bytes(self.elem, &shape) as usize];
        let mut strides: Vec<i64> = vec![0; shape.len()];
        let mut dense = 1;
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if !columns {
            order.reverse();
        }
        for at in order {
            strides[at] = dense;
            dense *= shape[at].max(1) as i64;
        }
        run(ViewMut::new(self.elem, &mut memory, 0, &shape, &strides).unwrap());
        View::new(self.elem, &memory, 0, &shape, &strides).unwrap().to_array().unwrap()
    }

    fn loops(&self, contraction: &Contraction) -> Array {
        let columns = self.text.len().is_multiple_of(2);
        self.result(contraction, columns, |mut out| contraction.run_loops(&self.views(), &mut out).unwrap())
    }

    fn native(&self, contraction: &Contraction) -> Array {
        let module = contraction.module().unwrap_or_else(|| panic!("{} is not compiled", self.text));
        let columns = self.text.len().is_multiple_of(3);
        self.result(contraction, columns, |mut out| {
            assert!(contraction.run_native(&module, &self.views(), &mut out, None).unwrap());
        })
    }

    /// What the program means.
    fn meaning(&self, contraction: &Contraction) -> Array {
        let core = contraction.einsum.to_core(&contraction.plan.steps, self.elem).unwrap();
        let sizes = core.sizes.iter().copied().zip(contraction.einsum.indices().iter().map(|index| index.size as i64));
        let merged = |at: usize, view: &View<'_>| {
            let size = |axis: &Axis| if let Axis::Index(i) = axis { contraction.einsum.indices()[*i].size } else { 1 };
            let shape = contraction.einsum.operands()[at].iter().map(size).collect();
            Tensor::new(shape, view.to_array().unwrap().to_tensor().unwrap().data().to_vec()).unwrap()
        };
        let inputs = core.inputs.iter().zip(self.views()).enumerate();
        let inputs = inputs.map(|(at, (input, view))| (input.name, merged(at, &view)));
        let mut outputs = Evaluator::new(&core, &Machine, sizes, inputs).unwrap().run().unwrap();
        let output = Tensor::new(contraction.output_shape(), outputs.remove(0).1.data().to_vec()).unwrap();
        Array::from_tensor(self.elem, &output).unwrap()
    }
}

/// How many cases a property is tested with: `CERTEN_CASES`, a part of it where every case calls the C compiler.
fn cases(default: u32, part: u32) -> ProptestConfig {
    let slow = std::env::var("CERTEN_CASES").ok().and_then(|text| text.parse::<u32>().ok());
    ProptestConfig::with_cases(slow.map_or(default, |cases| (cases / part).max(1)))
}

fn choices() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(any::<u64>(), 80)
}

fn bits(array: &Array) -> (Vec<usize>, Vec<u8>) {
    (array.shape().to_vec(), array.bytes().to_vec())
}

/// Whether a result has the bits that the program means; where products are fused with their additions, almost.
fn agree(found: &Array, meaning: &Array, contraction: &Contraction) -> bool {
    let is_fused = |step: &Product| contraction.einsum.is_in_rows(&contraction.plan.steps, step);
    let rounding = match found.elem() {
        ElemType::F64 => f64::EPSILON,
        ElemType::F32 => f64::from(f32::EPSILON),
        _ => 0.0,
    };
    if rounding == 0.0 || !contraction.plan.steps.iter().any(is_fused) {
        return bits(found) == bits(meaning);
    }
    let values = |array: &Array| -> Vec<f64> { (0..array.len()).map(|at| array.get(at).unwrap().to_f64()).collect() };
    let (found, meaning, terms) = (values(found), values(meaning), contraction.work.max(1) as f64);
    let most = meaning.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
    found.iter().zip(&meaning).all(|(a, b)| (a - b).abs() <= rounding * terms * most)
}

const ELEMS: [ElemType; 4] = [ElemType::F32, ElemType::F64, ElemType::I32, ElemType::I64];

proptest! {
    #![proptest_config(cases(300, 1))]

    /// Loops compute what the program of Core means in every order, bit for bit where nothing is fused.
    #[test]
    fn loops_have_the_meaning_of_the_program(choices in choices(), elem in prop::sample::select(&ELEMS[..])) {
        let case = case(&choices, elem);
        for order in [Order::AsWritten, Order::Best, Order::Greedy] {
            let contraction = case.contraction(&order);
            let (loops, meaning) = (case.loops(&contraction), case.meaning(&contraction));
            prop_assert!(agree(&loops, &meaning, &contraction), "{:?} {:?}: {:?}, not {:?}", order, case, loops, meaning);
        }
    }

    /// Another order of the result's dimensions changes no element.
    #[test]
    fn layouts_do_not_change_bits(choices in choices(), elem in prop::sample::select(&ELEMS[..])) {
        let case = case(&choices, elem);
        for order in [Order::AsWritten, Order::Best] {
            let contraction = case.contraction(&order);
            let Some((laid_out, places)) = contraction.laid_out(&order) else { continue };
            let (wanted, found) = (case.loops(&contraction), case.loops(&laid_out));
            let dense = View::from(&found);
            let shape: Vec<usize> = places.iter().map(|place| found.shape()[*place]).collect();
            let strides: Vec<i64> = places.iter().map(|place| dense.strides()[*place]).collect();
            let view = View::new(elem, found.bytes(), 0, &shape, &strides).unwrap();
            prop_assert_eq!(bits(&view.to_array().unwrap()), bits(&wanted), "{:?} {:?}", order, case);
        }
    }

    /// Whole numbers are a ring: no order changes a result.
    #[test]
    fn orders_agree(choices in choices()) {
        let case = case(&choices, ElemType::I64);
        let as_written = case.loops(&case.contraction(&Order::AsWritten));
        for order in [Order::Best, Order::Greedy] {
            let contraction = case.contraction(&order);
            prop_assert_eq!(&case.loops(&contraction), &as_written, "{:?} {:?}", order, case);
            let path = Order::Path(contraction.path().to_vec());
            prop_assert_eq!(&case.loops(&case.contraction(&path)), &as_written, "{:?} {:?}", path, case);
        }
    }

    /// The operations that are counted are those of the program.
    #[test]
    fn counts_are_those_of_the_program(choices in choices()) {
        let case = case(&choices, ElemType::F64);
        for order in [Order::AsWritten, Order::Best] {
            let contraction = case.contraction(&order);
            let (einsum, steps) = (&contraction.einsum, &contraction.plan.steps);
            let core = einsum.to_core(steps, ElemType::F64).unwrap();
            let size = |name| core.sizes.iter().position(|own| *own == name).map(|at| einsum.indices()[at].size as i64);
            let times = |step: &Product| {
                let loops = [step.kept.clone(), einsum.summed(steps, step)].concat();
                einsum.shape(&loops).iter().product::<usize>() * (step.factors.len() - 1)
            };
            let multiplications = core.multiplications().unwrap().eval(&size).unwrap();
            prop_assert_eq!(multiplications, steps.iter().map(times).sum::<usize>() as i64);
            let additions = |step: &Product| {
                let summed = einsum.summed(steps, step);
                let loops = [step.kept.clone(), summed.clone()].concat();
                if summed.is_empty() { 0 } else { einsum.shape(&loops).iter().product::<usize>() }
            };
            let flops = multiplications as usize + steps.iter().map(additions).sum::<usize>();
            prop_assert_eq!(contraction.flops(), flops as u128);
        }
    }
}

proptest! {
    #![proptest_config(cases(12, 200))]

    /// Native code has the bits of the loops.
    #[test]
    fn both_tiers_have_the_same_bits(
        choices in choices(),
        elem in prop::sample::select(&ELEMS[..]),
        order in prop::sample::select(vec![Order::AsWritten, Order::Best]),
    ) {
        let case = case(&choices, elem);
        let contraction = case.contraction(&order);
        prop_assert_eq!(bits(&case.native(&contraction)), bits(&case.loops(&contraction)), "{:?} {:?}", order, case);
    }
}
