// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree kernel`: the commands for a kernel of tollfree's patch queue.

pub mod calibrate;
mod decisions;
pub mod explain;
pub mod luf;
pub mod profile;
pub mod top;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use toll_linux::Root;

/// Commands for a kernel of tollfree's patch queue
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tollfree kernel luf
  tollfree kernel profile app.json --baseline 12s -o app.mm_profile
  tollfree run --plan app.mm_profile -- ./app input &
  tollfree kernel explain $!

Commands that need such a kernel exit with 4 on another one.")]
pub struct Args {
    /// Use this directory as / (for tests)
    #[arg(long, hide = true, global = true, value_name = "PATH")]
    root: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Luf(luf::Args),
    Explain(explain::Args),
    Top(top::Args),
    Calibrate(calibrate::Args),
    Profile(profile::Args),
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let root = args.root.map_or_else(Root::system, Root::at);
    match args.command {
        Command::Luf(_) => luf::run(&root, json),
        Command::Explain(args) => explain::run(args, &root, json),
        Command::Top(args) => top::run(args, &root, json),
        Command::Calibrate(args) => calibrate::run(args, &root, json),
        Command::Profile(args) => profile::run(args, json),
    }
}
