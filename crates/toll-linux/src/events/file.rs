// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event file and its encoding.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;
use toll_model::wire::{EVENTS_MAGIC, Event, EventsHeader, MAX_FRAMES, Module, Value, until_nul};

/// Maximum number of modules in a file.
const MODULES_MAX: u32 = 4096;

/// Why an event file could not be created or read.
#[derive(Debug, Error)]
pub enum EventsError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: not an event file", .0.display())]
    Foreign(PathBuf),
    #[error("{}: truncated: {is} bytes of {should}", path.display())]
    Truncated { path: PathBuf, is: u64, should: u64 },
}

/// A module that events refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleInfo {
    /// Build-id in lower-case hex, or `path:BASENAME`.
    pub id: String,
    pub path: String,
}

/// An event file, created by [`EventFile::create`] before the target starts.
#[derive(Debug)]
pub struct EventFile {
    file: File,
    path: PathBuf,
    events_max: u32,
    modules_max: u32,
}

impl EventFile {
    /// Creates an empty file with room for `events_max` events. Reserves its disk space: a full
    /// disk is an error here, not a SIGBUS in the target.
    pub fn create(path: &Path, events_max: u32) -> Result<EventFile, EventsError> {
        let failed = |source| EventsError::Io {
            path: path.to_owned(),
            source,
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let event_file = EventFile {
            file,
            path: path.to_owned(),
            events_max,
            modules_max: MODULES_MAX,
        };
        event_file.reserve().map_err(failed)?;
        let mut header = EVENTS_MAGIC.to_vec();
        header.extend(events_max.to_le_bytes());
        header.extend(MODULES_MAX.to_le_bytes());
        header.resize(size_of::<EventsHeader>(), 0);
        event_file.file.write_all_at(&header, 0).map_err(failed)?;
        Ok(event_file)
    }

    fn reserve(&self) -> io::Result<()> {
        let size = self.event_at(self.events_max) as libc::off_t;
        // SAFETY: the descriptor is open; no memory is involved.
        match unsafe { libc::posix_fallocate(self.file.as_raw_fd(), 0, size) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Opens a file that a target wrote or is still writing.
    pub fn open(path: &Path) -> Result<EventFile, EventsError> {
        let failed = |source| EventsError::Io {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let mut header = [0; size_of::<EventsHeader>()];
        match file.read_exact_at(&mut header, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(EventsError::Foreign(path.to_owned()));
            }
            result => result.map_err(failed)?,
        }
        if header[..8] != EVENTS_MAGIC {
            return Err(EventsError::Foreign(path.to_owned()));
        }
        let is = file.metadata().map_err(failed)?.len();
        let event_file = EventFile {
            file,
            path: path.to_owned(),
            events_max: u32::read(&header[offset_of!(EventsHeader, events_max)..]),
            modules_max: u32::read(&header[offset_of!(EventsHeader, modules_max)..]),
        };
        let should = event_file.event_at(event_file.events_max);
        if is < should {
            return Err(EventsError::Truncated {
                path: path.to_owned(),
                is,
                should,
            });
        }
        Ok(event_file)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the offset of an event in the file.
    fn event_at(&self, index: u32) -> u64 {
        size_of::<EventsHeader>() as u64
            + u64::from(self.modules_max) * size_of::<Module>() as u64
            + u64::from(index) * size_of::<Event>() as u64
    }

    fn counter(&self, offset: usize) -> u32 {
        let mut bytes = [0; 4];
        match self.file.read_exact_at(&mut bytes, offset as u64) {
            Ok(()) => u32::from_le_bytes(bytes),
            Err(_) => 0,
        }
    }

    fn read(&self, from: u64, to: u64) -> Vec<u8> {
        let mut bytes = vec![0; (to - from) as usize];
        match self.file.read_exact_at(&mut bytes, from) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }

    /// Returns the events so far in file order, one for each number: an event that is still being
    /// written has kind 0.
    pub fn events(&self) -> Vec<Event> {
        let used = self.counter(offset_of!(EventsHeader, events));
        let used = used.min(self.events_max);
        self.read(self.event_at(0), self.event_at(used))
            .chunks_exact(size_of::<Event>())
            .map(event)
            .collect()
    }

    /// Returns the modules that the events' frames refer to by index.
    pub fn modules(&self) -> Vec<ModuleInfo> {
        let used = self.counter(offset_of!(EventsHeader, modules));
        let used = u64::from(used.min(self.modules_max));
        let start = size_of::<EventsHeader>() as u64;
        self.read(start, start + used * size_of::<Module>() as u64)
            .chunks_exact(size_of::<Module>())
            .map(module)
            .collect()
    }

    /// Returns the number of events that did not fit.
    pub fn lost(&self) -> u32 {
        let used = self.counter(offset_of!(EventsHeader, events));
        used.saturating_sub(self.events_max)
    }
}

/// Decodes an event.
fn event(bytes: &[u8]) -> Event {
    let event = Event::read(bytes);
    Event {
        frames_used: event.frames_used.min(MAX_FRAMES as u32),
        ..event
    }
}

fn module(bytes: &[u8]) -> ModuleInfo {
    let module = Module::read(bytes);
    let path = String::from_utf8_lossy(until_nul(&module.path)).into_owned();
    let id = match module.id.get(..module.id_len as usize) {
        Some(id) if !id.is_empty() => id.iter().map(|byte| format!("{byte:02x}")).collect(),
        _ => format!("path:{}", path.rsplit('/').next().unwrap_or_default()),
    };
    ModuleInfo { id, path }
}

#[cfg(test)]
mod tests;
