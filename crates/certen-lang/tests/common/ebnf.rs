//! Random texts from the grammar that `docs/reference/grammar.md` publishes.
//!
//! The rules are read from the page's `ebnf` blocks. What they cannot say is handled here by the names of the rules:
//!
//! - `pattern` and `indices`: after one `...` no further one is made; their names are used nowhere else, so that no
//!   bound can look like a subject;
//! - `subject`: the innermost `partition`'s pattern without its dots, or one of its names;
//! - `nth`: counts from 1;
//! - `index`: numbers are small and positive, and names are no functions;
//! - `selection`: after one `...` further ones become `.`.

use std::collections::{BTreeSet, HashMap};

use super::rng::Rng;

/// From here on texts do not branch any more.
const MAX_TOKENS: usize = 200;

enum Node {
    Rule(String),
    /// A word or sign.
    Word(String),
    /// `NAME`, `INT`, …
    Token(String),
    Seq(Vec<Node>),
    Choice(Vec<Node>),
    Optional(Box<Node>),
    /// Any number, or at least one.
    Many(Box<Node>, usize),
}

/// The rules of the page.
pub struct Grammar {
    rules: HashMap<String, Node>,
    /// How deep the flattest text of each rule is.
    least: HashMap<String, usize>,
}

impl Grammar {
    pub fn read(page: &str) -> Grammar {
        let mut rules: Vec<(String, String)> = Vec::new();
        let mut inside = false;
        for line in page.lines() {
            if line.starts_with("```") {
                inside = line == "```ebnf";
            } else if let (true, Some((name, rule))) = (inside, line.split_once(":=")) {
                rules.push((name.trim().to_owned(), rule.to_owned()));
            } else if let (true, Some((_, rule))) = (inside, rules.last_mut()) {
                *rule += " ";
                *rule += line;
            }
        }
        assert!(rules.len() > 20, "the grammar was not found");
        let rules: HashMap<String, Node> = rules.into_iter().map(|(name, rule)| (name, Rule::read(&rule))).collect();
        let mut grammar = Grammar { rules, least: HashMap::new() };
        loop {
            let known = grammar.least.len();
            for (name, node) in &grammar.rules {
                if let Some(depth) = least(node, &grammar.least)
                    && !grammar.least.contains_key(name)
                {
                    grammar.least.insert(name.clone(), depth + 1);
                }
            }
            if grammar.least.len() == known {
                break;
            }
        }
        assert_eq!(grammar.least.len(), grammar.rules.len(), "every rule can end");
        grammar
    }

    /// Every word and sign that the rules speak of.
    pub fn words(&self) -> BTreeSet<&str> {
        let mut words = BTreeSet::new();
        let mut todo: Vec<&Node> = self.rules.values().collect();
        while let Some(node) = todo.pop() {
            match node {
                Node::Word(word) => {
                    words.insert(word.as_str());
                }
                Node::Rule(name) => assert!(self.rules.contains_key(name), "there is no rule {name}"),
                Node::Token(_) => {}
                Node::Seq(parts) | Node::Choice(parts) => todo.extend(parts),
                Node::Optional(part) | Node::Many(part, _) => todo.push(part),
            }
        }
        words
    }

    /// The tokens of a random text of a rule, nested about so deep.
    pub fn make(&self, rule: &str, depth: usize, rng: &mut Rng) -> Vec<String> {
        let mut maker = Maker { grammar: self, rng, tokens: Vec::new(), patterns: Vec::new(), names: 0, dots: vec![] };
        maker.rule(rule, depth);
        maker.tokens
    }
}

fn least(node: &Node, known: &HashMap<String, usize>) -> Option<usize> {
    match node {
        Node::Rule(name) => known.get(name).copied(),
        Node::Word(_) | Node::Token(_) | Node::Optional(_) | Node::Many(_, 0) => Some(0),
        Node::Seq(parts) => parts.iter().map(|part| least(part, known)).try_fold(0, |a, b| Some(a.max(b?))),
        Node::Choice(parts) => parts.iter().filter_map(|part| least(part, known)).min(),
        Node::Many(part, _) => least(part, known),
    }
}

/// Reads one rule.
struct Rule {
    tokens: Vec<String>,
    at: usize,
}

impl Rule {
    fn read(text: &str) -> Node {
        let mut tokens = Vec::new();
        let mut rest = text.trim_start();
        while let Some(c) = rest.chars().next() {
            let end = match c {
                '"' => rest[1..].find('"').unwrap() + 2,
                _ if c.is_alphabetic() => rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len()),
                _ => 1,
            };
            tokens.push(rest[..end].to_owned());
            rest = rest[end..].trim_start();
        }
        let mut rule = Rule { tokens, at: 0 };
        let node = rule.choice();
        assert_eq!(rule.at, rule.tokens.len(), "the rule {text} was not understood");
        node
    }

    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }

    fn choice(&mut self) -> Node {
        let mut choices = vec![self.seq()];
        while self.eat("|") {
            choices.push(self.seq());
        }
        Node::Choice(choices)
    }

    fn seq(&mut self) -> Node {
        let mut parts = Vec::new();
        while !matches!(self.peek(), "" | "|" | ")" | "]") {
            let token = self.peek().to_owned();
            self.at += 1;
            let mut node = match token.as_str() {
                "(" => {
                    let inner = self.choice();
                    assert!(self.eat(")"));
                    inner
                }
                "[" => {
                    let inner = self.choice();
                    assert!(self.eat("]"));
                    Node::Optional(Box::new(inner))
                }
                _ if token.starts_with('"') => Node::Word(token.trim_matches('"').to_owned()),
                _ if token.chars().all(char::is_uppercase) => Node::Token(token),
                _ => Node::Rule(token),
            };
            for (sign, count) in [("*", 0), ("+", 1)] {
                if self.eat(sign) {
                    node = Node::Many(Box::new(node), count);
                }
            }
            parts.push(node);
        }
        Node::Seq(parts)
    }
}

struct Maker<'a> {
    grammar: &'a Grammar,
    rng: &'a mut Rng,
    tokens: Vec<String>,
    /// The indices of the patterns around: name, and whether it has `...`. A pattern without brackets is one name.
    patterns: Vec<(Vec<(String, bool)>, bool)>,
    names: usize,
    /// Whether the selections around have a `...` already.
    dots: Vec<bool>,
}

impl Maker<'_> {
    fn rule(&mut self, name: &str, depth: usize) {
        match name {
            "partition" => {
                let patterns = self.patterns.len();
                self.node(&self.grammar.rules[name], depth);
                self.patterns.truncate(patterns);
            }
            "pattern" | "indices" => {
                let start = self.tokens.len();
                self.node(&self.grammar.rules[name], depth);
                let made = self.tokens.split_off(start);
                self.indices(made, name == "pattern");
            }
            "subject" => self.subject(),
            "nth" => {
                self.node(&self.grammar.rules[name], depth);
                if self.tokens.last().is_some_and(|last| last == "0") {
                    self.tokens.pop();
                    self.tokens.push("3".into());
                }
            }
            "index" | "quotient" => {
                let start = self.tokens.len();
                // A product of many sums is too large to be written out.
                self.node(&self.grammar.rules[name], depth.min(8));
                for at in start..self.tokens.len() {
                    let is_name = self.tokens.get(at + 1).is_none_or(|next| next != "(");
                    match self.tokens[at].as_str() {
                        "min" if is_name => self.tokens[at] = "m".into(),
                        number if number.starts_with(|c: char| c.is_ascii_digit()) => self.tokens[at] = "2".into(),
                        _ => {}
                    }
                }
            }
            "selection" => {
                self.dots.push(false);
                self.node(&self.grammar.rules[name], depth);
                self.dots.pop();
            }
            "selector" => {
                let start = self.tokens.len();
                self.node(&self.grammar.rules[name], depth);
                if self.tokens[start..] == ["..."]
                    && self.dots.last_mut().is_some_and(|dots| std::mem::replace(dots, true))
                {
                    self.tokens[start] = ".".into();
                }
            }
            _ => self.node(&self.grammar.rules[name], depth),
        }
    }

    /// Names of its own for a pattern, with one `...` at most.
    fn indices(&mut self, made: Vec<String>, remember: bool) {
        let mut names: Vec<(String, bool)> = Vec::new();
        let mut dots = false;
        let brackets = made[0] == "[";
        for token in made {
            match token.as_str() {
                "..." if std::mem::replace(&mut dots, true) => {
                    // After a name it is left out, alone it becomes a dot.
                    if self.tokens.last().is_some_and(|last| last == "[" || last == ",") {
                        self.tokens.push(".".into());
                    }
                    continue;
                }
                "..." if self.tokens.last().is_some_and(|last| last.starts_with('i')) => {
                    names.last_mut().unwrap().1 = true;
                }
                "[" | "]" | "," | "." | "..." => {}
                _ => {
                    self.names += 1;
                    names.push((format!("i{}", self.names), false));
                    self.tokens.push(names.last().unwrap().0.clone());
                    continue;
                }
            }
            self.tokens.push(token);
        }
        if remember {
            self.patterns.push((names, brackets));
        }
    }

    fn subject(&mut self) {
        let (names, brackets) = self.patterns.last().unwrap().clone();
        if !names.is_empty() && (!brackets || self.rng.percent(50)) {
            let name = self.rng.pick(&names).0.clone();
            self.tokens.push(name);
            return;
        }
        self.tokens.push("[".into());
        let with_dots = self.rng.percent(70);
        for (at, (name, rest)) in names.into_iter().enumerate() {
            if at > 0 {
                self.tokens.push(",".into());
            }
            self.tokens.push(name);
            if rest && with_dots {
                self.tokens.push("...".into());
            }
        }
        self.tokens.push("]".into());
    }

    fn node(&mut self, node: &Node, depth: usize) {
        // A long text is brought to its end.
        let depth = if self.tokens.len() > MAX_TOKENS { 0 } else { depth };
        match node {
            Node::Rule(name) => self.rule(name, depth.saturating_sub(1)),
            Node::Word(word) => self.tokens.push(word.clone()),
            Node::Token(kind) => {
                let examples: &[&str] = match kind.as_str() {
                    "NAME" => &["a", "b", "x", "y_1", "n", "min", "any", "associative", "axis", "T"],
                    "INT" => &["0", "1", "2", "37", "9223372036854775807"],
                    "FLOAT" => &["0.5", "1e3", "2.25e-3", "1e300"],
                    "STRING" => &["\"ij,jk->ik\"", "\"\"", "\"a\\\"b\\\\\"", "\"lib.ten\""],
                    _ => panic!("there is no token {kind}"),
                };
                let token = (*self.rng.pick(examples)).to_owned();
                self.tokens.push(token);
            }
            Node::Seq(parts) => parts.iter().for_each(|part| self.node(part, depth)),
            Node::Choice(choices) => {
                let fits = |node: &&Node| least(node, &self.grammar.least).is_some_and(|least| least < depth);
                let fitting: Vec<&Node> = choices.iter().filter(fits).collect();
                let flattest = choices.iter().min_by_key(|node| least(node, &self.grammar.least));
                let chosen = if fitting.is_empty() { flattest.unwrap() } else { *self.rng.pick(&fitting) };
                self.node(chosen, depth);
            }
            Node::Optional(part) => {
                if depth > 0 && self.rng.percent(35) {
                    self.node(part, depth);
                }
            }
            Node::Many(part, at_least) => {
                let more = if depth == 0 { 0 } else { [0, 0, 0, 1, 1, 2][self.rng.below(6)] };
                (0..at_least + more).for_each(|_| self.node(part, depth));
            }
        }
    }
}
