// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel mount`.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use toll_act::error::UserError;
use toll_act::morsel::{default_directory, wrong};
use toll_linux::morsel::mount::{Mounted, mount_best};
use toll_linux::morsel::{Kind, MorselError, Store, mount};
use toll_model::units::parse_size;

use super::{More, Refused, report};
use crate::output;

/// Mount the best file system for morsels that this kernel has
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The mount point; it is created if it does not exist
    pub mount: Option<PathBuf>,
    /// Maximum size (default: the file system's own; tmpfs: half of memory)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<u64>,
    /// Use only this file system
    #[arg(long, value_name = "KIND")]
    pub kind: Option<KindName>,
}

/// The file systems, by name.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum KindName {
    Morselfs,
    Tmpfs,
    Hugetlbfs,
}

impl From<KindName> for Kind {
    fn from(name: KindName) -> Kind {
        match name {
            KindName::Morselfs => Kind::Morselfs,
            KindName::Tmpfs => Kind::Tmpfs,
            KindName::Hugetlbfs => Kind::Hugetlbfs,
        }
    }
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let directory = args.mount.unwrap_or_else(default_directory);
    let kinds = args
        .kind
        .map_or(Kind::ALL.to_vec(), |kind| vec![kind.into()]);
    let mounted = match mount_best(&directory, &kinds, args.size) {
        Err(MorselError::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            Mounted::Forbidden
        }
        mounted => mounted.map_err(wrong)?,
    };
    let (backing, refused, is_new) = match mounted {
        Mounted::Now(backing, refused) => (backing, refused, true),
        Mounted::Before(backing) if kinds.contains(&backing.kind) => (backing, Vec::new(), false),
        Mounted::Before(backing) => {
            let (directory, kind) = (directory.display(), backing.kind.name());
            let message = format!("{directory}: {kind} is already mounted there");
            return Err(UserError::Usage(message).into());
        }
        Mounted::Nothing(refused) => {
            let message = format!(
                "{}: nothing to mount: {}",
                directory.display(),
                reasons(&refused)
            );
            return Err(UserError::Missing(message).into());
        }
        Mounted::Forbidden => {
            let message = format!(
                "{directory}: only root may mount: `sudo tollfree morsel mount {directory}`; a directory of your \
                 own in /dev/shm can hold morsels too: mkdir /dev/shm/morsels, and name it by --to \
                 or TOLLFREE_MORSELS",
                directory = directory.display()
            );
            return Err(UserError::Missing(message).into());
        }
    };
    if json {
        let refused = refused.into_iter().map(|it| Refused {
            kind: it.kind.name(),
            why: it.why,
        });
        let more = More {
            refused: Some(refused.collect()),
            mounted: Some(is_new),
            ..More::default()
        };
        let store = Store::open(&directory).map_err(wrong)?;
        report("mount", &store, &[], more)?;
        return Ok(ExitCode::SUCCESS);
    }
    let before = if is_new { "" } else { " already exists" };
    let mut text = format!(
        "{}: {}{before}\n",
        backing.point.display(),
        backing.describe()
    );
    for mount::Refused { kind, why } in &refused {
        text += &format!("  not {}: {why}\n", kind.name());
    }
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn reasons(refused: &[mount::Refused]) -> String {
    let reasons: Vec<String> = refused
        .iter()
        .map(|mount::Refused { kind, why }| format!("{}: {why}", kind.name()))
        .collect();
    reasons.join("; ")
}
