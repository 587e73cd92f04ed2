//! Two texts compared line by line: what is only in one of them, with a few lines around.
//!
//! The shortest way from one text to the other by removing and adding lines, found as Myers does (An O(ND) Difference
//! Algorithm and Its Variations, 1986): furthest-reaching paths for 0, 1, 2, … changes. Between what both texts begin and
//! end with, at most [`MOST_CHANGES`] are looked for; texts that differ more are shown whole, one after the other.

/// Lines that are shown around a change.
const CONTEXT: usize = 3;

/// With more changes than this, nobody reads which they are.
const MOST_CHANGES: usize = 1000;

/// A line of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    /// In both.
    Both(&'a str),
    /// Only in the first.
    Removed(&'a str),
    /// Only in the second.
    Added(&'a str),
    /// So many lines that are in both are left out.
    LeftOut(usize),
}

/// Compares two texts. Lines that are in both and far from what differs are left out; of equal texts, all are.
pub fn diff<'a>(before: &'a str, after: &'a str) -> Vec<Line<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    shortened(&script(&old, &new))
}

/// All lines of both.
fn script<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (rest, other) = (&old[head..], &new[head..]);
    let tail = rest.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    let (rest, other) = (&rest[..rest.len() - tail], &other[..other.len() - tail]);
    let both = |lines: &[&'a str]| lines.iter().map(|line| Line::Both(line)).collect::<Vec<_>>();
    let middle = between(rest, other).unwrap_or_else(|| {
        let removed = rest.iter().map(|line| Line::Removed(line));
        removed.chain(other.iter().map(|line| Line::Added(line))).collect()
    });
    [both(&old[..head]), middle, both(&old[old.len() - tail..])].concat()
}

/// The shortest way; none if it is too long.
fn between<'a>(old: &[&'a str], new: &[&'a str]) -> Option<Vec<Line<'a>>> {
    let (n, m) = (old.len() as isize, new.len() as isize);
    let most = (n + m).min(MOST_CHANGES as isize);
    // How many lines of `old` a path has used that is on the diagonal k - most, where k counts removed minus added lines.
    let at = |k: isize| (k + most + 1) as usize;
    let mut furthest = vec![0isize; 2 * most as usize + 3];
    let mut history: Vec<Vec<isize>> = Vec::new();
    for changes in 0..=most {
        history.push(furthest[at(-changes - 1)..=at(changes + 1)].to_vec());
        for k in (-changes..=changes).step_by(2) {
            let down = k == -changes || (k != changes && furthest[at(k - 1)] < furthest[at(k + 1)]);
            let mut x = if down { furthest[at(k + 1)] } else { furthest[at(k - 1)] + 1 };
            while x < n && x - k < m && x - k >= 0 && old[x as usize] == new[(x - k) as usize] {
                x += 1;
            }
            furthest[at(k)] = x;
            if x >= n && x - k >= m {
                return Some(walked_back(old, new, &history));
            }
        }
    }
    None
}

/// The lines along a path to the end of both texts, from what was known before each change.
fn walked_back<'a>(old: &[&'a str], new: &[&'a str], history: &[Vec<isize>]) -> Vec<Line<'a>> {
    let (mut x, mut y) = (old.len() as isize, new.len() as isize);
    let mut lines = Vec::new();
    for (changes, known) in history.iter().enumerate().rev() {
        let changes = changes as isize;
        let furthest = |k: isize| known[(k + changes + 1) as usize];
        let k = x - y;
        let down = k == -changes || (k != changes && furthest(k - 1) < furthest(k + 1));
        let before = if down { k + 1 } else { k - 1 };
        let (from_x, from_y) = if changes == 0 { (0, 0) } else { (furthest(before), furthest(before) - before) };
        while x > from_x && y > from_y {
            (x, y) = (x - 1, y - 1);
            lines.push(Line::Both(old[x as usize]));
        }
        if changes > 0 {
            lines.push(if down { Line::Added(new[from_y as usize]) } else { Line::Removed(old[from_x as usize]) });
            (x, y) = (from_x, from_y);
        }
    }
    lines.reverse();
    lines
}

/// Without the lines that are far from any change.
fn shortened<'a>(lines: &[Line<'a>]) -> Vec<Line<'a>> {
    let mut near = vec![false; lines.len()];
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| !matches!(line, Line::Both(_))) {
        near[at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(lines.len())].fill(true);
    }
    let mut shown: Vec<Line<'a>> = Vec::new();
    for (line, near) in lines.iter().zip(near) {
        match (near, shown.last_mut()) {
            (true, _) => shown.push(*line),
            (false, Some(Line::LeftOut(count))) => *count += 1,
            (false, _) => shown.push(Line::LeftOut(1)),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[Line<'_>]) -> String {
        let line = |line: &Line<'_>| match line {
            Line::Both(line) => format!(" {line}"),
            Line::Removed(line) => format!("-{line}"),
            Line::Added(line) => format!("+{line}"),
            Line::LeftOut(count) => format!("~{count}"),
        };
        lines.iter().map(line).collect::<Vec<_>>().join(" ")
    }

    fn lines(letters: &str) -> String {
        letters.chars().map(|c| format!("{c}\n")).collect()
    }

    #[test]
    fn changes_are_shown_with_their_surroundings() {
        for (before, after, expected) in [
            ("", "", ""),
            ("abc", "abc", "~3"),
            ("", "ab", "+a +b"),
            ("ab", "", "-a -b"),
            ("abc", "axc", " a -b +x  c"),
            ("abcdefghij", "abcdeXfghij", "~2  c  d  e +X  f  g  h ~2"),
            ("abcabba", "cbabac", "-a -b  c +b  a  b -b  a +c"),
        ] {
            assert_eq!(text(&diff(&lines(before), &lines(after))), expected, "{before} {after}");
        }
    }

    /// Whatever the texts are, the lines of each are there in their order, and no way is shorter.
    #[test]
    fn nothing_is_lost_and_nothing_changed_twice() {
        let mut state = 1u64;
        let mut draw = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..500 {
            let mut word = || (0..draw(9)).map(|_| ["a", "b", "c"][draw(3) as usize]).collect::<Vec<_>>();
            let (old, new) = (word(), word());
            let found = script(&old, &new);
            let of = |with: fn(&Line<'_>) -> bool| -> Vec<&str> {
                let lines = found.iter().filter(|line| with(line));
                lines
                    .map(|line| match line {
                        Line::Both(line) | Line::Removed(line) | Line::Added(line) => *line,
                        Line::LeftOut(_) => "?",
                    })
                    .collect()
            };
            assert_eq!(of(|line| !matches!(line, Line::Added(_))), old);
            assert_eq!(of(|line| !matches!(line, Line::Removed(_))), new);
            let common = of(|line| matches!(line, Line::Both(_))).len();
            assert_eq!(common, longest_common(&old, &new), "{old:?} {new:?}");
        }
    }

    fn longest_common(old: &[&str], new: &[&str]) -> usize {
        let mut row = vec![0; new.len() + 1];
        for a in old {
            let above = row.clone();
            for (at, b) in new.iter().enumerate() {
                row[at + 1] = if a == b { above[at] + 1 } else { row[at].max(above[at + 1]) };
            }
        }
        row[new.len()]
    }

    #[test]
    fn texts_that_have_little_in_common_are_shown_whole() {
        let many = |from: usize| (from..from + 20_000).map(|n| format!("{n}\n")).collect::<String>();
        let (old, new) = (many(0), many(1_000_000));
        assert_eq!(diff(&old, &new).len(), 40_000);
    }
}
