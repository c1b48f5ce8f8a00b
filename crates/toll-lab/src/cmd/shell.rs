// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab shell`: a look into a kernel, with this machine's programs in it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use clap::Args as ClapArgs;

use super::Shape;
use crate::error::LabError;
use crate::guest::Qemu;
use crate::house::House;
use crate::kernel::{Variant, build};

const EXAMPLE: &str = "\
Examples:
  toll-lab shell tollfree
  toll-lab shell tollfree-debug --cpus 4 -- cat /sys/kernel/mm/tollfree/version

The guest has this machine's files, read-only, and is emulated: it is slow, and what it is timed at
means nothing. Ends with the command's status.";

/// Boot a kernel on this machine's own files (virtme-ng), for a shell or one command
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// The kernel
    #[arg(value_name = "VARIANT", default_value = "tollfree")]
    variant: String,
    #[command(flatten)]
    shape: Shape,
    /// What to run in place of a shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    let house = House::find()?;
    let vng = virtme(&house)?;
    let built = build(&house, &Variant::find(&house, &args.variant, &[])?)?;
    let mut command = Command::new(&vng);
    // It calls its other half by name.
    let mut path = vng
        .parent()
        .unwrap_or(Path::new("/"))
        .as_os_str()
        .to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    command
        .env("PATH", path)
        .arg("--run")
        .arg(&built.image)
        .args(["--disable-kvm", "--qemu"])
        .arg(Qemu::find(&house)?.program)
        .args(["--cpus", &args.shape.cpus.to_string()])
        .args(["--memory", &format!("{}M", args.shape.memory)]);
    if !args.command.is_empty() {
        command.arg("--").args(&args.command);
    }
    let status = command
        .status()
        .map_err(|error| LabError::Missing(format!("{}: {error}", vng.display())))?;
    std::process::exit(status.code().unwrap_or(1))
}

/// virtme-ng as the set-up installed it.
fn virtme(house: &House) -> Result<PathBuf> {
    let vng = house.cache.join("venv/bin/vng");
    match vng.is_file() {
        true => Ok(vng),
        false => Err(LabError::Missing(format!(
            "{}: virtme-ng is not installed: setup/setup.sh lab brings it",
            vng.display()
        ))
        .into()),
    }
}
