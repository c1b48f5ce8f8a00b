// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line interface, one file per subcommand.

mod adversary;
mod baseline;
mod bench;
mod crash_states;
mod crashes;
mod equal;
mod kernel;
mod lint;
mod list;
mod outside;
mod persistent;
mod power_cuts;
mod report;
mod run;
mod selftest;
mod shell;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::error::{EXIT_CODES, LabError};
use crate::kernel::{Built, Variant, build};
use crate::workspace::Workspace;

/// Build and boot stock and patched kernels side by side, and count events with a virtual PMU
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Guest options of commands that take no scenario.
#[derive(Debug, Args)]
struct GuestArgs {
    /// Kernel variant
    #[arg(value_name = "VARIANT", default_value = "tollfree")]
    variant: String,
    /// Emulated CPUs
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=8))]
    cpus: u32,
    /// The guest's memory
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(256..=12288))]
    memory: u32,
}

/// Builds the variants of these names, after it has found all.
fn built(workspace: &Workspace, names: &[String], config: &[PathBuf]) -> Result<Vec<Built>> {
    let variants = names
        .iter()
        .map(|name| Variant::find(workspace, name, config))
        .collect::<Result<Vec<_>>>()?;
    variants
        .iter()
        .map(|variant| build(workspace, variant))
        .collect()
}

#[derive(Debug, Subcommand)]
enum Command {
    Kernel(kernel::Args),
    Equal(equal::Args),
    Selftest(selftest::Args),
    Adversary(adversary::Args),
    Outside(outside::Args),
    CrashStates(crash_states::Args),
    PowerCuts(power_cuts::Args),
    List(list::Args),
    Run(run::Args),
    Report(report::Args),
    /// The former name of a part of `run`
    #[command(hide = true)]
    Compare {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _words: Vec<String>,
    },
    Baseline(baseline::Args),
    Bench(bench::Args),
    Lint(lint::Args),
    Shell(shell::Args),
}

pub fn dispatch(cli: Cli) -> Result<()> {
    match cli.command {
        Command::Kernel(args) => kernel::run(&args),
        Command::Equal(args) => equal::run(&args),
        Command::Selftest(args) => selftest::run(&args),
        Command::Adversary(args) => adversary::run(&args),
        Command::Outside(args) => outside::run(&args),
        Command::CrashStates(args) => crash_states::run(&args),
        Command::PowerCuts(args) => power_cuts::run(&args),
        Command::List(args) => list::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare { .. } => {
            let why = "compare is now a part of run: toll-lab run SCENARIO --variant A --variant B";
            Err(LabError::Usage(why.to_owned()).into())
        }
        Command::Baseline(args) => baseline::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Shell(args) => shell::run(&args),
    }
}
