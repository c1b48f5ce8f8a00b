// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line: one file per subcommand.

pub mod apply;
pub mod calibrate;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod import;
pub mod plan;
pub mod record;
pub mod report;
pub mod run;
pub mod tune;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Finds where a program pays for address translation, prices huge pages there, applies those that pay, and proves it.
#[derive(Debug, Parser)]
#[command(name = "tollfree", version, propagate_version = true)]
pub struct Cli {
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Tune(tune::Args),
    Doctor(doctor::Args),
    Calibrate(calibrate::Args),
    Record(record::Args),
    Import(import::Args),
    Report(report::Args),
    Plan(plan::Args),
    Run(run::Args),
    Apply(apply::Args),
    Compare(compare::Args),
    Completions(completions::Args),
    Man(completions::ManArgs),
}

impl Command {
    /// Whether the command ends with the status of somebody else's program.
    pub fn passes_through(&self) -> bool {
        matches!(self, Command::Record(_) | Command::Run(_))
    }
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
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => completions::man(args),
    }
}
