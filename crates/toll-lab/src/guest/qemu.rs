// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one QEMU command line.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{Guest, show};
use crate::child;
use crate::error::LabError;
use crate::house::House;
use crate::output;

/// How a run of QEMU ended.
#[derive(Debug)]
pub enum Ending {
    Ended(ExitStatus),
    TooLong,
}

/// Files and folders of one boot.
#[derive(Debug)]
pub struct Places<'a> {
    pub initramfs: &'a Path,
    /// What the guest has at /out.
    pub out: &'a Path,
    pub console: &'a Path,
    /// QEMU's `-plugin` argument.
    pub plugin: Option<String>,
}

/// An emulator that fits: version 10, for full x86-64 systems.
#[derive(Debug)]
pub struct Qemu {
    program: PathBuf,
}

impl Qemu {
    /// The system's own, or the one that the set-up unpacked.
    ///
    /// # Errors
    /// [`LabError::Missing`] if neither is version 10.
    pub fn find(house: &House) -> Result<Qemu> {
        let ours = house
            .cache
            .parent()
            .unwrap_or(&house.cache)
            .join("bin/qemu-system-x86_64");
        let fits =
            |program: &PathBuf| version(program).is_some_and(|version| version.starts_with("10."));
        [PathBuf::from("qemu-system-x86_64"), ours]
            .into_iter()
            .find(fits)
            .map(|program| Qemu { program })
            .ok_or_else(|| {
                LabError::Missing(
                    "there is no qemu-system-x86_64 10: setup/setup.sh lab brings one".to_owned(),
                )
                .into()
            })
    }

    /// Boots a guest and waits until it ends, or its time does.
    pub fn boot(&self, guest: &Guest<'_>, places: &Places<'_>) -> Result<Ending> {
        let errors = guest.folder.join("qemu.err");
        let mut child = Running(
            self.command(guest, places)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(File::create(&errors).with_context(|| errors.display().to_string())?)
                .spawn()
                .with_context(|| self.program.display().to_string())?,
        );
        let name = guest
            .folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let bar = output::progress(&format!("{name}: booting"));
        let deadline = Instant::now() + guest.limit;
        while Instant::now() < deadline {
            if let Some(status) = child.0.try_wait()? {
                return Ok(Ending::Ended(status));
            }
            if !bar.is_hidden() {
                show(&bar, &name, places.console);
            }
            sleep(Duration::from_millis(50));
        }
        Ok(Ending::TooLong)
    }

    fn command(&self, guest: &Guest<'_>, places: &Places<'_>) -> Command {
        let mut append = "console=ttyS0 nokaslr panic=-1 oops=panic quiet loglevel=4".to_owned();
        for word in guest.append {
            append.push(' ');
            append.push_str(word);
        }
        let mut command = Command::new(&self.program);
        command
            .args([
                "-nodefaults",
                "-no-user-config",
                "-no-reboot",
                "-display",
                "none",
                "-monitor",
                "none",
            ])
            .args([
                "-machine",
                "q35",
                "-accel",
                "tcg,thread=multi",
                "-cpu",
                "max,la57=off",
            ])
            .args(["-smp", &guest.machine.cpus.to_string()])
            .args(["-m", &format!("{}M", guest.machine.memory_mib)])
            .arg("-kernel")
            .arg(guest.image)
            .arg("-initrd")
            .arg(places.initramfs)
            .args(["-append", &append])
            .args(["-serial", &format!("file:{}", places.console.display())])
            .args(["-device", "virtio-9p-pci,fsdev=out,mount_tag=out", "-fsdev"])
            .arg(format!(
                "local,id=out,security_model=none,path={}",
                places.out.display()
            ));
        if let Some(plugin) = &places.plugin {
            command.args(["-plugin", plugin]);
        }
        child::end_with_us(&mut command, libc::SIGKILL);
        command
    }
}

/// What `--version` says, without the name.
fn version(program: &Path) -> Option<String> {
    let output = Command::new(program)
        .arg("--version")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next()?.split("version ").nth(1)?;
    Some(version.split_whitespace().next()?.to_owned())
}

/// A QEMU that ends with us, however we leave.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
