//! `certen eval`: the value of an expression, by the reference evaluator.

use certen::road::core::DEFAULT_FUEL;
use certen::road::syntax::{Code, Diagnostic};
use certen::{Backend, ElemType, Expression, Input, Module, Options, Origin, Output, RunOptions};
use clap::Args;
use serde_json::{Value, json};

use crate::common::{Outcome, refused};
use crate::given::{DomainArg, InputArgs};
use crate::report::{Report, list};
use crate::show;

#[derive(Args)]
pub struct EvalArgs {
    /// The expression, in the language of `.ten` files: `sum([1, 2, 3])`
    #[arg(allow_hyphen_values = true)]
    expression: String,
    #[command(flatten)]
    given: InputArgs,
    /// What the elements are: the machine's numbers, exact rationals, a prime field, numbers or undefined
    #[arg(long, value_enum, default_value_t = DomainArg::F64)]
    domain: DomainArg,
    /// How many steps the evaluator may take
    #[arg(long, default_value_t = DEFAULT_FUEL)]
    fuel: u64,
    /// Print JSON on standard output
    #[arg(long)]
    json: bool,
}

pub fn eval(args: &EvalArgs) -> Outcome {
    let report = Report::new(args.json);
    let call = args.given.arrays().map_err(|error| report.error(error))?;
    let mut inputs = Vec::new();
    for (name, input) in call.inputs() {
        inputs.push(match input {
            Input::Array(array) => (name, array.elem(), array.shape().to_vec()),
            Input::Whole(_) | Input::Fill(_) => (name, ElemType::F64, Vec::new()),
            Input::Random(_) | Input::Iota => {
                let text = format!("nothing says which shape `{name}` has");
                let error = Diagnostic::error(Code::E0407, None, text);
                return Err(report.error(error.help("give a file or a number: `--in x=FILE.npy`, `--in x=3.5`")));
            }
        });
    }
    // Sizes are constants here, so that they can stand in places where a number has to be known.
    let constants: String = args.given.dims.iter().map(|(name, size)| format!("const {name} = {size};\n")).collect();
    let expression = Expression { text: args.expression.clone(), origin: Origin::Called("expression".into()), inputs };
    let module = Module::expression("sizes.ten", constants, expression, &Options::default());
    let module = module.map_err(|failure| refused(&report, &failure))?;
    report.warnings(module.sources(), module.warnings());
    let options =
        RunOptions { backend: Backend::Interp, domain: args.domain.choice(), fuel: args.fuel, ..RunOptions::default() };
    let (outputs, _) = module.run_with(&call, &options).map_err(|failure| refused(&report, &failure))?;
    if args.json {
        let warnings = list(module.sources(), module.warnings());
        let entry = |output: &Output| (output.name.to_string(), show::entry(output));
        let outputs: serde_json::Map<String, Value> = outputs.iter().map(entry).collect();
        report.json(&json!({"ok": true, "diagnostics": warnings, "outputs": outputs}));
    } else {
        outputs.iter().for_each(|output| report.text(&show::text(output)));
    }
    Ok(())
}
