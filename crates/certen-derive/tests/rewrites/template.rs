//! The texts of rewrites, filled in.
//!
//! This is done on the text, by replacing tokens, and knows nothing of the engine: what the engine makes of a rewrite
//! is compared with it. Metavariables are filled with texts that have holes, `$0`, `$1`, for what they are applied
//! to.

use std::collections::HashMap;

/// A text with holes for the arguments of a metavariable, and the shape of the tensor that it is.
#[derive(Clone, Debug, Default)]
pub struct Filling {
    pub text: String,
    pub shape: Vec<String>,
}

/// What the metavariables of a rewrite stand for.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Terms and conditions, with holes.
    pub upper: HashMap<String, Filling>,
    /// Index expressions and numbers.
    pub lower: HashMap<String, String>,
    /// The element type.
    pub elem: &'static str,
    /// What `reduce` is.
    pub reduce: &'static str,
    /// What `op` is: a word, or a sign.
    pub op: &'static str,
    /// What `reshape` is: a text with a hole.
    pub reshape: String,
}

/// A number as an element.
pub fn literal(value: i64, elem: &str) -> String {
    if elem.starts_with('f') { format!("{elem}({value}.0)") } else { format!("{elem}({value})") }
}

#[derive(Clone, PartialEq, Debug)]
enum Token {
    Word(String),
    Number(String),
    Sign(String),
}

fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        let from = at;
        let c = chars[at];
        let run = |at: &mut usize, ok: &dyn Fn(char) -> bool| {
            while *at < chars.len() && ok(chars[*at]) {
                *at += 1;
            }
            chars[from..*at].iter().collect::<String>()
        };
        if c.is_whitespace() {
            at += 1;
        } else if c.is_alphabetic() {
            found.push(Token::Word(run(&mut at, &|c| c.is_alphanumeric() || c == '_')));
        } else if c.is_ascii_digit() {
            found.push(Token::Number(run(&mut at, &|c| c.is_ascii_digit())));
        } else {
            let two: String = chars[at..chars.len().min(at + 2)].iter().collect();
            let long = ["..", "<=", ">=", "==", "&&", "||"].contains(&two.as_str());
            at += if long { 2 } else { 1 };
            found.push(Token::Sign(if long { two } else { c.to_string() }));
        }
    }
    found
}

impl Instance {
    /// A side of a rewrite as Core's text.
    pub fn fill(&self, text: &str) -> String {
        let tokens = tokens(text);
        if let [Token::Number(number)] = tokens.as_slice() {
            return literal(number.parse().expect("a number"), self.elem);
        }
        self.expand(&tokens)
    }

    fn expand(&self, tokens: &[Token]) -> String {
        let (mut text, mut at) = (String::new(), 0);
        let sign = |at: usize, wanted: &str| matches!(tokens.get(at), Some(Token::Sign(s)) if s == wanted);
        let is_upper = |at: usize| matches!(tokens.get(at), Some(Token::Word(w)) if w.starts_with(|c: char| c.is_ascii_uppercase()));
        while at < tokens.len() {
            let piece = match &tokens[at] {
                Token::Sign(s) => s.clone(),
                // A number that stands where a term does.
                Token::Number(number) => {
                    let before = text.trim_end().ends_with("else");
                    let after = (sign(at + 1, "*") || sign(at + 1, "+")) && is_upper(at + 2);
                    let value = number.parse().expect("a number");
                    if before || after { literal(value, self.elem) } else { number.clone() }
                }
                Token::Word(word) if sign(at + 1, "(") && self.is_applied(word) => {
                    let (args, end) = arguments(tokens, at + 1);
                    at = end;
                    self.applied(word, &args)
                }
                Token::Word(word) if word == "reduce" => self.reduce.into(),
                Token::Word(word) if let Some(index) = self.lower.get(word) => match index.parse::<i64>() {
                    Ok(number) if number >= 0 => index.clone(),
                    _ => format!("({index})"),
                },
                Token::Word(word) if let Some(filling) = self.upper.get(word) => format!("({})", filling.text),
                Token::Word(word) => word.clone(),
            };
            let glued = [".", ",", ")", "]", "[", ".."].contains(&piece.as_str()) || text.ends_with(['(', '[']);
            if !glued && !text.is_empty() && !text.ends_with("..") && piece != "(" {
                text.push(' ');
            }
            text += &piece;
            at += 1;
        }
        text
    }

    fn is_applied(&self, word: &str) -> bool {
        self.upper.contains_key(word) || matches!(word, "op" | "reshape" | "size")
    }

    fn applied(&self, word: &str, args: &[&[Token]]) -> String {
        if word == "size" {
            let [Token::Word(of)] = args[0] else { panic!("size of a metavariable") };
            let dimension = args.get(1).map_or(0, |_| 1);
            return format!("({})", self.upper[of].shape.get(dimension).map_or("0", String::as_str));
        }
        let args: Vec<String> = args.iter().map(|arg| self.expand(arg)).collect();
        match (word, self.op) {
            ("op", "min" | "max") => format!("{}({}, {})", self.op, args[0], args[1]),
            ("op", op) => format!("(({}) {op} ({}))", args[0], args[1]),
            ("reshape", _) => self.reshape.replace("$0", &args[0]),
            _ => format!("({})", holes_filled(&self.upper[word].text, &args)),
        }
    }
}

/// A text with its holes filled.
pub fn holes_filled(text: &str, args: &[String]) -> String {
    let mut text = text.to_owned();
    for (number, arg) in args.iter().enumerate() {
        text = text.replace(&format!("${number}"), &format!("({arg})"));
    }
    text
}

/// What stands between parentheses, divided at commas, and where the last one is.
fn arguments(tokens: &[Token], open: usize) -> (Vec<&[Token]>, usize) {
    let (mut depth, mut from, mut args) = (0, open + 1, Vec::new());
    for (at, token) in tokens.iter().enumerate().skip(open) {
        let Token::Sign(sign) = token else { continue };
        match sign.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "," if depth == 1 => {
                args.push(&tokens[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        if depth == 0 {
            args.push(&tokens[from..at]);
            return (args, at);
        }
    }
    panic!("a parenthesis is not closed");
}

/// Upper-case names in a text, with how many arguments each has.
pub fn metavariables(text: &str) -> Vec<(String, usize)> {
    let tokens = tokens(text);
    let mut found: Vec<(String, usize)> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        if !word.starts_with(|c: char| c.is_ascii_uppercase()) {
            continue;
        }
        let applied = matches!(tokens.get(at + 1), Some(Token::Sign(s)) if s == "(");
        let count = if applied { arguments(&tokens, at + 1).0.len() } else { 0 };
        match found.iter_mut().find(|(name, _)| name == word) {
            Some((_, known)) => *known = (*known).max(count),
            None => found.push((word.clone(), count)),
        }
    }
    found
}

/// Lower-case names that a text does not bind and that are no words of Core.
pub fn indices(text: &str) -> Vec<String> {
    const WORDS: [&str; 27] = [
        "gen",
        "sum",
        "reduce",
        "in",
        "let",
        "if",
        "then",
        "else",
        "guard",
        "flatten",
        "split",
        "transpose",
        "concat",
        "pad_l",
        "pad_r",
        "trunc_l",
        "trunc_r",
        "op",
        "reshape",
        "size",
        "floor_div",
        "ceil_div",
        "mod",
        "min",
        "max",
        "where",
        "forall",
    ];
    let tokens = tokens(text);
    let mut bound: Vec<&str> = WORDS.to_vec();
    for pair in tokens.windows(2) {
        if let [Token::Word(word), Token::Word(name)] = pair
            && matches!(word.as_str(), "gen" | "sum" | "reduce" | "let" | "forall")
        {
            bound.push(name);
        }
    }
    bound.extend(["true", "false"]);
    let mut found = Vec::new();
    for token in &tokens {
        if let Token::Word(word) = token
            && word.starts_with(|c: char| c.is_ascii_lowercase())
            && !bound.contains(&word.as_str())
            && !found.contains(word)
        {
            found.push(word.clone());
        }
    }
    found
}

/// Names in a text, without those that stand only in arguments of metavariables or of functions of indices: what
/// matching the text determines.
pub fn named_outside_of_arguments(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        if let Token::Word(word) = &tokens[at] {
            found.push(word.clone());
            let applied = matches!(tokens.get(at + 1), Some(Token::Sign(s)) if s == "(");
            let upper = word.starts_with(|c: char| c.is_ascii_uppercase());
            if applied && (upper || matches!(word.as_str(), "floor_div" | "ceil_div" | "mod" | "min" | "max" | "size"))
            {
                at = arguments(&tokens, at + 1).1;
            }
        }
        at += 1;
    }
    found
}
