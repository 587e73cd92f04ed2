//! Comprehensions and with-loops, element by element.

use super::*;

impl Oracle<'_> {
    /// The ranges of a pattern, and its names.
    pub(super) fn ranges(&mut self, scope: &Scope, part: &Part) -> Outcome<Vec<(i64, i64)>> {
        let mut ranges = Vec::new();
        for slot in &part.slots {
            match slot {
                Slot::Index(_, (lower, _), (upper, _)) => ranges.push((self.ix(scope, lower)?, self.ix(scope, upper)?)),
                Slot::Rest(_, (lower, _), (upper, _)) => {
                    let (lower, upper) = self.pair(scope, lower, upper)?;
                    ranges.extend(lower.into_iter().zip(upper));
                }
                Slot::Dot | Slot::Dots => {}
            }
        }
        Ok(ranges)
    }

    /// The element of a partition at an index of its own.
    pub(super) fn element(&mut self, scope: &Scope, part: &Part, index: &[i64]) -> Outcome<Value> {
        let mut scope = scope.clone();
        let singles = part.slots.iter().filter(|slot| matches!(slot, Slot::Index(..))).count();
        let mut at = 0;
        for slot in &part.slots {
            match slot {
                Slot::Index(name, ..) => {
                    scope.indices.insert(name.clone(), index[at]);
                    at += 1;
                }
                Slot::Rest(name, ..) => {
                    let own = index[at..at + index.len() - singles].to_vec();
                    for (place, i) in own.iter().enumerate() {
                        scope.indices.insert(format!("{name}[{place}]"), *i);
                    }
                    at += own.len();
                    scope.vectors.insert(name.clone(), own);
                }
                Slot::Dot | Slot::Dots => {}
            }
        }
        self.expr(&scope, &part.body)
    }

    /// For each dimension of a result: the index of the partition that it belongs to, or none for one of the body's.
    pub(super) fn places(part: &Part, indices: usize, rank: usize) -> Vec<Option<usize>> {
        let singles = part.slots.iter().filter(|slot| matches!(slot, Slot::Index(..))).count();
        let dots = part.slots.iter().filter(|slot| matches!(slot, Slot::Dot)).count();
        let mut next = 0..indices;
        let mut places = Vec::new();
        for slot in &part.slots {
            match slot {
                Slot::Index(..) => places.push(next.next()),
                Slot::Rest(..) => places.extend(next.by_ref().take(indices - singles).map(Some)),
                Slot::Dot => places.push(None),
                Slot::Dots => places.extend(std::iter::repeat_n(None, rank.saturating_sub(indices + dots))),
            }
        }
        places.resize(rank.max(places.len()), None);
        places
    }

    pub(super) fn comprehension(&mut self, scope: &Scope, parts: &[Part]) -> Outcome<Value> {
        // The paper's definition in one piece: ranges, then shape, then elements.
        let Some(last) = parts.last() else { return wrong("no partition") };
        let own = self.ranges(scope, last)?;
        let mut cell = None;
        let mut values: Vec<(&Part, usize, Elements)> = Vec::new();
        let rank = own.len() + self.vector(scope, &last.cell)?.len();
        for part in parts {
            let ranges = self.ranges(scope, part)?;
            let mut elements = Elements::new();
            let lengths: Vec<i64> = ranges.iter().map(|(lower, upper)| (upper - lower).max(0)).collect();
            for offset in indices(&lengths) {
                let index: Vec<i64> = offset.iter().zip(&ranges).map(|(i, (lower, _))| i + lower).collect();
                // Where an earlier partition has all of the cell, this one is not computed.
                let places = Self::places(part, ranges.len(), rank);
                let taken = values.iter().any(|(before, count, earlier)| {
                    let theirs = Self::places(before, *count, rank);
                    let pairs = theirs.iter().zip(&places).filter_map(|(theirs, ours)| Some((theirs.as_ref()?, ours)));
                    let key = pairs.map(|(_, ours)| ours.map(|at| index[at])).collect::<Option<Vec<i64>>>();
                    key.is_some_and(|key| earlier.contains_key(&key))
                });
                if taken {
                    continue;
                }
                if index.iter().any(|i| *i < 0) {
                    return Err(Trouble::OutOfBounds("a partition before its result".into()));
                }
                let value = self.element(scope, part, &index)?;
                if std::ptr::eq(part, last) {
                    cell = Some(value.shape.clone());
                }
                elements.insert(index, value);
            }
            values.push((part, ranges.len(), elements));
        }
        let cell = match cell {
            Some(cell) => cell,
            None => self.vector(scope, &last.cell)?,
        };
        let mut cells = cell.iter();
        let shape: Vec<i64> = Self::places(last, own.len(), rank)
            .into_iter()
            .map(|place| match place {
                Some(at) => own[at].1.max(0),
                None => cells.next().copied().unwrap_or(0),
            })
            .collect();
        for (part, count, elements) in &values {
            for (index, value) in elements {
                if value.shape.len() + count != rank {
                    return wrong("rank of a partition");
                }
                let mut cells = value.shape.iter();
                for (place, size) in Self::places(part, *count, rank).into_iter().zip(&shape) {
                    match place {
                        Some(at) if index[at] >= *size => {
                            return Err(Trouble::OutOfBounds(format!("a partition at {index:?} of {shape:?}")));
                        }
                        None if cells.next() != Some(size) => return wrong("cell of a partition"),
                        _ => {}
                    }
                }
            }
        }
        let places: Vec<_> = values.iter().map(|(part, count, _)| Self::places(part, *count, rank)).collect();
        Value::build(shape, |index| {
            for ((_, count, elements), places) in values.iter().zip(&places) {
                let mut own = vec![0; *count];
                let mut inner = Vec::new();
                for (place, i) in places.iter().zip(index) {
                    match place {
                        Some(at) => own[*at] = *i,
                        None => inner.push(*i),
                    }
                }
                if let Some(value) = elements.get(&own) {
                    return value.get(&inner);
                }
            }
            Ok(0.0)
        })
    }

    pub(super) fn with(&mut self, scope: &Scope, parts: &[Part], op: &WithOp) -> Outcome<Value> {
        let mut elements: BTreeMap<Vec<i64>, Value> = BTreeMap::new();
        let mut order: Vec<Vec<i64>> = Vec::new();
        for part in parts {
            let ranges = self.ranges(scope, part)?;
            let lengths: Vec<i64> = ranges.iter().map(|(lower, upper)| (upper - lower).max(0)).collect();
            for offset in indices(&lengths) {
                let index: Vec<i64> = offset.iter().zip(&ranges).map(|(i, (lower, _))| i + lower).collect();
                if let Entry::Vacant(place) = elements.entry(index) {
                    let value = self.element(scope, part, place.key())?;
                    order.push(place.key().clone());
                    place.insert(value);
                }
            }
        }
        match op {
            WithOp::Fold(op, neutral) => {
                let mut so_far = self.expr(scope, neutral)?;
                let function = self.program.functions.iter().find(|f| f.name == *op).cloned();
                for index in order {
                    let next = elements.get(&index).cloned().unwrap_or_else(|| Value::scalar(0.0));
                    so_far = match &function {
                        Some(function) => {
                            let results = self.apply(function, vec![Given::Data(so_far), Given::Data(next)])?;
                            results.into_iter().next().ok_or(Trouble::Type("no result".into()))?
                        }
                        None => {
                            if so_far.shape != next.shape {
                                return wrong("shapes of a fold");
                            }
                            entrywise(&so_far, &next, |x, y| combine(op, x, y))?
                        }
                    };
                    self.step(so_far.data.len())?;
                    if so_far.data.iter().any(|x| x.abs() > EXACT / 1024.0) {
                        return Err(Trouble::TooMuch);
                    }
                }
                Ok(so_far)
            }
            WithOp::Genarray(shape, default) => {
                let frame: Vec<i64> = self.vector(scope, shape)?.into_iter().map(|size| size.max(0)).collect();
                let default = match default {
                    Some(default) => self.expr(scope, default)?,
                    None => {
                        let cell = match (elements.values().next(), parts.first()) {
                            (Some(value), _) => value.shape.clone(),
                            (None, Some(part)) => self.vector(scope, &part.cell)?,
                            (None, None) => return wrong("no default"),
                        };
                        let count = cell.iter().product::<i64>() as usize;
                        Value { shape: cell, data: vec![0.0; count] }
                    }
                };
                filled(&frame, &elements, &default.shape, |_, inner| default.get(inner))
            }
            WithOp::Modarray(array) => {
                let array = self.expr(scope, array)?;
                let count = match parts.first() {
                    Some(part) => self.ranges(scope, part)?.len(),
                    None => array.shape.len(),
                };
                if count > array.shape.len() {
                    return wrong("too many indices");
                }
                let (frame, cell) = array.shape.split_at(count);
                filled(frame, &elements, cell, |outer, inner| array.get(&[outer, inner].concat()))
            }
        }
    }
}
