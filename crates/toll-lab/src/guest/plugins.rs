// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's `-plugin` arguments: the virtual PMU, the counting of cache lines, the recording of stores,
//! and the adversarial TLB.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::Machine;
use crate::preset::Preset;
use crate::workspace::Workspace;

/// Returns the argument for the virtual PMU of a machine; counts are written to files in `out`.
///
/// # Errors
/// [`LabError::Missing`](crate::error::LabError::Missing) if the plugin is not built.
pub(super) fn pmu(
    workspace: &Workspace,
    preset: &Preset,
    machine: &Machine,
    out: &Path,
) -> Result<String> {
    let mut words = vec![
        pmu_library(workspace)?.display().to_string(),
        format!("out={}", out.display()),
    ];
    words.extend(one_thread(machine));
    words.extend(preset.tlb_words());
    Ok(words.join(","))
}

/// Returns the argument for the plugin that counts cache lines.
pub(super) fn lines(workspace: &Workspace, out: &Path) -> Result<String> {
    let library = lines_library(workspace)?;
    Ok(format!("{},out={}", library.display(), out.display()))
}

/// Start of the direct map with five levels of page tables.
const DIRECT_MAP_LA57: &str = "0xff11000000000000";

/// Returns the argument for the adversarial TLB; findings are written to a file in `out`.
pub(super) fn adversary(workspace: &Workspace, machine: &Machine, out: &Path) -> Result<String> {
    let library = workspace.plugin("libtoll_adversary.so")?;
    let mut words = vec![
        library.display().to_string(),
        format!("out={}", out.display()),
    ];
    words.extend(one_thread(machine));
    if machine.la57 {
        words.push(format!("levels=5,direct_map={DIRECT_MAP_LA57}"));
    }
    Ok(words.join(","))
}

/// Physical address of the persistent memory of a machine that has no memory above it: at most 2 GiB.
const PMEM_START: u64 = 4 << 30;

/// Returns the argument for the recording of stores to persistent memory; it is written to `out`.
pub(super) fn stores(workspace: &Workspace, machine: &Machine, out: &Path) -> Result<String> {
    let library = workspace.plugin("libtoll_stores.so")?;
    let bytes = u64::from(machine.pmem_mib) << 20;
    Ok(format!(
        "{},out={},first={PMEM_START},bytes={bytes}",
        library.display(),
        out.display()
    ))
}

/// The option for plugins if one host thread runs several CPUs.
fn one_thread(machine: &Machine) -> Option<String> {
    (machine.icount && machine.cpus > 1).then(|| "one_thread=on".to_owned())
}

/// Returns the path of the virtual PMU plugin.
///
/// # Errors
/// [`LabError::Missing`](crate::error::LabError::Missing) if it is not built.
pub fn pmu_library(workspace: &Workspace) -> Result<PathBuf> {
    workspace.plugin("libtoll_system.so")
}

/// Returns the path of the plugin that counts cache lines.
///
/// # Errors
/// [`LabError::Missing`](crate::error::LabError::Missing) if it is not built.
pub fn lines_library(workspace: &Workspace) -> Result<PathBuf> {
    workspace.plugin("libtoll_lines.so")
}
