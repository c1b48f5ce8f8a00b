// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serves a program's mappings of large files from morsels: `tollfree run --morsel`.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::mem::{offset_of, size_of};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use tempfile::TempDir;
use toll_linux::morsel::{Kind, Morsel, Source, Store};
use toll_model::PAGE;
use toll_model::wire::{SERVED_MAGIC, SERVED_PATH, Served, ServedHeader};

use crate::error::{NO_DIRECTORY, UserError};
use crate::executable::Executable;
use crate::messages;
use crate::morsel::{WAIT, fill, open, wrong};
use crate::target::Launch;

/// The files that a program is served from memory.
#[derive(Debug)]
pub struct Serving {
    files: Vec<Serve>,
    /// A private directory with the morsel file. `None`: there is nothing to serve.
    directory: Option<TempDir>,
}

/// One served file.
#[derive(Debug)]
struct Serve {
    source: Source,
    /// The morsel, held open so that it counts as used; or why there is none.
    from: Result<Held, String>,
}

#[derive(Debug)]
struct Held {
    morsel: Morsel,
    store: Store,
    filled: bool,
    _file: File,
}

/// How a file was served, as `run --summary` writes it.
#[derive(Debug, Clone, Serialize)]
pub struct ServedFile {
    pub file: String,
    /// The path of its morsel; null if there is none.
    pub morsel: Option<String>,
    /// The file system of the morsel.
    pub kind: Option<&'static str>,
    /// Whether the morsel was filled for this run.
    pub filled: bool,
    /// Mappings that were served from the morsel, and their bytes.
    pub mappings: u64,
    pub bytes: u64,
    /// Mappings that still use the file: writable ones, for example.
    pub left: u64,
    /// Mappings of this file or others that could not be checked, because the program had confined
    /// itself (seccomp) before.
    pub confined: u64,
    /// Why there is no morsel.
    pub why_not: Option<String>,
}

impl Serving {
    /// Finds or fills the morsels of `files` for a program.
    ///
    /// # Errors
    /// A file that cannot be read or served at all, and an interruption. A failure that only
    /// prevents the use of a morsel is a note.
    pub fn new(files: &[PathBuf], mount: Option<&Path>, command: &[OsString]) -> Result<Serving> {
        let mut serving = Serving {
            files: Vec::new(),
            directory: None,
        };
        if files.is_empty() {
            return Ok(serving);
        }
        let sources: Vec<Source> = files
            .iter()
            .map(|file| Source::open(file).map_err(wrong))
            .collect::<Result<_>>()?;
        let executable = Executable::of(command)?;
        let obstacle = executable.obstacle.map(|obstacle| {
            let path = executable.path.display();
            format!("{path} does not load the preload library: {obstacle}")
        });
        for source in sources {
            // The file was named twice, or by two names.
            if serving
                .files
                .iter()
                .any(|it| it.source.identity == source.identity)
            {
                continue;
            }
            let from = match &obstacle {
                Some(obstacle) => Err(obstacle.clone()),
                None => match Held::new(&source, mount) {
                    Err(error) if is_interruption(&error) => return Err(error),
                    result => result.map_err(|error| format!("{error:#}")),
                },
            };
            serving.files.push(Serve { source, from });
        }
        if serving.morsels().next().is_some() {
            serving.write()?;
        }
        Ok(serving)
    }

    /// Writes the morsel file.
    fn write(&mut self) -> Result<()> {
        let directory = tempfile::Builder::new().prefix("tollfree-").tempdir();
        self.directory = Some(directory.context(NO_DIRECTORY)?);
        match self.path() {
            Some(path) => {
                fs::write(&path, self.to_bytes()).with_context(|| format!("{}", path.display()))
            }
            None => Ok(()),
        }
    }

    fn path(&self) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.path().join("served"))
    }

    /// Prints which files are not served, and why.
    pub fn say_notes(&self) {
        for serve in &self.files {
            if let Err(why) = &serve.from {
                let file = serve.source.path.display();
                messages::note(format_args!("{file} is not served from a morsel: {why}"));
            }
        }
    }

    /// Adds what the program needs to a launch.
    pub fn prepare(&self, launch: Launch) -> Launch {
        match self.path() {
            Some(path) => launch.served(&path),
            None => launch,
        }
    }

    fn morsels(&self) -> impl Iterator<Item = (&Source, &Held)> {
        let files = self.files.iter();
        files.filter_map(|serve| Some((&serve.source, serve.from.as_ref().ok()?)))
    }

    /// Serializes the morsel file.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = SERVED_MAGIC.to_vec();
        out.extend((self.morsels().count() as u32).to_le_bytes());
        out.resize(size_of::<ServedHeader>(), 0);
        for (source, from) in self.morsels() {
            let end = out.len() + size_of::<Served>();
            let identity = &source.identity;
            for word in [
                identity.device,
                identity.inode,
                identity.size,
                identity.seconds as u64,
                identity.nanoseconds.into(),
                identity.changed_seconds as u64,
                identity.changed_nanoseconds.into(),
                from.morsel.device,
                from.morsel.inode,
                match from.store.backing.kind {
                    Kind::Hugetlbfs => from.store.backing.page,
                    Kind::Morselfs | Kind::Tmpfs => PAGE,
                },
                0,
                0,
                0,
            ] {
                out.extend(word.to_le_bytes());
            }
            out.extend(from.morsel.path.as_os_str().as_bytes());
            out.resize(end, 0);
        }
        out
    }

    /// Returns what was served so far.
    pub fn summary(&self) -> Vec<ServedFile> {
        let file = self.path().and_then(|path| File::open(path).ok());
        let text = |text: &OsStr| text.to_string_lossy().into_owned();
        let confined = file.as_ref().and_then(|file| {
            let mut word = [0; 4];
            let at = offset_of!(ServedHeader, confined) as u64;
            file.read_exact_at(&mut word, at).ok()?;
            Some(u32::from_le_bytes(word).into())
        });
        let mut number = 0;
        let mut summary = Vec::new();
        for serve in &self.files {
            let from = serve.from.as_ref().ok();
            let counter = |at: usize| {
                let record = size_of::<ServedHeader>() + number * size_of::<Served>();
                let mut word = [0; 8];
                let file = file.as_ref().filter(|_| from.is_some())?;
                file.read_exact_at(&mut word, (record + at) as u64).ok()?;
                Some(u64::from_le_bytes(word))
            };
            let counter = |at| counter(at).unwrap_or(0);
            summary.push(ServedFile {
                file: text(serve.source.path.as_os_str()),
                morsel: from.map(|from| text(from.morsel.path.as_os_str())),
                kind: from.map(|from| from.store.backing.kind.name()),
                filled: from.is_some_and(|from| from.filled),
                mappings: counter(offset_of!(Served, mappings)),
                bytes: counter(offset_of!(Served, bytes)),
                left: counter(offset_of!(Served, left)),
                confined: from.and(confined).unwrap_or(0),
                why_not: serve.from.as_ref().err().cloned(),
            });
            number += usize::from(from.is_some());
        }
        summary
    }
}

/// Prints which files were ready in memory but not mapped from there.
pub fn say_unused(served: &[ServedFile]) {
    for it in served
        .iter()
        .filter(|it| it.morsel.is_some() && it.mappings == 0)
    {
        let file = &it.file;
        match it.left {
            0 if it.confined > 0 => messages::note(format_args!(
                "{file}: the program confined itself (seccomp) before it mapped its files: the files themselves were mapped"
            )),
            0 => messages::note(format_args!("{file}: the program did not map it")),
            _ => messages::note(format_args!(
                "{file}: the program mapped it, but not read-only: the file itself was mapped"
            )),
        }
    }
}

impl Held {
    fn new(source: &Source, mount: Option<&Path>) -> Result<Held> {
        let store = open(mount)?;
        let put = fill(&store, source, None, None, WAIT).map_err(wrong)?;
        let path = &put.morsel.path;
        anyhow::ensure!(
            path.as_os_str().len() < SERVED_PATH,
            "{}: its path is too long",
            path.display()
        );
        Ok(Held {
            _file: File::open(path).with_context(|| format!("{}", path.display()))?,
            filled: put.filled,
            morsel: put.morsel,
            store,
        })
    }
}

fn is_interruption(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(UserError::Interrupted))
}
