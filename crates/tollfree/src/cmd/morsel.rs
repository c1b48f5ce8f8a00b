// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel`.

mod mount;
pub mod put;
mod view;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use toll_linux::Root;
use toll_linux::morsel::pages::Mapped;
use toll_linux::morsel::{Kind, Morsel, MorselError, Store};

use crate::error::UserError;
use crate::output;

/// Where morsels are unless told otherwise; the environment may name another folder.
const FOLDER: &str = "/run/morsels";
const ENV_FOLDER: &str = "TOLLFREE_MORSELS";

/// Keep big read-only files in memory, in huge pages, for every program that maps them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  sudo tollfree morsel mount
  tollfree morsel put model.gguf
  tollfree run --morsel model.gguf -- ./app model.gguf

A morsel is a file in a folder on morselfs, tmpfs or hugetlbfs: /run/morsels, or what
TOLLFREE_MORSELS names. Any program can map it by that path. Nothing survives a reboot.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(after_help = "\
Examples:
  tollfree morsel put model.gguf
  tollfree morsel put model.gguf --name chat --limit 16G

Reads past the page cache where the file system can. A file that is there already, in
this state, is not copied again; a copy of an earlier state is removed. What was not
used for longest, and is in nobody's use, makes room; a part of memory is left to other
programs. Others may read the copy only if they can reach and read the file. Interrupted,
it leaves nothing.")]
    Put(put::Args),
    #[command(after_help = "Example:\n  tollfree morsel ls")]
    Ls(view::LsArgs),
    #[command(
        about = "Say all about some morsels",
        after_help = "Example:\n  tollfree morsel stat model.gguf"
    )]
    Stat(view::NamesArgs),
    #[command(
        about = "Seal what a program of yours made",
        after_help = "\
Example:
  tollfree morsel seal made-by-hand

For morsels that a program of yours made; `put` seals its own. On morselfs the content
is immutable for ever. tmpfs and hugetlbfs have mode bits only: the owner and root can
give themselves the right to write again."
    )]
    Seal(view::NamesArgs),
    #[command(
        about = "Remove morsels",
        after_help = "\
Example:
  tollfree morsel rm model.gguf

Programs that map it keep it; the memory is free when the last of them ends."
    )]
    Rm(view::NamesArgs),
    #[command(after_help = "\
Examples:
  sudo tollfree morsel mount
  sudo tollfree morsel mount /mnt/models --size 20G

Mounts the first of morselfs (kernels of tollfree's patch queue), tmpfs with
huge=always and hugetlbfs that this kernel has, and says why not the ones before it.
umount(8) undoes it.")]
    Mount(mount::Args),
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    match args.command {
        Command::Put(args) => put::run(args, json),
        Command::Ls(args) => view::ls(&args, json),
        Command::Stat(args) => view::stat(&args, json),
        Command::Seal(args) => view::seal(&args, json),
        Command::Rm(args) => view::rm(&args, json),
        Command::Mount(args) => mount::run(args, json),
    }
}

/// The folder that is meant where none is named.
fn default_folder() -> PathBuf {
    let named = std::env::var_os(ENV_FOLDER).filter(|value| !value.is_empty());
    named.unwrap_or_else(|| FOLDER.into()).into()
}

/// Opens the folder of morsels.
///
/// # Errors
/// [`UserError::Missing`] says how to get one.
pub fn open(folder: Option<&Path>) -> Result<Store> {
    let folder = folder.map_or_else(default_folder, Path::to_owned);
    Store::open(&folder).map_err(|error| match error {
        MorselError::NotMemory { .. } => UserError::Missing(format!(
            "{error}; as root, `tollfree morsel mount FOLDER` makes one"
        ))
        .into(),
        MorselError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            let (shown, how) = (folder.display(), how_to_make(&folder));
            UserError::Missing(format!("{shown}: there is no such folder; {how}")).into()
        }
        error => wrong(error),
    })
}

/// How to get a folder of morsels that is not there: one in memory is a mere folder.
fn how_to_make(folder: &Path) -> String {
    let shown = folder.display();
    let above = folder.ancestors().skip(1).find(|above| above.exists());
    match above.is_some_and(|above| Store::open(above).is_ok()) {
        true => format!("`mkdir -p {shown}` makes one"),
        false => format!("as root, `tollfree morsel mount {shown}` makes one"),
    }
}

/// The kind of mistake that an error is.
pub fn wrong(error: MorselError) -> anyhow::Error {
    match &error {
        MorselError::NotMemory { .. }
        | MorselError::Full { .. }
        | MorselError::Foreign { .. }
        | MorselError::Locked { .. } => UserError::Missing(error.to_string()).into(),
        MorselError::Name { .. } | MorselError::Taken { .. } => {
            UserError::Usage(error.to_string()).into()
        }
        MorselError::Unfit { .. } | MorselError::Changing(_) => {
            UserError::UnfitFile(error.to_string()).into()
        }
        MorselError::Interrupted => UserError::Interrupted.into(),
        MorselError::Io { .. } | MorselError::NoSuch(_) | MorselError::Busy(_) => error.into(),
    }
}

/// What a seal does not keep out; nothing on morselfs.
fn caveat(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Morselfs => None,
        Kind::Tmpfs | Kind::Hugetlbfs => {
            Some("sealed by mode bits only: its owner and root can make it writable again")
        }
    }
}

/// Every document of `tollfree morsel --json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    format: &'static str,
    version: u32,
    command: &'static str,
    folder: String,
    kind: &'static str,
    /// Bytes of the pages that this file system gives where it can.
    page: u64,
    /// Bytes in all morsels, and how many more fit.
    used: u64,
    available: u64,
    /// Free memory that is left to other programs.
    reserved: u64,
    /// Those that the command is about.
    morsels: Vec<Entry>,
    #[serde(flatten)]
    more: More<'a>,
}

/// What only some commands say.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
struct More<'a> {
    /// put: whether it was copied now.
    #[serde(skip_serializing_if = "Option::is_none")]
    filled: Option<bool>,
    /// put: whether the copy went past the page cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    direct: Option<bool>,
    /// put: why the copy is less readable than the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    private: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_ns: Option<u64>,
    /// put: what made room, or was out of date.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<Vec<String>>,
    /// What the seal does not guarantee.
    #[serde(skip_serializing_if = "Option::is_none")]
    caveat: Option<&'a str>,
    /// mount: what would have been better, and why it is not that.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Vec<Refused>>,
    /// mount: whether it was mounted now.
    #[serde(skip_serializing_if = "Option::is_none")]
    mounted: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Refused {
    kind: &'static str,
    why: String,
}

/// A morsel in a report.
#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    path: String,
    /// Bytes of content, and of memory.
    size: u64,
    allocated: u64,
    /// Bytes by what maps them; null where that cannot be known.
    huge: Option<u64>,
    small: Option<u64>,
    sealed: bool,
    /// The file that it is a copy of; null if it was made by hand, or is another user's.
    source: Option<String>,
    digest: Option<String>,
    /// Who may read it: the permission bits, octal.
    mode: String,
    source_is: Option<SourceIs>,
    /// Processes that map it; at least, unless all could be looked at.
    mapped_by: u64,
    mapped_by_is_exact: bool,
    /// When it was last mapped or read, seconds since 1970.
    used_at: u64,
    owner: u32,
}

/// What became of a morsel's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum SourceIs {
    Same,
    Changed,
    Gone,
}

impl Entry {
    fn new(store: &Store, morsel: &Morsel, mapped: &Mapped) -> Entry {
        let pages = store.pages(morsel);
        let text = |text: &OsString| text.to_string_lossy().into_owned();
        Entry {
            name: text(&morsel.name),
            path: morsel.path.to_string_lossy().into_owned(),
            size: morsel.size,
            allocated: morsel.allocated,
            huge: pages.map(|pages| pages.huge),
            small: pages.map(|pages| pages.small),
            sealed: morsel.sealed,
            source: morsel.source.as_ref().map(text),
            digest: morsel.digest.clone(),
            mode: format!("{:04o}", morsel.mode),
            source_is: source_is(morsel),
            mapped_by: mapped.count(morsel.device, morsel.inode),
            mapped_by_is_exact: mapped.complete,
            used_at: morsel
                .used
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |time| time.as_secs()),
            owner: morsel.owner,
        }
    }
}

fn source_is(morsel: &Morsel) -> Option<SourceIs> {
    let path = Path::new(morsel.source.as_ref()?);
    // A path that was cut is not known.
    let meta = path.is_absolute().then(|| std::fs::metadata(path))?;
    Some(match meta {
        Ok(meta) if morsel.identity.as_ref()?.may_be(&meta) => SourceIs::Same,
        Ok(_) => SourceIs::Changed,
        Err(_) => SourceIs::Gone,
    })
}

/// Prints a command's document.
fn report(command: &'static str, store: &Store, morsels: &[Morsel], more: More) -> Result<()> {
    let room = store.room(&store.list().map_err(wrong)?).map_err(wrong)?;
    let mapped = Mapped::read(&Root::system());
    output::json(&Report {
        format: "tollfree-morsel",
        version: 1,
        command,
        folder: store.folder.to_string_lossy().into_owned(),
        kind: store.backing.kind.name(),
        page: store.backing.page,
        used: room.used,
        available: room.available,
        reserved: room.reserved,
        morsels: morsels
            .iter()
            .map(|morsel| Entry::new(store, morsel, &mapped))
            .collect(),
        more,
    })
}
