//! Statements made by hand: their meaning in the evaluator is what their nests compute in the interpreter, at sizes from 0
//! on, and both are what a person would write.

use certen_core::{Binary, ElemType, Literal, ReduceOp};
use certen_index::{Ix, parse_ix};
use certen_loops::{LoopProgram, verify};
use certen_syntax::{Cursor, Diagnostics, Name, Sources, Span, lex};
use certen_teml::nests::Paths;
use certen_teml::to_core::{Meaning, meaning};
use certen_teml::{Assignment, Begin, Entry, Node, Path, Route, Statements, Tensor, ValueId, Values};
use certen_validate::{LoopComparison, Outcome, validate};

fn ix(text: &str) -> Ix {
    let mut sources = Sources::new();
    let file = sources.add("ix", text);
    let tokens = lex(sources.get(file).unwrap(), file, &mut Diagnostics::new());
    parse_ix(&mut Cursor::new(&tokens)).unwrap()
}

/// `A[i, k+1]`
fn element(text: &str) -> (Name, Vec<Ix>) {
    let (name, indices) = text.trim_end_matches(']').split_once('[').unwrap_or((text, ""));
    (Name::new(name), indices.split(',').filter(|index| !index.is_empty()).map(ix).collect())
}

/// `i:n j:m`
fn ranges(text: &str) -> Vec<(Name, Ix)> {
    text.split(' ')
        .filter_map(|range| range.split_once(':'))
        .map(|(name, extent)| (Name::new(name), ix(extent)))
        .collect()
}

/// A program that is made statement by statement. Sizes are called n, m and p.
struct Made(Statements);

impl Made {
    fn new(tensors: &str) -> Made {
        let tensor = |text: &str| {
            let (name, shape) = element(text);
            Tensor { name, elem: ElemType::F64, shape, span: Span::default() }
        };
        Made(Statements {
            name: Name::new("made"),
            sizes: ["n", "m", "p"].map(Name::new).to_vec(),
            tensors: tensors.split(' ').map(tensor).collect(),
            assignments: Vec::new(),
            values: Values::new(),
        })
    }

    fn read(&mut self, text: &str) -> ValueId {
        let (name, indices) = element(text);
        self.0.values.add(Node::Element(name, indices))
    }

    fn op(&mut self, op: Binary, a: ValueId, b: ValueId) -> ValueId {
        self.0.values.add(Node::Op(op, a, b))
    }

    fn sum(&mut self, iterators: &str, body: ValueId) -> ValueId {
        self.0.values.add(Node::Sum(ranges(iterators), body))
    }

    fn statement(&mut self, out: &str, iterators: &str, begin: Begin, value: ValueId) -> &mut Made {
        let (target, out) = element(out);
        let id = Name::new(&format!("s{}", self.0.assignments.len()));
        let (iterators, span) = (ranges(iterators), Span::default());
        self.0.assignments.push(Assignment { id, target, out, iterators, begin, value, init: false, span });
        self
    }

    fn init(&mut self, out: &str, iterators: &str, value: f64) {
        let value = self.0.values.add(Node::Number(Literal::Float(value)));
        self.statement(out, iterators, Begin::Write, value);
        self.0.assignments.last_mut().unwrap().init = true;
    }

    fn meaning(&self) -> Meaning {
        meaning(&self.0).unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    fn path(&self, entries: &[&[usize]]) -> Result<Path, String> {
        let entry = |assignments: &&[usize]| Entry { assignments: assignments.to_vec(), steps: Vec::new() };
        let entries = entries.iter().map(entry).collect();
        let route = Route { name: Name::new("l"), span: Span::default(), entries };
        let meaning = self.meaning();
        Paths::new(&self.0, &meaning)
            .and_then(|mut paths| paths.path(route))
            .map_err(|errors| errors.iter().map(|e| e.message.clone() + "\n").collect())
    }

    /// The loops of all statements, one after the other.
    fn all(&self) -> Path {
        let built = self.0.assignments.iter().enumerate().filter(|(_, assignment)| !assignment.init);
        let entries: Vec<[usize; 1]> = built.map(|(at, _)| [at]).collect();
        let entries: Vec<&[usize]> = entries.iter().map(|entry| entry.as_slice()).collect();
        self.path(&entries).unwrap()
    }

    fn agrees(&self, path: &Path) -> bool {
        let errors = verify(&path.loops);
        assert!(errors.is_empty(), "{errors:?}\n{}", path.loops);
        let trial = LoopComparison { lowered: path.lowered.as_deref(), ..LoopComparison::default() };
        match validate(&self.meaning().core, &path.loops, &trial) {
            Outcome::Agrees(_) => true,
            Outcome::Differs(_) => false,
            Outcome::Nothing(why) => panic!("{why}\n{}", path.loops),
        }
    }

    /// The statements in their order compute the meaning.
    fn is_right(&self) -> String {
        let path = self.all();
        assert!(path.in_order, "{}", path.loops);
        assert!(self.agrees(&path), "{}\n{}", self.meaning().core, path.loops);
        body(&path.loops)
    }
}

/// The statements of loops.
fn body(loops: &LoopProgram) -> String {
    let text = loops.to_string();
    let first =
        |line: &&str| !["loops ", "size ", "where ", "input ", "output "].iter().any(|word| line.starts_with(word));
    text.lines().skip_while(|line| !first(line)).map(|line| format!("{line}\n")).collect()
}

const ADD: Begin = Begin::Accumulate { op: ReduceOp::Sum, negated: false };

#[test]
fn a_contraction_is_zeroed_first() {
    let mut made = Made::new("A[n,m] B[m,p] C[n,p]");
    let (a, b) = (made.read("A[i,k]"), made.read("B[k,j]"));
    let product = made.op(Binary::Mul, a, b);
    made.statement("C[i,j]", "i:n j:p k:m", Begin::Contract, product);
    let core = made.meaning().core.to_string();
    assert!(core.ends_with("C = gen i in 0..n. gen j in 0..p. sum k in 0..m. A[i, k] * B[k, j]\noutput C\n"), "{core}");
    assert_eq!(
        made.is_right(),
        "nest s0_zero
for i in 0..n {
    for j in 0..p {
        C[i, j] = 0.0
    }
}
nest s0
for i in 0..n {
    for j in 0..p {
        for k in 0..m {
            C[i, j] += A[i, k] * B[k, j]
        }
    }
}
"
    );
}

#[test]
fn an_accumulation_begins_with_what_the_caller_gives() {
    for negated in [false, true] {
        let mut made = Made::new("A[n,m] C[n]");
        let a = made.read("A[i,k]");
        made.statement("C[i]", "i:n k:m", Begin::Accumulate { op: ReduceOp::Sum, negated }, a);
        made.statement("C[i]", "i:n k:m", Begin::Accumulate { op: ReduceOp::Prod, negated: false }, a);
        let loops = made.is_right();
        assert_eq!(loops.matches("_copy").count(), 1, "{loops}");
        assert!(made.meaning().core.to_string().ends_with("output C = C_2\n"), "{}", made.meaning().core);
    }
}

#[test]
fn what_is_overwritten_while_it_is_read_is_copied() {
    let mut made = Made::new("A[n,n] B[n,n]");
    let (a, b) = (made.read("A[j,i]"), made.read("B[i,j]"));
    let sum = made.op(Binary::Add, a, b);
    made.statement("A[i,j]", "i:n j:n", Begin::Write, sum);
    made.statement("A[i,j]", "i:n j:n", Begin::Write, sum);
    let loops = made.is_right();
    // The first one reads the caller's memory, and writes other memory.
    assert!(!loops.contains("s0_copy") && loops.contains("s1_copy"), "{loops}");
    let square = made.op(Binary::Mul, b, b);
    made.statement("B[i,j]", "i:n j:n", Begin::Write, square);
    made.statement("B[i,j]", "i:n j:n", Begin::Write, square);
    assert!(!made.is_right().contains("s3_copy"), "elements at their own place are not in the way");
    let product = {
        let (left, right) = (made.read("B[i,k]"), made.read("B[k,j]"));
        made.op(Binary::Mul, left, right)
    };
    made.statement("B[i,j]", "i:n j:n k:n", Begin::Contract, product);
    assert!(made.is_right().contains("s4_copy"));
    let product = {
        let (own, other) = (made.read("B[i,j]"), made.read("A[j,q]"));
        let product = made.op(Binary::Mul, own, other);
        made.sum("q:n", product)
    };
    made.statement("B[i,j]", "i:n j:n", ADD, product);
    assert!(made.is_right().contains("s5_copy"), "a sum is a loop in which the element changes");
}

#[test]
fn parts_of_a_tensor_are_written() {
    let mut made = Made::new("x[n] A[2*n+3] y[n]");
    made.init("A[z]", "z:2*n+3", 0.5);
    let x = made.read("x[i]");
    made.statement("A[2*i+1]", "i:n", Begin::Write, x);
    made.statement("A[2*n+2-i]", "i:n", Begin::Write, x);
    let summand = made.read("x[k]");
    made.statement("A[0]", "k:n", ADD, summand);
    let (near, far) = (made.read("A[2*i]"), made.read("A[i+2]"));
    let both = made.op(Binary::Mul, near, far);
    made.statement("y[i]", "i:n", Begin::Write, both);
    let loops = made.is_right();
    assert!(loops.contains("A[2*i + 1] = x[i]") && loops.contains("A[2*n + 2 - i] = x[i]"), "{loops}");
}

#[test]
fn elements_without_a_value_are_not_read() {
    let mut made = Made::new("x[n] A[n+1] y[n]");
    let x = made.read("x[i]");
    made.statement("A[i+1]", "i:n", Begin::Write, x);
    let shifted = made.read("A[i+1]");
    made.statement("y[i]", "i:n", Begin::Write, shifted);
    made.is_right();
    let first = made.read("A[i]");
    made.statement("y[i]", "i:n", ADD, first);
    let errors = meaning(&made.0).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].message, "`s2` reads `A[i]`, which is not shown to have a value");
    assert!(errors[0].notes.iter().any(|note| note.contains("i = 0")), "{:?}", errors[0].notes);
    // With the last element it is whole.
    made.0.assignments.pop();
    let total = made.read("x[k]");
    let total = made.sum("k:n", total);
    made.statement("A[0]", "", Begin::Write, total);
    let all = made.read("A[i]");
    made.statement("y[i]", "i:n", ADD, all);
    made.is_right();
}

#[test]
fn parts_are_a_whole_together_however_many_follow() {
    // Two parts that are everything, then more than are looked at, then a read of everything.
    let read = |first: usize, more: usize| {
        let mut made = Made::new("x[n] s[] A[n+1000] y[n+1000]");
        let (s, x) = (made.read("s"), made.read("x[i]"));
        made.statement("A[i+1000]", "i:n", Begin::Write, x);
        (0..first).for_each(|at| _ = made.statement(&format!("A[{at}]"), "", Begin::Write, s));
        made.statement("A[j]", "j:1000", Begin::Write, s);
        (0..more).for_each(|at| _ = made.statement(&format!("A[{at}]"), "", Begin::Write, s));
        let all = made.read("A[k]");
        made.statement("y[k]", "k:n+1000", Begin::Write, all);
        meaning(&made.0).map(|_| ()).map_err(|errors| errors[0].notes.join("; "))
    };
    assert_eq!(read(0, 0), Ok(()));
    assert_eq!(read(10, 20), Ok(()));
    assert_eq!(read(10, 500), Ok(()));
    let far = read(100, 0).unwrap_err();
    assert!(far.ends_with("of its 102 parts, only the last 64 are looked at"), "{far}");
}

#[test]
fn one_error_for_a_tensor_is_enough() {
    let mut made = Made::new("x[n] A[n+1] B[n+1] y[n]");
    let x = made.read("x[i]");
    for target in ["A", "B"] {
        made.statement(&format!("{target}[i+1]"), "i:n", Begin::Write, x);
        let first = made.read(&format!("{target}[0]"));
        (0..3).for_each(|_| _ = made.statement("y[i]", "i:n", Begin::Write, first));
    }
    let messages: Vec<String> = meaning(&made.0).unwrap_err().into_iter().map(|error| error.message).collect();
    assert_eq!(
        messages,
        ["A", "B"].map(|name| {
            let at = if name == "A" { 1 } else { 5 };
            format!("`s{at}` reads `{name}[0]`, which is not shown to have a value")
        })
    );
}

#[test]
fn what_nobody_reads_may_have_no_value() {
    let mut made = Made::new("x[n] A[n+2] B[n]");
    let x = made.read("x[i]");
    made.statement("A[i+1]", "i:n", Begin::Write, x);
    let a = made.read("A[i+1]");
    made.statement("B[i]", "i:n", Begin::Write, a);
    assert!(made.meaning().core.to_string().contains("undefined"));
    made.is_right();
}

#[test]
fn sums_are_pulled_out() {
    let head = "B[n,m,p] C[m,p] D[p,m] X[n,m] A[n,m] s[]";
    let inner = |made: &mut Made| {
        let (b, d) = (made.read("B[i,j,l]"), made.read("D[l,j]"));
        let product = made.op(Binary::Mul, b, d);
        made.sum("l:p", product)
    };
    let out = "A[i,j]";
    // A product, a quotient, sums on either side, differences.
    let shapes: [fn(&mut Made, ValueId) -> ValueId; 9] = [
        |_, sum| sum,
        |made, sum| {
            let x = made.read("X[i,j]");
            made.op(Binary::Mul, x, sum)
        },
        |made, sum| {
            let x = made.read("X[i,j]");
            made.op(Binary::Div, sum, x)
        },
        |made, sum| {
            let x = made.read("X[i,j]");
            made.op(Binary::Add, x, sum)
        },
        |made, sum| {
            let x = made.read("X[i,j]");
            made.op(Binary::Sub, sum, x)
        },
        |made, sum| {
            let x = made.read("X[i,j]");
            made.op(Binary::Sub, x, sum)
        },
        |made, sum| {
            let (x, y) = (made.read("X[i,j]"), made.read("B[i,j,0]"));
            let difference = made.op(Binary::Sub, sum, x);
            made.op(Binary::Sub, y, difference)
        },
        |made, sum| made.op(Binary::Mul, sum, sum),
        |made, sum| {
            let square = made.op(Binary::Mul, sum, sum);
            let x = made.read("X[i,j]");
            let all = made.op(Binary::Mul, square, x);
            made.op(Binary::Add, x, all)
        },
    ];
    for (at, shape) in shapes.iter().enumerate() {
        for begin in [Begin::Write, ADD, Begin::Accumulate { op: ReduceOp::Sum, negated: true }] {
            let mut made = Made::new(head);
            let sum = inner(&mut made);
            let value = shape(&mut made, sum);
            // A size that is there for the element of B.
            made.0.tensors[0].shape[2] = ix("p+1");
            made.statement(out, "i:n j:m", begin, value);
            let loops = made.is_right();
            assert!(at < 7 || loops.contains("for l_1 in"), "{loops}");
        }
    }
}

#[test]
fn only_paths_with_sums_in_products_are_made_from_another_program() {
    let mut made = Made::new("B[n,m] X[n] a[n] b[n] c[n] d[n] e[n]");
    let (element, x) = (made.read("B[i,k]"), made.read("X[i]"));
    let sum = made.sum("k:m", element);
    let (more, less) = (made.op(Binary::Add, x, sum), made.op(Binary::Sub, x, sum));
    let (product, quotient) = (made.op(Binary::Mul, x, sum), made.op(Binary::Div, sum, x));
    made.statement("a[i]", "i:n k:m", Begin::Contract, element);
    made.statement("b[i]", "i:n", ADD, sum);
    made.statement("c[i]", "i:n", Begin::Write, more);
    made.statement("d[i]", "i:n", Begin::Write, less);
    made.is_right();
    assert!(made.all().lowered.is_none(), "additions in another order");
    for value in [product, quotient] {
        made.statement("e[i]", "i:n", Begin::Write, value);
        made.is_right();
        let lowered = made.all().lowered.expect("made from sum(x*b) instead of x*sum(b)").to_string();
        assert!(lowered.contains("e = gen i in 0..n. sum k in 0..m. "), "{lowered}");
        // Not in the list: overwritten by another statement, as if it were not there.
        made.statement("e[i]", "i:n", Begin::Write, x);
        let without = made.path(&[&[0], &[1], &[2], &[3], &[5]]).unwrap();
        assert!(without.in_order && without.lowered.is_none() && made.agrees(&without));
        made.0.assignments.truncate(4);
    }
}

#[test]
fn what_cannot_be_pulled_out_is_refused() {
    let message = |build: fn(&mut Made, ValueId) -> ValueId, begin: Begin| {
        let mut made = Made::new("x[n] y[m] A[m]");
        let read = made.read("x[k]");
        let sum = made.sum("k:n", read);
        let value = build(&mut made, sum);
        made.statement("A[j]", "j:m", begin, value);
        assert!(made.meaning().core.bindings.len() == 1, "it has a meaning");
        made.path(&[&[0]]).unwrap_err()
    };
    let add = |made: &mut Made, sum| made.op(Binary::Add, sum, sum);
    assert!(message(add, Begin::Write).contains("two sums are added"));
    let div = |made: &mut Made, sum| {
        let y = made.read("y[j]");
        made.op(Binary::Div, y, sum)
    };
    assert!(message(div, Begin::Write).contains("divided by a sum"));
    let inside = |made: &mut Made, sum| {
        let y = made.read("y[j]");
        let both = made.op(Binary::Add, y, sum);
        made.op(Binary::Mul, y, both)
    };
    assert!(message(inside, Begin::Write).contains("that is multiplied"));
    assert!(
        message(|_, sum| sum, Begin::Accumulate { op: ReduceOp::Prod, negated: false }).contains("product of sums")
    );
}

#[test]
fn another_order_is_noticed() {
    let mut made = Made::new("x[n] t[n] y[n] z[n]");
    let (x, t) = (made.read("x[i]"), made.read("t[i]"));
    let square = made.op(Binary::Mul, t, t);
    made.statement("t[i]", "i:n", Begin::Write, x);
    made.statement("y[i]", "i:n", Begin::Write, square);
    made.statement("t[i]", "i:n", Begin::Write, square);
    made.statement("z[i]", "i:n", Begin::Write, t);
    made.is_right();
    let ordered = |entries: &[&[usize]]| {
        let path = made.path(entries).unwrap();
        assert_eq!(path.in_order, made.agrees(&path), "{}", path.loops);
        path.in_order
    };
    assert!(ordered(&[&[0, 1], &[2, 3]]) && ordered(&[&[0], &[1, 2, 3]]));
    assert!(!ordered(&[&[0], &[2], &[1], &[3]]), "y reads the second t");
    assert!(!ordered(&[&[0], &[1], &[3], &[2]]), "z reads the first t");
    assert!(!ordered(&[&[0], &[1], &[3]]), "z reads the first t");
    assert_eq!(
        made.path(&[&[1], &[0], &[2], &[3]]).unwrap_err(),
        "`s1` reads `t`, which nothing before it has written\n"
    );
    assert_eq!(made.path(&[&[0], &[2], &[3]]).unwrap_err(), "`l` does not compute `y`, which is an output\n");
    assert_eq!(made.path(&[&[0], &[0], &[1], &[2], &[3]]).unwrap_err(), "`l` computes `s0` twice\n");
}

#[test]
fn a_write_of_a_part_reads_nothing() {
    let mut made = Made::new("x[n] s[] T[n+1] y[n+1]");
    let (x, s, t) = (made.read("x[i]"), made.read("s"), made.read("T[j]"));
    made.statement("T[i+1]", "i:n", Begin::Write, x);
    made.statement("T[0]", "", Begin::Write, s);
    made.statement("y[j]", "j:n+1", Begin::Write, t);
    made.is_right();
    let exchanged = made.path(&[&[1], &[0], &[2]]).unwrap();
    assert!(!exchanged.in_order && made.agrees(&exchanged), "{}", exchanged.loops);
    let half = made.path(&[&[1], &[2]]).unwrap();
    assert!(!half.in_order && !made.agrees(&half), "elements of T have no value");
    // One that accumulates reads what it writes.
    let mut made = Made::new("x[n] s[] T[n+1]");
    let (x, s) = (made.read("x[i]"), made.read("s"));
    made.statement("T[0]", "", Begin::Write, s);
    made.statement("T[i+1]", "i:n", Begin::Write, x);
    made.statement("T[0]", "", ADD, s);
    assert_eq!(made.path(&[&[2], &[0], &[1]]).unwrap_err(), "`s2` reads `T`, which nothing before it has written\n");
}

#[test]
fn statements_that_do_not_meet_may_be_exchanged() {
    let mut made = Made::new("x[n] y[n] z[n]");
    let x = made.read("x[i]");
    made.statement("y[i]", "i:n", Begin::Write, x);
    made.statement("z[i]", "i:n", Begin::Write, x);
    let path = made.path(&[&[1], &[0]]).unwrap();
    assert!(path.in_order && made.agrees(&path));
}

#[test]
fn the_same_from_a_transposed_copy_is_the_same() {
    let mut made = Made::new("A[n,m] At[m,n] x[m] y[n]");
    made.init("y[z]", "z:n", 0.0);
    let (a, x) = (made.read("A[i,k]"), made.read("x[k]"));
    let product = made.op(Binary::Mul, a, x);
    made.statement("y[i]", "i:n k:m", ADD, product);
    let copied = made.read("A[q,p1]");
    made.statement("At[p1,q]", "p1:m q:n", Begin::Write, copied);
    made.init("y[z]", "z:n", 0.0);
    let (a, x) = (made.read("At[c,r]"), made.read("x[c]"));
    let product = made.op(Binary::Mul, a, x);
    made.statement("y[r]", "r:n c:m", ADD, product);
    made.is_right();
    let direct = made.path(&[&[1]]).unwrap();
    assert!(direct.in_order && made.agrees(&direct), "{}", direct.loops);
    assert!(!body(&direct.loops).contains("At"), "{}", direct.loops);
    let copied = made.path(&[&[2], &[4]]).unwrap();
    assert!(copied.in_order && made.agrees(&copied), "{}", copied.loops);
    assert_eq!(body(&copied.loops).matches("= 0.0").count(), 1, "{}", copied.loops);
    // With the other order of the product it is the same number, but not the same operations.
    let product = made.op(Binary::Mul, x, a);
    made.init("y[z]", "z:n", 0.0);
    made.statement("y[r]", "r:n c:m", ADD, product);
    let direct = made.path(&[&[1]]).unwrap();
    assert!(!direct.in_order && made.agrees(&direct));
}

#[test]
fn zeros_stand_before_their_whole_entry_unless_they_are_in_the_way() {
    let mut made = Made::new("A[n,m] B[n] C[n]");
    let a = made.read("A[i,k]");
    made.statement("B[i]", "i:n k:m", Begin::Contract, a);
    let b = made.read("B[i]");
    made.statement("C[i]", "i:n k:m", Begin::Contract, b);
    made.statement("B[i]", "i:n k:m", Begin::Contract, a);
    let path = made.path(&[&[0, 1, 2]]).unwrap();
    assert!(path.in_order && made.agrees(&path), "{}", path.loops);
    let labels: Vec<String> =
        path.loops.to_string().lines().filter_map(|l| Some(l.strip_prefix("nest ")?.to_owned())).collect();
    assert_eq!(labels, ["s0_zero", "s1_zero", "s0", "s1", "s2_zero", "s2"]);
}

#[test]
fn deep_expressions_and_many_statements_are_fast() {
    let mut made = Made::new("x[n] y[n]");
    let x = made.read("x[i]");
    let mut deep = x;
    for _ in 0..100_000 {
        deep = made.op(Binary::Add, deep, x);
    }
    made.statement("y[i]", "i:n", Begin::Write, deep);
    made.all();
    let mut many = Made::new("x[n] y[n]");
    let (x, y) = (many.read("x[i]"), many.read("y[i]"));
    many.statement("y[i]", "i:n", Begin::Write, x);
    for _ in 0..20_000 {
        many.statement("y[i]", "i:n", ADD, x);
        many.statement("x[i]", "i:n", Begin::Write, y);
    }
    assert!(many.all().in_order);
}

#[test]
fn many_parts_and_many_paths_are_fast() {
    let count = 20_000;
    let mut made = Made::new("s[] A[20000] B[20000]");
    let s = made.read("s");
    (0..count).for_each(|at| _ = made.statement(&format!("A[{at}]"), "", Begin::Write, s));
    for at in 0..count {
        let old = made.read(&format!("A[{at}]"));
        made.statement(&format!("B[{at}]"), "", Begin::Write, old);
    }
    assert!(made.all().in_order);
    // Each of many paths takes a few of many statements, one of them with a sum in a product.
    let mut made = Made::new("x[n] y[n] z[n]");
    let (x, summed) = (made.read("x[i]"), made.read("x[k]"));
    let sum = made.sum("k:n", summed);
    let product = made.op(Binary::Mul, x, sum);
    for _ in 0..2_000 {
        made.statement("z[i]", "i:n", Begin::Write, x);
        made.statement("y[i]", "i:n", Begin::Write, product);
    }
    let meaning = made.meaning();
    let mut paths = Paths::new(&made.0, &meaning).unwrap();
    for at in 0..1_000 {
        let entries = vec![Entry { assignments: vec![2 * at, 2 * at + 1], steps: Vec::new() }];
        let path = paths.path(Route { name: Name::new("l"), span: Span::default(), entries }).unwrap();
        assert!(path.in_order && path.lowered.is_some());
    }
}
