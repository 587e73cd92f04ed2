//! `certen doctor`: what is there on this machine, and do its C compilers compute what they are told?

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use certen::Cpu;
use certen::doctor::{self, Examination, Findings, Specimen};
use certen::road::runtime::{Cache, Compiler, RuntimeError};
use certen::road::syntax::{Blame, Diagnostic};
use clap::Args;
use serde_json::{Value, json};

use crate::common::Outcome;
use crate::report::Report;

/// Of so many kernels, `--quick` takes one.
const QUICK: usize = 16;

/// Differences that are shown.
const SHOWN: usize = 3;

#[derive(Args)]
pub struct DoctorArgs {
    /// Examine with one kernel in sixteen only
    #[arg(long)]
    quick: bool,
    /// Examine also what has passed before
    #[arg(long)]
    again: bool,
    /// Only this instruction set: sse2, avx2, avx512 or native. Without it, all that the processor has
    #[arg(long, value_name = "SET", value_parser = crate::common::cpu)]
    cpu: Option<Cpu>,
    /// Only the C compiler at this path. Without it, all that are found
    #[arg(long, value_name = "PATH")]
    compiler: Option<PathBuf>,
    /// Print JSON on standard output
    #[arg(long)]
    json: bool,
}

pub fn doctor(args: &DoctorArgs) -> Outcome {
    let report = Report::new(args.json);
    let failed = |error: RuntimeError| report.error(Diagnostic::error(error.code(), None, error.to_string()));
    let found = doctor::Report::new().map_err(failed)?;
    if !args.json {
        report.text(&about(&found));
    }
    let chosen = args.compiler.as_ref().map(Compiler::at).transpose().map_err(failed)?;
    let compilers = chosen.as_ref().map_or_else(|| found.distinct(), |chosen| vec![chosen]);
    if compilers.is_empty() {
        return Err(failed(Compiler::find().err().unwrap_or(RuntimeError::NoCompiler { tried: "nothing".into() })));
    }
    let sets = match args.cpu {
        Some(cpu) => vec![cpu],
        None if found.sets.is_empty() => vec![Cpu::Native],
        None => found.sets.clone(),
    };
    let specimens = if args.quick { doctor::sample(QUICK) } else { doctor::sweep() };
    let mut patient = Patient {
        report: &report,
        cache: Cache::default_location().map_err(failed)?,
        specimens,
        examination: OnceLock::new(),
        results: Vec::new(),
    };
    for compiler in compilers {
        for cpu in &sets {
            patient.examined(compiler, *cpu, args.again).map_err(failed)?;
        }
    }
    let is_well = patient.results.iter().all(|result| result["ok"] == true);
    if args.json {
        let mut all = found.json();
        all["ok"] = is_well.into();
        all["examined"] = patient.results.into();
        report.json(&all);
    }
    if is_well { Ok(()) } else { Err(Blame::Environment) }
}

/// The machine, for people.
fn about(found: &doctor::Report) -> String {
    let sets: Vec<String> = found.sets.iter().map(Cpu::to_string).collect();
    let mut text = format!("processor: {}\n", found.cpu.as_deref().unwrap_or("unknown"));
    text += &format!("    features: {}\n", found.features.join(" "));
    text += &format!("    instruction sets: {}; kernels are made for {}\n", sets.join(", "), found.chosen);
    let machine = &found.machine;
    text += &format!(
        "    schedules are written for {} vector registers of {} bytes{}, {} fused operations, a second-level cache of {} KiB\n",
        machine.registers,
        machine.vector_bytes,
        if machine.unit_bytes < machine.vector_bytes { ", computed in halves" } else { "" },
        if machine.has_fma { "with" } else { "without" },
        machine.l2_bytes >> 10
    );
    text += &format!("threads: {}\n", found.threads);
    if let Some(bytes) = found.memory {
        text += &format!("free memory: {} MiB\n", bytes >> 20);
    }
    let (entries, bytes) = found.kept;
    text += &format!("cache: {}, {entries} kernels, {} MiB\n", found.cache.display(), bytes >> 20);
    text += "C compilers:\n";
    for (name, compiler) in &found.compilers {
        text += &match compiler {
            Ok(compiler) => format!("    {name}: {}, {}\n", compiler.real_path().display(), compiler.version()),
            Err(why) => format!("    {name}: {why}\n"),
        };
    }
    text
}

/// The compilers, one after the other.
struct Patient<'a> {
    report: &'a Report,
    cache: Cache,
    specimens: Vec<Specimen>,
    /// Made when the first compiler needs it.
    examination: OnceLock<Examination>,
    results: Vec<Value>,
}

impl Patient<'_> {
    /// Examines a compiler with an instruction set, unless it has passed before.
    fn examined(&mut self, compiler: &Compiler, cpu: Cpu, again: bool) -> Result<(), RuntimeError> {
        let compiler = compiler.for_cpu(cpu)?;
        let known = doctor::passed(&self.cache, &compiler, self.specimens.len()).filter(|_| !again);
        let head = format!("{} with {cpu}", compiler.real_path().display());
        let about = json!({"compiler": compiler.real_path(), "version": compiler.version(), "cpu": cpu.to_string()});
        if let Some((kernels, elements)) = known {
            self.say(&format!("{head}: {kernels} kernels, {elements} elements, all equal (examined before)\n"));
            self.add(about, json!({"ok": true, "before": true, "kernels": kernels, "elements": elements}));
            return Ok(());
        }
        let examination = self.examination.get_or_init(|| self.prepared());
        let (begin, done) = (Instant::now(), AtomicUsize::new(0));
        let all = examination.kernels();
        let what = || format!("{head}: {} of {all} kernels", done.load(Ordering::Relaxed));
        let count = |kernels| {
            done.fetch_add(kernels, Ordering::Relaxed);
        };
        let result = self.report.working(what, || examination.with(&compiler, &count));
        let seconds = begin.elapsed().as_secs_f64();
        match result {
            Err(error) => {
                self.say(&format!("{head}: failed: {error}\n"));
                self.add(about, json!({"ok": false, "error": error.to_string()}));
            }
            Ok(found) => {
                self.say(&format!("{head}: {}, {seconds:.1} s\n", summary(&found)));
                if found.wrong == 0 {
                    doctor::remember(&self.cache, &compiler, self.specimens.len(), &found);
                }
                let differences = found.differences.iter().map(ToString::to_string).collect::<Vec<_>>();
                let numbers = json!({
                    "ok": found.wrong == 0, "before": false, "kernels": found.kernels, "elements": found.elements,
                    "wrong": found.wrong, "differences": differences, "seconds": seconds,
                });
                self.add(about, numbers);
            }
        }
        Ok(())
    }

    /// The kernels, with what their outputs have to be.
    fn prepared(&self) -> Examination {
        let (all, done) = (self.specimens.len(), AtomicUsize::new(0));
        let what = || format!("interpreting: {} of {all} kernels", done.load(Ordering::Relaxed));
        let count = |kernels| {
            done.fetch_add(kernels, Ordering::Relaxed);
        };
        self.report.working(what, || Examination::new(self.specimens.clone(), &count))
    }

    fn say(&self, text: &str) {
        if !self.report.is_json() {
            self.report.text(text);
        }
    }

    fn add(&mut self, mut about: Value, numbers: Value) {
        if let (Value::Object(about), Value::Object(numbers)) = (&mut about, numbers) {
            about.extend(numbers);
        }
        self.results.push(about);
    }
}

/// What an examination has found, and the first differences.
fn summary(found: &Findings) -> String {
    let Findings { kernels, elements, wrong, differences } = found;
    let head = format!("{kernels} kernels, {elements} elements, ");
    if *wrong == 0 {
        return head + "all equal";
    }
    let shown: String = differences.iter().take(SHOWN).map(|it| format!("\n{it}\n")).collect();
    format!("{head}{wrong} WRONG:\n{shown}\nthis compiler makes wrong code; set $CC to another one")
}
