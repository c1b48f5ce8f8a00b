// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab kernel`: builds variants.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::house::House;
use crate::kernel::{Built, Variant, build};
use crate::output;

const EXAMPLE: &str = "\
Variants:
  pristine        Debian's source as it is
  vanilla         the same with the lab-only seams (9xx), which measuring needs
  tollfree        all seams and new files, switched on
  tollfree-off    the same, switched off: its objects must equal those of pristine
  tollfree-debug  switched on, with KASAN, lockdep and the checks of memory management
  FOLDER/series   a patch queue of your own on the same base, over vanilla

Examples:
  toll-lab kernel vanilla tollfree
  toll-lab kernel ~/queue/series --config ~/queue/more.config

Kernels are kept in ~/.cache/tollfree/lab; what did not change is not built again.";

/// Build kernels
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// What to build
    #[arg(value_name = "VARIANT", default_values = ["vanilla", "tollfree"])]
    variants: Vec<String>,
    /// Set these symbols too (a fragment of a .config)
    #[arg(long, value_name = "FRAGMENT")]
    config: Vec<PathBuf>,
    /// Print what was built as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let house = House::find()?;
    let variants = args
        .variants
        .iter()
        .map(|name| Variant::find(&house, name, &args.config))
        .collect::<Result<Vec<_>>>()?;
    let built = variants
        .iter()
        .map(|variant| build(&house, variant))
        .collect::<Result<Vec<_>>>()?;
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
