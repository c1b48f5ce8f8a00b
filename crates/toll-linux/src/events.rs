// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event file, written by the preload library: created and read here.
//!
//! A reader validates everything: a damaged file yields fewer events or an error, never a panic.

mod blocks;
mod file;

use std::path::Path;
use std::sync::Arc;

use toll_model::site::{Frame, SiteKind};
use toll_model::wire::{self, Event, EventKind};

use crate::symbols::Symbolizer;

pub use self::blocks::{Block, blocks};
pub use self::file::{EventFile, EventsError, ModuleInfo};

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
        shared: event.kind == EventKind::Shared as u32,
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

#[cfg(test)]
mod tests;
