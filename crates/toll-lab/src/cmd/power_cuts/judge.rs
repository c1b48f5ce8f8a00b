// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the guest does, and what may be there after a power cut.

use serde::Serialize;
use toll_image::{Severity, Source, Survey, survey};

/// The files: two that are changed offline, and two by the kernel. `tollfree morsel put` leaves files
/// alone that it has not made.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Begins each line of the console that is the guest's own.
const MARK: &str = "power-cuts:";

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

/// The files of the range, as far as the guest told.
#[derive(Debug, Default)]
pub struct Files {
    files: [File; NAMES.len()],
    /// The last version of all.
    last: u64,
}

/// Bytes of a version.
fn size(version: u64) -> u64 {
    version * 3_238_871 % 3_000_000 + 1
}

fn content(name: &str, version: u64) -> Vec<u8> {
    let line = format!("{name} {version}\n");
    line.bytes().cycle().take(size(version) as usize).collect()
}

impl Files {
    /// Mounts the range and reads all files; then makes new versions of them, and removes some, until
    /// the power is cut.
    pub fn script(&self, how: How, plant: Option<&str>) -> String {
        let options = match how {
            How::Mounted => "",
            How::Offline => "ro,",
        };
        let bug = plant.map_or_else(String::new, |name| {
            format!("echo {name} > /sys/kernel/mm/morsel/plant || say bad plant; ")
        });
        let work = match how {
            How::Mounted => format!("persist /m {} || say bad persist", self.last + 1),
            How::Offline => format!("umount /m; {}", self.offline()),
        };
        format!(
            "say() {{ echo \"{MARK} $*\" > /dev/console; }}; \
             {bug}mkdir -p /m; mount -t morselfs -o {options}pmem=/dev/pmem0 none /m || say bad mount; \
             for f in /m/[a-d]; do if [ -e $f ] && [ $(uniq $f | wc -l) -gt 2 ]; then say bad $f; fi; \
             done; {work}"
        )
    }

    fn offline(&self) -> String {
        let next = self.last + 1;
        format!(
            "n={next}; while :; do \
             if [ $((n % 2)) = 0 ]; then f=a; else f=b; fi; \
             if [ $((n % 7)) = 0 ]; then say begin $f 0; \
             tollfree morsel rm --in /dev/pmem0 $f > /dev/null || [ $? = 4 ] || say bad rm; \
             say done $f 0; \
             else yes \"$f $n\" | head -c $((n * 3238871 % 3000000 + 1)) > /tmp/$f; say begin $f $n; \
             tollfree morsel put /tmp/$f --to /dev/pmem0 > /dev/null || say bad put; \
             say done $f $n; fi; \
             n=$((n + 1)); done"
        )
    }

    /// Notes what the guest told on its console.
    pub fn note(&mut self, console: &str, tally: &mut Tally) -> Result<(), String> {
        for line in console.lines().filter_map(|line| line.split_once(MARK)) {
            let words: Vec<&str> = line.1.split_whitespace().collect();
            match words[..] {
                ["begin", name, version] => self.begin(name, version),
                ["done", name, version] => {
                    tally.done += 1;
                    self.end(name, version)
                }
                ["bad", ..] => return Err(format!("the guest reports: {}", words.join(" "))),
                // The last line is cut, too.
                _ => {}
            }
        }
        Ok(())
    }

    fn file(&mut self, name: &str) -> Option<&mut File> {
        let at = NAMES.iter().position(|other| *other == name)?;
        Some(&mut self.files[at])
    }

    fn begin(&mut self, name: &str, version: &str) {
        let Ok(version) = version.parse() else { return };
        self.last = self.last.max(version);
        if let Some(file) = self.file(name) {
            file.begun = Some(version);
        }
    }

    /// A number that is cut is not that of the operation.
    fn end(&mut self, name: &str, version: &str) {
        let Ok(version) = version.parse() else { return };
        if let Some(file) = self.file(name).filter(|file| file.begun == Some(version)) {
            *file = File {
                done: version,
                begun: None,
            };
        }
    }

    /// Checks what a cut has left, and takes it as what is there.
    pub fn check(&mut self, image: &impl Source, tally: &mut Tally) -> Result<(), String> {
        let found = survey(image).map_err(|error| error.to_string())?;
        let damage = found.findings.list.iter();
        let mut damage = damage.filter(|it| it.severity == Severity::Damage);
        if let Some(damage) = damage.next() {
            return Err(format!("damage at {:#x}: {}", damage.offset, damage.what));
        }
        tally.interrupted += u64::from(self.files.iter().any(|file| file.begun.is_some()));
        for (name, file) in NAMES.iter().zip(&mut self.files) {
            let version = version(image, &found, name, file)?;
            tally.files += u64::from(version != 0);
            *file = File {
                done: version,
                begun: None,
            };
        }
        Ok(())
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

#[cfg(test)]
mod tests;
