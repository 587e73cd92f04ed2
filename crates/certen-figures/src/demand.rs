//! What a function needs to know of its arguments: the propagation vectors of *Tensor Comprehensions in SaC*, Sec. 6.1.
//!
//! Of an array one may need nothing (N), the number of its dimensions (D), its shape (S) or its elements (F). Each rule
//! of Fig. 2 says, for one form of expression, which levels of its parts give a level of the whole: for the shape of a
//! with-loop, the shape expression in full and the shape of the default, but nothing of its body. Read as an analysis
//! and not as a rewriting, the rules give for each parameter of a function the level that is needed for the value, the
//! shape and the dimensionality of its result. That shapes never need elements of data (S needs at most S) is why
//! default elements can be found without computing any ([`certen_lang::passes`]).
//!
//! Works on trees as they are written. Names in the types of parameters are what they stand for: a size is part of a
//! shape, a rank is a dimensionality. What is seen to be a scalar by its form has a shape that needs nothing.

use std::collections::HashMap;
use std::fmt;

use certen_core::ElemType;
use certen_lang::ast::{
    BinaryOp, Block, Bound, Dim, Elem, Expr, ExprKind, Function, Partition, Pattern, Relation, Selector, Slot, With,
    WithOp,
};
use certen_lang::{Declared, FileRef, Library};
use certen_syntax::Name;

use Level::{D, F, N, S};

/// How much of an array is known or needed, from nothing to all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Level {
    /// Nothing.
    #[default]
    N,
    /// The number of its dimensions.
    D,
    /// Its shape.
    S,
    /// Its elements.
    F,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            N => "N",
            D => "D",
            S => "S",
            F => "F",
        })
    }
}

/// For each parameter the levels that are needed for the value, the shape and the dimensionality of the result.
/// `lookup` finds the functions that are called; calls have no cycles.
pub fn demands<'a>(lookup: &dyn Fn(Name) -> Option<&'a Function>, function: &'a Function) -> Vec<(Name, [Level; 3])> {
    let mut analysis = Demands { lookup, known: HashMap::new() };
    let levels = analysis.vector(function);
    function.params.iter().map(|param| param.name.name).zip(levels).collect()
}

/// The demands of the functions of a library's main file, as they are written, for `explain`: one line for each
/// parameter.
pub fn text(library: &Library) -> String {
    let functions = || library.own_functions().map(|function| library.function(function));
    let lookup = |name: Name| match library.lookup(FileRef::MAIN, name) {
        Some(Declared::Function(function)) => Some(library.function(function)),
        _ => None,
    };
    let mut analysis = Demands { lookup: &lookup, known: HashMap::new() };
    let mut text = String::new();
    for function in functions() {
        let levels = analysis.vector(function);
        for (param, [value, shape, dim]) in function.params.iter().zip(levels) {
            text += &format!(
                "{}({}): value needs {value}, shape needs {shape}, dim needs {dim}\n",
                function.name.name, param.name.name
            );
        }
    }
    text
}

struct Demands<'l, 'a> {
    lookup: &'l dyn Fn(Name) -> Option<&'a Function>,
    known: HashMap<Name, Vec<[Level; 3]>>,
}

/// What is needed of each name.
type Needs = HashMap<Name, Level>;

/// What the names of a function stand for, beside themselves.
#[derive(Default)]
struct TypeNames {
    /// Names in the types of parameters: the parameter, and the levels of it that the name's value and shape are.
    parts: HashMap<Name, (Name, Level, Level)>,
    /// How many dimensions parameters have, where their types say so.
    ranks: HashMap<Name, usize>,
}

impl<'a> Demands<'_, 'a> {
    /// The propagation vector `D_X(f)`, for each parameter.
    fn vector(&mut self, function: &'a Function) -> Vec<[Level; 3]> {
        if let Some(known) = self.known.get(&function.name.name) {
            return known.clone();
        }
        let names = names(function);
        let needs = [F, S, D].map(|level| {
            let needs = self.block(&function.body, level, &names);
            let mut of_params = Needs::new();
            for (name, level) in needs {
                match names.parts.get(&name) {
                    Some((param, value, shape)) => join(&mut of_params, *param, part(level, *value, *shape)),
                    None => join(&mut of_params, name, level),
                }
            }
            of_params
        });
        let of = |param: Name| needs.each_ref().map(|needs| needs.get(&param).copied().unwrap_or_default());
        let vector: Vec<[Level; 3]> = function.params.iter().map(|param| of(param.name.name)).collect();
        self.known.insert(function.name.name, vector.clone());
        vector
    }

    /// `let x = a; e` is `(λx. e) a`: a is needed at the level of x in e.
    fn block(&mut self, block: &'a Block, level: Level, names: &TypeNames) -> Needs {
        let mut needs = Needs::new();
        block.results.iter().for_each(|e| self.expr(e, level, names, &mut needs));
        for bound in block.lets.iter().rev() {
            let levels = bound.names.iter().map(|name| needs.remove(&name.name).unwrap_or_default());
            let level = levels.max().unwrap_or_default();
            self.expr(&bound.value, level, names, &mut needs);
        }
        needs
    }

    /// Joins what a level of an expression needs.
    fn expr(&mut self, e: &'a Expr, level: Level, names: &TypeNames, needs: &mut Needs) {
        if level == N {
            return;
        }
        match &e.kind {
            // X[[v]] = v, its shape or its dimensionality.
            ExprKind::Name(name) => {
                if level == F || !is_scalar(e, names) {
                    join(needs, *name, level);
                }
            }
            // X[[const]]: nothing is needed.
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Text(_) => {}
            ExprKind::Paren(inner) => self.expr(inner, level, names, needs),
            // A list has as many parts as it has; below the first dimension it has their shape.
            ExprKind::List(parts) => parts.iter().for_each(|part| self.expr(part, level, names, needs)),
            ExprKind::Unary(_, a) => self.expr(a, level, names, needs),
            ExprKind::Binary(op, a, b) => match op {
                BinaryOp::Concat | BinaryOp::MatMul => {
                    self.expr(a, level, names, needs);
                    self.expr(b, level, names, needs);
                }
                _ => self.entrywise(&[&**a, &**b], level, names, needs),
            },
            ExprKind::Select(a, selectors) => self.selection(e, a, selectors, level, names, needs),
            ExprKind::Call(function, args, named) => {
                let of = |name: &str| named.iter().find(|(word, _)| word.name.as_str() == name).map(|(_, e)| e);
                self.call(function.name, args, of("axis"), level, names, needs);
            }
            // The branches have one shape, so the condition decides only about values.
            ExprKind::If(cond, a, b) => {
                self.expr(cond, only_value(level), names, needs);
                for (name, level) in self.block(a, level, names).into_iter().chain(self.block(b, level, names)) {
                    join(needs, name, level);
                }
            }
            ExprKind::Block(block) => {
                for (name, level) in self.block(block, level, names) {
                    join(needs, name, level);
                }
            }
            ExprKind::Comprehension(partitions) => self.comprehension(partitions, level, names, needs),
            ExprKind::With(with) => self.with_loop(with, level, names, needs),
            // The states keep their shapes.
            ExprKind::Iterate(iterate) => {
                iterate.states.iter().for_each(|(_, first)| self.expr(first, level, names, needs));
                if level == F {
                    self.expr(&iterate.times, F, names, needs);
                    let mut inside = self.block(&iterate.body, F, names);
                    iterate.step.iter().chain(iterate.states.iter().map(|(state, _)| state)).for_each(|bound| {
                        inside.remove(&bound.name);
                    });
                    inside.into_iter().for_each(|(name, level)| join(needs, name, level));
                }
            }
        }
    }

    /// Operands of one shape, or scalars, whose shape is known: `+` needs of `A + 1` only the shape of A (Sec. 6.2).
    fn entrywise(&mut self, operands: &[&'a Expr], level: Level, names: &TypeNames, needs: &mut Needs) {
        for operand in operands {
            if level == F || !is_scalar(operand, names) {
                self.expr(operand, level, names, needs);
            }
        }
    }

    /// F[[sel iv e]] = sel F[[iv]] F[[e]]; S and D need nothing if the selection is a scalar, else what `drop` of the
    /// shape needs (Sec. 6.2).
    fn selection(
        &mut self,
        whole: &'a Expr,
        of: &'a Expr,
        selectors: &'a [Selector],
        level: Level,
        names: &TypeNames,
        needs: &mut Needs,
    ) {
        if level < F && is_scalar(whole, names) {
            return;
        }
        self.expr(of, level, names, needs);
        for selector in selectors {
            match selector {
                // How many dimensions go depends on the length of an index vector.
                Selector::At(at) => self.expr(at, level.max(S), names, needs),
                Selector::Slice(from, to, _) if level >= S => {
                    from.iter().chain(to).for_each(|end| self.expr(end, F, names, needs));
                }
                Selector::Slice(..) | Selector::Dot(_) | Selector::Dots(_) => {}
            }
        }
    }

    /// X[[(λx. e) a]]: the argument at the level `D_X(λx. e)`; if that is N, the argument is not needed at all.
    fn call(
        &mut self,
        function: Name,
        args: &'a [Expr],
        axis: Option<&'a Expr>,
        level: Level,
        names: &TypeNames,
        needs: &mut Needs,
    ) {
        if let Some(callee) = (self.lookup)(function) {
            let at = match level {
                F => 0,
                S => 1,
                D | N => 2,
            };
            for (arg, levels) in args.iter().zip(self.vector(callee)) {
                self.expr(arg, levels[at], names, needs);
            }
            return;
        }
        let entrywise = || vec![level; args.len()];
        // The levels of the arguments for F, S and D.
        let by_level = |full: &[Level], shape: &[Level], dim: &[Level]| match level {
            F => full.to_vec(),
            S => shape.to_vec(),
            D | N => dim.to_vec(),
        };
        let levels = match (function.as_str(), args.len()) {
            // F[[shape e]] = S[[e]]; S[[shape e]] = [D[[e]]]; D[[shape e]] = 1.
            ("shape", _) => by_level(&[S], &[D], &[N]),
            // F[[dim e]] = D[[e]]; S[[dim e]] = []; D[[dim e]] = 0.
            ("dim", _) => by_level(&[D], &[N], &[N]),
            ("sum" | "prod" | "min" | "max" | "all" | "any", 1) => match axis {
                None => by_level(&[F], &[N], &[N]),
                Some(axis) => {
                    self.expr(axis, if level == D { S } else { F }, names, needs);
                    entrywise()
                }
            },
            ("einsum", _) => by_level(&vec![F; args.len()], &vec![S; args.len()], &[]),
            ("guard", _) => by_level(&[F, F], &[N, S], &[N, D]),
            ("split" | "pad_l" | "pad_r" | "trunc_l" | "trunc_r", _) => by_level(&[F, F], &[F, S], &[N, D]),
            ("reshape", _) => by_level(&[F, F], &[F, N], &[S, N]),
            ("take" | "drop", _) => by_level(&[F, F], &[F, S], &[N, D]),
            ("flatten" | "transpose", _) => entrywise(),
            // Casts and the functions of Core.
            _ => return self.entrywise(&args.iter().collect::<Vec<_>>(), level, names, needs),
        };
        for (arg, level) in args.iter().zip(levels) {
            self.expr(arg, level, names, needs);
        }
    }

    /// F[[with]]: everything in full. S[[with]] = F[[shape]] ++ S[[default]], D[[with]] = S[[shape]][0] + D[[default]]:
    /// the bodies are abandoned. A default that is left out has the shape of a body (Sec. 5.4).
    fn with_loop(&mut self, with: &'a With, level: Level, names: &TypeNames, needs: &mut Needs) {
        let bodies = |analysis: &mut Self, level: Level, needs: &mut Needs| {
            for (pattern, relation, body) in &with.generators {
                if level == F {
                    analysis.bounds(relation, F, names, needs);
                }
                let mut inside = Needs::new();
                analysis.expr(body, level, names, &mut inside);
                forget(pattern, &mut inside);
                inside.into_iter().for_each(|(name, level)| join(needs, name, level));
            }
        };
        if level == F {
            bodies(self, F, needs);
        }
        match &with.operation {
            WithOp::Genarray(shape, default) => {
                self.expr(shape, if level == D { S } else { F }, names, needs);
                match default {
                    Some(default) => self.expr(default, level, names, needs),
                    None => bodies(self, level, needs),
                }
            }
            WithOp::Modarray(array) => self.expr(array, level, names, needs),
            WithOp::Fold(_, neutral) => self.expr(neutral, level, names, needs),
        }
    }

    /// As the with-loop that it becomes (Sec. 5.4): the upper bounds of the last partition are its shape, and its
    /// default has the shape of the last body. A bound that is left out is one of the sizes that the index selects in
    /// (Sec. 5.2).
    fn comprehension(&mut self, partitions: &'a [Partition], level: Level, names: &TypeNames, needs: &mut Needs) {
        for (at, partition) in partitions.iter().enumerate() {
            let last = at + 1 == partitions.len();
            if level < F && !last {
                continue;
            }
            let mut inside = Needs::new();
            self.expr(&partition.body, level, names, &mut inside);
            let bounded = partition.generator.iter().any(|relation| relation.upper.is_some());
            // How many dimensions the indices are is seen in a list, but not in a vector.
            let hidden = match &partition.pattern {
                Pattern::Vector(_) => true,
                Pattern::List(slots, _) => slots.iter().any(|slot| matches!(slot, Slot::Rest(_))),
            };
            let of_bound = match level {
                D if hidden => S,
                D | N => N,
                S | F => F,
            };
            for relation in &partition.generator {
                match level {
                    F => self.bounds(relation, F, names, &mut inside),
                    _ => {
                        if let Some((Bound::At(upper), _)) = &relation.upper {
                            self.expr(upper, of_bound, names, &mut inside);
                        }
                    }
                }
            }
            if !bounded && of_bound > N {
                let indices = partition.pattern.names();
                self.selected(&partition.body, &indices, if level == D { D } else { S }, names, &mut inside);
            }
            forget(&partition.pattern, &mut inside);
            inside.into_iter().for_each(|(name, level)| join(needs, name, level));
        }
    }

    fn bounds(&mut self, relation: &'a Relation, level: Level, names: &TypeNames, needs: &mut Needs) {
        relation.bounds().for_each(|e| self.expr(e, level, names, needs));
    }

    /// `find-shapes` (Sec. 5.2): what the indices select in, at a level.
    fn selected(&mut self, body: &'a Expr, indices: &[Name], level: Level, names: &TypeNames, needs: &mut Needs) {
        let mut todo = vec![body];
        while let Some(e) = todo.pop() {
            if let ExprKind::Select(of, selectors) = &e.kind {
                let at = |selector: &Selector| matches!(selector, Selector::At(at) if mentions(at, indices));
                if selectors.iter().any(at) {
                    self.expr(of, level, names, needs);
                }
            }
            e.parts(&mut todo);
        }
    }
}

/// What of a parameter is needed for a level of a name in its type.
fn part(level: Level, value: Level, shape: Level) -> Level {
    match level {
        F => value,
        S => shape,
        D | N => N,
    }
}

fn only_value(level: Level) -> Level {
    if level == F { F } else { N }
}

fn join(needs: &mut Needs, name: Name, level: Level) {
    let known = needs.entry(name).or_default();
    *known = level.max(*known);
}

/// The names in the types of a function's parameters, each where it first stands, and the ranks that types state.
fn names(function: &Function) -> TypeNames {
    let mut names = TypeNames::default();
    let params: Vec<Name> = function.params.iter().map(|param| param.name.name).collect();
    for param in &function.params {
        let (of, dims) = (param.name.name, &param.ty.dims);
        let mut bind = |name: Name, value: Level, shape: Level| {
            if !params.contains(&name) {
                names.parts.entry(name).or_insert((of, value, shape));
            }
        };
        // The size of an index vector is the length of the vector: its shape, too.
        for dim in dims {
            match dim {
                Dim::Size(Expr { kind: ExprKind::Name(size), .. }) => bind(*size, S, N),
                Dim::Rest(shape) => bind(shape.name, S, D),
                Dim::Ranked { rank, shape, .. } => {
                    bind(rank.name, D, N);
                    bind(shape.name, S, D);
                }
                Dim::Size(_) | Dim::One(_) | Dim::Any(_) | Dim::Some(_) => {}
            }
        }
        let plain = |dim: &Dim| matches!(dim, Dim::Size(_) | Dim::One(_));
        if dims.iter().all(plain) {
            // An index vector is a vector, an index a scalar.
            names.ranks.insert(of, if param.ty.elem == Elem::Size { dims.len().min(1) } else { dims.len() });
        }
    }
    names
}

/// Whether an expression is a scalar, as far as its form shows it.
fn is_scalar(e: &Expr, names: &TypeNames) -> bool {
    match &e.kind {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => true,
        ExprKind::Name(name) => {
            names.ranks.get(name) == Some(&0) || names.parts.get(name).is_some_and(|(_, _, shape)| *shape == N)
        }
        ExprKind::Paren(a) | ExprKind::Unary(_, a) => is_scalar(a, names),
        ExprKind::Binary(BinaryOp::Concat | BinaryOp::MatMul, ..) => false,
        ExprKind::Binary(_, a, b) => is_scalar(a, names) && is_scalar(b, names),
        ExprKind::Select(of, selectors) => {
            let rank = match &of.kind {
                ExprKind::Name(name) => names.ranks.get(name).copied(),
                _ => None,
            };
            let taken = selectors.iter().map(|selector| match selector {
                Selector::At(Expr { kind: ExprKind::List(parts), .. }) => Some(parts.len()),
                Selector::At(_) => Some(1),
                _ => None,
            });
            rank.is_some() && taken.sum::<Option<usize>>() == rank
        }
        ExprKind::Call(function, args, named) => match (function.name.as_str(), args.as_slice()) {
            ("dim", _) => true,
            ("sum" | "prod" | "min" | "max" | "all" | "any", [_]) => named.is_empty(),
            (word, [a]) if word.parse::<ElemType>().is_ok() => is_scalar(a, names),
            _ => false,
        },
        _ => false,
    }
}

fn forget(pattern: &Pattern, needs: &mut Needs) {
    for name in pattern.names() {
        needs.remove(&name);
    }
}

fn mentions(e: &Expr, names: &[Name]) -> bool {
    let mut todo = vec![e];
    while let Some(e) = todo.pop() {
        if matches!(&e.kind, ExprKind::Name(name) if names.contains(name)) {
            return true;
        }
        e.parts(&mut todo);
    }
    false
}

#[cfg(test)]
mod tests {
    use certen_syntax::{Diagnostics, Sources};

    use super::text;
    use certen_lang::Library;

    fn lines(source: &str) -> Vec<String> {
        let mut sources = Sources::new();
        let file = sources.add("test.ten", source);
        let mut diagnostics = Diagnostics::new();
        let mut read = |_: &str, _: &str| Err("no imports here".to_string());
        let library = Library::load(&mut sources, file, &mut read, &mut diagnostics);
        assert!(!diagnostics.has_errors(), "{diagnostics:?}");
        text(&library).lines().map(String::from).collect()
    }

    /// The levels for value, shape and dim of the first parameter of the last function.
    fn levels(source: &str) -> String {
        let last = |source: &str| source.rsplit("fn ").next().and_then(|f| f.split('(').next()).unwrap().to_owned();
        let wanted = format!("{}(", last(source));
        let line = lines(source).into_iter().find(|line| line.starts_with(&wanted)).unwrap();
        line.split("needs ").skip(1).map(|level| level.chars().next().unwrap()).collect()
    }

    #[test]
    fn the_examples_of_the_paper() {
        // D_F(λx. shape(x)) = S and D_S(λx. shape(x)) = D.
        assert_eq!(levels("fn f(x: f64[*]) { shape(x) }"), "SDN");
        // D_F(λx. 42) = N.
        assert_eq!(levels("fn f(x: f64[*]) { 42 }"), "NNN");
        // D_S(λx. take(x, [1, 2, 3, 4, 5])) = F.
        assert!(levels("fn f(x: size[d]) { take(x, [1, 2, 3, 4, 5]) }").starts_with("FF"));
        // Sec. 6.2: of `A[[0]] + 1` the shape needs the shape of A.
        assert_eq!(levels("fn f(A: f64[+]) { A[[0]] + 1 }"), "FSD");
        let plus = "fn plus(A: f64[s...], B: f64) { with { (s*0 <= iv < s) : A[iv] + B } : genarray(shape(A), 0) }";
        assert_eq!(
            lines(plus),
            [
                "plus(A): value needs F, shape needs S, dim needs D",
                "plus(B): value needs F, shape needs N, dim needs N",
            ]
        );
    }

    #[test]
    fn scalar_selections_have_a_known_shape() {
        assert_eq!(levels("fn f(x: f64[n, m]) { x[0, 1] }"), "FNN");
        assert_eq!(levels("fn f(x: f64[n, m]) { x[0] }"), "FSD");
        assert_eq!(levels("fn f(k: size, x: f64[n]) { x[k..] }"), "FFN");
    }

    #[test]
    fn bodies_are_abandoned() {
        // The value of y is needed, its shape is not: the frame comes from x.
        let source = "fn f(x: f64[n], y: f64[m]) { { [i] -> y[0] | i < n } }";
        assert_eq!(
            lines(source),
            ["f(x): value needs S, shape needs S, dim needs N", "f(y): value needs F, shape needs N, dim needs N",]
        );
        // A bound that is left out comes from what is selected.
        assert_eq!(levels("fn f(x: f64[n]) { { [i] -> x[i] } }"), "FSN");
        assert_eq!(levels("fn f(x: f64[*]) { { iv -> x[iv] } }"), "FSD");
    }

    #[test]
    fn calls_pass_levels_on() {
        let source = "fn first(x: f64[n], y: f64[m]) { x } fn f(y: f64[k]) { first(shape(y), y) }";
        assert_eq!(levels(source), "SDN");
        assert_eq!(levels("fn f(x: f64[n]) { let y = x + 1; let z = exp(y); shape(z) }"), "SDN");
        assert_eq!(levels("fn f(x: f64[n]) { sum(x) }"), "FNN");
        assert_eq!(levels("fn f(x: f64[n]) { n }"), "SNN");
    }
}
