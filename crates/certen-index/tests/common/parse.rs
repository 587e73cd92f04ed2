//! The text of questions, read into trees: a second reader, so that the first one is tested too.

use super::tree::{Expr, Formula, Op};

/// Reads text; the names that occur are collected in order.
pub struct Reader<'a> {
    tokens: Vec<String>,
    at: usize,
    names: &'a mut Vec<String>,
}

impl<'a> Reader<'a> {
    pub fn new(text: &str, names: &'a mut Vec<String>) -> Reader<'a> {
        let mut tokens: Vec<String> = Vec::new();
        let mut glued = false;
        for c in text.chars() {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let joins = |last: &str| match last.chars().next_back() {
                Some(end) if word(c) => word(end),
                Some(end) => matches!((end, c), ('<' | '>' | '=' | '!', '=') | ('&', '&') | ('|', '|')),
                None => false,
            };
            match tokens.last_mut().filter(|last| glued && joins(last)) {
                Some(last) => last.push(c),
                None if !c.is_whitespace() => tokens.push(c.to_string()),
                None => {}
            }
            glued = !c.is_whitespace();
        }
        Reader { tokens, at: 0, names }
    }

    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, token: &str) {
        assert!(self.eat(token), "`{token}` expected, not `{}`, in {:?}", self.peek(), self.tokens);
    }

    /// Reads items between commas up to the end.
    pub fn list<T>(mut self, read: impl Fn(&mut Reader<'a>) -> T) -> Vec<T> {
        let mut items = vec![read(&mut self)];
        while self.eat(",") {
            items.push(read(&mut self));
        }
        assert_eq!(self.at, self.tokens.len(), "not read whole: {:?}", self.tokens);
        items
    }

    pub fn expr(&mut self) -> Expr {
        let mut sum = self.term();
        loop {
            if self.eat("+") {
                sum = sum + self.term();
            } else if self.eat("-") {
                sum = sum - self.term();
            } else {
                return sum;
            }
        }
    }

    fn term(&mut self) -> Expr {
        let mut product = self.primary();
        while self.eat("*") {
            product = product * self.primary();
        }
        product
    }

    fn primary(&mut self) -> Expr {
        if self.eat("-") {
            return Expr::Int(0) - self.primary();
        }
        if self.eat("(") {
            let inner = self.expr();
            self.expect(")");
            return inner;
        }
        let word = self.peek().to_string();
        self.at += 1;
        if let Ok(value) = word.parse() {
            return Expr::Int(value);
        }
        if !self.eat("(") {
            assert!(word.starts_with(|c: char| c.is_ascii_alphabetic()), "a name expected, not `{word}`");
            let known = self.names.iter().position(|name| *name == word);
            return Expr::Name(known.unwrap_or_else(|| {
                self.names.push(word);
                self.names.len() - 1
            }));
        }
        let left = self.expr();
        self.expect(",");
        let right = self.expr();
        self.expect(")");
        let divisor = || right.eval(&[]).unwrap();
        match word.as_str() {
            "floor_div" => left.floor_div(divisor()),
            "ceil_div" => left.ceil_div(divisor()),
            "mod" => left.modulo(divisor()),
            "min" => left.min(right),
            "max" => left.max(right),
            _ => panic!("no function `{word}`"),
        }
    }

    pub fn formula(&mut self) -> Formula {
        let mut any = vec![self.all()];
        while self.eat("||") {
            any.push(self.all());
        }
        if any.len() == 1 { any.remove(0) } else { Formula::Or(any) }
    }

    fn all(&mut self) -> Formula {
        let mut all = vec![self.one()];
        while self.eat("&&") {
            all.push(self.one());
        }
        if all.len() == 1 { all.remove(0) } else { Formula::And(all) }
    }

    fn one(&mut self) -> Formula {
        if self.eat("true") {
            return Formula::And(Vec::new());
        }
        if self.eat("false") {
            return Formula::Or(Vec::new());
        }
        if self.eat("!") {
            return self.one().not();
        }
        if self.peek() == "(" && self.parenthesis_is_formula() {
            self.at += 1;
            let inner = self.formula();
            self.expect(")");
            return inner;
        }
        let mut left = self.expr();
        let mut chain = Vec::new();
        while let Some(op) = self.comparison() {
            let right = self.expr();
            chain.push(left.is(op, right.clone()));
            left = right;
        }
        assert!(!chain.is_empty(), "a comparison expected, not `{}`, in {:?}", self.peek(), self.tokens);
        if chain.len() == 1 { chain.remove(0) } else { Formula::And(chain) }
    }

    fn comparison(&mut self) -> Option<Op> {
        let op = match self.peek() {
            "<" => Op::Lt,
            "<=" => Op::Le,
            ">" => Op::Gt,
            ">=" => Op::Ge,
            "==" | "=" => Op::Eq,
            "!=" => Op::Ne,
            _ => return None,
        };
        self.at += 1;
        Some(op)
    }

    /// Whether a comparison stands inside the parenthesis that comes next.
    fn parenthesis_is_formula(&self) -> bool {
        let mut depth = 0;
        for token in &self.tokens[self.at..] {
            match token.as_str() {
                "(" => depth += 1,
                ")" if depth == 1 => return false,
                ")" => depth -= 1,
                "<" | "<=" | ">" | ">=" | "==" | "=" | "!=" | "true" | "false" => return true,
                _ => {}
            }
        }
        false
    }
}
