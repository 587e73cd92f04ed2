//! Dots in patterns: what they become, by what it computes.

use certen_core::Binary;

use super::*;

#[test]
fn dots_take_the_dimensions_of_the_body_from_left_to_right() {
    // a[i, j] = 1 2 3 / 4 5 6; the body is a + i.
    let body = |i: &str| {
        let index = expr(Kind::Index(ix(i)), "");
        binary(Binary::Add, var("a", "n,m"), index)
    };
    let run = |pattern: &str, shape: &str| {
        let e = comprehension(vec![partition(pattern, &[("0", "2")], body("i"))], shape);
        value(&program(vec![function("f", "n,m", &[("a", "n,m")], vec![], e)]), &[("n", 1), ("m", 3)])
    };
    assert_eq!(run("i,.2", "2,n,m"), (vec![2, 1, 3], vec![1.0, 2.0, 3.0, 2.0, 3.0, 4.0]));
    assert_eq!(run(".2,i", "n,m,2"), (vec![1, 3, 2], vec![1.0, 2.0, 2.0, 3.0, 3.0, 4.0]));
    assert_eq!(run(".,i,.", "n,2,m"), (vec![1, 2, 3], vec![1.0, 2.0, 3.0, 2.0, 3.0, 4.0]));
    // A dimension that no dot takes comes last.
    assert_eq!(run(".,i", "n,2,m"), (vec![1, 2, 3], vec![1.0, 2.0, 3.0, 2.0, 3.0, 4.0]));
    assert_eq!(run("i,.0", "2,n,m"), run("i,.2", "2,n,m"));
}

#[test]
fn fresh_names_are_nobody_elses() {
    let inner = comprehension(vec![partition("t1,.", &[("0", "n")], at(var("a", "n,m"), "t1"))], "n,m");
    let e = comprehension(vec![partition(".,t2", &[("0", "2")], inner)], "n,2,m");
    let p = program(vec![function("f", "n,m", &[("a", "n,m")], vec![], e)]);
    assert_eq!(value(&p, &[("n", 1), ("m", 2)]), (vec![1, 2, 2], vec![1.0, 2.0, 1.0, 2.0]));
}
