// SPDX-License-Identifier: MIT OR Apache-2.0
//! Media that record what is done to them.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use crate::layout::PAGE;
use crate::medium::{Medium, Source};
use crate::word::number_at;

/// A step of a trace. Longer stores are stores of eight bytes each. A store of what is there already
/// is left out: it makes no difference to any state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Store { offset: u64, value: u64 },
    Flush(Range<u64>),
    Fence,
}

/// Memory as programs see it, with the trace that led to it, and a log to undo it.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    bytes: Vec<u8>,
    pub events: Vec<Event>,
    undo: Vec<(u64, u64)>,
}

impl Trace {
    pub fn new(bytes: Vec<u8>) -> Trace {
        Trace {
            bytes,
            events: Vec::new(),
            undo: Vec::new(),
        }
    }

    pub fn bytes(&self) -> &Vec<u8> {
        &self.bytes
    }

    /// The present state, for [`Trace::rewind`].
    pub fn mark(&self) -> usize {
        self.undo.len()
    }

    /// Returns to an earlier state, and drops the trace.
    pub fn rewind(&mut self, mark: usize) {
        while self.undo.len() > mark {
            if let Some((offset, value)) = self.undo.pop() {
                self.put(offset, value);
            }
        }
        self.events.clear();
    }

    /// Makes the present state the first one.
    pub fn commit(&mut self) {
        self.undo.clear();
        self.events.clear();
    }

    /// Changes eight bytes without a trace.
    pub fn poke(&mut self, offset: u64, value: u64) {
        self.undo
            .push((offset, number_at(&self.bytes, offset as usize)));
        self.put(offset, value);
    }

    fn put(&mut self, offset: u64, value: u64) {
        self.bytes[offset as usize..][..8].copy_from_slice(&value.to_le_bytes());
    }
}

impl Source for Trace {
    fn pages(&self) -> u64 {
        self.bytes.len() as u64 / PAGE
    }

    fn page(&self, number: u64) -> io::Result<Cow<'_, [u8]>> {
        self.bytes.page(number)
    }
}

impl Medium for Trace {
    fn store(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        for at in (offset / 8 * 8..end).step_by(8) {
            let mut value = [0; 8];
            value.copy_from_slice(&self.bytes[at as usize..][..8]);
            let (from, to) = (at.max(offset), (at + 8).min(end));
            let part = &bytes[(from - offset) as usize..(to - offset) as usize];
            value[(from - at) as usize..(to - at) as usize].copy_from_slice(part);
            self.store8(at, number_at(&value, 0))?;
        }
        Ok(())
    }

    fn store8(&mut self, offset: u64, value: u64) -> io::Result<()> {
        if number_at(&self.bytes, offset as usize) != value {
            self.events.push(Event::Store { offset, value });
            self.poke(offset, value);
        }
        Ok(())
    }

    fn flush(&mut self, range: Range<u64>) -> io::Result<()> {
        self.events.push(Event::Flush(range));
        Ok(())
    }

    fn fence(&mut self) -> io::Result<()> {
        self.events.push(Event::Fence);
        Ok(())
    }
}
