use super::*;

/// Factors by the letters of their indices, such as `ik kj`, sizes by letter; the letters after `->` are kept.
fn problem(text: &str, sizes: &[(char, u128)]) -> Problem {
    let (factors, kept) = text.split_once("->").unwrap();
    let place = |c: char| sizes.iter().position(|(letter, _)| *letter == c).unwrap();
    let set = |word: &str| word.chars().fold(0, |set: Set, c| set | 1 << place(c));
    // `1` is a factor without indices.
    let factor = |word: &str| Factor { indices: set(word.trim_matches('1')), inner: 0 };
    Problem {
        sizes: sizes.iter().map(|(_, size)| *size).collect(),
        kept: set(kept.trim()),
        factors: factors.split_whitespace().map(factor).collect(),
        written: Vec::new(),
        additions: false,
    }
}

/// A tree in brackets, factors counted from 1, and its multiplications.
fn best(text: &str, sizes: &[(char, u128)]) -> (String, u128) {
    let problem = problem(text, sizes);
    show(&problem, &problem.best(&mut 1_000_000).unwrap())
}

fn show(problem: &Problem, nodes: &[Node]) -> (String, u128) {
    let mut texts: Vec<(String, Set, u128)> = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        texts.push(match *node {
            Node::Leaf(factor) => ((factor + 1).to_string(), 1 << factor, 0),
            Node::Pair(a, b) => {
                let (left, right) = (&texts[a], &texts[b]);
                let set = left.1 | right.1;
                let [x, y] = [left.1, right.1].map(|side| problem.operand(side, problem.open(side)));
                let cost = problem.pair(x, y, problem.open(set), at + 1 == nodes.len()).multiplications;
                (format!("({} {})", left.0, right.0), set, left.2 + right.2 + cost)
            }
        });
    }
    let (text, set, cost) = texts.pop().unwrap();
    assert_eq!(set, problem.all(), "every factor once");
    (text, cost)
}

#[test]
fn a_chain_of_matrices_of_very_different_sizes() {
    let sizes = |i, k, l, j| [('i', i), ('k', k), ('l', l), ('j', j)];
    assert_eq!(best("ik kl lj -> ij", &sizes(10, 100, 5, 50)), ("((1 2) 3)".into(), 10 * 100 * 5 + 10 * 5 * 50));
    assert_eq!(best("ik kl lj -> ij", &sizes(50, 5, 100, 10)), ("(1 (2 3))".into(), 5 * 100 * 10 + 50 * 5 * 10));
}

#[test]
fn interpolation_is_of_fourth_order() {
    let sizes: Vec<(char, u128)> = "ijkabc".chars().map(|c| (c, 8)).collect();
    let mut problem = problem("ia jb kc abc -> ijk", &sizes);
    // All orders of the three matrices are equally good; that of the program is taken.
    for (written, text) in [([0b1100, 0b1110, 0b1111], "(1 (2 (3 4)))"), ([0b1001, 0b1011, 0b1111], "(((1 4) 2) 3)")] {
        problem.written = written.to_vec();
        assert_eq!(show(&problem, &problem.best(&mut 1_000_000).unwrap()), (text.into(), 3 * 8u128.pow(4)));
    }
}

#[test]
fn vector_matrix_vector() {
    assert_eq!(best("i ij j ->", &[('i', 7), ('j', 5)]).1, 7 * 5 + 5);
    assert_eq!(best("i ij j ->", &[('i', 5), ('j', 7)]).1, 7 * 5 + 5);
}

#[test]
fn trace_of_a_product() {
    assert_eq!(best("ik kl li ->", &[('i', 3), ('k', 5), ('l', 7)]), ("(1 (2 3))".into(), 3 * 5 * 7 + 3 * 5));
}

#[test]
fn scalars_are_multiplied_where_there_is_least() {
    assert_eq!(best("1 ik kj 1 -> ij", &[('i', 3), ('k', 50), ('j', 4)]).1, 3 * 50 * 4 + 1 + 3 * 4);
    assert_eq!(best("1 k ->", &[('k', 9)]), ("(1 2)".into(), 1));
}

#[test]
fn an_index_in_three_factors_is_summed_with_the_last_one() {
    assert_eq!(best("ik jk k -> ij", &[('i', 4), ('j', 6), ('k', 5)]), ("((1 3) 2)".into(), 4 * 5 + 4 * 6 * 5));
}

#[test]
fn an_outer_product_is_formed_only_for_fewer_multiplications() {
    // u ⊗ v costs 4 and spares 8 of the multiplications by T.
    assert_eq!(best("i j ijk -> k", &[('i', 2), ('j', 2), ('k', 100)]).0, "((1 2) 3)");
    assert_ne!(best("i j ijk -> k", &[('i', 5), ('j', 5), ('k', 5)]).0, "((1 2) 3)");
    assert_eq!(best("i j k -> ijk", &[('i', 5), ('j', 5), ('k', 5)]).1, 125 + 25);
}

#[test]
fn sizes_of_one_cost_nothing_more() {
    assert_eq!(best("ik kj -> ij", &[('i', 1), ('k', 1), ('j', 1)]), ("(1 2)".into(), 1));
}

#[test]
fn the_inside_of_a_factor_is_counted_where_it_is_evaluated() {
    // The second factor needs 10 multiplications for each of its elements: it is summed before the first is met.
    let mut costly = problem("i k -> i", &[('i', 5), ('k', 7)]);
    costly.factors[1].inner = 10;
    assert_eq!(show(&costly, &costly.best(&mut 100).unwrap()).1, 5 + 7 * 10);
}

/// The exact search is never worse than the greedy one, and both use every factor once.
#[test]
fn greedy_is_no_better_than_exact() {
    let mut random = 12345u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % below
    };
    for _ in 0..300 {
        let factors = (0..2 + next(5)).map(|_| Factor { indices: next(64), inner: u128::from(next(3)) }).collect();
        let problem = Problem {
            sizes: (0..6).map(|_| u128::from(1 + next(9))).collect(),
            kept: next(64),
            factors,
            written: Vec::new(),
            additions: false,
        };
        let (exact, greedy) = (show(&problem, &problem.exact()).1, show(&problem, &problem.greedy()).1);
        assert!(exact <= greedy, "{problem:?}: {exact} > {greedy}");
    }
}

#[test]
fn many_factors_are_ordered_greedily() {
    let sizes: Vec<u128> = (0..41).map(|at| 2 + at % 3).collect();
    let factors = (0..40).map(|at| Factor { indices: 0b11 << at, inner: 0 }).collect();
    let problem = Problem { sizes, kept: 1 | 1 << 40, factors, written: Vec::new(), additions: false };
    assert_eq!(problem.best(&mut 1_000_000).unwrap().len(), 79);
    // 40 factors take 64,000 pairs.
    assert!(problem.best(&mut 63_999).is_none());
}

/// The same number of multiplications, but one order sums earlier.
#[test]
fn additions_count_for_einsum() {
    let factors = [vec![0, 1, 2], vec![1, 3, 0], vec![2, 0], vec![3], vec![3, 2]];
    let pairs = pairwise(&[3, 3, 2, 3], &[3], &factors, OrderSearch::Best);
    assert_eq!(pairs, [(0, 2), (5, 1), (6, 4), (7, 3)]);
}
