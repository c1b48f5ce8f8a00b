// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab kernel`: builds variants.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;

use super::built;
use crate::kernel::Built;
use crate::output;
use crate::workspace::Workspace;

const EXAMPLE: &str = "\
Variants:
  pristine        Debian's source, unmodified
  vanilla         the same with the lab-only seams (9xx), which measurements need
  tollfree        all seams and new files, enabled
  tollfree-off    the same, disabled: its objects must equal those of pristine
  tollfree-debug  enabled, with KASAN, lockdep and memory-management checks
  DIR/series      your own patch queue for the same base, on top of vanilla

Examples:
  toll-lab kernel vanilla tollfree
  toll-lab kernel ~/queue/series --config ~/queue/more.config

Kernels are cached in ~/.cache/tollfree/lab; only changed files are rebuilt.";

/// Build kernels
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// Variants to build
    #[arg(value_name = "VARIANT", default_values = ["vanilla", "tollfree"])]
    variants: Vec<String>,
    /// Also set these symbols (a .config fragment)
    #[arg(long, value_name = "FRAGMENT")]
    config: Vec<PathBuf>,
    /// Print the built kernels as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let built = built(&workspace, &args.variants, &args.config)?;
    if args.json {
        return output::json(&built);
    }
    built.iter().for_each(show);
    Ok(())
}

fn show(built: &Built) {
    let how = match built.seconds {
        Some(seconds) => format!("built in {seconds:.0} s"),
        None => "unchanged".to_owned(),
    };
    println!(
        "{:15} Linux {}  {how}  {}",
        built.variant,
        built.release,
        built.image.display()
    );
}
