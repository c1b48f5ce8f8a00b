// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line: one file per subcommand.

pub mod apply;
pub mod calibrate;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod explain;
pub mod import;
pub mod luf;
pub mod morsel;
pub mod plan;
pub mod record;
pub mod report;
pub mod run;
pub mod top;
pub mod tune;

use std::process::ExitCode;

use anyhow::Result;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

use crate::error::EXIT_CODES;

/// Finds where a program pays for address translation, prices huge pages there, applies those that pay, and proves it.
#[derive(Debug, Parser)]
#[command(
    name = "tollfree",
    version,
    propagate_version = true,
    after_help = "Start with: tollfree tune -- PROGRAM ARGUMENTS...",
    after_long_help = format!("{STEPS}\n\n{EXIT_CODES}")
)]
pub struct Cli {
    /// Print one JSON document instead of text (run and record: on stderr, stdout is the program's)
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// What the manual says about the program as a whole.
const STEPS: &str = "\
Start with: tollfree tune -- PROGRAM ARGUMENTS...

Step by step:
  tollfree record -o app.json -- ./app input
  tollfree plan app.json -o app.toml
  tollfree compare --plan app.toml -- ./app input
  tollfree run --plan app.toml -- ./app input";

#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(
        after_help = "Examples:\n  tollfree tune -- xz -9 -k big.tar\n  tollfree tune --workload 'redis-benchmark -q -n 500000' --ready 'redis-cli ping' -- redis-server"
    )]
    Tune(tune::Args),
    #[command(after_help = "Example:\n  tollfree doctor")]
    Doctor(doctor::Args),
    Calibrate(calibrate::Args),
    #[command(after_help = "Example:\n  tollfree record -o app.json -- ./app input")]
    Record(record::Args),
    #[command(after_help = "Example:\n  tollfree import perf.data -o app.json")]
    Import(import::Args),
    #[command(after_help = "Example:\n  tollfree report app.json --html app.html")]
    Report(report::Args),
    Plan(plan::Args),
    #[command(
        after_help = "Examples:\n  tollfree run --plan app.toml -- ./app input\n  tollfree run --plan largepages.txt --hugetlb -- ./app input\n  tollfree run --morsel model.gguf -- ./app model.gguf"
    )]
    Run(run::Args),
    #[command(after_help = "Example:\n  tollfree apply --plan app.toml --pid 4711")]
    Apply(apply::Args),
    #[command(after_help = "Example:\n  tollfree compare --plan app.toml -n 10 -- ./app input")]
    Compare(compare::Args),
    #[command(after_help = "Example:\n  tollfree luf")]
    Luf(luf::Args),
    Explain(explain::Args),
    Top(top::Args),
    Morsel(morsel::Args),
    #[command(
        after_help = "Example:\n  tollfree completions bash > ~/.local/share/bash-completion/completions/tollfree"
    )]
    Completions(completions::Args),
    #[command(after_help = "Example:\n  tollfree man /usr/local/share/man/man1")]
    Man(completions::ManArgs),
}

impl Command {
    /// Whether the command ends with the status of somebody else's program.
    pub fn passes_through(&self) -> bool {
        matches!(self, Command::Record(_) | Command::Run(_))
    }
}

/// Prints what is wrong with the command line (or the help that it asks for), and ends.
pub fn refuse(error: &clap::Error) -> ! {
    // Nobody can be told where that fails.
    let _ = error.print();
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let Some(right) = with_dashes(error, &words) {
        crate::output::note(format_args!("the program follows `--`: {right}"));
    }
    std::process::exit(error.exit_code())
}

/// The command line with the `--` that was forgotten before a program, if that is what is wrong.
fn with_dashes(error: &clap::Error, words: &[String]) -> Option<String> {
    const PROGRAMS: [&str; 4] = ["tune", "run", "record", "compare"];
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let at = words.iter().position(|word| word == wrong)?;
    let (before, program) = words.split_at(at);
    let takes_one = before.iter().any(|word| PROGRAMS.contains(&word.as_str()));
    let fits = error.kind() == ErrorKind::UnknownArgument && !wrong.starts_with('-');
    let before = before.get(1..)?.join(" ");
    (fits && takes_one).then(|| format!("tollfree {before} -- {}", program.join(" ")))
}

/// Runs the command that was asked for.
pub fn dispatch(cli: Cli) -> Result<ExitCode> {
    let json = cli.json;
    match cli.command {
        Command::Tune(args) => tune::run(args, json),
        Command::Doctor(args) => doctor::run(args, json),
        Command::Calibrate(args) => calibrate::run(args, json),
        Command::Record(args) => record::run(args, json),
        Command::Import(args) => import::run(args, json),
        Command::Report(args) => report::run(args, json),
        Command::Plan(args) => plan::run(args, json),
        Command::Run(args) => run::run(args, json),
        Command::Apply(args) => apply::run(args, json),
        Command::Compare(args) => compare::run(args, json),
        Command::Luf(args) => luf::run(args, json),
        Command::Explain(args) => explain::run(args, json),
        Command::Top(args) => top::run(args, json),
        Command::Morsel(args) => morsel::run(args, json),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => completions::man(args),
    }
}
