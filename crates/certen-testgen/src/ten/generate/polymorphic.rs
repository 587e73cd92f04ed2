//! Functions for any rank: a choice of signatures, each with bodies that need no more than it says.

use super::*;

impl Generator<'_> {
    /// A function for any rank.
    pub(super) fn polymorphic(&mut self) {
        // One arm for each function: a table.
        let function = self.fresh("poly");
        let (x, y) = (|| var("x"), || var("y"));
        let v = |name: &str| IxVec::Name(name.into());
        let rest = |s: &str| TypeDim::Rest(s.into());
        let size = |e: Ix| TypeDim::Size(e);
        let small = |g: &mut Self| g.pick(5) as i64 - 2;
        let at = |e: Expr, sels: Vec<Sel>| Expr::Select(e.into(), sels);
        let over = |infer: bool, rest: &str, upper: IxVec| {
            Slot::Rest(
                rest.into(),
                (IxVec::One(lit(0)), Written::No),
                (upper, if infer { Written::No } else { Written::Yes }),
            )
        };
        let index = |infer: bool, i: &str, upper: Ix| {
            Slot::Index(i.into(), (lit(0), Written::No), (upper, if infer { Written::No } else { Written::Yes }))
        };
        let none = || IxVec::List(Vec::new());
        let part = |slots: Vec<Slot>, body: Expr, cell: IxVec| {
            Expr::Comprehension(vec![Part { slots, body, joint: false, cell }])
        };
        let infer = self.infer && self.flip();
        let constant = Expr::Num(small(self), Elem::I64);
        // The dimensions of the parameters, those of the result, conditions, the body, and how it is called.
        let s_dims = |g: &mut Self| if g.flip() { rest("s") } else { TypeDim::Ranked("d".into(), false, "s".into()) };
        let (params, result, wheres, body, rule): (Vec<Vec<TypeDim>>, Vec<TypeDim>, Vec<Cond>, Expr, Rule) = match self
            .pick(10)
        {
            0 => {
                let dims = s_dims(self);
                let body = binary("+", at(x(), vec![Sel::Vec(v("iv"))]), constant);
                let body = part(vec![over(infer, "iv", v("s"))], body, none());
                (vec![vec![dims.clone()]], vec![dims], vec![], body, Rule::Same(1, 0))
            }
            1 => {
                let dims = s_dims(self);
                let op = ["+", "-", "*", "min"][self.pick(4)];
                let body = match self.pick(3) {
                    0 => binary(op, x(), y()),
                    1 => {
                        let both = binary(op, at(x(), vec![Sel::Vec(v("iv"))]), at(y(), vec![Sel::Vec(v("iv"))]));
                        part(vec![over(infer, "iv", v("s"))], both, none())
                    }
                    _ => {
                        let slots = vec![Slot::Rest(
                            "iv".into(),
                            (IxVec::Op("*", v("s").into(), IxVec::One(lit(0)).into()), Written::Yes),
                            (IxVec::Shape("y".into()), Written::Yes),
                        )];
                        let body = binary(op, at(y(), vec![Sel::Vec(v("iv"))]), constant);
                        let part = Part { slots, body, joint: false, cell: none() };
                        Expr::With(vec![part], WithOp::Modarray(x().into()))
                    }
                };
                (vec![vec![dims.clone()], vec![dims.clone()]], vec![dims], vec![], body, Rule::Same(2, 0))
            }
            2 => {
                let dims = vec![size(name("n")), rest("r")];
                let backwards = at(x(), vec![Sel::At(Ix::Sub(name("n").shifted(-1).into(), name("i").into()))]);
                let body = part(vec![index(infer, "i", name("n"))], backwards, v("r"));
                (vec![dims.clone()], dims, vec![], body, Rule::Same(1, 0))
            }
            3 => {
                let dims = vec![size(name("n")), rest("r")];
                let first = at(x(), vec![Sel::At(lit(0)), Sel::Vec(v("rv"))]);
                let own = at(x(), vec![Sel::At(name("i")), Sel::Vec(v("rv"))]);
                let slots = vec![index(infer, "i", name("n")), over(infer, "rv", v("r"))];
                let body = part(slots, binary("-", own, first), none());
                (vec![dims.clone()], dims, vec![Cond::Cmp(">=", name("n"), lit(1))], body, Rule::Same(1, 1))
            }
            4 => {
                let by = 1 + self.pick(2) as i64;
                let (own, next) = (at(x(), vec![Sel::At(name("i"))]), at(x(), vec![Sel::At(name("i").shifted(by))]));
                let upper = name("n").shifted(-by);
                let body = part(vec![index(infer, "i", upper.clone())], binary("-", next, own), v("r"));
                (
                    vec![vec![size(name("n")), rest("r")]],
                    vec![size(upper), rest("r")],
                    vec![Cond::Cmp(">=", name("n"), lit(by))],
                    body,
                    Rule::Longer(by),
                )
            }
            5 => {
                let body = Expr::Reduce("sum", Some(vec![0]), x().into());
                (vec![vec![size(name("n")), rest("r")]], vec![rest("r")], vec![], body, Rule::InFront(0))
            }
            6 => {
                let op = ["sum", "max", "min"][self.pick(3)];
                let least = i64::from(op != "sum");
                let wheres = if least == 1 { vec![Cond::Cmp(">=", name("n"), lit(1))] } else { vec![] };
                let inner = Expr::Reduce(op, None, at(x(), vec![Sel::Vec(v("iv"))]).into());
                let body = part(vec![over(false, "iv", v("s"))], inner, none());
                (vec![vec![rest("s"), size(name("n"))]], vec![rest("s")], wheres, body, Rule::AtEnd(least))
            }
            7 => {
                let inner = at(x(), vec![Sel::Vec(v("iv")), Sel::At(name("j"))]);
                let slots = vec![over(infer, "iv", v("s")), index(infer, "j", name("n"))];
                let body = part(slots, binary("*", inner, Expr::Num(2, Elem::I64)), none());
                let dims = vec![rest("s"), size(name("n"))];
                (vec![dims.clone()], dims, vec![], body, Rule::Same(1, 0))
            }
            8 => {
                let dims = vec![TypeDim::Ranked("d".into(), true, "s".into())];
                let part = Part {
                    slots: vec![Slot::Rest(
                        "iv".into(),
                        (IxVec::One(lit(0)), Written::Dot),
                        (v("s"), if self.flip() { Written::Dot } else { Written::Yes }),
                    )],
                    body: binary("+", at(x(), vec![Sel::Vec(v("iv"))]), constant.clone()),
                    joint: false,
                    cell: none(),
                };
                let default = self.flip().then(|| constant.into());
                let body = Expr::With(vec![part], WithOp::Genarray(IxVec::Shape("x".into()), default));
                (vec![dims.clone()], dims, vec![], body, Rule::Same(1, 0))
            }
            _ => {
                let body = at(x(), vec![Sel::Vec(v("v"))]);
                let dims = vec![TypeDim::Ranked("d".into(), false, "s".into()), rest("r")];
                let wheres = vec![Cond::All("<=", IxVec::One(lit(0)), v("v")), Cond::All("<", v("v"), v("s"))];
                (vec![dims], vec![rest("r")], wheres, body, Rule::At)
            }
        };
        let mut all: Vec<(String, Type)> = Vec::new();
        if matches!(rule, Rule::At) {
            all.push(("v".into(), Type { elem: Elem::Size, dims: vec![size(name("d"))] }));
        }
        let of = |dims: Vec<TypeDim>| Type { elem: Elem::Num, dims };
        all.extend(["x", "y"].into_iter().map(String::from).zip(params.into_iter().map(of)));
        let stated = self.flip();
        self.program.functions.push(Function {
            name: function.clone(),
            params: all,
            results: vec![("result".into(), of(result))],
            stated,
            associative: None,
            wheres,
            body: Block { lets: Vec::new(), results: vec![body] },
        });
        self.known.push(Known::Any { name: function, rule });
    }
}
