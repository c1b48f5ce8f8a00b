// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab shell`: boots a kernel with this machine's programs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use clap::Args as ClapArgs;

use super::GuestArgs;
use crate::error::LabError;
use crate::guest::{ICOUNT, Qemu};
use crate::kernel::{Variant, build};
use crate::workspace::Workspace;

const EXAMPLE: &str = "\
Examples:
  toll-lab shell tollfree
  toll-lab shell tollfree-debug --cpus 4 -- cat /sys/kernel/mm/tollfree/version
  toll-lab shell vanilla --config kernel/config/bpf.config --icount -- uname -r

The guest has this machine's files, read-only, and is emulated: it is slow, and its timings are
meaningless. With --icount its clock counts instructions. Exits with the command's status.";

/// Boot a kernel on this machine's own files (virtme-ng), with a shell or for one command
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    #[command(flatten)]
    guest: GuestArgs,
    /// Also set these symbols (a .config fragment)
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// Run all CPUs on one host thread, with an instruction-count clock
    #[arg(long)]
    icount: bool,
    /// Command to run instead of a shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let vng = virtme(&workspace)?;
    let built = build(
        &workspace,
        &Variant::find(&workspace, &args.guest.variant, &args.config)?,
    )?;
    let mut command = Command::new(&vng);
    // virtme-ng calls its helper by name.
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
        .arg(Qemu::find(&workspace)?.program)
        .args(["--cpus", &args.guest.cpus.to_string()])
        .args(["--memory", &format!("{}M", args.guest.memory)]);
    if args.icount {
        command.arg(format!("--qemu-opts=-icount {ICOUNT}"));
    }
    if !args.command.is_empty() {
        command.arg("--").args(&args.command);
    }
    let status = command
        .status()
        .map_err(|error| LabError::Missing(format!("{}: {error}", vng.display())))?;
    std::process::exit(status.code().unwrap_or(1))
}

/// Path of virtme-ng, as setup installed it.
fn virtme(workspace: &Workspace) -> Result<PathBuf> {
    let vng = workspace.cache.join("venv/bin/vng");
    match vng.is_file() {
        true => Ok(vng),
        false => Err(LabError::Missing(format!(
            "{}: virtme-ng is not installed: setup/setup.sh lab brings it",
            vng.display()
        ))
        .into()),
    }
}
