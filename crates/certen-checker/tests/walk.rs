//! The walk over a nest: what is wrong whatever the sizes are, and what has to be shown of the rest.

use certen_checker::{Kind, obligations, read_nest};

/// A nest with two inputs and an output, around some statements.
fn nest(body: &str) -> String {
    format!("loops f\nsize n\nwhere n >= 1\ninput x : f64[n]\ninput s : f64[]\noutput y : f64[n]\n{body}")
}

/// What has to be shown, as text.
fn wanted(body: &str) -> Vec<String> {
    let found = obligations(&read_nest(&nest(body)).unwrap()).unwrap_or_else(|rejection| panic!("{body}: {rejection}"));
    let facts = |facts: &[certen_index::Cond]| facts.iter().map(|f| f.to_string()).collect::<Vec<_>>().join(", ");
    found.iter().map(|o| format!("{:?}: {} |- {}", o.kind, facts(&o.facts), o.goal)).collect()
}

#[test]
fn what_is_wrong_is_refused() {
    let one = "for i in 0..n {\n    y[i] = 1.0\n}\n";
    for (body, why) in [
        ("x[0] = 1.0\n", "the input x is written"),
        ("y[0, 0] = 1.0\n", "y has 1 dimensions, but 2 indices are given"),
        ("local a : f64\ny[0] = a\n", "a may be read before it is assigned"),
        ("local a : f64\na += 1.0\n", "a may be read before it is assigned"),
        ("local a : f64\nif n >= 2 {\n    a = 1.0\n}\ny[0] = a\n", "a may be read before it is assigned"),
        ("alloc t : f64[n]\nt[0] = 1.0\n", "the buffer t is not freed in its block"),
        ("alloc t : f64[n]\nfree t\nt[0] = 1.0\n", "t is used after it was freed"),
        ("alloc t : f64[n]\nfree t\nfree t\n", "t is freed, but is not an allocated buffer of this block"),
        ("free y\n", "y is freed, but is not an allocated buffer of this block"),
        (
            "alloc t : f64[n]\nfor i in 0..n {\n    free t\n}\n",
            "t is freed, but is not an allocated buffer of this block",
        ),
        ("alloc t : f64[n]\nswap t, y\nfree t\n", "t and y are no two allocated buffers of the same type"),
        ("alloc t : f64[n]\nswap t, t\nfree t\n", "t and t are no two allocated buffers of the same type"),
        ("y[k] = 1.0\n", "the size or index k is not in scope"),
        ("for i in 0..n {\n}\ny[i] = 1.0\n", "the size or index i is not in scope"),
        ("for i in 0..k {\n}\n", "the size or index k is not in scope"),
        ("if k >= 0 {\n}\n", "the size or index k is not in scope"),
        ("y[0] and= 1.0\n", "y[0] of type f64 cannot be combined in this way"),
        ("y[0] = 1\n", "a value of type i64[] is assigned as f64"),
        ("y[0] = sum k in 0..n. 1.0\n", "a value is not made of scalar operations"),
    ] {
        let text = nest(&format!("{one}{body}"));
        let nest = read_nest(&text).unwrap_or_else(|rejection| panic!("{body}: {rejection}"));
        let rejection = obligations(&nest).expect_err(body);
        assert_eq!((rejection.at.as_str(), rejection.why.as_str()), ("nest", why), "{body}");
    }
}

#[test]
fn tables_are_read_in_bounds_and_never_written() {
    let header = nest("").replace("output y : f64[n]\n", "output y : f64[n]\nconst K = table.f64[3](1.0, 2.0, 4.0)\n");
    let of = |body: &str| obligations(&read_nest(&format!("{header}{body}")).unwrap());
    assert_eq!(of("y[0] = 1.0\nK[0] = 1.0\n").unwrap_err().why, "the constant K is written");
    let found = of("for i in 0..n {\n    if i <= 2 {\n        y[i] = K[i]\n    }\n}\n").unwrap();
    let goals: Vec<String> = found.iter().map(|o| o.goal.to_string()).collect();
    assert!(goals.iter().any(|goal| goal.contains("i < 3") || goal.contains("i <= 2")), "{goals:?}");
}

#[test]
fn what_depends_on_sizes_has_to_be_shown() {
    assert_eq!(
        wanted("for i in 0..n {\n    y[i] = x[n - i - 1] + s\n}\n"),
        ["Bounds: n >= 1, i >= 0, i < n |- i >= 0 && i < n", "Bounds: n >= 1, i >= 0, i < n |- i < n && i >= 0",]
    );
    // Equal questions are asked once in a block and the blocks in it; numbers are compared at once.
    assert_eq!(
        wanted("y[0] = x[0]\nif n >= 2 {\n    y[0] = x[1]\n}\n"),
        ["Bounds: n >= 1 |- n >= 1", "Bounds: n >= 1, n >= 2 |- n >= 2",]
    );
    // An output that nobody writes is empty.
    assert_eq!(wanted(""), ["Values: n >= 1 |- n <= 0"]);
}

#[test]
fn locals_have_values_if_their_loops_run() {
    let body = "local a : f64\nfor i in 0..n {\n    a = x[i]\n}\ny[0] = a\n";
    assert!(wanted(body).contains(&"Values: n >= 1 |- n >= 1".into()), "{:?}", wanted(body));
    // Nobody asks where nobody reads, or where it was assigned before or on both ways.
    for body in [
        "local a : f64\nfor i in 0..n {\n    a = x[i]\n}\ny[0] = s\n",
        "local a : f64 = 0.0\nfor i in 0..n {\n    a = x[i]\n}\ny[0] = a\n",
        "local a : f64\nif n >= 2 {\n    a = s\n} else {\n    a = 1.0\n}\ny[0] = a\n",
        "for i in 0..n {\n    local a : f64\n    for k in 0..n {\n        a = s\n    }\n    a = 1.0\n    y[i] = a\n}\n",
    ] {
        assert!(!wanted(body).iter().any(|line| line.starts_with("Values")), "{body}: {:?}", wanted(body));
    }
}

#[test]
fn iterations_use_different_elements() {
    let races = |body: &str| -> Vec<String> {
        let nest = read_nest(&nest(body)).unwrap();
        let found = obligations(&nest).unwrap();
        found.into_iter().filter(|o| o.kind == Kind::Races).map(|o| format!("{} |- {}", o.what, o.goal)).collect()
    };
    assert_eq!(
        races("parallel for i in 0..n {\n    y[i] += x[i]\n}\n"),
        ["parallel iterations over i use different elements of y: i differs |- i'' <= i' || i' < i'' || i'' < i'",]
    );
    // A local from outside: there may be one iteration at most.
    assert_eq!(
        races("local a : f64 = 0.0\nvector for i in 0..n {\n    a += x[i]\n}\ny[0] = a\n"),
        ["there is at most one of the vector iterations over i, which assign a, a local from outside |- n <= 1",]
    );
    // A write and a read that are not the same are compared both ways, a write with itself once.
    let found = races("parallel for i in 1..n {\n    y[i] = y[i - 1]\n}\n");
    assert_eq!(found.len(), 3, "{found:#?}");
}

/// Time in proportion to the text.
#[test]
fn long_nests_are_walked() {
    let statements: String =
        (0..20_000).map(|at| format!("for i{at} in 0..n {{\n    y[i{at}] = x[i{at}] + s\n}}\n")).collect();
    assert_eq!(wanted(&statements).len(), 20_000);
}
