//! The kernels that compilers are examined with: every form of expression that plain kernels have, over every element type
//! that has it, with inner sizes from 1 to 16 that stand in the program and with symbolic ones, as they are made and with steps
//! of schedules.
//!
//! A form is text in which `X` and `Y` are elements of two inputs, `E` is the element type and `K` the inner size. What a
//! compiler makes of a loop depends on all of these; it goes wrong in combinations that nobody thinks of, so all are made.

use super::Specimen;

/// The largest inner size that stands in a program.
const INNER: usize = 16;

/// Element types: of floats, of integers, with an order, all.
const FLOATS: &[&str] = &["f64", "f32"];
const INTEGERS: &[&str] = &["i64", "i32"];
const NUMBERS: &[&str] = &["f64", "f32", "i64", "i32"];
const ORDERED: &[&str] = &["f64", "f32", "i64", "i32", "u8"];
const BYTES: &[&str] = &["u8"];
const BOOLS: &[&str] = &["bool"];
const ALL: &[&str] = &["f64", "f32", "i64", "i32", "u8", "bool"];

/// Entry by entry, with a result of the same type.
const MAPS: &[(&[&str], &str)] = &[
    (NUMBERS, "X + Y * X - Y"),
    (NUMBERS, "if X > 0 { Y } else { 0 }"),
    (NUMBERS, "if X == Y { X + 1 } else { Y * 2 }"),
    (NUMBERS, "if X >= 0 && Y < 1 { X } else { -Y }"),
    (NUMBERS, "if X < 0 || X != Y { Y } else { X - Y }"),
    (NUMBERS, "if X <= Y { if Y > 1 { X } else { Y } } else { abs(X) }"),
    (NUMBERS, "if (if X < Y { X > 0 } else { Y > 1 }) { X } else { Y }"),
    (NUMBERS, "min(X, Y)"),
    (NUMBERS, "max(X, -Y)"),
    (NUMBERS, "X + i - 2 * j"),
    (FLOATS, "X / Y"),
    (FLOATS, "X * Y + 0.5"),
    (FLOATS, "sqrt(abs(X)) + floor(Y)"),
    (FLOATS, "ceil(X) - round(Y)"),
    (FLOATS, "(0.0 - abs(X)) * Y"),
    (FLOATS, "-abs(X - X) + 0.0 * j"),
    (INTEGERS, "floor_div(X, Y) + mod(Y, X)"),
    (BYTES, "if X > 3 { Y } else { X }"),
    (BYTES, "if X < Y { u8(i + j) } else { X }"),
    (BOOLS, "X && Y"),
    (BOOLS, "X || Y"),
    (BOOLS, "!X || Y"),
    (BOOLS, "X == Y"),
    (BOOLS, "if X { Y } else { !Y }"),
    (BOOLS, "X && !Y || Y && !X"),
    (ALL, "if j < 1 { X } else { Y }"),
    (ALL, "if i < j { Y } else { X }"),
];

/// Entry by entry, with truth values.
const TESTS: &[(&[&str], &str)] = &[
    (ORDERED, "X < Y"),
    (ORDERED, "X <= Y"),
    (ORDERED, "X == Y"),
    (ORDERED, "X != Y && X > Y"),
    (ORDERED, "X < Y || X == Y"),
    (ORDERED, "!(X < Y)"),
];

/// Other inputs and outputs: the parameters, the result, its value.
const OTHERS: &[(&[&str], &str, &str, &str)] = &[
    (ALL, "x: E[N,K], b: bool[N,K]", "E[N,K]", "{[i,j] -> if b[i,j] { X } else { x[i,0] }}"),
    (ALL, "x: E[K,N]", "E[N,K]", "{[i,j] -> x[j,i]}"),
    (ALL, "x: E[N,K], y: u8[N,K], z: f64[N,K]", "E[N,K]", "{[i,j] -> if Y > 9 && z[i,j] < 0.5 { X } else { x[0,j] }}"),
    (NUMBERS, "x: E[N,K], v: E[K], c: E[N]", "E[N,K]", "{[i,j] -> X * v[j] + c[i]}"),
    (NUMBERS, "v: E[K], x: E[N,K+2]", "E[N,K]", "{[i,j] -> X + x[i,j+1] * x[i,j+2] - v[j]}"),
    (NUMBERS, "v: E[K], x: E[N,K+2]", "E[N,K]", "{[i,j] -> v[j] + sum({[r] -> x[i,j+r] * 3 | 0 <= r < 3})}"),
    (NUMBERS, "x: E[N,K], y: E[N,K]", "E[N]", "{[i] -> sum({[j] -> X * Y})}"),
    (NUMBERS, "x: E[N,K], y: E[N,K]", "E[N]", "{[i] -> sum({[j] -> X}) + prod({[j] -> Y})}"),
    (NUMBERS, "x: E[N,K], y: E[N,K]", "E[N]", "{[i] -> max({[j] -> X}) - min({[j] -> Y})}"),
    (NUMBERS, "x: E[N,K], y: E[N,K]", "E[N]", "{[i] -> sum({[j] -> if X > Y { Y } else { 0 }})}"),
    (NUMBERS, "x: E[N,K], y: E[K]", "E[K]", "{[j] -> sum({[i] -> X * y[j]})}"),
    (NUMBERS, "x: E[N,K], y: E[N,K]", "E[K]", "{[j] -> prod({[i] -> X}) - sum({[i] -> Y})}"),
    (NUMBERS, "x: E[N,K], y: E[N,K]", "E[K]", "{[j] -> max({[i] -> min(X, Y)})}"),
    (NUMBERS, "x: E[N,K]", "(a: E, b: E)", "(sum(x), max(x))"),
    (BOOLS, "x: E[N,K], y: E[N,K]", "bool[N]", "{[i] -> all({[j] -> X || Y})}"),
    (BOOLS, "x: E[N,K], y: E[N,K]", "bool[N]", "{[i] -> any({[j] -> X && Y})}"),
    (BOOLS, "x: E[N,K], y: E[N,K]", "(a: bool[K], b: bool)", "({[j] -> all({[i] -> X != Y})}, any(x))"),
    (ALL, "x: E[N,K]", "(a: i64[N], b: i32[K])", "({[i] -> sum({[j] -> i64(X)})}, {[j] -> max({[i] -> i32(X)})})"),
];

/// Steps that are taken on loops over `i` and `j`, with `U` from 2 to 8.
const STEPS: &[&str] = &[
    "vectorize(j, U)",
    "unroll(j, U)",
    "unroll_and_jam(i, U)",
    "unroll_and_jam(j, U)",
    "vectorize(i, U)",
    "collapse(i, j)",
    "split(j, U)",
    "split(i, U); vectorize(i.i, U)",
    "interchange(i, j); vectorize(i, U)",
    "unroll(i, U)",
    "unroll(j, U); fma(i)",
    "split(j, U); unroll(j.i)",
];

/// A form with its element type.
struct Form {
    parameters: String,
    result: String,
    value: String,
}

impl Form {
    fn new(elem: &str, parameters: &str, result: &str, value: &str) -> Form {
        let value = value.replace('X', "x[i,j]").replace('Y', "y[i,j]");
        let typed = |text: &str| text.replace("E[", &format!("{elem}[")).replace(": E", &format!(": {elem}"));
        Form { parameters: typed(parameters), result: typed(result), value }
    }

    /// With these dimensions, which are numbers or `n` and `m`.
    fn specimen(&self, n: &str, k: &str, schedule: Option<String>, sizes: Vec<Vec<(&'static str, i64)>>) -> Specimen {
        let sized = |text: &str| text.replace('N', n).replace('K', k);
        let facts: Vec<String> =
            [n, k].into_iter().filter(|size| size.parse::<u64>().is_err()).map(|size| format!("{size} >= 1")).collect();
        let facts = if facts.is_empty() { String::new() } else { format!(" where {}", facts.join(", ")) };
        let (parameters, result) = (sized(&self.parameters), sized(&self.result));
        let text = format!("fn f({parameters}) -> {result}{facts} {{ {} }}", self.value);
        Specimen { text, schedule, sizes }
    }
}

/// Every form over every element type that it has.
fn forms() -> Vec<Form> {
    let two = "x: E[N,K], y: E[N,K]";
    let mut forms = Vec::new();
    for (elems, value) in MAPS {
        forms.extend(elems.iter().map(|elem| Form::new(elem, two, "E[N,K]", &format!("{{[i,j] -> {value}}}"))));
    }
    for (elems, value) in TESTS {
        forms.extend(elems.iter().map(|elem| Form::new(elem, two, "bool[N,K]", &format!("{{[i,j] -> {value}}}"))));
    }
    for from in ALL {
        for to in ALL.iter().filter(|to| *to != from) {
            forms.push(Form::new(from, "x: E[N,K]", &format!("{to}[N,K]"), &format!("{{[i,j] -> {to}(X)}}")));
        }
    }
    for (elems, parameters, result, value) in OTHERS {
        forms.extend(elems.iter().map(|elem| Form::new(elem, parameters, result, value)));
    }
    forms
}

/// All kernels. Steps that cannot be taken on some loops are among them.
pub fn sweep() -> Vec<Specimen> {
    let mut all = Vec::new();
    for (at, form) in forms().iter().enumerate() {
        let both = (1..=INNER as i64).map(|m| vec![("n", 2 + (m + at as i64) % 9), ("m", m)]);
        let both: Vec<_> = both.chain([vec![("n", 19), ("m", 37)]]).collect();
        all.push(form.specimen("n", "m", None, both.clone()));
        for inner in 1..=INNER {
            let k = inner.to_string();
            let rows = [1, 2 + (at + inner) as i64 % 7, 57 + (at + 3 * inner) as i64 % 16].map(|n| vec![("n", n)]);
            all.push(form.specimen("n", &k, None, rows.to_vec()));
            let mixed = at + 5 * inner;
            // Of what is left, each form has a part, and all forms together have everything.
            if mixed.is_multiple_of(8) {
                all.push(form.specimen(&(3 + mixed % 60).to_string(), &k, None, vec![Vec::new()]));
            }
            if mixed.is_multiple_of(7) {
                let steps = STEPS[(at + inner) % STEPS.len()].replace('U', &(2 + mixed % 7).to_string());
                all.push(form.specimen("n", &k, Some(steps), rows.to_vec()));
            }
        }
        for turn in 0..2 {
            let steps = STEPS[(at + 5 * turn) % STEPS.len()].replace('U', &(2 + (at + turn) % 7).to_string());
            all.push(form.specimen("n", "m", Some(steps), both.clone()));
        }
    }
    all
}

/// One in so many of them, of all kinds.
pub fn sample(of: usize) -> Vec<Specimen> {
    let chosen = |at: &usize| (at.wrapping_mul(0x9e37_79b9) >> 8).is_multiple_of(of.max(1));
    sweep().into_iter().enumerate().filter(|(at, _)| chosen(at)).map(|(_, specimen)| specimen).collect()
}
