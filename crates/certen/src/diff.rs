//! Two texts compared line by line: what is only in one of them, with a few lines around.

use similar::{Algorithm, ChangeTag, capture_diff_slices, group_diff_ops};

/// Lines that are shown around a change.
const CONTEXT: usize = 3;

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
    let mut shown = Vec::new();
    let mut next = 0;
    let left_out = |lines: usize| (lines > 0).then_some(Line::LeftOut(lines));
    for op in group_diff_ops(capture_diff_slices(Algorithm::Myers, &old, &new), CONTEXT).iter().flatten() {
        shown.extend(left_out(op.old_range().start - next));
        shown.extend(op.iter_changes(&old, &new).map(|change| match change.tag() {
            ChangeTag::Equal => Line::Both(change.value()),
            ChangeTag::Delete => Line::Removed(change.value()),
            ChangeTag::Insert => Line::Added(change.value()),
        }));
        next = op.old_range().end;
    }
    shown.extend(left_out(old.len() - next));
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
            ("abcabba", "cbabac", "-a -b  c -a  b +a  b  a +c"),
        ] {
            assert_eq!(text(&diff(&lines(before), &lines(after))), expected, "{before} {after}");
        }
    }

    #[test]
    fn texts_that_have_little_in_common_are_shown_whole() {
        let many = |from: usize| (from..from + 20_000).map(|n| format!("{n}\n")).collect::<String>();
        let (old, new) = (many(0), many(1_000_000));
        assert_eq!(diff(&old, &new).len(), 40_000);
    }
}
