//! The arguments of a call, and what its results must be.

use super::*;

impl Oracle<'_> {
    /// Binds the sizes that the types of parameters name.
    pub(super) fn bind(&mut self, function: &Function, args: &[Given], scope: &mut Scope) -> Outcome<()> {
        let mut lengths: HashMap<String, usize> = HashMap::new();
        for ((name, ty), arg) in function.params.iter().zip(args) {
            match (arg, ty.dims.as_slice()) {
                (Given::Ix(value), _) => drop(lengths.insert(name.clone(), usize::try_from(*value).unwrap_or(0))),
                (Given::Vec(parts), [TypeDim::Size(Ix::Name(d))]) => drop(lengths.insert(d.clone(), parts.len())),
                _ => {}
            }
        }
        for _ in 0..2 {
            for ((_, ty), arg) in function.params.iter().zip(args) {
                let Given::Data(value) = arg else { continue };
                let known = |dim: &TypeDim| match dim {
                    TypeDim::Size(_) | TypeDim::One => Some(1),
                    TypeDim::Rest(s) => lengths.get(s).copied(),
                    TypeDim::Ranked(d, _, s) => lengths.get(s).or(lengths.get(d)).copied(),
                    TypeDim::Many(_) => None,
                };
                let sum: usize = ty.dims.iter().filter_map(known).sum();
                let Some(rest) = value.shape.len().checked_sub(sum) else { return wrong("rank of an argument") };
                let open: Vec<TypeDim> = ty.dims.iter().filter(|dim| known(dim).is_none()).cloned().collect();
                match open.as_slice() {
                    [TypeDim::Rest(s)] => drop(lengths.insert(s.clone(), rest)),
                    [TypeDim::Ranked(d, _, s)] => {
                        lengths.insert(d.clone(), rest);
                        lengths.insert(s.clone(), rest);
                    }
                    [] if rest != 0 => return wrong("rank of an argument"),
                    _ => {}
                }
                for dim in &ty.dims {
                    if let TypeDim::Ranked(d, _, s) = dim
                        && let Some(length) = lengths.get(d).copied()
                    {
                        lengths.insert(s.clone(), length);
                    }
                }
            }
        }
        for ((_, ty), arg) in function.params.iter().zip(args) {
            let Given::Data(value) = arg else { continue };
            let mut at = 0;
            for dim in &ty.dims {
                match dim {
                    TypeDim::Size(Ix::Name(name)) => {
                        let size = value.shape.get(at).copied().unwrap_or(0);
                        scope.indices.entry(name.clone()).or_insert(size);
                        at += 1;
                    }
                    TypeDim::Size(_) | TypeDim::One => at += 1,
                    TypeDim::Rest(s) | TypeDim::Ranked(_, _, s) => {
                        let length = lengths.get(s).copied().unwrap_or(0);
                        let Some(sizes) = value.shape.get(at..at + length) else { return wrong("rank") };
                        scope.vectors.entry(s.clone()).or_insert_with(|| sizes.to_vec());
                        at += length;
                    }
                    TypeDim::Many(_) => at = value.shape.len(),
                }
            }
        }
        for (name, length) in lengths {
            if !scope.vectors.contains_key(&name) {
                scope.indices.entry(name).or_insert(length as i64);
            }
        }
        Ok(())
    }

    pub(super) fn must_have(&mut self, scope: &Scope, value: &Value, ty: &Type) -> Outcome<()> {
        let mut at = 0;
        for dim in &ty.dims {
            let sizes = match dim {
                TypeDim::Size(size) => vec![self.ix(scope, size)?],
                TypeDim::Rest(s) | TypeDim::Ranked(_, _, s) => self.vector(scope, &IxVec::Name(s.clone()))?,
                TypeDim::One => value.shape.get(at).copied().into_iter().collect(),
                TypeDim::Many(_) => value.shape[at.min(value.shape.len())..].to_vec(),
            };
            if value.shape.get(at..at + sizes.len()) != Some(&sizes) {
                return wrong(format!("{:?} is not {:?}", value.shape, ty.dims));
            }
            at += sizes.len();
        }
        if at == value.shape.len() { Ok(()) } else { wrong("rank of a stated type") }
    }
}
