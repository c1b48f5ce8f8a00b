// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab lint`: checks the patch queue with Linux's own tools.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::error::LabError;
use crate::kernel::lint;
use crate::output;
use crate::workspace::Workspace;

/// Check the patch queue's style and warnings: checkpatch --strict, W=1, sparse
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let found = lint(&Workspace::find()?)?;
    if args.json {
        output::json(&found)?;
    } else {
        found.iter().for_each(|line| println!("{line}"));
        println!("{} complaints", found.len());
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(LabError::Test("the patch queue is not clean".to_owned()).into()),
    }
}
