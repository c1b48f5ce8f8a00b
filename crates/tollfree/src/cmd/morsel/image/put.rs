// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel put` into an image or a device.
//!
//! The copy gets its names when it is complete and sealed: a crash, or a signal, leaves nothing of
//! it. Its record is that of a copy in a mounted directory, so it serves its source after a mount.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use blake3::{Hash, Hasher};
use toll_act::error::UserError;
use toll_act::morsel::wrong;
use toll_act::{messages, signals};
use toll_image::layout::{LEAF_LEVEL, PAGE, TIME_STEPS, Time, inode, pages_of, seal};
use toll_linux::morsel::origin::{FromBegin, HIDDEN, Origin, SHARED};
use toll_linux::morsel::{MorselError, Source};
use toll_model::names::plain;
use toll_model::numbers::{bytes, duration};

use super::Document;
use super::listing::{Entry, Listing};
use super::writing::Writing;
use crate::cmd::morsel::put::Args;
use crate::output;

/// What was done.
struct Done {
    /// Path of the copy in the image.
    name: String,
    filled: bool,
    removed: Vec<String>,
    private: Option<String>,
    elapsed: Duration,
}

pub fn run(path: &Path, args: &Args, json: bool) -> Result<ExitCode> {
    if args.limit.is_some() {
        let what = "--limit: is for a directory of morsels, and not for an image or device";
        return Err(UserError::Usage(what.to_owned()).into());
    }
    let source = Source::open(&args.file).map_err(wrong)?;
    let _guard = signals::watch().context("signals")?;
    let mut image = Writing::mount(path)?;
    let done = put(&mut image, &source, args.name.as_deref())?;
    let (image, survey) = image.finish()?;
    let entry = Listing::new(&image, &survey).at(&done.name);
    let entry = entry.context("the copy is missing")?;
    if json {
        let mut document = Document::new("put", path, &survey);
        document.entries = Some(vec![entry]);
        document.filled = Some(done.filled);
        document.private = done.private;
        document.elapsed_ns = Some(done.elapsed.as_nanos() as u64);
        document.removed = Some(done.removed);
        output::json(&document)?;
    } else {
        output::text(&text(path, &entry, &done))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn put(image: &mut Writing, source: &Source, asked: Option<&OsStr>) -> Result<Done> {
    let begun = Instant::now();
    let mut origin = Origin::of(source);
    let names = origin.names(asked).map_err(wrong)?;
    let user = rustix::process::geteuid().as_raw();
    let hidden = image.directory(inode::FIRST, HIDDEN, 0o755)?;
    let own = image.directory(hidden, &user.to_string(), 0o700)?;
    let there = records(image, own, |record| origin.is_current(record)).pop();
    let mut removed = Vec::new();
    let name = match there {
        Some(number) => {
            let name = choose(image, path_of(image, number, asked), &names, Some(number))?;
            share(image, number, hidden, &origin)?;
            give_name(image, number, &name)?;
            name
        }
        None => {
            removed = remove_older(image, own, &origin)?;
            let name = choose(image, None, &names, None)?;
            image.check_room(source.identity.size)?;
            let made = image.fs.unnamed(0o600);
            let number = image.done(made)?;
            let copied = copy(image, number, source, &mut origin)
                .and_then(|digest| record(image, number, own, &origin, digest))
                .and_then(|()| share(image, number, hidden, &origin))
                .and_then(|()| give_name(image, number, &name));
            // Without a name it is gone.
            let closed = image.fs.close(number);
            copied?;
            image.done(closed)?;
            name
        }
    };
    Ok(Done {
        name: name.to_string_lossy().into_owned(),
        filled: there.is_none(),
        removed,
        private: origin.readers.why_not,
        elapsed: begun.elapsed(),
    })
}

/// Inodes with records.
fn records(image: &Writing, own: u64, is_wanted: impl Fn(&OsStr) -> bool) -> Vec<u64> {
    let names = image.fs.names_of(own);
    names
        .filter(|(name, _)| is_wanted(OsStr::from_bytes(name)))
        .map(|(_, number)| number)
        .collect()
}

/// The name that a copy has in the root directory, if none is asked for.
fn path_of(image: &Writing, number: u64, asked: Option<&OsStr>) -> Option<OsString> {
    let names = image.fs.names_for(number).into_iter();
    let mut here = names.filter(|(parent, _)| *parent == inode::FIRST);
    here.find(|_| asked.is_none())
        .map(|(_, name)| OsStr::from_bytes(&name).to_owned())
}

/// The first name that is free, or the copy's own.
fn choose(
    image: &Writing,
    has: Option<OsString>,
    names: &[OsString],
    number: Option<u64>,
) -> Result<OsString> {
    let is_free = |name: &&OsString| match image.fs.lookup(inode::FIRST, name.as_bytes()) {
        Err(_) => true,
        Ok(other) => Some(other) == number,
    };
    if let Some(name) = has.as_ref().or(names.iter().find(is_free)) {
        return Ok(name.clone());
    }
    let name = plain(&names[0].to_string_lossy());
    Err(UserError::Usage(format!("{name}: exists already in {}", image.shown())).into())
}

fn give_name(image: &mut Writing, number: u64, name: &OsStr) -> Result<()> {
    if image.fs.lookup(inode::FIRST, name.as_bytes()).is_ok() {
        return Ok(());
    }
    let linked = image.fs.link(number, inode::FIRST, name.as_bytes());
    image.done(linked)
}

/// Removes copies of earlier states of the source, and returns their names.
fn remove_older(image: &mut Writing, own: u64, origin: &Origin) -> Result<Vec<String>> {
    let mut removed = Vec::new();
    for number in records(image, own, |record| origin.is_older(record)) {
        let name = path_of(image, number, None).unwrap_or_default();
        removed.push(name.to_string_lossy().into_owned());
        image.remove(number)?;
    }
    Ok(removed)
}

/// Names a copy for its user: the first of its names, and the last that is removed.
fn record(image: &mut Writing, number: u64, own: u64, origin: &Origin, digest: Hash) -> Result<()> {
    let record = origin.record(digest);
    let linked = image.fs.link(number, own, record.as_bytes());
    image.done(linked)
}

/// Names root's copy for other users, if they may read it.
fn share(image: &mut Writing, number: u64, hidden: u64, origin: &Origin) -> Result<()> {
    let is_shared = origin.readers.group || origin.readers.others;
    if !is_shared || !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let shared = image.directory(hidden, SHARED, 0o711)?;
    let key = origin.key();
    match image.fs.lookup(shared, key.as_bytes()) {
        Ok(other) if other == number => return Ok(()),
        Ok(other) => image.remove(other)?,
        Err(_) => {}
    }
    let linked = image.fs.link(number, shared, key.as_bytes());
    image.done(linked)
}

/// Fills and seals a file that has no name yet. Returns the digest of its content.
fn copy(image: &mut Writing, number: u64, source: &Source, origin: &mut Origin) -> Result<Hash> {
    let identity = &source.identity;
    let mut reading = Reading::of(source);
    let filled = fill(image, number, identity.size, &mut reading);
    if signals::interrupted().is_some() {
        return Err(UserError::Interrupted.into());
    }
    filled?;
    if reading.from.get_ref().at != identity.size {
        return Err(wrong(MorselError::Changing(source.path.clone())));
    }
    let digest = reading.hasher.finalize();
    origin.check(digest).map_err(wrong)?;
    let group = match origin.readers.group && !origin.readers.others {
        true => origin.group().with_context(|| shown(&source.path))?,
        false => rustix::process::getegid().as_raw(),
    };
    let user = rustix::process::geteuid().as_raw();
    let modified = Time {
        seconds: identity.seconds,
        steps: u64::from(identity.nanoseconds) / (1_000_000_000 / TIME_STEPS),
    };
    let fs = &mut image.fs;
    let sealed = fs
        .chown(number, user, group)
        .and_then(|()| fs.chmod(number, origin.readers.mode() as u16))
        .and_then(|()| fs.utime(number, modified))
        .and_then(|()| fs.seal(number, seal::ALL));
    image.done(sealed)?;
    Ok(digest)
}

/// Fills a file with the largest blocks that it and the image have room for.
fn fill(image: &mut Writing, number: u64, size: u64, reading: &mut Reading) -> Result<()> {
    let sized = image.fs.truncate(number, size);
    image.done(sized)?;
    let pages = size.div_ceil(PAGE);
    let mut index = 0;
    while index < pages {
        let fits = |level: &u8| {
            let count = pages_of(*level);
            index % count == 0
                && index + count <= pages
                && image.fs.owned().free_block(count).is_some()
        };
        let level = (1..=LEAF_LEVEL).rev().find(fits).unwrap_or(0);
        let filled = image.fs.fill(number, index, level, reading);
        image.done(filled)?;
        index += pages_of(level);
    }
    Ok(())
}

/// A source that is read once, with a progress line on a terminal. A signal ends it.
struct Reading<'a> {
    from: io::Take<FromBegin<'a>>,
    hasher: Hasher,
    bar: messages::Bytes,
}

impl<'a> Reading<'a> {
    fn of(source: &'a Source) -> Reading<'a> {
        let name = source.path.file_name().unwrap_or_default();
        let size = source.identity.size;
        Reading {
            from: FromBegin::of(&source.file).take(size),
            hasher: Hasher::new(),
            bar: messages::progress_bytes(&name.to_string_lossy(), size),
        }
    }
}

impl Read for Reading<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if signals::interrupted().is_some() {
            return Err(io::Error::other("interrupted"));
        }
        let got = self.from.read(buffer)?;
        self.hasher.update(&buffer[..got]);
        self.bar.inc(got as u64);
        Ok(got)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn text(path: &Path, entry: &Entry, done: &Done) -> String {
    let shown = plain(&format!("{}: {}", path.display(), entry.path));
    if !done.filled {
        return format!("{shown}: already exists\n");
    }
    let [small, large, giant] = entry.blocks;
    let rate = entry.size as f64 / done.elapsed.as_secs_f64().max(1e-9);
    let mut text = format!(
        "{shown}: {} in {} ({}/s)\n  blocks     {small} of 4 KiB, {large} of 2 MiB, {giant} of 1 GiB\n",
        bytes(entry.size),
        duration(done.elapsed.as_nanos() as f64),
        bytes(rate as u64),
    );
    for name in &done.removed {
        text += &format!("  removed    {} (out of date)\n", plain(name));
    }
    if let Some(why) = &done.private {
        text += &format!("  private    it has fewer readers than the file: {why}\n");
    }
    text
}
