// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects the parts of a block to act on. Pure arithmetic: no system calls, no panics.
//!
//! A region (2 MiB-aligned) is acted on if at least 75 % of it lies in planned intervals of the
//! block. Returned ranges never leave the block's own pages, and adjacent regions are merged into
//! one range. The partial region at the block's start or end is included with its neighbour if all
//! of it is planned: it cannot become huge by itself, and a range that ends at the end of the
//! mapping splits nothing.

use toll_wire::{PAGE, REGION};

/// A range of addresses, `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub end: u64,
}

impl Range {
    /// The addresses of a block.
    pub fn of(address: usize, length: usize) -> Range {
        Range {
            start: address as u64,
            end: address.saturating_add(length) as u64,
        }
    }

    /// Returns the pages that the range touches.
    pub fn pages(self) -> Range {
        Range {
            start: self.start & !(PAGE - 1),
            end: self.end.saturating_add(PAGE - 1) & !(PAGE - 1),
        }
    }

    fn clip(self, to: Range) -> Range {
        Range {
            start: self.start.max(to.start),
            end: self.end.min(to.end),
        }
    }

    fn length(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

fn region_of(address: u64) -> Range {
    let start = address & !(REGION - 1);
    Range {
        start,
        end: start.saturating_add(REGION),
    }
}

/// Calls `act` with each range of `block` to act on, in ascending order and with gaps between them.
/// `intervals` are byte offsets from the block's start, sorted by start; an end of `u64::MAX` means
/// the block's end.
pub fn planned<I, F>(block: Range, intervals: I, act: F)
where
    I: Iterator<Item = (u64, u64)>,
    F: FnMut(Range),
{
    let mut walk = Walk {
        block,
        region: region_of(block.start),
        covered: 0,
        pending: None,
        head: None,
        act,
    };
    let mut done = block.start;
    for (start, end) in intervals {
        let interval = Range {
            start: block.start.saturating_add(start).max(done),
            end: block.start.saturating_add(end).min(block.end),
        };
        if interval.length() > 0 {
            walk.add(interval);
            done = interval.end;
        }
    }
    walk.close_region();
    walk.flush();
}

struct Walk<F> {
    block: Range,
    /// The current region, and its planned bytes.
    region: Range,
    covered: u64,
    /// A range that may still grow.
    pending: Option<Range>,
    /// The planned partial region before the block's first whole region.
    head: Option<Range>,
    act: F,
}

impl<F: FnMut(Range)> Walk<F> {
    /// Adds a part of an interval that starts at or after all earlier ones.
    fn add(&mut self, interval: Range) {
        let first = region_of(interval.start);
        self.fill(first, interval.clip(first).length());
        let last = region_of(interval.end - 1);
        if last.start == first.start {
            return;
        }
        if last.start > first.end {
            self.close_region();
            self.hand_out(Range {
                start: first.end,
                end: last.start,
            });
        }
        self.fill(last, interval.clip(last).length());
    }

    fn fill(&mut self, region: Range, bytes: u64) {
        if region.start != self.region.start {
            self.close_region();
            self.region = region;
        }
        self.covered += bytes;
    }

    /// Decides on the current region.
    fn close_region(&mut self) {
        let covered = core::mem::take(&mut self.covered);
        let inside = self.region.clip(self.block);
        let pages = self.region.clip(self.block.pages());
        if covered >= REGION / 4 * 3 {
            self.hand_out(pages);
        } else if covered == inside.length() && inside.length() > 0 {
            self.keep_piece(pages);
        }
    }

    /// Handles a completely planned partial region at one of the block's ends.
    fn keep_piece(&mut self, piece: Range) {
        match &mut self.pending {
            Some(pending) if pending.end == piece.start => pending.end = piece.end,
            Some(_) => (),
            None => self.head = Some(piece),
        }
    }

    fn hand_out(&mut self, mut range: Range) {
        match self.head.take() {
            Some(head) if head.end == range.start => range.start = head.start,
            _ => (),
        }
        match &mut self.pending {
            Some(pending) if pending.end == range.start => pending.end = range.end,
            _ => {
                self.flush();
                self.pending = Some(range);
            }
        }
    }

    fn flush(&mut self) {
        if let Some(range) = self.pending.take() {
            (self.act)(range);
        }
    }
}
