//! The shape of a tile of registers: how many rows and lanes, and what it costs.

use certen_core::ElemType;

use super::Machine;

/// The most lanes that a loop can have.
const MOST_LANES: i64 = 64;

/// The most rows of a tile.
const MOST_ROWS: i64 = 14;

/// A size that is not known counts as this, where something is left over at its end.
pub(super) const MANY: i64 = 1 << 20;

/// The rows and lanes that a tile can have: accumulators, one vector of each column and a broadcast fit in the registers.
pub(super) fn shapes(machine: &Machine, elem: ElemType, rows: Option<i64>, columns: Option<i64>) -> Vec<(i64, i64)> {
    let lanes = machine.vector_bytes / elem.bytes() as i64;
    let narrow = [2, 4].map(|part| lanes / part).into_iter().filter(|wide| *wide >= 2);
    let wides = (1..=4).map(|vectors| vectors * lanes).chain(narrow).filter(|wide| *wide <= MOST_LANES);
    // Where vectors are made in halves, rows of halves are as good, and end where the result ends.
    let halves = (3..=9).step_by(2).map(|count| count * lanes / 2);
    let halves = halves.filter(|wide| has_halves(machine) && columns.is_some_and(|columns| columns % wide == 0));
    // More rows only if they are all.
    let highs = || (1..=8).chain(rows.filter(|rows| (9..=MOST_ROWS).contains(rows)));
    let shapes = wides.chain(halves).flat_map(|wide| highs().map(move |high| (high, wide)));
    let shapes = shapes.filter(|(high, wide)| {
        Vectors::of(machine, elem, *wide).fit(machine, *high) && rows.is_none_or(|rows| *high <= rows.max(1))
    });
    shapes.collect()
}

/// Whether the longest vectors are computed in two halves.
fn has_halves(machine: &Machine) -> bool {
    2 * machine.unit_bytes == machine.vector_bytes
}

/// The vectors of a row of a tile.
struct Vectors {
    count: i64,
    are_halves: bool,
}

impl Vectors {
    fn of(machine: &Machine, elem: ElemType, wide: i64) -> Vectors {
        let lanes = machine.vector_bytes / elem.bytes() as i64;
        let are_halves = has_halves(machine) && wide > lanes && wide % lanes == lanes / 2;
        Vectors { count: if are_halves { 2 * wide / lanes } else { blocks(wide, lanes) }, are_halves }
    }

    /// Whether so many rows of sums stay in registers. More rows save loads, and write to more places at once; sixteen sums hide
    /// how long an operation takes, of halves it takes more.
    fn fit(&self, machine: &Machine, high: i64) -> bool {
        let sums = high * self.count;
        match self.are_halves {
            true => sums <= 27 && sums + 2 < machine.registers,
            false => sums <= 16 && sums + self.count < machine.registers,
        }
    }
}

/// What a tile costs for each term of the sum, in tenths of an operation: two fused operations and two loads at a time,
/// which take four steps to end. Where vectors are made in halves, an element that is loaded for all lanes takes twice as
/// long; an operation of a half takes half as long, beside something for each term (measured on Zen 4).
pub(super) fn busy(machine: &Machine, elem: ElemType, high: i64, wide: i64) -> i64 {
    let vectors = Vectors::of(machine, elem, wide);
    match vectors.are_halves {
        true => 5 * high * vectors.count + 25,
        false => {
            let loads = if has_halves(machine) { 2 * high } else { high } + vectors.count;
            10 * (high * vectors.count).max(loads).max(8) + high + vectors.count
        }
    }
}

/// How many blocks of a size it takes.
pub(super) fn blocks(count: i64, size: i64) -> i64 {
    (count + size - 1) / size
}
