// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events that the preload library recorded.

use std::path::Path;

use toll_linux::events::{EventFile, ModuleInfo};
use toll_linux::symbols::Symbolizer;
use toll_model::wire::{Event, EventKind};

/// Content of an event file.
pub struct Recorded {
    pub events: Vec<Event>,
    pub modules: Vec<ModuleInfo>,
    pub lost: u32,
}

impl Recorded {
    pub fn read(path: &Path) -> Recorded {
        let file = EventFile::open(path).unwrap();
        Recorded {
            events: file.events(),
            modules: file.modules(),
            lost: file.lost(),
        }
    }

    pub fn of(&self, kind: EventKind) -> impl Iterator<Item = &Event> {
        self.events
            .iter()
            .filter(move |event| event.kind == kind as u32)
    }

    /// Returns created blocks and mappings, in order.
    pub fn made(&self) -> impl Iterator<Item = &Event> {
        let kinds = [EventKind::Malloc, EventKind::Mmap, EventKind::Shared].map(|kind| kind as u32);
        let events = self.events.iter();
        events.filter(move |event| kinds.contains(&event.kind))
    }

    /// Returns blocks and mappings of exactly this length.
    pub fn with_length(&self, length: u64) -> Vec<&Event> {
        let made = self.made();
        made.filter(|event| event.length == length).collect()
    }

    /// What names an event in any run: frames, class, ordinal, thread.
    pub fn name(&self, event: &Event) -> String {
        let frames: Vec<_> = (0..event.frames_used as usize)
            .map(|frame| {
                let module = &self.modules[event.frame_module[frame] as usize];
                format!("{}+{:#x}", module.id, event.frame_offset[frame])
            })
            .collect();
        format!(
            "{} 2^{} #{} thread {}",
            frames.join(" "),
            event.length.ilog2(),
            event.ordinal,
            event.thread
        )
    }

    /// Returns the names of all blocks, sorted.
    pub fn names(&self) -> Vec<String> {
        self.names_from(0)
    }

    /// Returns the names of all blocks of at least `length` bytes, sorted.
    pub fn names_from(&self, length: u64) -> Vec<String> {
        let mut names: Vec<_> = self
            .made()
            .filter(|event| event.length >= length)
            .map(|event| self.name(event))
            .collect();
        names.sort();
        names
    }

    /// Returns the function of an event's first frame and the name of its file.
    pub fn first_function(&self, event: &Event) -> String {
        let mut symbolizer = Symbolizer::new();
        let module = &self.modules[event.frame_module[0] as usize];
        let symbol = symbolizer.symbolize(Path::new(&module.path), event.frame_offset[0]);
        symbol.name.unwrap_or_default()
    }
}
