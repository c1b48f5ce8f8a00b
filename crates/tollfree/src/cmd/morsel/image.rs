// SPDX-License-Identifier: MIT OR Apache-2.0
//! Persistent morsels, offline: on devices of persistent memory, and on images of them.

pub mod fsck;
mod listing;
pub mod mkfs;
pub mod put;
pub mod rm;
pub mod view;
mod writing;

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use toll_act::error::UserError;
use toll_image::superblock::uuid_text;
use toll_image::{Finding, Image, Refusal, Severity, Survey, survey};
use toll_model::names::plain;
use toll_model::numbers::bytes;

use listing::Entry;

const PAGE: u64 = toll_image::layout::PAGE;

/// Whether a path is a file or a block device, and so no directory of morsels.
pub fn is_image(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| is_fit(&meta))
}

fn is_fit(meta: &Metadata) -> bool {
    meta.is_file() || meta.file_type().is_block_device()
}

/// Opens an image or a device. A device that is in use is refused.
fn open(path: &Path, writes: bool) -> Result<Image> {
    let shown = path.display();
    let meta = std::fs::metadata(path).with_context(|| shown.to_string())?;
    if !is_fit(&meta) {
        let what = format!("{shown}: is neither a file nor a block device");
        return Err(UserError::UnfitFile(what).into());
    }
    let mut options = OpenOptions::new();
    options.read(true).write(writes);
    if meta.file_type().is_block_device() {
        options.custom_flags(libc::O_EXCL);
    }
    let file = options.open(path).map_err(|error| in_use(path, error))?;
    image(path, file)
}

fn image(path: &Path, file: File) -> Result<Image> {
    Image::new(file).with_context(|| path.display().to_string())
}

fn in_use(path: &Path, error: io::Error) -> anyhow::Error {
    let shown = path.display();
    match error.raw_os_error() {
        Some(libc::EBUSY) => {
            UserError::Missing(format!("{shown}: is in use: unmount it first")).into()
        }
        _ => anyhow::Error::new(error).context(shown.to_string()),
    }
}

/// An image that is not what it should be is the user's error; one that cannot be read is not.
fn refused(path: &Path, refusal: Refusal) -> anyhow::Error {
    let shown = path.display();
    match refusal {
        Refusal::Io(error) => anyhow::Error::new(error).context(shown.to_string()),
        refusal => UserError::UnfitFile(format!("{shown}: {refusal}")).into(),
    }
}

fn read(path: &Path) -> Result<(Image, Survey)> {
    let image = open(path, false)?;
    let found = survey(&image).map_err(|refusal| refused(path, refusal))?;
    Ok((image, found))
}

/// The JSON document of these commands.
#[derive(Debug, Serialize)]
struct Document {
    format: &'static str,
    version: u32,
    command: &'static str,
    image: String,
    uuid: String,
    /// Bytes of the range, and those that are free.
    size: u64,
    free: u64,
    state: &'static str,
    inodes: usize,
    names: usize,
    findings: Vec<Found>,
    /// Findings beyond those.
    more_findings: u64,
    /// fsck: what was repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    repaired: Option<Vec<Found>>,
    /// ls and stat: what it holds; put: the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<Entry>>,
    /// put: whether this command made the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    filled: Option<bool>,
    /// put: why the copy has fewer readers than the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    private: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_ns: Option<u64>,
    /// put: copies of earlier states of the file; rm: the names of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<Vec<String>>,
}

/// A finding.
#[derive(Debug, Serialize)]
struct Found {
    severity: &'static str,
    offset: u64,
    inode: Option<u64>,
    what: &'static str,
    /// Whether a repair ends it.
    repairable: bool,
}

impl From<&Finding> for Found {
    fn from(finding: &Finding) -> Found {
        Found {
            severity: match finding.severity {
                Severity::Leftover => "leftover",
                Severity::Damage => "damage",
            },
            offset: finding.offset,
            inode: finding.inode,
            what: finding.what,
            repairable: finding.fix.is_some(),
        }
    }
}

fn found(list: &[Finding]) -> Vec<Found> {
    list.iter().map(Found::from).collect()
}

impl Document {
    fn new(command: &'static str, path: &Path, survey: &Survey) -> Document {
        let findings = &survey.findings;
        Document {
            format: "tollfree-morsel-image",
            version: 1,
            command,
            image: path.to_string_lossy().into_owned(),
            uuid: uuid_text(&survey.superblock.uuid),
            size: survey.superblock.pages * PAGE,
            free: survey.free() * PAGE,
            state: state(survey),
            inodes: survey.inodes.len(),
            names: survey.names.len(),
            findings: found(&findings.list),
            more_findings: findings.more,
            repaired: None,
            entries: None,
            filled: None,
            private: None,
            elapsed_ns: None,
            removed: None,
        }
    }
}

/// The state of an image in one word.
fn state(survey: &Survey) -> &'static str {
    match survey.findings.is_damaged() {
        true => "damaged",
        false if survey.findings.is_empty() => "whole",
        false => "leftovers",
    }
}

/// The first line of the text of each command.
fn headline(path: &Path, survey: &Survey) -> String {
    let names = toll_model::numbers::of(survey.names.len(), "name");
    let size = bytes(survey.superblock.pages * PAGE);
    let free = bytes(survey.free() * PAGE);
    let path = plain(&path.to_string_lossy());
    format!(
        "{path}: {size}, {free} free, {names}; {}\n",
        in_words(survey)
    )
}

fn in_words(survey: &Survey) -> &'static str {
    match state(survey) {
        "damaged" => "damaged",
        "whole" => "whole",
        _ => "whole, after what the next mount completes",
    }
}
