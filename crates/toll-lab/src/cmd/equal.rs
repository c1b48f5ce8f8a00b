// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab equal`: that the patch queue, switched off, is not there.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::error::LabError;
use crate::house::House;
use crate::kernel::{Built, Variant, build, differences, objects, touched};
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
    let [plain, off] = ["pristine", "tollfree-off"].map(|name| -> Result<_> {
        let mut variant = Variant::find(&house, name, &fragment)?;
        // The name is in the kernel.
        variant.release = "equal".to_owned();
        Ok(variant)
    });
    let (plain, off) = (plain?, off?);
    let (count, found) = if args.touched {
        // Folders of their own: whole kernels have more objects.
        let folders = touched(&house, &off)?;
        let [plain, off] = [plain, off].map(|mut variant| {
            variant.key += "-touched";
            objects(&house, &variant, &folders)
        });
        differences(&plain?, &off?)?
    } else {
        let [plain, off] = [plain, off].map(|variant| build(&house, &variant));
        let folder = |built: Built| built.config.with_file_name("");
        differences(&folder(plain?), &folder(off?))?
    };
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
