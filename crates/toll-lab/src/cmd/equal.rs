// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab equal`: that the patch queue, switched off, is not there.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::error::LabError;
use crate::house::House;
use crate::kernel::{Variant, build, differences, objects, touched};
use crate::output;

/// Check that the queue's kernel with all its symbols off has the objects of the plain one
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Only the objects in folders of which a patch touches a file: minutes less than whole kernels
    #[arg(long)]
    touched: bool,
    /// Print the differences as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let house = House::find()?;
    let fragment = [house.kernel.join("config/equal.config")];
    let variant = |name: &str| -> Result<Variant> {
        let mut variant = Variant::find(&house, name, &fragment)?;
        // The name is in the kernel.
        variant.release = "equal".to_owned();
        if args.touched {
            // Folders of their own: whole kernels have more objects.
            variant.key += "-touched";
        }
        Ok(variant)
    };
    let (plain, off) = (variant("pristine")?, variant("tollfree-off")?);
    let folders = match args.touched {
        true => Some(touched(&house, &off)?),
        false => None,
    };
    let folder = |variant: &Variant| -> Result<PathBuf> {
        match &folders {
            Some(folders) => objects(&house, variant, folders),
            None => Ok(build(&house, variant)?.config.with_file_name("")),
        }
    };
    let (count, found) = differences(&folder(&plain)?, &folder(&off)?)?;
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
