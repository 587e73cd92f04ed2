//! What shares memory, and what does not: programs before and after the pass, as text.

use certen_core::domain::Machine;
use certen_core::{ElemType, Tensor};
use certen_loops::{Interpreter, Lend, LoopProgram, parse_loops, peak_bytes, reuse, verify};
use certen_syntax::{Name, Sources};

fn loops(text: &str) -> LoopProgram {
    let mut sources = Sources::new();
    let file = sources.add("t.loops", text);
    let program = parse_loops(&sources, file).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    let errors = verify(&program);
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    program
}

/// The outputs for sizes 3, 2, 5, … and inputs 1, 2, 3, ….
fn run(program: &LoopProgram) -> String {
    let sizes: Vec<(Name, i64)> = program.sizes.iter().copied().zip([3, 2, 5]).collect();
    let size = |name| sizes.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
    let input = |p: &certen_core::Parameter| {
        let shape = p.ty.shape_at(&size).unwrap();
        let value = |at: usize| Ok::<_, ()>(certen_core::domain::Scalar::from_i64(at as i64 + 1, p.ty.elem));
        (p.name, Tensor::from_fn(shape, value).unwrap().unwrap())
    };
    let inputs: Vec<_> = program.inputs.iter().map(input).collect();
    let outputs = Interpreter::new(program, &Machine, sizes.clone(), inputs).unwrap().run();
    format!("{:?}", outputs.unwrap_or_else(|error| panic!("{error}\n{program}")))
}

fn shared(program: &LoopProgram, lend: Lend) -> LoopProgram {
    let after = reuse(program.clone(), lend).unwrap();
    let errors = verify(&after);
    assert!(errors.is_empty(), "{errors:?}\n{after}");
    assert_eq!(run(&after), run(program), "{after}");
    assert_eq!(reuse(after.clone(), lend).unwrap().to_string(), after.to_string(), "there is nothing left to do");
    after
}

/// The body after the pass is as shown.
fn becomes(head: &str, before: &str, after: &str) {
    let (before, after) = (loops(&format!("{head}{before}")), loops(&format!("{head}{after}")));
    assert_eq!(shared(&before, Lend::Outputs).to_string(), after.to_string());
}

const VECTOR: &str = "loops p\nsize n\nwhere n >= 1\ninput x : f64[n]\noutput y : f64[n]\n";
const MATRIX: &str = "loops p\nsize n, m\nwhere n >= 1, m >= 1\ninput x : f64[n, m]\noutput y : f64[n, m]\n";
const SQUARE: &str = "loops p\nsize n, m\nwhere n == m + 1\ninput x : f64[n, m]\noutput y : f64[n, m]\n";

#[test]
fn a_chain_is_computed_in_the_memory_of_the_output() {
    becomes(
        VECTOR,
        "alloc a : f64[n]
         alloc b : f64[n]
         nest a
         for i in 0..n { a[i] = x[i] + 1.0 }
         nest b
         for i in 0..n { b[i] = a[i] * a[i] }
         free a
         nest y
         for i in 0..n { y[i] = b[i] + x[0] }
         free b",
        "nest a
         for i in 0..n { y[i] = x[i] + 1.0 }
         nest b
         for i in 0..n { y[i] = y[i] * y[i] }
         nest y
         for i in 0..n { y[i] = y[i] + x[0] }",
    );
}

/// `y = transp 1 2 x` reads what it has already written.
#[test]
fn what_is_read_at_other_indices_has_its_own_memory() {
    let head = "loops p\nsize n\nwhere n >= 1\ninput x : f64[n, n]\noutput y : f64[n, n]\n";
    let program = loops(&format!(
        "{head}alloc a : f64[n, n]
         alloc b : f64[n, n]
         for i in 0..n {{ for j in 0..n {{ a[i, j] = x[i, j] + 1.0 }} }}
         for i in 0..n {{ for j in 0..n {{ b[i, j] = a[j, i] }} }}
         free a
         for i in 0..n {{ for j in 0..n {{ y[i, j] = b[i, j] + b[j, i] }} }}
         free b"
    ));
    // Three tensors, two of them alive at a time.
    let after = shared(&program, Lend::Outputs).to_string();
    assert_eq!(after.matches("alloc").count(), 1, "{after}");
    assert!(after.contains("b[i, j] = y[j, i]") && after.contains("y[i, j] = b[i, j] + b[j, i]"), "{after}");
}

#[test]
fn a_sum_that_ends_before_the_element_is_written_is_in_place() {
    becomes(
        VECTOR,
        "alloc a : f64[n]
         for i in 0..n { a[i] = x[i] }
         for i in 0..n {
             local acc : f64 = 0.0
             for k in 0..3 { acc += a[i] }
             y[i] = acc
         }
         free a",
        "for i in 0..n { y[i] = x[i] }
         for i in 0..n {
             local acc : f64 = 0.0
             for k in 0..3 { acc += y[i] }
             y[i] = acc
         }",
    );
}

/// Written in one round of a loop and read in the next; read after a write; read beside the element.
#[test]
fn what_is_read_too_late_has_its_own_memory() {
    let nests = [
        "for k in 0..2 { for i in 0..n { y[i] = a[i] + 1.0 } }",
        "for i in 0..n { for k in 0..2 { y[i] = a[i] + 1.0 } }",
        "for i in 0..n { y[i] = 1.0\n local t : f64 = a[i]\n y[i] = t }",
        "for i in 0..n { y[i] = a[i]\n y[i] = a[i] * 2.0 }",
        "for i in 0..n { y[i] = a[n - 1 - i] }",
        "for i in 0..n { y[i] = a[i] + a[0] }",
        "for i in 0..n { y[n - 1 - i] = a[i] }",
        "for i in 0..n { if i >= 1 { y[i] = a[i - 1] } else { y[i] = 0.0 } }",
    ];
    for nest in nests {
        let program = loops(&format!("{VECTOR}alloc a : f64[n]\nfor i in 0..n {{ a[i] = x[i] }}\n{nest}\nfree a\n"));
        let after = shared(&program, Lend::Outputs).to_string();
        assert_eq!(after.matches("alloc a").count(), 1, "{after}");
    }
}

#[test]
fn conditions_and_shifted_ranges_are_in_place() {
    becomes(
        VECTOR,
        "alloc a : f64[n]
         for i in 0..n { a[i] = x[i] }
         for i in 2..n + 2 {
             if i >= 3 { y[i - 2] = a[i - 2] * 2.0 } else { y[i - 2] = 0.0 }
         }
         free a",
        "for i in 0..n { y[i] = x[i] }
         for i in 2..n + 2 {
             if i >= 3 { y[i - 2] = y[i - 2] * 2.0 } else { y[i - 2] = 0.0 }
         }",
    );
}

/// Two loops over the rows after each other: what the second one reads is overwritten by the first.
#[test]
fn loops_beside_each_other_are_not_rounds_of_one_loop() {
    let program = loops(&format!(
        "{MATRIX}alloc a : f64[n, m]
         for i in 0..n {{ for j in 0..m {{ a[i, j] = x[i, j] }} }}
         for i in 0..n {{
             for j in 0..m {{ y[i, j] = a[i, j] }}
             for j in 0..m {{ y[i, j] = a[i, j] + 1.0 }}
         }}
         free a"
    ));
    let after = shared(&program, Lend::Outputs).to_string();
    assert!(after.contains("alloc a"), "{after}");
}

#[test]
fn a_dead_buffer_of_the_same_type_is_used_again() {
    becomes(
        "loops p\nsize n, m\nwhere n >= 1, m >= 1\ninput x : f64[n]\noutput s : f64[]\n",
        "alloc a : f64[n]
         alloc b : f64[n]
         alloc c : f64[n]
         nest a
         for i in 0..n { a[i] = x[i] }
         nest b
         for i in 0..n { b[i] = a[n - 1 - i] }
         nest c
         for i in 0..n { c[i] = b[n - 1 - i] }
         nest s
         s = c[0]
         free a
         free b
         free c",
        "alloc a : f64[n]
         nest a
         for i in 0..n { a[i] = x[i] }
         alloc b : f64[n]
         nest b
         for i in 0..n { b[i] = a[n - 1 - i] }
         nest c
         for i in 0..n { a[i] = b[n - 1 - i] }
         free b
         nest s
         s = a[0]
         free a",
    );
}

/// Memory that waits for a later buffer would be held beside the large one.
#[test]
fn memory_is_not_kept_while_other_memory_is_taken() {
    let program = loops(
        "loops p\nsize n, m\nwhere n >= 1, m >= 1\ninput x : f64[n]\noutput s : f64[]\noutput t : f64[]
         alloc a : f64[n]
         for i in 0..n { a[i] = x[i] }
         s = a[0]
         free a
         alloc large : f64[n, n, n]
         for i in 0..n { for j in 0..n { for k in 0..n { large[i, j, k] = x[i] } } }
         t = large[0, 0, 0]
         free large
         alloc b : f64[n]
         for i in 0..n { b[i] = x[i] }
         t = b[0]
         free b",
    );
    let after = shared(&program, Lend::Outputs);
    let peak = |program: &LoopProgram| peak_bytes(program, &|_| Some(10), &ElemType::bytes);
    assert_eq!((peak(&program), peak(&after)), (8000, 8000), "{after}");
}

#[test]
fn shapes_that_are_shown_to_be_equal_share_memory() {
    let program = loops(&format!(
        "{SQUARE}alloc a : f64[m + 1, m]
         for i in 0..m + 1 {{ for j in 0..m {{ a[i, j] = x[i, j] }} }}
         for i in 0..n {{ for j in 0..m {{ y[i, j] = a[i, j] * 2.0 }} }}
         free a"
    ));
    let after = shared(&program, Lend::Outputs).to_string();
    assert!(!after.contains("alloc"), "{after}");
}

const ITERATION: &str = "alloc first : f64[n]
         nest first
         for i in 0..n { first[i] = x[i] * 2.0 }
         alloc u : f64[n]
         alloc u_next : f64[n]
         nest u
         for i in 0..n { u[i] = first[i] }
         for t in 0..3 {
             nest u_next
             for i in 0..n { u_next[i] = u[n - 1 - i] + 1.0 }
             swap u, u_next
         }
         free first
";

/// States keep two buffers; the first state and the result are not copied where both are the program's own.
#[test]
fn an_iteration_begins_and_ends_without_copies() {
    becomes(
        VECTOR,
        &format!(
            "{ITERATION}alloc b : f64[n]
             nest b
             for i in 0..n {{ b[i] = u[i] }}
             free u_next
             free u
             nest y
             for i in 0..n {{ y[i] = b[n - 1 - i] }}
             free b"
        ),
        "alloc first : f64[n]
         nest first
         for i in 0..n { first[i] = x[i] * 2.0 }
         alloc u_next : f64[n]
         for t in 0..3 {
             nest u_next
             for i in 0..n { u_next[i] = first[n - 1 - i] + 1.0 }
             swap first, u_next
         }
         free u_next
         nest y
         for i in 0..n { y[i] = first[n - 1 - i] }
         free first",
    );
}

/// The caller's memory is exchanged with nothing.
#[test]
fn what_is_exchanged_is_not_kept_in_an_output() {
    let program = loops(&format!("{VECTOR}{ITERATION}nest y\nfor i in 0..n {{ y[i] = u[i] }}\nfree u_next\nfree u\n"));
    let after = shared(&program, Lend::Outputs).to_string();
    assert!(after.contains("y[i] = first[i]") && after.matches("alloc").count() == 2, "{after}");
}

#[test]
fn buffers_of_inner_blocks_share_memory_too() {
    becomes(
        MATRIX,
        "for i in 0..n {
             alloc a : f64[m]
             alloc b : f64[m]
             for j in 0..m { a[j] = x[i, j] }
             for j in 0..m { b[j] = a[j] + 1.0 }
             for j in 0..m { y[i, j] = b[m - 1 - j] }
             free b
             free a
         }",
        "for i in 0..n {
             alloc a : f64[m]
             for j in 0..m { a[j] = x[i, j] }
             for j in 0..m { a[j] = a[j] + 1.0 }
             for j in 0..m { y[i, j] = a[m - 1 - j] }
             free a
         }",
    );
}

#[test]
fn a_buffer_that_nothing_uses_is_gone_and_a_local_stays_with_what_reads_it() {
    becomes(
        "loops p\nsize n\nwhere n >= 1\ninput x : f64[n]\noutput y : f64[n]\n",
        "alloc never : f64[n]
         alloc s : f64[]
         nest s
         local acc : f64 = 0.0
         for i in 0..n { acc += x[i] }
         s = acc
         free never
         nest y
         for i in 0..n { y[i] = s }
         free s",
        "alloc s : f64[]
         nest s
         local acc : f64 = 0.0
         for i in 0..n { acc += x[i] }
         s = acc
         nest y
         for i in 0..n { y[i] = s }
         free s",
    );
}

/// With outputs that are not to be lent, they are written once.
#[test]
fn outputs_lend_nothing_if_they_are_told_so() {
    let program = loops(&format!(
        "{VECTOR}alloc a : f64[n]\nfor i in 0..n {{ a[i] = x[i] }}\nfor i in 0..n {{ y[i] = a[i] + 1.0 }}\nfree a\n"
    ));
    assert_eq!(shared(&program, Lend::Buffers).to_string(), program.to_string());
}

#[test]
fn the_peak_is_what_is_allocated_at_a_time() {
    let program = loops(&format!(
        "{MATRIX}alloc a : f64[n, m]
         for i in 0..n {{ for j in 0..m {{ a[i, j] = x[i, j] }} }}
         alloc small : bool[n]
         alloc s : f64[]
         for i in 0..n {{ small[i] = true }}
         s = 1.0
         free small
         for i in 0..n {{
             alloc row : f64[i + m]
             for j in 0..m {{ row[j] = a[i, j] }}
             for j in 0..m {{ y[i, j] = row[j] }}
             free row
         }}
         free s
         free a"
    ));
    let sizes = |n: i64, m: i64| move |name: Name| if name == Name::new("n") { Some(n) } else { Some(m) };
    let peak = |n, m| peak_bytes(&program, &sizes(n, m), &ElemType::bytes);
    // In the last round `row` has n - 1 + m elements, which is more than the n bytes of `small`.
    assert_eq!(peak(7, 11), 8 * 7 * 11 + 8 * (6 + 11));
    assert_eq!(peak(100, 1), 8 * 100 + 8 * 100);
    assert_eq!(peak(1, 1), 8 + 8);
    assert_eq!(peak(i64::MAX, i64::MAX), u128::MAX);
    assert_eq!(peak_bytes(&program, &|_| None, &ElemType::bytes), u128::MAX);
}
