// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that guests change in persistent memory, and what may be there after a crash.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use toll_image::word::number_at;
use toll_image::{Severity, Source, Survey, survey};

/// Size of the persistent memory, MiB.
pub const PMEM_MIB: u32 = 32;

/// The sealed files: two that are changed offline, and two by the kernel. `tollfree morsel put` leaves
/// files alone that it has not made.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// The file that stays open: a number in each of two pages, both of the last version of it. The kernel
/// changes it.
const LOG: &str = "l";
/// Places of its numbers.
const LOG_PLACES: [usize; 2] = [0, 4096];
/// Begins each line of the console that is the guest's own.
const MARK: &str = "power-cuts:";

/// The range of /dev/pmem0 in the file behind it.
///
/// # Errors
/// The file cannot be read, or has no such range.
pub fn range(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = fs::read(path)?;
    let start = start_of_range(&bytes)?;
    Ok(bytes[start..].to_vec())
}

/// Where the range of /dev/pmem0 starts: Linux has put a header before it, with the description of the
/// namespace (struct nd_pfn_sb).
///
/// # Errors
/// There is no header, or it is wrong.
pub fn start_of_range(bytes: &[u8]) -> io::Result<usize> {
    const SIGNATURE: &[u8] = b"NVDIMM_PFN_INFO";
    const HEADER: usize = 4096;
    /// The place of the start in the namespace.
    const START: usize = HEADER + 56;
    if !bytes[HEADER..].starts_with(SIGNATURE) {
        return Err(io::Error::other("the memory has no header"));
    }
    let start = number_at(bytes, START);
    match start < bytes.len() as u64 {
        true => Ok(start as usize),
        false => Err(io::Error::other("the header of the memory is wrong")),
    }
}

/// How a guest changes files.
#[derive(Debug, Clone, Copy)]
pub enum How {
    /// By its kernel, which has mounted the range for writing.
    Mounted,
    /// By `tollfree morsel`.
    Offline,
}

impl How {
    /// That of a cut: in turn.
    pub fn of(number: u32) -> How {
        match number % 2 {
            0 => How::Mounted,
            _ => How::Offline,
        }
    }
}

/// What was counted.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Operations that were done.
    pub done: u64,
    /// Cuts in the middle of an operation.
    pub interrupted: u64,
    /// Files that were read after a cut.
    pub files: u64,
}

/// A file: its version, 0 if there is none.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct File {
    done: u64,
    /// The version that an operation makes.
    begun: Option<u64>,
}

/// The file that stays open.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Log {
    numbers: [u64; LOG_PLACES.len()],
    begun: Option<u64>,
}

/// The files of the range, as far as the guest told.
#[derive(Debug, Default, Clone)]
pub struct Files {
    files: [File; NAMES.len()],
    log: Log,
    /// The last version of all.
    last: u64,
}

/// [`size`] of `n`, for a shell.
const SIZE: &str = "n * 3238871 % (n % 5 ? 100000 : 3000000) + 1";

/// Bytes of a version. lab/guest/persist.c has the same.
fn size(version: u64) -> u64 {
    let most = if version % 5 == 0 { 3_000_000 } else { 100_000 };
    version * 3_238_871 % most + 1
}

fn content(name: &str, version: u64) -> Vec<u8> {
    let line = format!("{name} {version}\n");
    line.bytes().cycle().take(size(version) as usize).collect()
}

/// The start of each script: mounts the range, and reads all sealed files.
fn reader(options: &str, plant: Option<&str>) -> String {
    let bug = plant.map_or_else(String::new, |name| {
        format!("echo {name} > /sys/kernel/mm/morsel/plant || say bad plant; ")
    });
    format!(
        "say() {{ echo \"{MARK} $*\" > /dev/console; }}; \
         {bug}mkdir -p /m; mount -t morselfs -o {options}pmem=/dev/pmem0 none /m || say bad mount; \
         for f in /m/[a-d]; do if [ -e $f ] && [ $(uniq $f | wc -l) -gt 2 ]; then say bad $f; fi; \
         done; "
    )
}

impl Files {
    /// Mounts the range and reads all files; then makes new versions of them, and removes some, until
    /// the power is cut.
    pub fn script(&self, how: How, plant: Option<&str>) -> String {
        let next = self.last + 1;
        match how {
            How::Mounted => format!("{}persist /m {next} || say bad persist", reader("", plant)),
            How::Offline => format!("{}umount /m; {}", reader("ro,", plant), self.offline(next)),
        }
    }

    /// Changes the files of a new range until this version, by the kernel.
    pub fn script_to(last: u32, plant: Option<&str>) -> String {
        let reader = reader("", plant);
        format!("{reader}persist /m 1 {last} && umount /m || say bad persist")
    }

    /// Mounts the range for writing, reads all files, and unmounts it.
    pub fn reading() -> String {
        format!("{}umount /m", reader("", None))
    }

    fn offline(&self, next: u64) -> String {
        format!(
            "n={next}; while :; do \
             if [ $((n % 2)) = 0 ]; then f=a; else f=b; fi; \
             if [ $((n % 7)) = 0 ]; then say begin $f 0; \
             tollfree morsel rm --in /dev/pmem0 $f > /dev/null || [ $? = 4 ] || say bad rm; \
             say done $f 0; \
             else yes \"$f $n\" | head -c $(({SIZE})) > /tmp/$f; say begin $f $n; \
             tollfree morsel put /tmp/$f --to /dev/pmem0 > /dev/null || say bad put; \
             say done $f $n; fi; \
             n=$((n + 1)); done"
        )
    }

    /// Notes what the guest told on its console.
    ///
    /// # Errors
    /// What the guest found wrong itself.
    pub fn note(&mut self, console: &str, tally: &mut Tally) -> Result<(), String> {
        for line in console.lines().filter_map(|line| line.split_once(MARK)) {
            let words: Vec<&str> = line.1.split_whitespace().collect();
            // The last line is cut, too: a number that is cut is not that of the operation.
            match words[..] {
                ["begin", name, version] => self.step(true, name, version.parse().ok()),
                ["done", name, version] => {
                    tally.done += 1;
                    self.step(false, name, version.parse().ok());
                }
                ["bad", ..] => return Err(format!("the guest reports: {}", words.join(" "))),
                _ => {}
            }
        }
        Ok(())
    }

    /// Notes that the operation begins, or is done, that makes a version of a file.
    pub fn step(&mut self, begins: bool, name: &str, version: Option<u64>) {
        let Some(version) = version else { return };
        if begins {
            self.last = self.last.max(version);
        }
        if name == LOG {
            match begins {
                true => self.log.begun = Some(version),
                false if self.log.begun == Some(version) => self.log = Log::done(version),
                false => {}
            }
        } else if let Some(at) = NAMES.iter().position(|other| *other == name) {
            let file = &mut self.files[at];
            match begins {
                true => file.begun = Some(version),
                false if file.begun == Some(version) => *file = File::done(version),
                false => {}
            }
        }
    }

    /// Checks what a cut has left, and takes it as what is there.
    ///
    /// # Errors
    /// What is lost or damaged.
    pub fn check(&mut self, image: &impl Source, tally: &mut Tally) -> Result<(), String> {
        let found = survey(image).map_err(|error| error.to_string())?;
        let damage = found.findings.list.iter();
        let mut damage = damage.filter(|it| it.severity == Severity::Damage);
        if let Some(damage) = damage.next() {
            return Err(format!("damage at {:#x}: {}", damage.offset, damage.what));
        }
        let is_interrupted = self.files.iter().any(|file| file.begun.is_some());
        tally.interrupted += u64::from(is_interrupted || self.log.begun.is_some());
        tally.files += self.check_files(image, &found)?;
        Ok(())
    }

    /// As [`Files::check`], of a range without damage. Returns the number of sealed files.
    ///
    /// # Errors
    /// What is lost.
    pub fn check_files(&mut self, image: &impl Source, found: &Survey) -> Result<u64, String> {
        let mut files = 0;
        for (name, file) in NAMES.iter().zip(&mut self.files) {
            let version = version(image, found, name, file)?;
            files += u64::from(version != 0);
            *file = File::done(version);
        }
        self.log = Log {
            numbers: numbers(image, found, &self.log)?,
            begun: None,
        };
        Ok(files)
    }
}

impl File {
    fn done(version: u64) -> File {
        File {
            done: version,
            begun: None,
        }
    }
}

impl Log {
    fn done(version: u64) -> Log {
        Log {
            numbers: [version; LOG_PLACES.len()],
            begun: None,
        }
    }
}

/// The version of a file that is there.
fn version(image: &impl Source, found: &Survey, name: &str, file: &File) -> Result<u64, String> {
    let may_be =
        |version| version == file.done || file.begun.is_some_and(|it| [0, it].contains(&version));
    let Some(number) = found.lookup(name.as_bytes()) else {
        return may_be(0)
            .then_some(0)
            .ok_or_else(|| format!("{name} {} is lost", file.done));
    };
    let bytes = found.content(image, number);
    let bytes = bytes.map_err(|error| error.to_string())?;
    let is = |version: &u64| *version != 0 && bytes == content(name, *version);
    let known = [Some(file.done), file.begun].into_iter().flatten();
    let version = known.filter(is).find(|version| may_be(*version));
    let inode = &found.inodes[&number];
    match version {
        _ if !inode.root.is_sealed() => Err(format!("{name} is not sealed")),
        Some(version) => Ok(version),
        None => Err(format!(
            "{name} has {} bytes of neither version: {:?}",
            bytes.len(),
            String::from_utf8_lossy(&bytes[..bytes.len().min(16)])
        )),
    }
}

/// The numbers of the file that stays open: each is the last one that was made persistent, or the one
/// that is being written.
fn numbers(
    image: &impl Source,
    found: &Survey,
    log: &Log,
) -> Result<[u64; LOG_PLACES.len()], String> {
    let bytes = match found.lookup(LOG.as_bytes()) {
        Some(number) => found.content(image, number),
        None => Ok(Vec::new()),
    };
    let mut bytes = bytes.map_err(|error| error.to_string())?;
    // What lies behind the end is a hole.
    bytes.resize(bytes.len().max(2 * 4096), 0);
    let found = LOG_PLACES.map(|at| number_at(&bytes, at));
    for at in LOG_PLACES {
        bytes[at..at + 8].fill(0);
    }
    if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
        return Err(format!("{LOG} has {:#x} at byte {at}, not 0", bytes[at]));
    }
    let may_be = |(found, known): (u64, u64)| found == known || log.begun == Some(found);
    match found.into_iter().zip(log.numbers).all(may_be) {
        true => Ok(found),
        false => Err(format!(
            "{LOG} has the numbers {found:?}, not {:?}{}",
            log.numbers,
            log.begun.map_or(String::new(), |it| format!(" or {it}"))
        )),
    }
}

#[cfg(test)]
pub mod tests;
