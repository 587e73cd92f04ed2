"""The programs that the tests call."""

TEN = """
fn matmul(A: f64[m, k], B: f64[k, n]) -> f64[m, n] { A @ B }

fn axpy(a: f64, x: f64[n], y: f64[n]) -> f64[n] { a * x + y }

fn moments(x: f64[n]) -> (mean: f64, variance: f64) where n >= 1 {
    let mean = sum(x) / n;
    let d = x - mean;
    (mean, sum(d * d) / n)
}

fn minmax(x: f64[m, n]) -> (low: f64[m], high: f64[m]) where n >= 1 { (min(x, axis = 1), max(x, axis = 1)) }

fn blur(x: f64[h, w]) -> f64[h-2, w-2] where h >= 2, w >= 2 {
    let rows = { [i, j] -> (x[i,j] + x[i,j+1] + x[i,j+2]) / 3 };
    { [i, j] -> (rows[i,j] + rows[i+1,j] + rows[i+2,j]) / 3 }
}

fn window(x: f64[n], k: size) -> f64[n-k+1] where 1 <= k, k <= n {
    { [i] -> sum({ [r] -> x[i+r] | r < k }) | i < n-k+1 }
}

fn iota(n: size) -> i64[n] where n >= 0 { { [i] -> i | i < n } }

fn normalise(x: f64[s..., n]) -> f64[s..., n] where n >= 1 { { [iv..., j] -> x[iv, j] / sum(x[iv]) } }

fn twice(x: num[s...]) -> num[s...] { x + x }

fn pairs(x: any[n]) -> any[n, 2] { { [i] -> [x[i], x[n-1-i]] } }

fn mixed(m: bool[n], x: u8[n], y: f32[n], a: i32) -> f32[n] {
    { [i] -> if m[i] { y[i] } else { f32(x[i]) + f32(a) } }
}

fn even(x: f64[2*n], y: f64[n]) -> f64[n] { { [i] -> x[2*i] + y[i] } }

fn three(x: f64[3]) -> f64 { sum(x) }

fn relax(u: f64[n], k: size) -> f64[n] where k >= 0 { iterate k times v = u { 0.5 * v + 1 } }

fn pick(at: size[d], x: any[d:outer, s...]) -> any[s...] where 0 <= at, at < outer { x[at] }

fn total(x: f64[m, n]) -> f64 { sum(x) }
"""

TEIL = """
alloc A : [l, m]
alloc B : [m, n]
alloc C : [l, n]
C = red+ 2 (diag 2 3 (prod A B))
"""

MODEL = """
var A : [l m]
var B : [m n]
var C : [l n]
C = (A # B) . [2 3]
"""

CORE = """
core matmul
size l, m, n
input A : f64[l, m]
input B : f64[m, n]
C = gen i in 0..l. gen j in 0..n. sum k in 0..m. A[i, k] * B[k, j]
output C
"""
