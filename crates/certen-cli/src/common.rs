//! What commands have in common: the options that choose a program, a function and its schedule, and how a command ends.

use std::path::Path;

use certen::road::syntax::Blame;
use certen::{Call, Choice, Cpu, ElemType, Failure, FpMode, Math, Name, Options};
use clap::{Args, ValueEnum};

use crate::given;
use crate::report::Report;

/// What a command comes to: nothing, or who has to change something. What went wrong has been reported.
pub type Outcome = Result<(), Blame>;

/// Options of every command that reads a program.
#[derive(Args)]
pub struct Common {
    /// Element type of dialects that do not name one: f64, f32, i64, i32
    #[arg(long, value_name = "TYPE", default_value = "f64", value_parser = elem_type)]
    pub elem: ElemType,
    /// Whether sums and products of floats may be computed in another order than written
    #[arg(long, value_enum, value_name = "MODE", default_value = "relaxed")]
    pub fp: FpArg,
    /// Who computes functions such as `exp` and `sin`
    #[arg(long, value_enum, value_name = "WHO", default_value = "own")]
    pub math: MathArg,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// What may be assumed of floats.
#[derive(Clone, Copy, ValueEnum)]
pub enum FpArg {
    /// They may. They are also factored or distributed where that saves operations; `explain` says where. Results can
    /// then round differently, and intermediate values can overflow
    Relaxed,
    /// Every operation is made as written
    Strict,
}

/// Who computes the functions of mathematics.
#[derive(Clone, Copy, ValueEnum)]
pub enum MathArg {
    /// Certen: in vectors, with the same bits everywhere
    Own,
    /// The C library, where it has them: one element at a time, with bits that depend on it
    Libm,
}

impl Common {
    pub fn options(&self) -> Options {
        let fp = match self.fp {
            FpArg::Relaxed => FpMode::Relaxed,
            FpArg::Strict => FpMode::Strict,
        };
        let math = match self.math {
            MathArg::Own => Math::Own,
            MathArg::Libm => Math::Libm,
        };
        Options { elem: self.elem, fp, math, ..Options::default() }
    }
}

/// Options of every command that needs one function of a program.
#[derive(Args)]
pub struct EntryArgs {
    #[command(flatten)]
    pub which: Which,
    /// How its loops are transformed: `none`, `auto` for what the compiler writes, the name of a variant in the file,
    /// `default` for the one without a name, a file that ends in `.schedule`, or steps such as `split(i, 32); vectorize(j, 4)`. Without it, what the file says
    #[arg(long, value_name = "WHAT", value_parser = schedule)]
    pub schedule: Option<Choice>,
}

/// Which function of a program.
#[derive(Args)]
pub struct Which {
    /// The function of a `.ten` file, if it is not `main` or the only one
    #[arg(long = "fn", value_name = "NAME")]
    pub function: Option<String>,
    /// How many dimensions an input has that may have any number, where no array tells: `x=2`
    #[arg(long = "rank", value_name = "NAME=RANK", value_parser = given::rank)]
    pub ranks: Vec<(Name, usize)>,
    /// Refuse a schedule that is not proved to keep the meaning for all sizes, even if it does wherever it was tested
    #[arg(long)]
    pub require_proof: bool,
    /// The instruction set that native code is made for: sse2, avx2, avx512 or native, which is all that the processor
    /// has. Without it, what $CERTEN_CPU says
    #[arg(long, value_name = "SET", value_parser = cpu)]
    pub cpu: Option<Cpu>,
}

impl EntryArgs {
    pub fn options(&self, common: &Common, call: Option<&Call>) -> Options {
        Options { schedule: self.schedule.clone().unwrap_or_default(), ..self.which.options(common, call) }
    }
}

impl Which {
    pub fn options(&self, common: &Common, call: Option<&Call>) -> Options {
        let mut known = call.map(Call::known).unwrap_or_default();
        known.ranks.extend(self.ranks.iter().copied());
        let function = self.function.as_deref().map(Name::new);
        Options { function, known, require_proof: self.require_proof, cpu: self.cpu, ..common.options() }
    }
}

fn elem_type(text: &str) -> Result<ElemType, String> {
    let elem: Option<ElemType> = text.parse().ok().filter(|elem: &ElemType| elem.has_arithmetic());
    elem.ok_or_else(|| "it is one of f64, f32, i64, i32".into())
}

pub fn cpu(text: &str) -> Result<Cpu, String> {
    let cpu: Cpu = text.parse()?;
    if cpu.is_here() { Ok(cpu) } else { Err(format!("this processor does not have {cpu}")) }
}

pub fn schedule(text: &str) -> Result<Choice, String> {
    let said = |failure: Failure| failure.diagnostics().iter().map(|error| error.message.clone()).collect::<Vec<_>>();
    Choice::named(text).map_err(|failure| said(failure).join("; "))
}

/// Reports why a program was refused.
pub fn refused(report: &Report, failure: &Failure) -> Blame {
    report.failure(failure);
    failure.blame()
}

/// What messages call a file.
pub fn shown(path: &Path) -> String {
    path.display().to_string()
}
