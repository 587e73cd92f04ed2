//! Padding: which truncations are legal, for all sizes (ATL, Sec. 5 and 6), and how much padding there is.

use certen_core::domain::{Element, Field, MaybePadding, Padded};
use certen_core::padding::{self, PadType, Violation, Why, pad_type};
use certen_core::{ElemType, Evaluator, Program, Tensor, Term, parse_program};
use certen_index::{Cond, Ix};
use certen_syntax::{Name, Sources};

fn read(text: &str) -> Program {
    let mut sources = Sources::new();
    let file = sources.add("t.core", text);
    parse_program(&sources, file).map_err(|found| panic!("{text}\n{:#?}", found.into_sorted())).unwrap()
}

/// A program over sizes `n`, `m`, `k` and inputs `v`, `w` (vectors of n and 14 elements) and `A` (n times m) with one
/// binding or several.
fn over_inputs(bindings: &str) -> Program {
    read(&format!(
        "core t\nsize n, m, k\nwhere n >= 0, m >= 0, k >= 0\ninput v : f64[n]\ninput w : f64[14]\ninput A : f64[n, m]\n\
         {bindings}\noutput t\n"
    ))
}

fn violations(bindings: &str) -> Vec<Violation> {
    padding::check(&over_inputs(bindings))
}

#[track_caller]
fn legal(bindings: &str) {
    let found = violations(bindings);
    assert!(found.is_empty(), "{bindings}\n{found:#?}");
}

/// A violation with a counterexample, and the padding that there is.
#[track_caller]
fn illegal(bindings: &str, padding: &str) -> Violation {
    let found = violations(bindings);
    let [one] = found.as_slice() else { panic!("{bindings}\n{found:#?}") };
    assert!(matches!(one.why, Why::Cut(_)), "{bindings}\n{one:#?}");
    assert_eq!(one.padding.as_ref().map(ToString::to_string).as_deref(), Some(padding), "{bindings}\n{one:#?}");
    one.clone()
}

#[test]
fn what_is_computed_cannot_be_cut() {
    // Sec. 5, both programs.
    illegal("t = trunc_l(k, gen i in 0..n. v[i] * 2.0)", "0");
    illegal("t = gen i in 0..n. trunc_r(k, gen j in 0..m. A[i, j] * 2.0)", "0");
    illegal("t = trunc_l(1, v)", "0");
    illegal("t = trunc_r(1, gen i in 0..n. 0.0 * v[i])", "0");
    illegal("t = trunc_r(1, gen i in 0..n. 0.0)", "0");
    illegal("t = trunc_r(1, gen i in 0..n. f64(0) + guard(i < 0, v[i]))", "0");
    illegal("t = trunc_r(n, gen i in 0..n. product j in 0..0. v[j])", "0");
    illegal("t = trunc_r(1, iterate 1 times (s = gen i in 0..n. guard(i < 0, v[i])) then (s = s) give s)", "0");
}

#[test]
fn nothing_can_always_be_cut() {
    legal("t = trunc_l(0, v)");
    legal("t = gen i in 0..n. trunc_r(k - k, gen j in 0..m. A[i, j])");
    legal("t = trunc_r(n, gen i in 0..n. trunc_l(0, gen j in 0..m. guard(i < 0, A[i, j])))");
}

#[test]
fn guards_are_padding_where_they_are_false() {
    legal("t = trunc_l(3, gen i in 0..10. guard(2 < i, w[i + 4]))");
    illegal("t = trunc_l(3, gen i in 0..10. guard(1 < i, w[i + 4]))", "2");
    legal("t = trunc_l(k, gen i in 0..n. guard(i >= k, v[i]))");
    illegal("t = trunc_l(k + 1, gen i in 0..n. guard(i >= k, v[i]))", "min(k, n)");
    legal("t = trunc_r(n - min(k, n), gen i in 0..n. guard(i < k, v[i]))");
    illegal("t = trunc_r(2, gen i in 0..n. guard(i + 1 < n, v[i]))", "1");
    legal("t = trunc_r(n, gen i in 0..n. if i < k then guard(i < 0, v[i]) else guard(i < k, v[i]))");
    legal("t = trunc_r(2, gen i in 0..n. guard(i + 2 < n || i < 0, guard(i >= k, v[i])))");
    // More than there is.
    legal("t = trunc_l(k, trunc_l(n, gen i in 0..n. guard(i < 0, v[i])))");
    legal("t = trunc_r(n + 5, gen i in 0..n. guard(i < 0, v[i]))");
    illegal("t = trunc_r(n + 5, gen i in 0..n. guard(i < 1, v[i]))", "n - 1");
}

#[test]
fn pads_and_splits_are_padding() {
    legal("t = trunc_l(k, pad_l(k, v))");
    legal("t = trunc_r(k, pad_r(k, v))");
    legal("t = trunc_r(k, pad_r(m, pad_r(k, trunc_r(0, v))))");
    illegal("t = trunc_r(k, pad_l(k, v))", "0");
    illegal("t = trunc_l(k + 1, pad_l(k, v))", "k");
    legal("t = trunc_r(4*ceil_div(n, 4) - n, flatten(split(4, v)))");
    illegal("t = trunc_r(4 - n + 4*floor_div(n, 4), flatten(split(4, v)))", "4*ceil_div(n, 4) - n");
    legal("t = trunc_r(k, transpose(transpose(pad_r(k, A))))");
    legal("t = transpose(trunc_r(k, transpose(gen i in 0..n. pad_r(k, gen j in 0..m. A[i, j]))))");
    legal("t = trunc_l(k, trunc_r(m, pad_r(m, pad_l(k, v))))");
}

#[test]
fn padding_goes_along_with_names() {
    legal("p = pad_r(k, v)\nq = gen i in 0..n + k. p[i]\nt = trunc_r(k, q)");
    legal("t = let p = pad_r(k, v) in trunc_r(k, gen i in 0..n + k. p[i])");
    legal("t = gen i in 0..n. let p = gen j in 0..m. guard(j < i, A[i, j]) in trunc_r(max(0, m - i), p)[0]");
    illegal("p = pad_r(k, v)\nt = trunc_r(k, gen i in 0..n + k. -p[i])", "0");
    // The same name in two places.
    legal(
        "p = gen i in 0..m. guard(i < k, let x = v in w[3])\nt = trunc_r(max(0, m - k), gen i in 0..m. let q = p[i] in q)",
    );
}

#[test]
fn sums_of_padding_are_padding() {
    legal("t = trunc_r(n, gen i in 0..n. sum j in 0..0. v[i])");
    legal("t = trunc_r(n, gen i in 0..n. sum j in 3..k where k < 2. v[i])");
    legal("t = trunc_r(k, sum j in 0..m. gen i in 0..n + k. guard(i < n, v[i]))");
    legal("t = trunc_l(1, gen i in 0..n. sum j in 0..n. guard(j < i, v[j]))");
    illegal("t = trunc_l(2, gen i in 0..n. sum j in 0..n. guard(j < i, v[j]))", "1");
    illegal("t = trunc_r(1, gen i in 0..n. maximum j in 0..1. guard(j < 0, v[i]))", "0");
}

#[test]
fn concatenations_keep_the_padding_of_their_parts() {
    legal("t = trunc_r(k, concat(v, pad_r(k, v)))");
    legal("t = trunc_r(k + m, concat(v, gen i in 0..k + m. guard(i < 0, w[0])))");
    illegal("t = trunc_r(k + 1, concat(v, pad_r(k, w)))", "k");
    illegal("t = trunc_l(k, concat(v, pad_l(k, w)))", "0");
    legal("t = trunc_l(k, concat(gen i in 0..k. guard(i < 0, w[0]), v))");
}

/// Sec. 7.1.2: tiled, for all sizes.
fn tiled(amount: [&str; 2]) -> String {
    let [rows, columns] = amount;
    format!(
        "core tiled\nsize M, N, K\nwhere M >= 0, N >= 0, K >= 0\ninput A : f64[M, K]\ninput B : f64[K, N]\n\
         t = trunc_r({rows}, flatten(gen io in 0..ceil_div(M, 4). transpose(trunc_r({columns}, \
         flatten(gen jo in 0..ceil_div(N, 4). gen ji in 0..4. gen ii in 0..4. \
         guard(4*io + ii < M && 4*jo + ji < N, sum k in 0..K. A[4*io + ii, k] * B[k, 4*jo + ji]))))))\noutput t\n"
    )
}

#[test]
fn tiled_matrix_products_are_cut_to_size() {
    let right = tiled(["4*ceil_div(M, 4) - M", "4*ceil_div(N, 4) - N"]);
    assert_eq!(padding::check(&read(&right)), []);
    // The amount as printed is 4 where 4 divides the size.
    let printed = tiled(["4 - M + 4*floor_div(M, 4)", "4 - N + 4*floor_div(N, 4)"]);
    let found = padding::check(&read(&printed));
    let amounts: Vec<String> = found.iter().map(|v| v.padding.as_ref().unwrap().to_string()).collect();
    assert_eq!(amounts, ["4*ceil_div(M, 4) - M", "4*ceil_div(N, 4) - N"], "{found:#?}");
    assert!(found.iter().all(|violation| matches!(violation.why, Why::Cut(_))));
}

#[test]
fn separated_tails_are_cut_to_size() {
    let body = "sum k in 0..K. A[4*io + ii, k] * B[k, 4*jo + ji]";
    let columns = |guard: &dyn Fn(&str) -> String| {
        format!(
            "transpose(trunc_r(4*ceil_div(N, 4) - N, flatten(concat(\
             gen jo in 0..floor_div(N, 4). gen ji in 0..4. gen ii in 0..4. {}, \
             gen jo in floor_div(N, 4)..ceil_div(N, 4). gen ji in 0..4. gen ii in 0..4. {}))))",
            guard(""),
            guard("4*jo + ji < N"),
        )
    };
    let guarded = |row: &'static str| {
        move |column: &str| match (row, column) {
            ("", "") => body.to_string(),
            (one, "") | ("", one) => format!("guard({one}, {body})"),
            (row, column) => format!("guard({row} && {column}, {body})"),
        }
    };
    let text = format!(
        "core tails\nsize M, N, K\nwhere M >= 0, N >= 0, K >= 0\ninput A : f64[M, K]\ninput B : f64[K, N]\n\
         t = trunc_r(4*ceil_div(M, 4) - M, flatten(concat(gen io in 0..floor_div(M, 4). {}, \
         gen io in floor_div(M, 4)..ceil_div(M, 4). {})))\noutput t\n",
        columns(&guarded("")),
        columns(&guarded("4*io + ii < M")),
    );
    assert_eq!(padding::check(&read(&text)), []);
    let wrong = text.replace("guard(4*io + ii < M && 4*jo + ji < N, ", "guard(4*io + ii < M, ");
    assert_ne!(text, wrong);
    assert_eq!(padding::check(&read(&wrong)).len(), 1);
}

#[test]
fn symbolic_blocks() {
    legal("t = trunc_r(k*m, flatten(gen i in 0..n + k. gen j in 0..m. guard(i < n, A[0, j])))");
    legal("t = trunc_r(k*m, flatten(pad_r(k, A)))");
    illegal("t = trunc_r(k*m + 1, flatten(pad_r(k, A)))", "k*m");
}

#[test]
fn truncations_are_judged_where_they_stand() {
    legal("t = gen i in 0..n. guard(i < 0, trunc_l(1, gen j in 0..m. A[i, j]))");
    legal("t = gen i in 0..n. if i >= k then trunc_l(k, gen j in 0..m + i. guard(j >= i, w[0]))[0] else 0.0");
    let twice = "let c = gen j in 0..3. guard(j < i, w[j]) in trunc_r(1, c)[0]";
    legal(&format!("t = gen i in 0..n. if i <= 2 then {twice} else 0.0"));
    let found = violations(&format!("t = gen i in 0..n. (if i <= 2 then {twice} else 0.0) + {twice}"));
    assert_eq!(found.len(), 1, "{found:#?}");
}

fn type_of(bindings: &str) -> String {
    let program = over_inputs(bindings);
    pad_type(&program, program.bindings.last().unwrap().term).to_string()
}

#[test]
fn pad_types_are_the_papers_tuples() {
    assert_eq!(type_of("t = v"), "(0, n, (false), 0, _, 0)");
    assert_eq!(type_of("t = v[0]"), "(false)");
    assert_eq!(type_of("t = guard(n < 0, v[0])"), "(true)");
    assert_eq!(type_of("t = pad_l(k, pad_r(m, v))"), "(k, n, (false), 0, _, m)");
    assert_eq!(type_of("t = concat(v, pad_r(k, v))"), "(0, n, (false), n, (false), k)");
    assert_eq!(
        type_of("t = concat(A, gen i in 0..k. gen j in 0..m. guard(j >= 2, w[0]))"),
        "(0, n, (0, m, (false), 0, _, 0), k, (min(m, 2), m - min(m, 2), (false), 0, _, 0), 0)"
    );
    assert_eq!(type_of("t = flatten(split(4, v))"), "(0, n, (false), 0, _, 4*ceil_div(n, 4) - n)");
    assert_eq!(
        type_of("t = split(4, v)"),
        "(0, ceil_div(n, 4), (0, 4 - max(0, 4 - n), (false), 0, _, max(0, 4 - n)), 0, _, 0)"
    );
    assert_eq!(type_of("t = gen i in 0..n. gen j in 0..m. guard(i < 0, A[i, j])"), "(n, 0, _, 0, _, 0)");
    assert_eq!(type_of("t = transpose(pad_r(2, A))"), "(0, m, (0, n, (false), 0, _, 2), 0, _, 0)");
}

/// Whether a type says that an element is padding, at sizes and indices.
fn says_padding(ty: &PadType, index: &[i64], shape: &[usize], size: &impl Fn(Name) -> Option<i64>) -> bool {
    match (ty, index, shape) {
        (PadType::Scalar(padding), ..) => *padding,
        (PadType::Tensor(outermost), [i, rest @ ..], [n, inner @ ..]) => {
            let at = |ix: &Ix| ix.eval(size).unwrap();
            let (left, right, n) = (at(&outermost.left), at(&outermost.right), *n as i64);
            if *i < left || *i >= n - right {
                return true;
            }
            let in_first = outermost.first.as_ref().filter(|(rows, _)| *i < left + at(rows));
            let in_last = outermost.last.as_ref().filter(|(rows, _)| *i >= n - right - at(rows));
            [in_first, in_last].into_iter().flatten().any(|(_, ty)| says_padding(ty, rest, inner, size))
        }
        _ => panic!("an index of another length"),
    }
}

/// Thm. 6.1 by hand: what a type says to be padding is padding when the program is run.
#[test]
fn static_padding_is_dynamic_padding() {
    let terms = [
        "v",
        "pad_l(k, v)",
        "pad_r(k, v)",
        "pad_l(1, pad_r(m, pad_l(k, v)))",
        "trunc_l(k, pad_l(k, v))",
        "trunc_r(1, pad_r(1 + m, v))",
        "split(4, v)",
        "flatten(split(4, v))",
        "split(3, pad_l(k, v))",
        "flatten(split(3, pad_l(k, v)))",
        "transpose(pad_r(k, A))",
        "flatten(pad_r(k, A))",
        "flatten(pad_l(k, A))",
        "flatten(transpose(pad_l(2, A)))",
        "concat(v, pad_r(k, v))",
        "concat(pad_l(k, v), v)",
        "concat(pad_l(k, A), pad_r(2, A))",
        "transpose(concat(pad_l(k, A), pad_r(2, A)))",
        "gen i in 0..n. guard(i >= k, v[i])",
        "gen i in 0..n. guard(i < k, v[i])",
        "gen i in 0..n. guard(i == k, v[i])",
        "gen i in 0..n. guard(i == k || i < 1, v[i])",
        "gen i in k..n. guard(i < m, v[i])",
        "gen i in 0..n. if i < k then guard(i < 0, v[i]) else v[i]",
        "gen i in 0..n. gen j in 0..m. guard(j < i, A[i, j])",
        "gen i in 0..n. gen j in 0..m. guard(i + j < k, A[i, j])",
        "gen i in 0..n. gen j in 0..m. guard(2*i < k, A[i, j])",
        "gen i in 0..n. sum j in 0..m. guard(j < i, A[i, j])",
        "gen i in 0..n. sum j in 0..k where j > i. v[i]",
        "sum j in 0..k. gen i in 0..n. guard(i > j, v[i])",
        "gen i in 0..n. sum j in 0..0. v[i]",
        "gen i in 0..n. maximum j in 0..1. guard(i < 0, v[i])",
        "gen i in 0..n. 0.0 * guard(i < 0, v[i])",
        "let p = pad_r(k, v) in gen i in 0..n. p[i + k]",
        "let p = pad_l(k, v) in pad_r(1, p)",
        "gen i in 0..n. pad_l(k, gen j in 0..m. guard(j > i, A[i, j]))",
        "iterate k times (s = gen i in 0..n. guard(i < 0, v[i])) then (s = gen i in 0..n. guard(i >= k, s[i])) give s",
        "trunc_r(4*ceil_div(n, 4) - n, flatten(gen i in 0..ceil_div(n, 4). gen j in 0..4. guard(4*i + j < n, v[4*i + j])))",
        "flatten(gen i in 0..ceil_div(n, 4). gen j in 0..4. guard(4*i + j >= k && 4*i + j < n, v[4*i + j]))",
        "gen i in 0..n. guard(floor_div(i, 3) < k, v[i])",
        "gen i in 0..n. guard(floor_div(i, 3) >= k, v[i])",
        "transpose(gen i in 0..n. pad_r(2, gen j in 0..m. guard(3 <= i, A[i, j])))",
        "(pad_l(1, A))[0]",
    ];
    let mut padding = 0;
    for term in terms {
        let program = over_inputs(&format!("t = {term}"));
        let last = program.bindings.last().unwrap();
        let ty = pad_type(&program, last.term);
        for sizes in [[0, 1, 0], [1, 1, 1], [1, 0, 2], [5, 3, 2], [7, 1, 3], [3, 5, 4], [8, 2, 1], [2, 7, 9]] {
            let size = |name: Name| ["n", "m", "k"].iter().position(|s| Name::new(s) == name).map(|at| sizes[at]);
            let filled = |name: &str| {
                let input = program.inputs.iter().find(|input| input.name == Name::new(name)).unwrap();
                let shape = input.ty.shape_at(&size).unwrap();
                let data = vec![MaybePadding::computed(Element::from(3)); shape.iter().product()];
                (input.name, Tensor::new(shape, data).unwrap())
            };
            let given = ["n", "m", "k"].map(Name::new).into_iter().zip(sizes);
            let domain = Padded(Field::default());
            let outputs = Evaluator::new(&program, &domain, given, ["v", "w", "A"].map(filled)).unwrap().run();
            let Ok(outputs) = outputs else { continue };
            let tensor = &outputs[0].1;
            for (at, element) in tensor.data().iter().enumerate() {
                let mut rest = at as i64;
                let mut index: Vec<i64> = tensor
                    .shape()
                    .iter()
                    .rev()
                    .map(|&n| {
                        let i = rest % n as i64;
                        rest /= n as i64;
                        i
                    })
                    .collect();
                index.reverse();
                let said = says_padding(&ty, &index, tensor.shape(), &size);
                padding += usize::from(said);
                assert!(!said || element.is_padding, "{term} : {ty} at {sizes:?}, {index:?}");
            }
        }
        assert_eq!(program.terms.ty(last.term).elem, ElemType::F64);
    }
    assert!(padding > 300, "the types say too little: {padding}");
}

/// The time that the processor spends on this thread, so that a busy machine does not matter.
fn seconds(work: impl FnOnce()) -> f64 {
    let start = std::time::Instant::now();
    let spent = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
        let nanoseconds: Option<u64> = text.and_then(|text| text.split_whitespace().next()?.parse().ok());
        nanoseconds.map_or_else(|| start.elapsed(), std::time::Duration::from_nanos)
    };
    let before = spent();
    work();
    (spent() - before).as_secs_f64()
}

/// A blur in tiles of 64 by 64 for all sizes: the sums of three columns are staged for each tile, with one row more on both
/// sides; the last tiles and the first and last columns of a tile stand apart from what needs no guards.
fn tiled_blur() -> String {
    let element = |guard: &str, body: &str| match guard {
        "" => body.to_owned(),
        guard => format!("guard({guard}, {body})"),
    };
    // One tile: [column, row], columns in three parts.
    let tile = |rows: &str, columns: &str| {
        let inside = "1 <= 64*io + r && 64*io + r < N + 1 && 64*jo + c < M";
        let stage = format!(
            "gen r in 0..66. gen c in 0..64. guard({inside}, sum d in 0..3. \
             guard(1 <= 64*jo + c + d && 64*jo + c + d < M + 1, x[64*io + r - 1, 64*jo + c + d - 1]))"
        );
        let guard = [rows, columns].into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>().join(" && ");
        let part = |range: &str| {
            let sum = "sum d in 0..3. stage[ii + d, ji]";
            format!("gen ji in {range}. gen ii in 0..64. {}", element(&guard, sum))
        };
        format!("let stage = {stage} in concat({}, concat({}, {}))", part("0..1"), part("1..63"), part("63..64"))
    };
    let columns = |rows: &str| {
        format!(
            "transpose(trunc_r(64*ceil_div(M, 64) - M, flatten(concat(gen jo in 0..floor_div(M, 64). {}, \
             gen jo in floor_div(M, 64)..ceil_div(M, 64). {}))))",
            tile(rows, ""),
            tile(rows, "64*jo + ji < M")
        )
    };
    format!(
        "core blur\nsize N, M\nwhere N >= 0, M >= 0\ninput x : f64[N, M]\n\
         t = trunc_r(64*ceil_div(N, 64) - N, flatten(concat(gen io in 0..floor_div(N, 64). {}, \
         gen io in floor_div(N, 64)..ceil_div(N, 64). {})))\noutput t\n",
        columns(""),
        columns("64*io + ii < N")
    )
}

/// The paper's inference takes minutes for this, at given sizes.
#[test]
fn a_tiled_and_staged_blur_takes_milliseconds_for_all_sizes() {
    let program = read(&tiled_blur());
    assert_eq!(padding::check(&program), []);
    // The clock ticks slowly.
    let time = seconds(|| (0..20).for_each(|_| assert_eq!(padding::check(&program), []))) / 20.0;
    assert!(time < 0.05, "{time} s");
    let text =
        tiled_blur().replace("guard(64*io + ii < N && 64*jo + ji < M", "guard(64*io + ii < N + 1 && 64*jo + ji < M");
    let wrong = padding::check(&read(&text));
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert!(matches!(wrong[0].why, Why::Cut(_)));
}

/// Depth costs memory, not stack, and no squares.
#[test]
fn deep_terms() {
    let deep = |count: usize| {
        let rows = (0..count).fold(String::from("v"), |inner, at| match at % 4 {
            0 => format!("pad_r(1, {inner})"),
            1 => format!("trunc_r(1, {inner})"),
            2 => format!("let a{at} = {inner} in pad_l(k, a{at})"),
            _ => format!("trunc_l(k, {inner})"),
        });
        over_inputs(&format!("t = {rows}"))
    };
    let times = [1_000, 10_000].map(deep).map(|program| seconds(|| assert_eq!(padding::check(&program), [])));
    // Times are compared in the slow set, which is optimised.
    assert!(cfg!(debug_assertions) || times[1] < 40.0 * times[0] + 0.1, "{times:?}");
    let guards = (0..100_000).fold(String::new(), |all, _| all + "guard(i < n, ");
    let program = over_inputs(&format!("t = trunc_r(1, gen i in 0..n + 1. {guards}v[0]{})", ")".repeat(100_000)));
    assert_eq!(padding::check(&program), []);
}

/// Forks double the ways to compute an element: what is too large is refused, and nothing hangs.
#[test]
fn what_is_too_large_is_refused() {
    let forked = (0..40).fold(String::from("v"), |inner, at| format!("let a{at} = {inner} in concat(a{at}, a{at})"));
    let found = violations(&format!("t = trunc_r(1, pad_r(1, {forked}))"));
    assert_eq!(found.iter().map(|violation| &violation.why).collect::<Vec<_>>(), [&Why::TooLarge]);
    // A truncation in more scopes than can be counted.
    let mut program = over_inputs("t = trunc_r(1, pad_r(1, v))");
    let mut term = program.bindings[0].term;
    for at in 0..60 {
        let cond = Cond::lt(&Ix::from(at), &Ix::var("n")).unwrap();
        term = program.terms.add(Term::If(cond, term, term)).unwrap();
    }
    program.bindings[0].term = term;
    assert!(padding::check(&program).iter().all(|violation| violation.why == Why::TooLarge));
    // As many mistakes as anybody reads.
    let many: String = (0..10_000).map(|at| format!("t{at} = trunc_r({at} + 1, v)\n")).collect();
    assert_eq!(violations(&format!("{many}t = v")).len(), 100);
}

/// Every name that a counterexample needs has a number in it.
#[test]
fn counterexamples_are_complete() {
    let numbers = |bindings: &str| match &violations(bindings)[0].why {
        Why::Cut(example) => example.0.clone(),
        other => panic!("{other:?}"),
    };
    let found = numbers(
        "t = trunc_l(n, sum a in 0..k. guard(k == 4, gen i in 0..n + ceil_div(n, 2). \
         guard(i + floor_div(-n, 2) < 0, w[0])))",
    );
    assert_eq!(found.get(&Name::new("k")), Some(&4), "{found:?}");
    let found = numbers("t = trunc_l(1, gen i in 0..3. guard(floor_div(m, 2) == 3, w[i]))");
    assert!(found.get(&Name::new("m")).is_some_and(|m| m / 2 == 3), "{found:?}");
}
