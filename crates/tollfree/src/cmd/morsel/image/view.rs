// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel ls` and `stat` of images.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use toll_act::error::UserError;
use toll_act::messages;
use toll_image::Survey;
use toll_linux::morsel::origin::HIDDEN;
use toll_model::names::plain;
use toll_model::numbers::bytes;

use super::listing::{Entry, Listing};
use super::{Document, headline, read};
use crate::cmd::morsel::view::rows;
use crate::output;

pub fn ls(path: &Path, json: bool) -> Result<ExitCode> {
    let (image, survey) = read(path)?;
    let entries = Listing::new(&image, &survey).all();
    if json {
        return print_json("ls", path, &survey, entries);
    }
    let mut text = headline(path, &survey);
    // The records of copies are names of them, too.
    let hidden = format!("{HIDDEN}/");
    let shown = entries.into_iter();
    let shown: Vec<Entry> = shown
        .filter(|entry| entry.path != HIDDEN && !entry.path.starts_with(&hidden))
        .collect();
    if !shown.is_empty() {
        text += &format!("\n{}\n", table(&shown));
    }
    output::text(&text)?;
    warn(path, &survey);
    Ok(ExitCode::SUCCESS)
}

/// The image as a whole, or some names in it.
pub fn stat(path: &Path, names: &[OsString], json: bool) -> Result<ExitCode> {
    let (image, survey) = read(path)?;
    let listing = Listing::new(&image, &survey);
    let entries = names.iter().map(|name| {
        let name = name.to_string_lossy();
        let missing = || UserError::Missing(format!("{}: has no {name}", path.display()));
        listing.at(&name).ok_or_else(missing)
    });
    let entries = entries.collect::<Result<Vec<Entry>, UserError>>()?;
    if json {
        return print_json("stat", path, &survey, entries);
    }
    let texts: Vec<String> = match entries.is_empty() {
        true => vec![about_image(path, &survey)],
        false => entries.iter().map(about).collect(),
    };
    output::text(&texts.join("\n"))?;
    warn(path, &survey);
    Ok(ExitCode::SUCCESS)
}

fn print_json(
    command: &'static str,
    path: &Path,
    survey: &Survey,
    entries: Vec<Entry>,
) -> Result<ExitCode> {
    let mut document = Document::new(command, path, survey);
    document.entries = Some(entries);
    output::json(&document)?;
    Ok(ExitCode::SUCCESS)
}

/// A damaged image shows what is left of it.
fn warn(path: &Path, survey: &Survey) {
    if survey.findings.is_damaged() {
        let shown = path.display();
        messages::note(format_args!(
            "{shown}: is damaged, and some of it may not be shown; `tollfree morsel fsck {shown}` lists the damage"
        ));
    }
}

fn table(entries: &[Entry]) -> String {
    let mut table = output::table(["name", "size", "memory", "mode", "links", "sealed"]);
    for entry in entries {
        let sealed = if entry.sealed { "yes" } else { "no" };
        table.add_row([
            name(entry),
            bytes(entry.size),
            bytes(entry.allocated),
            entry.mode.clone(),
            entry.links.to_string(),
            sealed.to_owned(),
        ]);
    }
    table.trim_fmt()
}

/// The path of an entry, with a mark for its type.
fn name(entry: &Entry) -> String {
    let path = plain(&entry.path);
    match (&entry.target, entry.kind) {
        (Some(target), _) => format!("{path} -> {}", plain(target)),
        (None, "directory") => format!("{path}/"),
        _ => path,
    }
}

/// Everything about one name, a line for each property.
fn about(entry: &Entry) -> String {
    let [small, large, giant] = entry.blocks;
    let seals = match entry.seals.is_empty() {
        true => "none".to_owned(),
        false => entry.seals.join(", "),
    };
    rows(&[
        ("name", name(entry)),
        ("inode", entry.inode.to_string()),
        ("type", entry.kind.to_owned()),
        ("mode", entry.mode.clone()),
        ("owner", format!("user {}, group {}", entry.uid, entry.gid)),
        ("links", entry.links.to_string()),
        ("size", bytes(entry.size)),
        ("memory", bytes(entry.allocated)),
        (
            "blocks",
            format!("{small} of 4 KiB, {large} of 2 MiB, {giant} of 1 GiB"),
        ),
        ("seals", seals),
    ])
}

fn about_image(path: &Path, survey: &Survey) -> String {
    let document = Document::new("stat", path, survey);
    rows(&[
        ("image", plain(&document.image)),
        ("uuid", document.uuid),
        ("size", bytes(document.size)),
        ("free", bytes(document.free)),
        ("inodes", document.inodes.to_string()),
        ("names", document.names.to_string()),
        ("state", super::in_words(survey).to_owned()),
    ])
}
