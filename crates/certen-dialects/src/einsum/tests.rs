use certen_core::ElemType;

use super::*;

/// `ij,jk | 2,3 | 3,4` as subscripts and shapes.
fn read(text: &str) -> (&str, Vec<Vec<usize>>) {
    let mut parts = text.split('|');
    let spec = parts.next().unwrap();
    let shape = |text: &str| match text.trim() {
        "()" => Vec::new(),
        sizes => sizes.split(',').map(|size| size.parse().unwrap()).collect(),
    };
    (spec.strip_suffix(' ').unwrap_or(spec), parts.map(shape).collect())
}

fn resolved(text: &str) -> Result<Einsum, EinsumError> {
    let (spec, shapes) = read(text);
    let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    Einsum::new(&Subscripts::parse(spec, shapes.len())?, &shapes)
}

/// What NumPy 2.4.6 answered; `tests/einsum/ask_numpy.py` has asked.
#[test]
fn numpy_agrees() {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/einsum/numpy.txt");
    let table = std::fs::read_to_string(table).unwrap();
    assert!(table.lines().count() > 500);
    for line in table.lines() {
        let (question, answer) = line.rsplit_once(" = ").unwrap();
        let found = match resolved(question).map(|einsum| einsum.output_shape()) {
            Ok(shape) if shape.is_empty() => "()".into(),
            Ok(shape) => shape.iter().map(usize::to_string).collect::<Vec<_>>().join(","),
            Err(_) => "ValueError".into(),
        };
        assert_eq!(found, answer, "{line}");
    }
}

#[test]
fn errors_name_index_operand_and_sizes() {
    for (question, message) in [
        ("ij,jk | 2,3 | 4,5", "index j is 3 in operand 0 and 4 in operand 1"),
        ("i,i,i | 1 | 3 | 4", "index i is 3 in operand 1 and 4 in operand 2"),
        ("ii | 1,3", "index i is 1 and 3 in operand 0: the sides of a diagonal have one size"),
        // NumPy takes this one for a diagonal of size 1, and reads memory that is not the array's.
        ("ii->i | 0,1", "index i is 0 and 1 in operand 0: the sides of a diagonal have one size"),
        ("ij->i | 2,3,4", "operand 0 has 3 dimensions, but its subscripts are for 2; '...' stands for the others"),
        ("i,ij | 2 | 2", "operand 1 has 1 dimension, but its subscripts are for 2"),
        ("ij...->i... | 2", "operand 0 has 1 dimension, but its subscripts are for at least 2"),
        ("i,j->ij | 2", "the subscripts are for 2 operands, but there is 1"),
        ("ij->i | 2 | 3", "the subscripts are for 1 operand, but there are 2"),
        ("ij->ik | 2,3", "index k of the output is in no operand"),
        ("ij->ii | 2,3", "index i stands twice in the output"),
        ("i1 | 2,3", "'1' in the subscripts of operand 0: an index is a letter from a to z or A to Z"),
        ("i,ß | 2 | 3", "'ß' in the subscripts of operand 1: an index is a letter from a to z or A to Z"),
        ("ij->i>j | 2,3", "'>' in the subscripts of the output: an index is a letter from a to z or A to Z"),
        ("i.j | 2,3", "a '.' that is not part of '...' in the subscripts of operand 0"),
        ("...i... | 2", "'...' stands twice in the subscripts of operand 0"),
        ("ij - > i | 2,3", "'-' without '>': the output stands after '->'"),
        ("...i->i | 4,2,3", "'...' of operand 0 stands for dimensions of size [4, 2], but the output has no '...'"),
        ("...,... | 2,3 | 2,4", "the last dimension of '...' is 3 in operand 0 and 4 in operand 1"),
        ("...,...i | 2,3 | 4,3,5", "dimension 2 from the right of '...' is 2 in operand 0 and 4 in operand 1"),
    ] {
        assert_eq!(resolved(question).unwrap_err().to_string(), message, "{question}");
    }
    assert_eq!(Subscripts::parse("ij\0k", 1).map(|found| found.to_string()), Ok("ij->ij".into()), "as NumPy's");
    assert_eq!(Subscripts::parse("", 0).unwrap_err().to_string(), "there are no operands");
    assert_eq!(Subscripts::parse("", 64).unwrap_err().to_string(), "64 operands are more than 63");
}

#[test]
fn lists_number_indices_as_numpy_orders_them() {
    let label = |numbers: &[u32]| numbers.iter().copied().map(Sub::Label).collect::<Vec<_>>();
    let show = |lists: &[Vec<Sub>], output| Subscripts::from_lists(lists, output).map(|found| found.to_string());
    assert_eq!(show(&[label(&[26, 0])], None).unwrap(), "aA->Aa");
    assert_eq!(show(&[label(&[51, 25])], Some(label(&[51]))).unwrap(), "zZ->z");
    assert_eq!(show(&[vec![Sub::Ellipsis, Sub::Label(0)]], None).unwrap(), "...A->...A");
    let error = |lists: &[Vec<Sub>], output| show(lists, output).unwrap_err().to_string();
    assert_eq!(error(&[label(&[52])], None), "52 is no index: lists number indices from 0 to 51");
    assert_eq!(error(&[label(&[0])], Some(label(&[7]))), "index 7 of the output is in no operand");
    assert_eq!(error(&[label(&[0])], Some(label(&[99]))), "99 is no index: lists number indices from 0 to 51");
    let lists = Subscripts::from_lists(&[label(&[4]), label(&[4])], None).unwrap();
    let error = Einsum::new(&lists, &[&[2], &[3]]).unwrap_err();
    assert_eq!(error.to_string(), "index 4 is 2 in operand 0 and 3 in operand 1");
}

/// The program of an einsum, as text, without its declarations.
fn core(question: &str, steps: &[(&[usize], &[usize])]) -> String {
    let einsum = resolved(question).unwrap();
    let step = |(factors, kept): &(&[usize], &[usize])| Product { factors: factors.to_vec(), kept: kept.to_vec() };
    let steps: Vec<Product> = steps.iter().map(step).collect();
    let steps = if steps.is_empty() { vec![einsum.as_written()] } else { steps };
    let program = einsum.to_core(&steps, ElemType::F64).unwrap().to_string();
    program.lines().filter(|line| line.contains(" = ")).collect::<Vec<_>>().join("; ")
}

#[test]
fn core_programs() {
    for (question, expected) in [
        (
            "ij,jk->ik | 2,3 | 3,4",
            "result = gen i1 in 0..n1. gen i3 in 0..n3. sum i2 in 0..n2. x1[i1, i2] * x2[i2, i3]",
        ),
        (
            "ij,kj->ik | 2,3 | 4,3",
            "result = gen i1 in 0..n1. gen i3 in 0..n3. sum i2 in 0..n2. x1[i1, i2] * x2[i3, i2]",
        ),
        // What is read once waits for memory: each element is a sum in lanes.
        (
            "ij,j->i | 2,3 | 3",
            "result = gen i1 in 0..n1. (let lanes = sum q in 0..floor_div(n2, 8). gen l in 0..8. \
             x1[i1, l + 8*q] * x2[l + 8*q] in sum l in 0..8. lanes[l]) + \
             (sum i2 in 8*floor_div(n2, 8)..n2. x1[i1, i2] * x2[i2])",
        ),
        (
            "aij,ijb->ab | 5,2,3 | 2,3,4",
            "result = gen i1 in 0..n1. gen i4 in 0..n4. sum i2 in 0..n2. sum i3 in 0..n3. \
             x1[i1, i2, i3] * x2[i2, i3, i4]",
        ),
        (
            "ii | 3,3",
            "result = (let lanes = sum q in 0..floor_div(n1, 8). gen l in 0..8. x1[l + 8*q, l + 8*q] in \
             sum l in 0..8. lanes[l]) + (sum i1 in 8*floor_div(n1, 8)..n1. x1[i1, i1])",
        ),
        ("ji->ij | 2,3", "result = gen i2 in 0..n2. gen i1 in 0..n1. x1[i1, i2]"),
        (",-> | () | ()", "result = x1 * x2"),
        // A dimension that is stretched is read at 0.
        ("ij,jk->ik | 2,1 | 3,4", "result = gen i1 in 0..n1. gen i3 in 0..n3. sum i2 in 0..n2. x1[i1, 0] * x2[i2, i3]"),
        (
            "...i,i->...i | 4,5,2 | 2",
            "result = gen i1 in 0..n1. gen i2 in 0..n2. gen i3 in 0..n3. x1[i1, i2, i3] * x2[i3]",
        ),
    ] {
        assert_eq!(core(question, &[]), expected, "{question}");
    }
    let chain = core("ij,jk,kl->il | 2,3 | 3,4 | 4,5", &[(&[1, 2], &[1, 3]), (&[0, 3], &[0, 3])]);
    assert_eq!(
        chain,
        "t1 = gen i2 in 0..n2. gen i4 in 0..n4. sum i3 in 0..n3. x2[i2, i3] * x3[i3, i4]; \
         result = gen i1 in 0..n1. gen i4 in 0..n4. sum i2 in 0..n2. x1[i1, i2] * t1[i2, i4]"
    );
}

#[test]
fn what_is_never_apart_is_one_index() {
    let merged = |question: &str| {
        let einsum = resolved(question).unwrap();
        let (merged, groups) = einsum.merged();
        let letters = einsum.letters();
        let words: Vec<String> =
            groups.iter().map(|group| group.iter().map(|at| letters[*at].clone()).collect()).collect();
        let spell = |term: &Vec<usize>| term.iter().map(|at| words[*at].as_str()).collect::<Vec<_>>().join(" ");
        let sizes = merged.shape(&(0..groups.len()).collect::<Vec<_>>());
        let terms: Vec<String> = merged.terms().iter().map(spell).collect();
        format!("{} -> {} {sizes:?}", terms.join(", "), spell(&merged.output().to_vec()))
    };
    for (question, expected) in [
        ("abij,ijcd->abcd | 2,3,5,7 | 5,7,11,13", "ab ij, ij cd -> ab cd [6, 35, 143]"),
        ("abij,ijcd->abdc | 2,3,5,7 | 5,7,11,13", "ab ij, ij c d -> ab d c [6, 35, 11, 13]"),
        ("ij,ji-> | 2,3 | 3,2", "i j, j i ->  [2, 3]"),
        ("ij,ij->i | 2,3 | 2,3", "i j, i j -> i [2, 3]"),
        ("ijij->ij | 2,3,2,3", "i j i j -> i j [2, 3]"),
        // A stretched dimension is not one with another, unless both are stretched.
        ("ij,ij-> | 2,3 | 1,3", "i j, i j ->  [2, 3]"),
        ("ij,ij-> | 2,3 | 1,1", "ij, ij ->  [6]"),
        ("...i,...->... | 2,3,5 | 2,3", "AB i, AB -> AB [6, 5]"),
        ("ijk->ijk | 2,3,5", "ijk -> ijk [30]"),
        ("ij,-> | 0,3 | ()", "ij,  ->  [0]"),
    ] {
        assert_eq!(merged(question), expected, "{question}");
    }
}
