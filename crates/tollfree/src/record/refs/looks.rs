// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looking at a process again and again, and counting what it touched.

use std::ops::Range;
use std::time::{Duration, Instant};

use toll_linux::Root;
use toll_linux::events::EventFile;
use toll_linux::proc::{Kind, Pagemap, children};
use toll_linux::refs::{Touched, clear, referenced};
use toll_model::PAGE;
use toll_model::builder::{Counts, Meta, ProfileBuilder};
use toll_model::profile::Profile;

use super::anchors::Anchors;

/// Pauses between looks.
const FIRST: Duration = Duration::from_millis(5);
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);
/// Looking takes at most one part in so many of the time: it makes the target's page
/// tables and TLB cold, which costs the target about as much again.
const SHARE: u32 = 50;

/// Looks at one process.
pub struct Looks {
    pid: u32,
    only: Option<Range<u64>>,
    builder: ProfileBuilder,
    anchors: Anchors,
    began: Instant,
    looks: u64,
    /// (page, look) pairs.
    observations: u64,
    /// The part of them that no anchor names.
    unnamed: u64,
    spent: Duration,
    /// When the next look is due.
    next: Instant,
    had_children: bool,
    ended: bool,
}

impl Looks {
    pub fn new(pid: u32, events: EventFile, only: Option<Range<u64>>) -> Looks {
        Looks {
            pid,
            only,
            builder: ProfileBuilder::new(),
            anchors: Anchors::new(pid, events),
            began: Instant::now(),
            looks: 0,
            observations: 0,
            unnamed: 0,
            spent: Duration::ZERO,
            next: Instant::now(),
            had_children: false,
            ended: false,
        }
    }

    pub fn observations(&self) -> u64 {
        self.observations
    }

    /// Counts what was touched since the last look, if the next is due; returns the time
    /// until it is.
    pub fn tick(&mut self) -> Duration {
        if self.ended {
            return Duration::MAX;
        }
        let began = Instant::now();
        let early = self.next.saturating_duration_since(began);
        if !early.is_zero() {
            return early;
        }
        // At the first tick the bits are as exec left them.
        let first = self.spent.is_zero();
        if !first {
            match self.look() {
                Ok(()) => self.looks += 1,
                Err(_) => self.ended = true,
            }
        }
        self.ended |= clear(self.pid).is_err();
        let cost = began.elapsed();
        self.spent += cost;
        let pause = match first {
            true => FIRST,
            false => (cost * SHARE).clamp(SHORTEST, LONGEST),
        };
        self.next = Instant::now() + pause;
        pause
    }

    fn look(&mut self) -> std::io::Result<()> {
        let touched = referenced(self.pid)?;
        let pagemap = Pagemap::open(&Root::system(), self.pid)?;
        self.anchors.refresh(&touched);
        for touched in &touched {
            self.count(touched, &pagemap)?;
        }
        self.had_children = self.had_children || !children(&Root::system(), self.pid).is_empty();
        Ok(())
    }

    /// Spreads a mapping's count over its pages in memory.
    fn count(&mut self, touched: &Touched, pagemap: &Pagemap) -> std::io::Result<()> {
        let mapping = &touched.mapping;
        let ours = self.anchors.is_ours(mapping);
        if ours || mapping.kind() == Kind::Special || !self.is_wanted(mapping.start, mapping.end) {
            return Ok(());
        }
        let pages = touched.referenced / PAGE;
        self.observations += pages;
        let present = pagemap.present(mapping.start, mapping.end)?;
        let resident: u64 = present.iter().map(|(start, end)| end - start).sum();
        let density = touched.referenced as f64 / resident.max(PAGE) as f64;
        let huge = touched.huge * 2 > touched.resident;
        for (start, end) in present {
            let (start, end) = self.clip(start, end);
            for piece in self.anchors.pieces(mapping, start, end, &mut self.builder) {
                let Some((anchor, offset)) = piece.place else {
                    self.unnamed += (piece.length as f64 * density) as u64 / PAGE;
                    continue;
                };
                let counts = Counts {
                    misses: piece.length as f64 / PAGE as f64 * density,
                    huge,
                    ..Counts::default()
                };
                self.builder
                    .count_span(anchor, offset, piece.length, &counts);
            }
        }
        Ok(())
    }

    fn is_wanted(&self, start: u64, end: u64) -> bool {
        let (start, end) = self.clip(start, end);
        start < end
    }

    /// The part of a range that is to be counted.
    fn clip(&self, start: u64, end: u64) -> (u64, u64) {
        match &self.only {
            None => (start, end),
            Some(only) => (start.max(only.start), end.min(only.end)),
        }
    }

    /// What this source did, for people.
    pub fn detail(&self) -> String {
        let share = self.spent.as_secs_f64() / self.began.elapsed().as_secs_f64().max(1e-9);
        format!(
            "Referenced bits, {} looks, {:.1} % of the time spent looking",
            self.looks,
            share * 100.0
        )
    }

    /// What this source cannot tell.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = vec![
            "a page counts once per look, however often it was touched, and counts are spread evenly over \
             the pages of a mapping: they rank memory, and do not price it"
                .to_owned(),
        ];
        if self.looks == 0 {
            warnings.push("the program ended before the first look".to_owned());
        }
        if self.had_children {
            warnings.push("processes that the program started were not looked at".to_owned());
        }
        if self.unnamed * 20 > self.observations {
            let share = self.unnamed * 100 / self.observations;
            warnings.push(format!(
                "{share} % of the touched pages lie in small mappings without a name"
            ));
        }
        if self.anchors.lost_events() != 0 {
            warnings.push(format!(
                "{} allocations came after the event file was full",
                self.anchors.lost_events()
            ));
        }
        warnings
    }

    pub fn finish(self, meta: Meta) -> Profile {
        self.builder.finish(meta)
    }
}
