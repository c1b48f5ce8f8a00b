// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel ls`, `stat`, `seal` and `rm`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use comfy_table::{ContentArrangement, Table, presets};
use toll_act::error::UserError;
use toll_act::messages;
use toll_act::morsel::{open, wrong};
use toll_linux::Root;
use toll_linux::morsel::pages::{Mapped, Pages};
use toll_linux::morsel::{Morsel, MorselError, Store};
use toll_model::numbers::{bytes, of};

use super::{Entry, More, SourceIs, caveat, image, report};
use crate::output;

/// List the morsels
#[derive(Debug, clap::Args)]
pub struct LsArgs {
    /// The directory of morsels, or a device or image with persistent ones
    pub mount: Option<PathBuf>,
}

/// The morsels that `stat` shows.
#[derive(Debug, clap::Args)]
pub struct StatArgs {
    /// Names of morsels; in an image, paths (default there: the image)
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,
    /// The directory of morsels, or a device or image with persistent ones
    #[arg(long = "in", value_name = "MOUNT")]
    mount: Option<PathBuf>,
}

/// The morsels that a command acts on.
#[derive(Debug, clap::Args)]
pub struct NamesArgs {
    /// Names of morsels; in an image, paths
    #[arg(required = true, value_name = "NAME")]
    names: Vec<OsString>,
    /// The directory of morsels; `rm`: or a device or image with persistent ones
    #[arg(long = "in", value_name = "MOUNT")]
    mount: Option<PathBuf>,
}

pub fn ls(args: &LsArgs, json: bool) -> Result<ExitCode> {
    if let Some(path) = args.mount.as_deref().filter(|path| image::is_image(path)) {
        return image::view::ls(path, json);
    }
    let store = open(args.mount.as_deref())?;
    let morsels = store.list().map_err(wrong)?;
    if json {
        report("ls", &store, &morsels, More::default())?;
        return Ok(ExitCode::SUCCESS);
    }
    let room = store.room(&morsels).map_err(wrong)?;
    let mut text = format!(
        "{} ({}): {}, {}; {} more fit\n",
        store.directory.display(),
        store.backing.describe(),
        of(morsels.len(), "morsel"),
        bytes(room.used),
        bytes(room.available),
    );
    if !morsels.is_empty() {
        text += &format!("\n{}\n", table(&store, &morsels));
    }
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn table(store: &Store, morsels: &[Morsel]) -> String {
    let mapped = Mapped::read(&Root::system());
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header([
        "name",
        "size",
        "huge",
        "sealed",
        "mapped by",
        "used",
        "source",
    ]);
    for morsel in morsels {
        let entry = Entry::new(store, morsel, &mapped);
        table.add_row([
            entry.name.clone(),
            bytes(entry.size),
            entry.huge.map_or("-".to_owned(), bytes),
            if entry.sealed { "yes" } else { "no" }.to_owned(),
            mapped_by(&entry),
            ago(entry.used_at),
            source(&entry),
        ]);
    }
    table.trim_fmt()
}

pub fn stat(args: &StatArgs, json: bool) -> Result<ExitCode> {
    if let Some(path) = args.mount.as_deref().filter(|path| image::is_image(path)) {
        return image::view::stat(path, &args.names, json);
    }
    if args.names.is_empty() {
        let what = "a directory of morsels needs names; without any, --in takes an image";
        return Err(UserError::Usage(what.to_owned()).into());
    }
    let store = open(args.mount.as_deref())?;
    let morsels = each(&args.names, |name| store.get(name))?;
    if json {
        report("stat", &store, &morsels, More::default())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mapped = Mapped::read(&Root::system());
    let entries = morsels
        .iter()
        .map(|morsel| Entry::new(&store, morsel, &mapped));
    let texts: Vec<String> = entries.map(|entry| about(&store, &entry)).collect();
    output::text(&texts.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Everything about one morsel, one line per property.
fn about(store: &Store, entry: &Entry) -> String {
    let pages = match (entry.huge, entry.small) {
        (Some(huge), Some(small)) => Pages { huge, small }.to_string(),
        _ => format!("{}, page sizes not known", bytes(entry.allocated)),
    };
    let sealed = match (entry.sealed, caveat(store.backing.kind)) {
        (false, _) => "no".to_owned(),
        (true, None) => "permanently".to_owned(),
        (true, Some(caveat)) => caveat.trim_start_matches("sealed ").to_owned(),
    };
    rows(&[
        ("name", entry.name.clone()),
        ("path", entry.path.clone()),
        ("on", store.backing.describe()),
        ("source", source(entry)),
        ("digest", entry.digest.clone().unwrap_or("-".to_owned())),
        ("readable", readable(&entry.mode, entry.owner)),
        ("size", bytes(entry.size)),
        ("memory", pages),
        ("sealed", sealed),
        ("mapped by", mapped_by(entry)),
        ("used", ago(entry.used_at)),
    ])
}

/// A line for each property; the values are in a column.
pub(super) fn rows(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
    let line = |(name, what): &(&str, String)| format!("{name:width$} {what}\n");
    rows.iter().map(line).collect()
}

pub fn seal(args: &NamesArgs, json: bool) -> Result<ExitCode> {
    let store = open(args.mount.as_deref())?;
    let morsels = each(&args.names, |name| store.seal(name))?;
    let caveat = caveat(store.backing.kind);
    if json {
        let more = More {
            caveat,
            ..More::default()
        };
        report("seal", &store, &morsels, more)?;
        return Ok(ExitCode::SUCCESS);
    }
    let said = caveat.unwrap_or("sealed permanently");
    let lines = morsels
        .iter()
        .map(|morsel| format!("{}: {said}\n", morsel.path.display()));
    output::text(&lines.collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

pub fn rm(args: &NamesArgs, json: bool) -> Result<ExitCode> {
    if let Some(path) = args.mount.as_deref().filter(|path| image::is_image(path)) {
        return image::rm::run(path, &args.names, json);
    }
    let store = open(args.mount.as_deref())?;
    // Check all names before removing the first morsel.
    each(&args.names, |name| store.get(name))?;
    let mapped = Mapped::read(&Root::system());
    let morsels = each(&args.names, |name| store.remove(name))?;
    if json {
        report(
            "rm",
            &store,
            &[],
            More {
                removed: Some(
                    morsels
                        .iter()
                        .map(|morsel| morsel.name.to_string_lossy().into_owned())
                        .collect(),
                ),
                ..More::default()
            },
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    for morsel in &morsels {
        let users = mapped.count(morsel.device, morsel.inode);
        if users > 0 {
            messages::note(format_args!(
                "{}: {} it; its memory is freed when they end",
                morsel.name.to_string_lossy(),
                match users {
                    1 => "a process still maps".to_owned(),
                    users => format!("{users} processes still map"),
                }
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Applies a function to each named morsel.
fn each(
    names: &[OsString],
    act: impl Fn(&std::ffi::OsStr) -> Result<Morsel, MorselError>,
) -> Result<Vec<Morsel>> {
    names.iter().map(|name| act(name).map_err(wrong)).collect()
}

/// Describes the readers that a mode allows: `0440: user 0 and the group`.
fn readable(mode: &str, owner: u32) -> String {
    let bits = u32::from_str_radix(mode, 8).unwrap_or(0);
    let whom = match (bits & 0o040 != 0, bits & 0o004 != 0) {
        (_, true) => "all".to_owned(),
        (true, false) => format!("user {owner} and the group"),
        (false, false) => format!("user {owner} only"),
    };
    format!("{mode}: {whom}")
}

fn source(entry: &Entry) -> String {
    let Some(source) = &entry.source else {
        return "-".to_owned();
    };
    match entry.source_is {
        Some(SourceIs::Changed) => format!("{source} (changed)"),
        Some(SourceIs::Gone) => format!("{source} (deleted)"),
        Some(SourceIs::Same) | None => source.clone(),
    }
}

fn mapped_by(entry: &Entry) -> String {
    match (entry.mapped_by, entry.mapped_by_is_exact) {
        (0, true) => "no process".to_owned(),
        (0, false) => "no process seen".to_owned(),
        (1, true) => "1 process".to_owned(),
        (processes, true) => format!("{processes} processes"),
        (processes, false) => format!("{processes} or more"),
    }
}

/// How long ago a time was: `now`, `5 min ago`.
fn ago(time: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    in_words(now.map_or(0, |now| now.as_secs()).saturating_sub(time))
}

fn in_words(seconds: u64) -> String {
    match seconds {
        0..10 => "now".to_owned(),
        10..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests;
