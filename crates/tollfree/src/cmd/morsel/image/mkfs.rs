// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel mkfs`.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, Result};
use toll_act::error::UserError;
use toll_image::layout::LEAST_PAGES;
use toll_image::make::{Template, make};
use toll_image::superblock::MAGIC;
use toll_image::{Image, Medium, survey};
use toll_model::units::parse_size;

use super::writing::time;
use super::{Document, PAGE, headline, image, open, refused};
use crate::output;

/// Make an empty image or device for persistent morsels
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The device, or the image file
    pub image: PathBuf,
    /// Create the file, with this size
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<u64>,
    /// Overwrite what it holds
    #[arg(long)]
    pub force: bool,
}

/// Bytes at the begin and at the end where other formats have their signatures.
const HEAD: u64 = 1 << 20;
const TAIL: u64 = 64 << 10;

pub fn run(args: &Args, json: bool) -> Result<ExitCode> {
    let path = &args.image;
    let mut target = match args.size {
        Some(size) => create(path, size)?,
        None => existing(path, args.force)?,
    };
    let made = format(&mut target, args.force);
    if made.is_err() && args.size.is_some() {
        // Nobody else has seen the new file.
        let _ = std::fs::remove_file(path);
    }
    made.with_context(|| path.display().to_string())?;
    report(path, &target, json)
}

fn report(path: &Path, target: &Image, json: bool) -> Result<ExitCode> {
    let survey = survey(target).map_err(|refusal| refused(path, refusal))?;
    match json {
        true => output::json(&Document::new("mkfs", path, &survey))?,
        false => output::text(&headline(path, &survey))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A new file of a size.
fn create(path: &Path, size: u64) -> Result<Image> {
    let shown = path.display();
    if size / PAGE < LEAST_PAGES {
        let least = LEAST_PAGES * PAGE / 1024;
        return Err(UserError::Usage(format!("--size: the least is {least}K")).into());
    }
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(path);
    let file = file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            UserError::Usage(format!("{shown}: exists; --size is for a new file")).into()
        }
        _ => anyhow::Error::new(error).context(shown.to_string()),
    })?;
    file.set_len(size).with_context(|| {
        let _ = std::fs::remove_file(path);
        shown.to_string()
    })?;
    image(path, file)
}

/// A device or file that holds nothing, or may be overwritten.
fn existing(path: &Path, force: bool) -> Result<Image> {
    let shown = path.display();
    if !path.exists() {
        return Err(UserError::Usage(format!("{shown}: does not exist; --size creates it")).into());
    }
    let target = open(path, true)?;
    if target.bytes() / PAGE < LEAST_PAGES {
        let (bytes, least) = (target.bytes(), LEAST_PAGES * PAGE);
        let what = format!("{shown}: is too small: {bytes} bytes; the least is {least}");
        return Err(UserError::UnfitFile(what).into());
    }
    let held = held(&target).with_context(|| shown.to_string())?;
    match held {
        Some(held) if !force => {
            let what = format!("{shown}: {held}; --force overwrites it");
            Err(UserError::UnfitFile(what).into())
        }
        _ => Ok(target),
    }
}

/// Offset and length of the begin and of the end of an image.
fn ends(target: &Image) -> [(u64, u64); 2] {
    let bytes = target.bytes();
    let (head, tail) = (HEAD.min(bytes), TAIL.min(bytes));
    [(0, head), (bytes - tail, tail)]
}

/// What an image holds.
fn held(target: &Image) -> Result<Option<&'static str>> {
    for page in 0..2 {
        if target.read(page * PAGE, MAGIC.len())? == MAGIC {
            return Ok(Some("holds persistent morsels"));
        }
    }
    for (offset, length) in ends(target) {
        let bytes = target.read(offset, length as usize)?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(Some("is not empty"));
        }
    }
    Ok(None)
}

fn format(target: &mut Image, force: bool) -> Result<()> {
    if force {
        erase(target)?;
    }
    let template = Template {
        uuid: uuid()?,
        pages: target.bytes() / PAGE,
        now: time(SystemTime::now()),
        mode: 0o755,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
    };
    Ok(make(target, &template)?)
}

/// Removes the signatures of other formats.
fn erase(target: &mut Image) -> Result<()> {
    for (offset, length) in ends(target) {
        target.store(offset, &vec![0; length as usize])?;
    }
    Ok(target.fence()?)
}

/// A random UUID (version 4).
fn uuid() -> Result<[u8; 16]> {
    let mut uuid = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut uuid));
    read.context("/dev/urandom")?;
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Ok(uuid)
}
