//! Plain kernels, as users write them: random expressions over every element type, entry by entry or reduced, with short
//! inner dimensions, perhaps with a step that unrolls, jams or makes vectors.
//!
//! What is generated is text of the `.ten` language that is nearly always accepted; a step may be refused. The values are the
//! loop interpreter's: this generator only makes what C compilers have to get right.

use crate::draw::Draw;

const NUMBERS: [&str; 4] = ["f64", "f32", "i64", "i32"];
const ELEMS: [&str; 6] = ["f64", "f32", "i64", "i32", "u8", "bool"];

/// Steps on loops over `i` and `j`, with `U` from 2 to 8.
const STEPS: [&str; 13] = [
    "vectorize(j, U)",
    "vectorize(i, U)",
    "unroll(j, U)",
    "unroll(i, U)",
    "unroll_and_jam(i, U)",
    "unroll_and_jam(j, U)",
    "collapse(i, j)",
    "interchange(i, j)",
    "interchange(i, j); vectorize(i, U)",
    "split(i, U); vectorize(i.i, U)",
    "split(j, U); unroll(j.i)",
    "split(j, U); interchange(i, j.o); vectorize(j.i, U)",
    "unroll(j, U); fma(i)",
];

/// A kernel, and the sizes that it is called with.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// One function, `f`.
    pub text: String,
    /// Steps for its loops.
    pub schedule: Option<String>,
    /// Values of its symbolic sizes.
    pub sizes: Vec<Vec<(&'static str, i64)>>,
}

impl Kernel {
    /// The kernel of a seed.
    pub fn new(seed: u64) -> Kernel {
        let mut draw = Draw::new(seed);
        let inner = draw.within(1, 16);
        let (rows, columns, sizes) = match draw.below(4) {
            0 => {
                let calls = [vec![("n", draw.within(1, 9)), ("m", inner)], vec![("n", 11), ("m", draw.within(17, 40))]];
                ("n".to_owned(), "m".to_owned(), calls.to_vec())
            }
            1 => (draw.within(1, 70).to_string(), inner.to_string(), vec![Vec::new()]),
            _ => {
                let calls = [1, draw.within(2, 9), draw.within(33, 80)].map(|n| vec![("n", n)]);
                ("n".to_owned(), inner.to_string(), calls.to_vec())
            }
        };
        // The first one says what the sizes are.
        let parameters = vec![format!("x0: {}[{rows},{columns}]", draw.word(&ELEMS))];
        let mut writer = Writer { draw, rows, columns, parameters };
        let (result, body, is_one) = writer.body();
        let facts: Vec<String> = sizes.iter().take(1).flatten().map(|(name, _)| format!("{name} >= 1")).collect();
        let facts = if facts.is_empty() { String::new() } else { format!(" where {}", facts.join(", ")) };
        let text = format!("fn f({}) -> {result}{facts} {{ {body} }}", writer.parameters.join(", "));
        let scheduled = is_one && writer.draw.chance(2);
        let schedule = scheduled.then(|| {
            let factor = writer.draw.within(2, 8).to_string();
            writer.draw.word(&STEPS).replace('U', &factor)
        });
        Kernel { text, schedule, sizes }
    }
}

/// Writes a function.
struct Writer {
    draw: Draw,
    rows: String,
    columns: String,
    parameters: Vec<String>,
}

impl Writer {
    /// The type of the result, the body, and whether it is one nest of loops over `i` and `j`.
    fn body(&mut self) -> (String, String, bool) {
        let (n, k) = (self.rows.clone(), self.columns.clone());
        let (each, rows, columns) =
            (format!("0 <= i < {n}, 0 <= j < {k}"), format!("0 <= i < {n}"), format!("0 <= j < {k}"));
        let elem = self.draw.word(&ELEMS);
        match self.draw.below(8) {
            0 => {
                let (reduced, to) = self.reduced(elem, "j", &columns);
                (format!("{to}[{n}]"), format!("{{[i] -> {reduced} | {rows}}}"), true)
            }
            1 => {
                let (reduced, to) = self.reduced(elem, "i", &rows);
                (format!("{to}[{k}]"), format!("{{[j] -> {reduced} | {columns}}}"), true)
            }
            2 => {
                let (reduced, to) = self.reduced(elem, "i, j", &each);
                (to.to_owned(), reduced, true)
            }
            3 => {
                let (a, b) = (self.value(elem, 2), self.draw.word(&ELEMS));
                let b = (b, self.value(b, 2));
                let types = format!("(a: {elem}[{n},{k}], b: {}[{n},{k}])", b.0);
                (types, format!("({{[i,j] -> {a} | {each}}}, {{[i,j] -> {} | {each}}})", b.1), false)
            }
            4 => {
                let first = self.value(elem, 2);
                let (reduced, to) = self.reduced(elem, "j", &columns);
                let body = format!("let t = {{[i,j] -> {first} | {each}}}; ({{[i] -> {reduced} | {rows}}}, t)");
                (format!("(a: {to}[{n}], b: {elem}[{n},{k}])"), body, false)
            }
            _ => {
                let value = self.value(elem, 3);
                (format!("{elem}[{n},{k}]"), format!("{{[i,j] -> {value} | {each}}}"), true)
            }
        }
    }

    /// One or two reductions over indices, and the type of their value.
    fn reduced(&mut self, elem: &'static str, indices: &str, bounds: &str) -> (String, &'static str) {
        let to = if elem == "u8" { "i64" } else { elem };
        let operations: &[&str] = if to == "bool" { &["all", "any"] } else { &["sum", "prod", "min", "max"] };
        let one = |writer: &mut Writer| {
            let operation = writer.draw.word(operations);
            format!("{operation}({{[{indices}] -> {} | {bounds}}})", writer.value(to, 2))
        };
        let first = one(self);
        match (self.draw.chance(3), to) {
            (false, _) => (first, to),
            (true, "bool") => (format!("({first} && {})", one(self)), to),
            (true, _) => (format!("({first} + {})", one(self)), to),
        }
    }

    /// An element of an input of this type.
    fn element(&mut self, elem: &str) -> String {
        let (n, k) = (&self.rows, &self.columns);
        let shift = self.draw.below(3);
        let (shape, index) = match self.draw.below(12) {
            0 => (format!("[{k}]"), "[j]".to_owned()),
            1 => (format!("[{n}]"), "[i]".into()),
            2 => (format!("[{k},{n}]"), "[j,i]".into()),
            3 => (format!("[{n},{k}+2]"), format!("[i,j+{shift}]")),
            4 => (format!("[{n}+2,{k}]"), format!("[i+{shift},j]")),
            5 => (String::new(), String::new()),
            _ => (format!("[{n},{k}]"), "[i,j]".into()),
        };
        let ending = format!(": {elem}{shape}");
        let again = !self.draw.chance(3);
        if let Some(known) = self.parameters.iter().find(|it| again && it.ends_with(&ending)) {
            return format!("{}{index}", known.split(':').next().unwrap_or_default());
        }
        let name = format!("x{}", self.parameters.len());
        self.parameters.push(format!("{name}{ending}"));
        format!("{name}{index}")
    }

    fn value(&mut self, elem: &'static str, depth: usize) -> String {
        if elem == "bool" {
            return self.truth(depth);
        }
        if depth == 0 || self.draw.chance(6) {
            return self.element(elem);
        }
        let (below, is_number) = (depth - 1, NUMBERS.contains(&elem));
        match self.draw.below(if is_number { 10 } else { 3 }) {
            0 | 3 => {
                let condition = self.truth(below);
                let (a, b) = (self.value(elem, below), self.value(elem, below));
                format!("(if {condition} {{ {a} }} else {{ {b} }})")
            }
            1 => {
                let from = self.draw.word(&ELEMS);
                format!("{elem}({})", self.value(from, below))
            }
            2 if is_number => format!("({} + 2 * j - i)", self.value(elem, below)),
            2 => self.element(elem),
            4 => {
                let word = self.draw.word(&["min", "max"]);
                format!("{word}({}, {})", self.value(elem, below), self.value(elem, below))
            }
            5 => {
                let word = self.draw.word(&["-", "abs"]);
                format!("{word}({})", self.value(elem, below))
            }
            6 => self.special(elem, below),
            7 => format!("({} * {})", self.value(elem, below), self.draw.within(2, 9)),
            _ => {
                let (a, sign) = (self.value(elem, below), self.draw.word(&["+", "-", "*"]));
                format!("({a} {sign} {})", self.value(elem, below))
            }
        }
    }

    /// What only floats or only integers have.
    fn special(&mut self, elem: &'static str, below: usize) -> String {
        let a = self.value(elem, below);
        match (elem.starts_with('f'), self.draw.below(4)) {
            (true, 0) => format!("sqrt(abs({a}))"),
            (true, 1) => format!("({a} / {})", self.value(elem, below)),
            (true, _) => format!("{}({a})", self.draw.word(&["floor", "ceil", "round"])),
            (false, which) => {
                let word = if which < 2 { "floor_div" } else { "mod" };
                format!("{word}({a}, {})", self.element(elem))
            }
        }
    }

    fn truth(&mut self, depth: usize) -> String {
        if depth == 0 || self.draw.chance(6) {
            return self.element("bool");
        }
        let below = depth - 1;
        match self.draw.below(8) {
            0 => format!("({} && {})", self.truth(below), self.truth(below)),
            1 => format!("({} || {})", self.truth(below), self.truth(below)),
            2 => format!("!{}", self.truth(below)),
            3 => {
                let (condition, a, b) = (self.truth(below), self.truth(below), self.truth(below));
                format!("(if {condition} {{ {a} }} else {{ {b} }})")
            }
            4 => format!("({} == {})", self.truth(below), self.truth(below)),
            _ => {
                let elem = self.draw.word(&["f64", "f32", "i64", "i32", "u8"]);
                let sign = self.draw.word(&["<", "<=", ">", ">=", "==", "!="]);
                let a = self.value(elem, below);
                let b = if self.draw.chance(3) { self.draw.within(0, 3).to_string() } else { self.value(elem, below) };
                format!("({a} {sign} {b})")
            }
        }
    }
}
