// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue's test programs and modules, as files and jobs of a guest.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::error::LabError;
use crate::guest::{Job, Program};
use crate::kernel::Built;

/// Directory of the tests in a kernel tree.
const TESTS: &str = "tools/testing/selftests/tollfree";

/// Compiles the tests of a kernel tree with their own Makefile.
pub(in crate::cmd) fn compile(built: &Built) -> Result<Vec<Program>> {
    let directory = built.tree.join(TESTS);
    if !directory.is_dir() {
        let why = "has no tests of tollfree: they belong to the variants named tollfree";
        return Err(LabError::Usage(format!("{}: {why}", built.variant)).into());
    }
    let output = built.config.with_file_name("selftests");
    std::fs::create_dir_all(&output).with_context(|| output.display().to_string())?;
    make(&directory, &output, "all")?;
    let names = make(&directory, &output, "emit_tests")?;
    let program = |name: &str| Program {
        host: output.join(name),
        guest: format!("/test/{name}"),
    };
    let programs: Vec<Program> = names
        .lines()
        .filter_map(|line| line.strip_prefix("tollfree:"))
        .map(program)
        .collect();
    match programs.is_empty() {
        true => Err(LabError::Input(format!("{}: names no test", directory.display())).into()),
        false => Ok(programs),
    }
}

fn make(directory: &Path, output: &Path, target: &str) -> Result<String> {
    let run = Command::new("make")
        .args(["--no-print-directory", "-s", "-C"])
        .arg(directory)
        .arg(format!("OUTPUT={}", output.display()))
        .args(["COLLECTION=tollfree", target])
        .env_remove("MAKEFLAGS")
        .output()
        .map_err(|error| LabError::Missing(format!("make: {error}")))?;
    if run.status.success() {
        return Ok(String::from_utf8_lossy(&run.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&run.stderr);
    Err(LabError::Build(format!(
        "{}: make {target}: {}",
        directory.display(),
        said.trim_end()
    ))
    .into())
}

/// Adds a module as a guest file.
pub(super) fn module(file: &Path) -> Program {
    let name = file.file_name().unwrap_or_default();
    Program {
        host: file.to_owned(),
        guest: format!("/lib/modules/{}", name.to_string_lossy()),
    }
}

/// A test program's name, without its directory.
pub(super) fn name(program: &Program) -> &str {
    program.guest.rsplit('/').next().unwrap_or_default()
}

pub(super) fn job(program: &Program, settings: &[&str], words: &[String]) -> Job {
    let mut command: Vec<String> = Vec::new();
    if !settings.is_empty() {
        command.extend(["/bin/busybox", "env"].map(str::to_owned));
        command.extend(settings.iter().map(|&setting| setting.to_owned()));
    }
    command.push(program.guest.clone());
    command.extend_from_slice(words);
    Job {
        name: name(program).to_owned(),
        command,
    }
}
