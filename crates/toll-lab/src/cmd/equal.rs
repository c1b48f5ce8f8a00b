// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab equal`: checks that the patch queue changes no object when all its symbols are off.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::error::LabError;
use crate::kernel::{Variant, build, differences, objects, touched};
use crate::output;
use crate::workspace::Workspace;

/// Check that a kernel with the patch queue and all its symbols off has the same objects as the
/// plain one
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Compare only the objects near a patch's changes: a tenth of the kernel
    #[arg(long)]
    touched: bool,
    /// Print the differences as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let variant = |name: &str| -> Result<Variant> {
        let mut variant = Variant::find(&workspace, name, &[])?;
        // The variant's name is part of the kernel.
        variant.release = "equal".to_owned();
        // Separate directories: whole kernels have more objects, and other names.
        variant.key += if args.touched { "-touched" } else { "-equal" };
        Ok(variant)
    };
    let (plain, off) = (variant("pristine")?, variant("tollfree-off")?);
    let targets = match args.touched {
        true => Some(touched(&workspace, &off)?),
        false => None,
    };
    let directory = |variant: &Variant| -> Result<PathBuf> {
        match &targets {
            Some(targets) => objects(&workspace, variant, targets),
            None => Ok(build(&workspace, variant)?.config.with_file_name("")),
        }
    };
    let (count, found) = differences(&directory(&plain)?, &directory(&off)?)?;
    if args.json {
        output::json(&serde_json::json!({ "objects": count, "differences": found }))?;
    } else {
        found.iter().for_each(|line| println!("{line}"));
        println!("{} of {count} objects differ", found.len());
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(LabError::Test(
            "the queue changes the kernel though all its symbols are off".to_owned(),
        )
        .into()),
    }
}
