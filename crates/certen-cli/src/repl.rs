//! `certen repl`: a conversation in the `.ten` language.
//!
//! What is read from a terminal is edited and remembered; from anything else, lines are read as they come, and no prompt
//! is written.

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

use certen::road::core::DEFAULT_FUEL;
use certen::road::syntax::Blame;
use certen::{Backend, Call, Declared, Failure, Module, Reply, RunOptions, Session, is_complete};
use clap::Args;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::common::{Outcome, refused};
use crate::report::Report;
use crate::show;

#[derive(Args)]
pub struct ReplArgs {
    /// `.ten` files whose functions and constants can be used
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How many steps the evaluator may take for an expression
    #[arg(long, default_value_t = DEFAULT_FUEL)]
    fuel: u64,
}

const HELP: &str = "\
Expressions are evaluated and printed; `let`, `fn`, `const` and `import` stay. A text goes on over several lines until
its brackets are closed; an empty line ends it.
  :type EXPR   the type of an expression, without evaluating it
  :core EXPR   an expression as a program in Core
  :load FILE   the functions and constants of a file can be used, as it is each time
  :help        this
  :quit        the end (or Ctrl-D)
";

pub fn repl(args: &ReplArgs) -> Outcome {
    let report = Report::new(false);
    let mut repl = Repl { session: Session::new(), report, fuel: args.fuel };
    for file in &args.files {
        repl.load(&file.display().to_string()).map_err(|failure| refused(&repl.report, &failure))?;
    }
    if std::io::stdin().is_terminal() { repl.talk() } else { repl.listen() }
}

struct Repl {
    session: Session,
    report: Report,
    fuel: u64,
}

/// Whether the conversation goes on.
#[derive(PartialEq)]
enum Next {
    Go,
    Quit,
}

impl Repl {
    /// Lines from a file or pipe. The worst of all mistakes decides what it comes to.
    fn listen(&mut self) -> Outcome {
        let mut text = String::new();
        let mut worst: Option<Blame> = None;
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            match self.take(&mut text, &line) {
                Ok(Next::Go) => {}
                Ok(Next::Quit) => return worst.map_or(Ok(()), Err),
                Err(blame) => worst = worst.max(Some(blame)),
            }
        }
        // What is not complete at the end is a mistake of its own.
        if let Err(blame) = self.say(&text) {
            worst = worst.max(Some(blame));
        }
        worst.map_or(Ok(()), Err)
    }

    /// Lines from a person.
    fn talk(&mut self) -> Outcome {
        let Ok(mut editor) = DefaultEditor::new() else { return self.listen() };
        let history = history();
        if let Some(path) = &history {
            let _ = editor.load_history(path);
        }
        self.report.text("Certen: `:help` says what can be written here, `:quit` ends it.\n");
        let mut text = String::new();
        loop {
            match editor.readline(if text.is_empty() { "> " } else { ". " }) {
                Ok(line) => {
                    let before = text.clone();
                    // Mistakes have been reported; a conversation goes on after them.
                    if let Ok(Next::Quit) = self.take(&mut text, &line) {
                        break;
                    }
                    if text.is_empty() {
                        let _ = editor.add_history_entry((before + &line).trim());
                    }
                }
                Err(ReadlineError::Interrupted) => text.clear(),
                Err(_) => break,
            }
        }
        // Without a place for it, the history is not kept.
        if let Some(path) = &history
            && let Some(directory) = path.parent()
            && std::fs::create_dir_all(directory).is_ok()
        {
            let _ = editor.save_history(path);
        }
        Ok(())
    }

    /// Takes a line; if the text is complete with it, answers it.
    fn take(&mut self, text: &mut String, line: &str) -> Result<Next, Blame> {
        if text.is_empty()
            && let Some(command) = line.trim().strip_prefix(':')
        {
            return self.command(command);
        }
        let ends_here = line.trim().is_empty();
        text.push_str(line);
        text.push('\n');
        if !ends_here && !is_complete(text) {
            return Ok(Next::Go);
        }
        let said = self.say(text);
        text.clear();
        said.map(|()| Next::Go)
    }

    fn command(&mut self, command: &str) -> Result<Next, Blame> {
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let rest = rest.trim();
        let answer = match word {
            "q" | "quit" => return Ok(Next::Quit),
            "h" | "help" => Ok(HELP.to_owned()),
            "t" | "type" => self.session.expression(rest).map(|module| types(&module)),
            "core" => self.session.expression(rest).map(|module| module.core().to_string()),
            "load" => self.load(rest),
            _ => {
                self.report.complain(&format!("there is no command `:{word}`; `:help` lists them\n"));
                return Err(Blame::Call);
            }
        };
        let answer = answer.map_err(|failure| refused(&self.report, &failure))?;
        self.report.text(&answer);
        Ok(Next::Go)
    }

    fn load(&mut self, file: &str) -> Result<String, Failure> {
        let path = file.replace('\\', "\\\\").replace('"', "\\\"");
        self.session.say(&format!("import \"{path}\";")).map(|_| String::new())
    }

    fn say(&mut self, text: &str) -> Result<(), Blame> {
        let answer = self.session.say(text).and_then(|reply| self.answer(&reply));
        let answer = answer.map_err(|failure| refused(&self.report, &failure))?;
        self.report.text(&answer);
        Ok(())
    }

    fn answer(&self, reply: &Reply) -> Result<String, Failure> {
        Ok(match reply {
            Reply::Nothing => String::new(),
            Reply::Declared(declared) => {
                let name = |one: &Declared| match one {
                    Declared::Name(name) => format!("{name}\n"),
                    Declared::Import(path) => format!("\"{path}\"\n"),
                    Declared::Schedule { function, variant: None } => format!("schedule {function}\n"),
                    Declared::Schedule { function, variant: Some(variant) } => {
                        format!("schedule {variant} for {function}\n")
                    }
                };
                declared.iter().map(name).collect()
            }
            Reply::Bound(bound) => bound.iter().map(|(name, module)| format!("{name} : {}", types(module))).collect(),
            Reply::Expression(module) => {
                self.report.warnings(module.sources(), module.warnings());
                let options = RunOptions { backend: Backend::Interp, fuel: self.fuel, ..RunOptions::default() };
                let (outputs, _) = module.run_with(&Call::new(), &options)?;
                outputs.iter().map(|output| show::value(output, 0) + "\n").collect()
            }
        })
    }
}

/// The types of a program's outputs, one on each line.
fn types(module: &Module) -> String {
    let types = module.core().types();
    let outputs = module.core().outputs.iter().filter_map(|(_, source)| types.get(source));
    outputs.map(|ty| if ty.is_scalar() { format!("{}\n", ty.elem) } else { format!("{ty}\n") }).collect()
}

/// Where lines are remembered: `CERTEN_HISTORY`, or a file in the user's state directory.
fn history() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = set("CERTEN_HISTORY") {
        return Some(path);
    }
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("certen/history"))
}
