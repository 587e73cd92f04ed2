//! What the tests of the syntax share: comparing trees, and making texts from the published grammar.

pub mod ebnf;
pub mod rng;
pub mod tree;

use certen_lang::ast::File;
use certen_lang::parse::parse;
use certen_syntax::{Diagnostics, FileId, Source, Sources};

/// One text as a source.
pub struct Text {
    sources: Sources,
    file: FileId,
}

impl Text {
    pub fn new(text: impl Into<String>) -> Text {
        let mut sources = Sources::new();
        let file = sources.add("t.ten", text);
        Text { sources, file }
    }

    pub fn source(&self) -> (&Source, FileId) {
        (self.sources.get(self.file).unwrap(), self.file)
    }

    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    pub fn parse(&self) -> (File, Diagnostics) {
        let (source, file) = self.source();
        let mut diagnostics = Diagnostics::new();
        let tree = parse(source, file, &mut diagnostics);
        (tree, diagnostics)
    }

    /// All messages as a person reads them.
    pub fn rendered(&self, diagnostics: &Diagnostics) -> String {
        diagnostics.iter().map(|d| certen_syntax::render(&self.sources, d, false)).collect::<Vec<_>>().join("\n")
    }

    /// The tree of a text without mistakes.
    pub fn tree(&self) -> File {
        let (tree, diagnostics) = self.parse();
        let text = self.source().0.text();
        assert!(!diagnostics.has_errors(), "{}\nin the text\n{text}", self.rendered(&diagnostics));
        tree
    }
}

/// Runs a test on a thread with a stack for nested expressions, as every caller of the parser does.
pub fn on_large_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(test).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
