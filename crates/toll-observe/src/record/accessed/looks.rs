// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scans a process periodically and counts the pages that it touched.

use std::ops::Range;
use std::time::{Duration, Instant};

use toll_linux::Root;
use toll_linux::accessed::{Touched, clear, referenced};
use toll_linux::events::EventFile;
use toll_linux::proc::{Kind, Pagemap, children};
use toll_model::PAGE;
use toll_model::builder::{Counts, Meta, ProfileBuilder};
use toll_model::profile::Profile;

use super::sites::Sites;

/// Pauses between scans.
const FIRST: Duration = Duration::from_millis(5);
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);
/// Scanning takes at most 1/`SHARE` of the time: it evicts the target's page tables and TLB
/// entries, which costs the target about the same time again.
const SHARE: u32 = 50;

/// Periodic scans of one process.
pub struct Looks {
    pid: u32,
    only: Option<Range<u64>>,
    builder: ProfileBuilder,
    sites: Sites,
    began: Instant,
    looks: u64,
    /// (page, scan) pairs.
    observations: u64,
    /// The part of them without a named site.
    unnamed: u64,
    spent: Duration,
    /// When the next scan is due.
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
            sites: Sites::new(pid, events),
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

    /// Whether the process has ended, or may not be observed any more.
    pub fn ended(&self) -> bool {
        self.ended
    }

    pub fn observations(&self) -> u64 {
        self.observations
    }

    /// Counts what was touched since the last scan, if the next is due. Returns the time until the
    /// next one.
    pub fn tick(&mut self) -> Duration {
        if self.ended {
            return Duration::MAX;
        }
        let began = Instant::now();
        let early = self.next.saturating_duration_since(began);
        if !early.is_zero() {
            return early;
        }
        // At the first tick, the bits are those that exec left.
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
        self.sites.refresh(&touched);
        for touched in &touched {
            self.count(touched, &pagemap)?;
        }
        self.had_children = self.had_children || !children(&Root::system(), self.pid).is_empty();
        Ok(())
    }

    /// Spreads a mapping's count over its resident pages.
    fn count(&mut self, touched: &Touched, pagemap: &Pagemap) -> std::io::Result<()> {
        let mapping = &touched.mapping;
        let ours = self.sites.is_ours(mapping);
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
            for piece in self.sites.pieces(mapping, start, end, &mut self.builder) {
                let Some((site, offset)) = piece.place else {
                    self.unnamed += (piece.length as f64 * density) as u64 / PAGE;
                    continue;
                };
                let counts = Counts {
                    misses: piece.length as f64 / PAGE as f64 * density,
                    huge,
                    ..Counts::default()
                };
                self.builder.count_span(site, offset, piece.length, &counts);
            }
        }
        Ok(())
    }

    fn is_wanted(&self, start: u64, end: u64) -> bool {
        let (start, end) = self.clip(start, end);
        start < end
    }

    /// Clips a range to the addresses that are counted.
    fn clip(&self, start: u64, end: u64) -> (u64, u64) {
        match &self.only {
            None => (start, end),
            Some(only) => (start.max(only.start), end.min(only.end)),
        }
    }

    /// What this source did, as text.
    pub fn detail(&self) -> String {
        let share = self.spent.as_secs_f64() / self.began.elapsed().as_secs_f64().max(1e-9);
        format!(
            "accessed bits, {} scans, {:.1} % of the time spent scanning",
            self.looks,
            share * 100.0
        )
    }

    /// The limitations of this source.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = vec![
            "a page counts once per scan, however often it was touched, and counts are spread evenly \
             over the pages of a mapping: they rank memory but do not estimate its cost"
                .to_owned(),
        ];
        if self.looks == 0 {
            warnings.push("the program ended before the first scan".to_owned());
        }
        if self.had_children {
            warnings.push("child processes were not scanned".to_owned());
        }
        if self.unnamed * 20 > self.observations {
            let share = self.unnamed * 100 / self.observations;
            warnings.push(format!(
                "{share} % of the touched pages lie in small mappings without a name"
            ));
        }
        if self.sites.lost_events() != 0 {
            warnings.push(format!(
                "{} allocations did not fit in the event file",
                self.sites.lost_events()
            ));
        }
        warnings
    }

    pub fn finish(self, meta: Meta) -> Profile {
        self.builder.finish(meta)
    }
}
