// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event file, written by the preload library: created and read here.
//!
//! A reader validates everything: a damaged file yields fewer events or an error, never a panic.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use toll_model::site::{Frame, SiteKind};
use toll_model::wire::{self, EVENTS_MAGIC, Event, EventKind, EventsHeader, MAX_FRAMES, Module};

use crate::symbols::Symbolizer;

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
            events_max: u32_at(&header, offset_of!(EventsHeader, events_max)),
            modules_max: u32_at(&header, offset_of!(EventsHeader, modules_max)),
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

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}

/// Reads one event from its `size_of::<Event>()` bytes.
fn event(bytes: &[u8]) -> Event {
    let modules = offset_of!(Event, frame_module);
    let offsets = offset_of!(Event, frame_offset);
    Event {
        kind: u32_at(bytes, offset_of!(Event, kind)),
        process: u32_at(bytes, offset_of!(Event, process)),
        time_ns: u64_at(bytes, offset_of!(Event, time_ns)),
        address: u64_at(bytes, offset_of!(Event, address)),
        length: u64_at(bytes, offset_of!(Event, length)),
        old: u64_at(bytes, offset_of!(Event, old)),
        thread: u32_at(bytes, offset_of!(Event, thread)),
        ordinal: u32_at(bytes, offset_of!(Event, ordinal)),
        frames_used: u32_at(bytes, offset_of!(Event, frames_used)).min(MAX_FRAMES as u32),
        rule: u32_at(bytes, offset_of!(Event, rule)),
        advised: u64_at(bytes, offset_of!(Event, advised)),
        frame_module: std::array::from_fn(|frame| u32_at(bytes, modules + 4 * frame)),
        frame_offset: std::array::from_fn(|frame| u64_at(bytes, offsets + 8 * frame)),
    }
}

fn module(bytes: &[u8]) -> ModuleInfo {
    let id_length = u32_at(bytes, offset_of!(Module, id_len)) as usize;
    let id = &bytes[offset_of!(Module, id)..offset_of!(Module, path)];
    let path = &bytes[offset_of!(Module, path)..];
    let end = path.iter().position(|&byte| byte == 0);
    let path = String::from_utf8_lossy(&path[..end.unwrap_or(path.len())]).into_owned();
    let id = match id.get(..id_length) {
        Some(id) if !id.is_empty() => id.iter().map(|byte| format!("{byte:02x}")).collect(),
        _ => format!("path:{}", path.rsplit('/').next().unwrap_or_default()),
    };
    ModuleInfo { id, path }
}

/// Returns the site that names the block of an event. Frames end before the first with an unknown
/// module.
pub fn site_of(event: &Event, modules: &[ModuleInfo], symbolizer: &mut Symbolizer) -> SiteKind {
    let places = event.frame_module.iter().zip(&event.frame_offset);
    let frames = places
        .take(event.frames_used as usize)
        .map_while(|(&module, &offset)| Some((modules.get(module as usize)?, offset)))
        .map(|(module, offset)| Arc::new(frame(module, offset, symbolizer)))
        .collect();
    SiteKind::Alloc {
        frames,
        class: wire::class(event.length),
        ordinal: event.ordinal,
        thread: event.thread,
    }
}

fn frame(module: &ModuleInfo, offset: u64, symbolizer: &mut Symbolizer) -> Frame {
    let symbol = symbolizer.symbolize(Path::new(&module.path), offset);
    Frame {
        module: module.id.clone(),
        path: module.path.clone(),
        offset,
        symbol: symbol.name,
        source: symbol.source,
        function: symbol.function,
        nearest: symbol.nearest,
    }
}

/// A location of a block over some time. A block that moves has several, all with the number of the
/// event that created it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Index of the event that named the block.
    pub event_index: usize,
    pub process: u32,
    pub address: u64,
    /// Length in bytes as requested by the program, not rounded.
    pub length: u64,
    pub born_ns: u64,
    /// `u64::MAX`: alive when the file was read.
    pub died_ns: u64,
}

impl Block {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.length)
    }
}

/// Tracks blocks over their lifetime, ordered by birth.
///
/// A malloc block may lie inside a mapping that an allocator made: if two contain an address at a
/// time, the one born later names it. Otherwise blocks do not overlap: a new one ends the old one,
/// even if that death went unnoticed (a mapping keeps the part before the new one: its end was
/// unmapped).
pub fn blocks(events: &[Event]) -> Vec<Block> {
    let mut lives = Lives::default();
    for (index, event) in events.iter().enumerate() {
        lives.follow(index, event);
    }
    lives.finish()
}

/// Live blocks of one process by address; mappings and malloc blocks are separate, because they may
/// nest.
#[derive(Debug, Default, Clone)]
struct Alive {
    mappings: BTreeMap<u64, Block>,
    blocks: BTreeMap<u64, Block>,
}

#[derive(Debug, Default)]
struct Lives {
    processes: HashMap<u32, Alive>,
    done: Vec<Block>,
}

impl Lives {
    fn follow(&mut self, index: usize, event: &Event) {
        let born = Block {
            event_index: index,
            process: event.process,
            address: event.address,
            length: event.length,
            born_ns: event.time_ns,
            died_ns: u64::MAX,
        };
        match event.kind {
            kind if kind == EventKind::Malloc as u32 => self.put(born, false),
            kind if kind == EventKind::Mmap as u32 => self.put(born, true),
            kind if kind == EventKind::Move as u32 => self.relocate(event, born),
            kind if kind == EventKind::Free as u32 => {
                self.take(event.process, event.address, event.time_ns);
            }
            kind if kind == EventKind::Process as u32 => self.process(event),
            _ => (),
        }
    }

    /// Adds a block and ends the blocks that it covers.
    fn put(&mut self, block: Block, mapping: bool) {
        let alive = self.processes.entry(block.process).or_default();
        let map = if mapping {
            &mut alive.mappings
        } else {
            &mut alive.blocks
        };
        let before = map.range(..block.address).next_back();
        let covered: Vec<u64> = before
            .into_iter()
            .chain(map.range(block.address..block.end()))
            .filter(|(_, old)| old.end() > block.address || old.address == block.address)
            .map(|(&address, _)| address)
            .collect();
        for address in covered {
            let Some(old) = map.remove(&address) else {
                continue;
            };
            let front = Block {
                length: block.address.saturating_sub(old.address),
                born_ns: block.born_ns,
                ..old
            };
            if mapping && front.length > 0 {
                map.insert(front.address, front);
            }
            end(&mut self.done, old, block.born_ns);
        }
        map.insert(block.address, block);
    }

    /// Ends the block at `address`; returns its index, and whether it is a mapping.
    fn take(&mut self, process: u32, address: u64, now: u64) -> Option<(usize, bool)> {
        let alive = self.processes.get_mut(&process)?;
        let block = alive.blocks.remove(&address).map(|block| (block, false));
        let found = block.or_else(|| Some((alive.mappings.remove(&address)?, true)));
        let (block, mapping) = found?;
        let index = block.event_index;
        end(&mut self.done, block, now);
        Some((index, mapping))
    }

    /// Moves the block at `event.old`. A block that is not known was born unobserved: it is named
    /// by the move.
    fn relocate(&mut self, event: &Event, mut born: Block) {
        let known = self.take(event.process, event.old, event.time_ns);
        let (index, mapping) = known.unwrap_or((born.event_index, false));
        born.event_index = index;
        self.put(born, mapping);
    }

    /// Starts a process. After exec it has no blocks; after fork (`old` is the parent) it has its
    /// parent's blocks.
    fn process(&mut self, event: &Event) {
        let past = self.processes.remove(&event.process).unwrap_or_default();
        for block in past.all() {
            end(&mut self.done, block, event.time_ns);
        }
        let parent = self.processes.get(&(event.old as u32));
        if let Some(parent) = parent.filter(|_| event.old != 0) {
            let child = parent.clone().with_process(event.process, event.time_ns);
            self.processes.insert(event.process, child);
        }
    }

    fn finish(mut self) -> Vec<Block> {
        let alive = self.processes.into_values().flat_map(Alive::all);
        self.done.extend(alive);
        let order = |block: &Block| (block.born_ns, block.event_index, block.address);
        self.done.sort_by_key(order);
        self.done
    }
}

impl Alive {
    fn all(self) -> impl Iterator<Item = Block> {
        self.mappings.into_values().chain(self.blocks.into_values())
    }

    fn with_process(mut self, process: u32, now: u64) -> Alive {
        let mappings = self.mappings.values_mut();
        for block in mappings.chain(self.blocks.values_mut()) {
            block.process = process;
            block.born_ns = now;
        }
        self
    }
}

fn end(done: &mut Vec<Block>, mut block: Block, now: u64) {
    block.died_ns = now;
    done.push(block);
}

#[cfg(test)]
mod tests;
