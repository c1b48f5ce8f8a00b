// SPDX-License-Identifier: MIT OR Apache-2.0
//! File systems that the tests' files can be on.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::guest::Program;
use crate::workspace::Workspace;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FileSystem {
    Ext4,
    Xfs,
    Btrfs,
}

impl FileSystem {
    pub(super) fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
        }
    }

    /// Command that creates the file system.
    pub(super) fn mkfs(self) -> String {
        format!("mkfs.{}", self.name())
    }

    /// Symbols that the lab's kernels lack for it.
    pub(super) fn fragments(self, workspace: &Workspace) -> Vec<PathBuf> {
        match self {
            FileSystem::Ext4 => Vec::new(),
            _ => vec![workspace.kernel.join("config/selftest.config")],
        }
    }

    /// Shell line that loads modules, prepares a directory on the file system, and enables swap.
    pub(super) fn make_ready(self, modules: &[Program]) -> String {
        let (mkfs, name) = (self.mkfs(), self.name());
        let load = |module: &Program| format!("insmod {} && ", module.guest);
        let load: String = modules.iter().map(load).collect();
        format!(
            "{load}mkdir -p /data /tmp && {mkfs} -q /dev/vda && mount -t {name} /dev/vda /data && \
             mkswap /dev/vdb && swapon /dev/vdb"
        )
    }
}
