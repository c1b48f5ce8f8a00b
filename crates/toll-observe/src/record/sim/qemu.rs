// SPDX-License-Identifier: MIT OR Apache-2.0
//! The QEMU that simulates, and the plugin for its interface.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result};
use toll_act::error::UserError;
use toll_act::install;
use toll_linux::Root;
use toll_model::wire::recording;

use super::doubled_commas;

/// A QEMU, and the plugin that it loads.
#[derive(Debug)]
pub struct Simulator {
    pub qemu: PathBuf,
    pub plugin: PathBuf,
    /// The first line of `qemu-x86_64 --version`.
    pub version: String,
}

impl Simulator {
    /// Finds QEMU (see [`install`]), and the plugin that it loads.
    ///
    /// # Errors
    /// [`UserError::Missing`] if there is no QEMU; otherwise as [`Simulator::of`].
    pub fn find() -> Result<Simulator> {
        Simulator::of(install::component(install::QEMU)?)
    }

    /// Finds the plugin that a QEMU loads.
    ///
    /// # Errors
    /// [`UserError::Missing`] if a plugin is missing or QEMU loads none; for the latter with a context
    /// that has the QEMU and its words.
    pub fn of(qemu: PathBuf) -> Result<Simulator> {
        let version = version(&qemu)?;
        let mut said = String::new();
        for name in install::PLUGINS {
            let plugin = install::component(name)?;
            match load(&qemu, &plugin)? {
                Ok(()) => {
                    return Ok(Simulator {
                        qemu,
                        plugin,
                        version,
                    });
                }
                Err(why) => said = why,
            }
        }
        let advice = install::qemu_advice(&Root::system());
        let versions = install::QEMU_VERSIONS;
        let needs = format!("the simulator needs QEMU {versions} with plugins: {advice}");
        Err(UserError::Missing(needs)).with_context(|| {
            let qemu = qemu.display();
            format!("{qemu} ({version}) does not load the simulator's plugin ({said})")
        })
    }
}

fn version(qemu: &Path) -> Result<String> {
    let output = run(qemu, ["--version".as_ref()])?;
    Ok(first_line(&output.stdout))
}

/// Whether QEMU loads a plugin; if not, what it says. It checks the version of the interface that
/// the plugin declares, and its own range of versions does not follow from its release.
fn load(qemu: &Path, plugin: &Path) -> Result<Result<(), String>> {
    let mut option = doubled_commas(plugin.as_os_str());
    option.push(",check=on");
    // QEMU wants the name of a program, and loads plugins before it looks for the program.
    let output = run(qemu, ["-plugin".as_ref(), &option, OsStr::new("true")])?;
    let answer = output.stdout.trim_ascii();
    Ok(match answer == recording::MAGIC {
        true => Ok(()),
        false => Err(first_line(&output.stderr)),
    })
}

fn run<const N: usize>(qemu: &Path, arguments: [&OsStr; N]) -> Result<Output> {
    Command::new(qemu)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{}", qemu.display()))
}

fn first_line(text: &[u8]) -> String {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    OsStr::from_bytes(line).to_string_lossy().into_owned()
}
