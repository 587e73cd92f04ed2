use certen_math::Function;
use std::io::{BufRead, Write};
fn main() {
    let stdin = std::io::stdin();
    let mut out = std::io::BufWriter::new(std::io::stdout());
    for line in stdin.lock().lines() {
        let line = line.unwrap();
        let w: Vec<&str> = line.split(' ').collect();
        let f = Function::ALL.iter().find(|f| f.name() == w[0]).unwrap();
        let a: Vec<f64> = w[2..].iter().map(|t| f64::from_bits(u64::from_str_radix(t, 16).unwrap())).collect();
        let r = if w[1] == "d" {
            f.double(&a)
        } else {
            f64::from(f.single(&a.iter().map(|x| *x as f32).collect::<Vec<_>>()))
        };
        writeln!(out, "{:016x}", r.to_bits()).unwrap();
    }
}
