//! The word that was probably meant, for what is said of one that is not known.

/// More words than this are not searched: it would take its time, and the guess would be worth little.
const MOST_SEARCHED: usize = 1_000;

/// The word that is most like another one, if one is: a third of the letters may differ, and one of two. Words of a
/// letter are like nothing. Among equals it is the first in the alphabet.
pub fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = |known: &str| {
        let shorter = known.len().min(word.len());
        shorter / 3 + usize::from(shorter == 2)
    };
    let known: Vec<&str> = known.into_iter().take(MOST_SEARCHED + 1).collect();
    if known.len() > MOST_SEARCHED {
        return None;
    }
    // Words of very different lengths need no look at their letters.
    let is_close = |known: &&str| known.len().abs_diff(word.len()) <= limit(known);
    let scored = known.into_iter().filter(is_close).map(|known| (strsim::damerau_levenshtein(word, known), known));
    scored.filter(|(distance, known)| *distance <= limit(known)).min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn a_slip_is_found() {
        let known = ["rows", "cols", "io", "i", "transpose"];
        for (word, meant) in [("row", "rows"), ("colls", "cols"), ("oi", "io"), ("transpoes", "transpose")] {
            assert_eq!(near(word, known), Some(meant), "{word}");
        }
        for word in ["j", "", "ab", "columns", &"rows".repeat(1_000)] {
            assert_eq!(near(word, known), None, "{word}");
        }
        assert_eq!(near("bat", ["cat", "bar"]), Some("bar"));
    }

    #[test]
    fn very_many_words_are_not_searched() {
        let words: Vec<String> = (0..2_000).map(|at| format!("word{at}")).collect();
        assert_eq!(near("word1x", words.iter().map(String::as_str)), None);
        assert_eq!(near("word1x", words[..20].iter().map(String::as_str)), Some("word1"));
    }
}
