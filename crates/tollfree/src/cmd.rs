// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line: one file per subcommand.

pub mod apply;
pub mod calibrate;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod exporter;
pub mod import;
pub mod kernel;
pub mod morsel;
pub mod options;
pub mod plan;
pub mod record;
pub mod report;
pub mod run;
pub mod stat;
pub mod top;
pub mod tune;
pub mod why;

use std::process::ExitCode;

use anyhow::Result;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use toll_act::messages;

use crate::exit::EXIT_CODES;

/// Finds where a program pays for address translation, estimates huge pages there, applies those that pay, and proves it.
#[derive(Debug, Parser)]
#[command(
    name = "tollfree",
    version,
    propagate_version = true,
    after_help = "Start with: tollfree tune -- PROGRAM ARGUMENTS...",
    after_long_help = format!("{STEPS}\n\n{EXIT_CODES}")
)]
pub struct Cli {
    /// Print one JSON document instead of text (run, record and stat: on stderr)
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// The steps, as the long help and the manual print them.
const STEPS: &str = "\
Start with: tollfree tune -- PROGRAM ARGUMENTS...

Step by step:
  tollfree record -o app.json -- ./app input
  tollfree plan app.json -o app.toml
  tollfree compare --plan app.toml -- ./app input
  tollfree run --plan app.toml -- ./app input";

#[derive(Debug, Subcommand)]
pub enum Command {
    Tune(tune::Args),
    Doctor(doctor::Args),
    Calibrate(calibrate::Args),
    #[command(
        after_help = "Examples:\n  tollfree record -o app.json -- ./app input\n  tollfree record -o server.json --pid 4711 --for 30s"
    )]
    Record(record::Args),
    Import(import::Args),
    Report(report::Args),
    Plan(plan::Args),
    #[command(
        after_help = "Examples:\n  tollfree run --plan app.toml -- ./app input\n  tollfree run --plan largepages.txt --hugetlb -- ./app input\n  tollfree run --morsel model.gguf -- ./app model.gguf"
    )]
    Run(run::Args),
    Apply(apply::Args),
    Compare(compare::Args),
    Stat(stat::Args),
    Top(top::Args),
    Exporter(exporter::Args),
    Why(why::Args),
    Kernel(kernel::Args),
    Morsel(morsel::Args),
    #[command(
        after_help = "Example:\n  tollfree completions bash > ~/.local/share/bash-completion/completions/tollfree"
    )]
    Completions(completions::Args),
    #[command(after_help = "Example:\n  tollfree man /usr/local/share/man/man1")]
    Man(completions::ManArgs),
}

impl Command {
    /// Whether the command exits with the status of the target program.
    pub fn passes_through(&self) -> bool {
        match self {
            Command::Record(args) => args.pid.is_none(),
            Command::Run(_) => true,
            Command::Stat(args) => !args.command.is_empty(),
            _ => false,
        }
    }
}

/// Prints a command line error, or the requested help, and exits.
pub fn refuse(error: &clap::Error) -> ! {
    // A failed write cannot be reported anywhere.
    let _ = error.print();
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let Some(right) = with_dashes(error, &words) {
        messages::note(format_args!("the program follows `--`: {right}"));
    }
    if let Some(new) = moved(error, &words) {
        messages::note(format_args!("it is `tollfree {new}` now"));
    }
    std::process::exit(error.exit_code())
}

/// Renamed commands: the old command, the option that selected it if any, the new command.
const MOVED: [(&str, Option<&str>, &str); 4] = [
    ("luf", None, "kernel luf"),
    ("explain", None, "kernel explain"),
    ("calibrate", Some("--kernel"), "kernel calibrate"),
    ("plan", Some("--kernel"), "kernel profile"),
];

/// Returns the new name of the command if the error is the use of an old one.
fn moved(error: &clap::Error, words: &[String]) -> Option<&'static str> {
    let wrong = |kind| match error.get(kind) {
        Some(ContextValue::String(wrong)) => Some(wrong.as_str()),
        _ => None,
    };
    let command = wrong(ContextKind::InvalidSubcommand);
    let option = wrong(ContextKind::InvalidArg);
    let is_old = |(old, its, _): &&(&str, Option<&str>, &str)| match its {
        None => command == Some(*old),
        Some(_) => option == *its && words.iter().any(|word| word == old),
    };
    MOVED.iter().find(is_old).map(|(_, _, new)| *new)
}

/// Returns the command line with the `--` that is missing before the program, if that is the error.
fn with_dashes(error: &clap::Error, words: &[String]) -> Option<String> {
    const PROGRAMS: [&str; 5] = ["tune", "run", "record", "compare", "stat"];
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

/// Runs the selected command.
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
        Command::Stat(args) => stat::run(args, json),
        Command::Top(args) => top::run(args, json),
        Command::Exporter(args) => exporter::run(args, json),
        Command::Why(args) => why::run(args, json),
        Command::Kernel(args) => kernel::run(args, json),
        Command::Morsel(args) => morsel::run(args, json),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => completions::man(args),
    }
}

#[cfg(test)]
mod tests;
