// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel`.

mod image;
mod mount;
mod put;
mod view;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use toll_act::morsel::wrong;
use toll_linux::Root;
use toll_linux::morsel::pages::Mapped;
use toll_linux::morsel::{Kind, Morsel, Store};

use crate::output;

/// Keep big read-only files in memory, in huge pages, for every program that maps them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  sudo tollfree morsel mount
  tollfree morsel put model.gguf
  tollfree run --morsel model.gguf -- ./app model.gguf

A morsel is a file in a directory on morselfs, tmpfs or hugetlbfs: /run/morsels, or the
directory in TOLLFREE_MORSELS. Any program can map it by that path. A reboot removes it.")]
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
  sudo tollfree morsel put model.gguf --to /dev/pmem0

Bypasses the page cache where the file system allows it. An up-to-date copy is kept; an
outdated copy is replaced. To make room, the morsel that was not used for longest and is not
in use is removed; a part of memory is left to other programs. Others may read the copy only
if they can reach and read the file. If interrupted, it leaves no file behind.

In persistent memory it is there after a reboot: `run --morsel` serves it where the device is
mounted (ro,pmem=DEVICE), if TOLLFREE_MORSELS names that directory.")]
    Put(put::Args),
    #[command(after_help = "\
Examples:
  tollfree morsel ls
  tollfree morsel ls /dev/pmem0")]
    Ls(view::LsArgs),
    #[command(
        about = "Show the details of morsels, or of an image",
        after_help = "\
Examples:
  tollfree morsel stat model.gguf
  tollfree morsel stat --in morsels.img
  tollfree morsel stat --in morsels.img models/model.gguf"
    )]
    Stat(view::StatArgs),
    #[command(
        about = "Seal morsels that your own program made",
        after_help = "\
Example:
  tollfree morsel seal made-by-hand

For morsels that your own program made; `put` seals the ones it copies. On morselfs the
content is immutable permanently. tmpfs and hugetlbfs have mode bits only: the owner and
root can make the file writable again."
    )]
    Seal(view::NamesArgs),
    #[command(
        about = "Remove morsels",
        after_help = "\
Examples:
  tollfree morsel rm model.gguf
  sudo tollfree morsel rm --in /dev/pmem0 model.gguf

Programs that map it keep it; the memory is freed when the last of them ends."
    )]
    Rm(view::NamesArgs),
    #[command(after_help = "\
Examples:
  sudo tollfree morsel mount
  sudo tollfree morsel mount /mnt/models --size 20G

Mounts the first that this kernel supports of morselfs (tollfree's kernel patches), tmpfs
with huge=always and hugetlbfs, and prints why the ones before it were not used. umount(8)
unmounts it.")]
    Mount(mount::Args),
    #[command(after_help = "\
Examples:
  tollfree morsel mkfs morsels.img --size 1G
  sudo tollfree morsel mkfs /dev/pmem0

For persistent memory, which the queue's kernel mounts (pmem=DEVICE); `put --to` puts files into
one that is not mounted. What is not empty is refused without --force; a device that is in use is refused
in any case.")]
    Mkfs(image::mkfs::Args),
    #[command(after_help = "\
Examples:
  tollfree morsel fsck morsels.img
  sudo tollfree morsel fsck /dev/pmem0 --repair

What a crash interrupted is no damage: the next mount completes it. Exits with 3 if there is
damage, or if some is left after --repair, which never changes a sealed morsel.")]
    Fsck(image::fsck::Args),
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    match args.command {
        Command::Put(args) => put::run(args, json),
        Command::Ls(args) => view::ls(&args, json),
        Command::Stat(args) => view::stat(&args, json),
        Command::Seal(args) => view::seal(&args, json),
        Command::Rm(args) => view::rm(&args, json),
        Command::Mount(args) => mount::run(args, json),
        Command::Mkfs(args) => image::mkfs::run(&args, json),
        Command::Fsck(args) => image::fsck::run(&args, json),
    }
}

/// What the seal does not prevent; `None` on morselfs.
fn caveat(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Morselfs => None,
        Kind::Tmpfs | Kind::Hugetlbfs => {
            Some("sealed by mode bits only: the owner and root can make it writable again")
        }
    }
}

/// The JSON document of every `tollfree morsel` command.
#[derive(Debug, Serialize)]
struct Report<'a> {
    format: &'static str,
    version: u32,
    command: &'static str,
    directory: String,
    kind: &'static str,
    /// The page size in bytes that this file system uses where possible.
    page: u64,
    /// Bytes in all morsels, and how many more fit.
    used: u64,
    available: u64,
    /// Free memory in bytes that is reserved for other programs.
    reserved: u64,
    /// The morsels that the command names or lists.
    morsels: Vec<Entry>,
    #[serde(flatten)]
    more: More<'a>,
}

/// Fields of only some commands.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
struct More<'a> {
    /// put: whether this command made the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    filled: Option<bool>,
    /// put: whether the copy used direct I/O, bypassing the page cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    direct: Option<bool>,
    /// put: why the copy has fewer readers than the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    private: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_ns: Option<u64>,
    /// put: morsels removed to make room, or because they were out of date.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<Vec<String>>,
    /// What the seal does not guarantee.
    #[serde(skip_serializing_if = "Option::is_none")]
    caveat: Option<&'a str>,
    /// mount: the preferred file systems that were not used, with the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Vec<Refused>>,
    /// mount: whether this command mounted it.
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
    /// Bytes of content, and bytes of memory.
    size: u64,
    allocated: u64,
    /// Bytes by page size; null if unknown.
    huge: Option<u64>,
    small: Option<u64>,
    sealed: bool,
    /// The file that it is a copy of; null if it was made by hand or belongs to another user.
    source: Option<String>,
    digest: Option<String>,
    /// The permission bits, octal.
    mode: String,
    source_is: Option<SourceIs>,
    /// Processes that map it; a lower bound unless all could be read.
    mapped_by: u64,
    mapped_by_is_exact: bool,
    /// When it was last mapped or read, seconds since 1970.
    used_at: u64,
    owner: u32,
}

/// The state of a morsel's source.
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
    // The stored path may be truncated.
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
        directory: store.directory.to_string_lossy().into_owned(),
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
