//! Names: what users call their tensors, sizes and indices.

use std::fmt;

use ustr::Ustr;

/// An interned name: as cheap to copy and compare as an integer, ordered as text.
///
/// Two names are equal exactly if their texts are.
///
/// ```
/// use certen_syntax::Name;
/// assert_eq!(Name::new("n"), Name::new("n"));
/// assert_eq!(Name::new("n").as_str(), "n");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Ustr);

impl Name {
    /// The name with this text.
    pub fn new(text: &str) -> Name {
        Name(Ustr::from(text))
    }

    /// The name's text.
    pub fn as_str(self) -> &'static str {
        self.0.as_str()
    }

    /// The first of `base`, `base_1`, `base_2`, … that `taken` does not hold.
    pub fn fresh(base: &str, mut taken: impl FnMut(Name) -> bool) -> Name {
        let mut name = Name::new(base);
        let mut count = 0u64;
        while taken(name) {
            count += 1;
            name = Name::new(&format!("{base}_{count}"));
        }
        name
    }

    /// The next of `base1`, `base2`, … after `count` that is not taken.
    pub fn numbered(base: &str, count: &mut u64, mut taken: impl FnMut(Name) -> bool) -> Name {
        loop {
            *count += 1;
            let name = Name::new(&format!("{base}{count}"));
            if !taken(name) {
                return name;
            }
        }
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::new(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn names_are_ordered_as_text() {
        let mut names = ["b", "a_10", "a_2", "a"].map(Name::new);
        names.sort();
        assert_eq!(names.map(Name::as_str), ["a", "a_10", "a_2", "b"]);
    }

    #[test]
    fn fresh_avoids_what_is_taken() {
        let taken = ["i", "i_1"].map(Name::new);
        assert_eq!(Name::fresh("i", |n| taken.contains(&n)).as_str(), "i_2");
        assert_eq!(Name::fresh("j", |n| taken.contains(&n)).as_str(), "j");
        let mut count = 0;
        let mut next = || Name::numbered("i_", &mut count, |n| taken.contains(&n)).as_str();
        assert_eq!([next(), next()], ["i_2", "i_3"]);
    }
}
