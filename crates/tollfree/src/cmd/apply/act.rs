// SPDX-License-Identifier: MIT OR Apache-2.0
//! Making regions of a live process huge, or small again.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use toll_linux::hand::{Advice, Hand, HandError};
use toll_linux::watch::{Ranges, map_budget};
use toll_linux::{Root, proc, sys};
use toll_model::REGION;

use crate::error::UserError;

/// How long regions that hold nothing yet are tried.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(500);
/// A split is refused while another CPU handles the page: tried so often in vain.
const SPLIT_TRIES: usize = 5;

/// What became of the regions.
#[derive(Debug, Default, Serialize)]
pub struct Done {
    /// Huge now (or already before).
    pub collapsed: u64,
    /// Small pages again.
    pub split: u64,
    /// Hold nothing that could be collapsed, or no huge page was free, up to the end.
    pub waiting: u64,
    pub failed: u64,
    /// The first failure, in words.
    pub failure: Option<String>,
    /// CPU and waiting time of the calls, ns.
    pub spent_ns: u64,
}

impl Done {
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |count: u64, what: &str| {
            if count != 0 {
                text.push_str(&format!("{count} {what}\n"));
            }
        };
        line(self.collapsed, "huge now");
        line(self.split, "small again");
        line(
            self.waiting,
            "not touched by the process yet, or no huge page free: apply again later",
        );
        line(self.failed, "failed");
        if let Some(failure) = &self.failure {
            text.push_str(&format!("first failure: {failure}\n"));
        }
        text
    }

    fn note(&mut self, error: &HandError) {
        self.failed += 1;
        self.failure.get_or_insert_with(|| error.to_string());
    }
}

/// Collapses regions. Takes at most half of the time, since the process's page faults
/// wait while one is collapsed.
pub fn collapse(hand: &Hand, regions: &[u64]) -> Result<Done> {
    let began = Instant::now();
    let mut done = Done::default();
    let mut left = regions.to_vec();
    loop {
        left = round(hand, &left, &mut done)?;
        if left.is_empty() || began.elapsed() > PATIENCE {
            done.waiting = left.len() as u64;
            return Ok(done);
        }
        thread::sleep(RETRY);
    }
}

/// Tries each region once; returns those that may work later.
fn round(hand: &Hand, regions: &[u64], done: &mut Done) -> Result<Vec<u64>> {
    let mut left = Vec::new();
    for region in regions {
        let began = Instant::now();
        let result = hand.collapse(*region, REGION);
        let spent = began.elapsed();
        done.spent_ns += spent.as_nanos() as u64;
        match result {
            Ok(()) => done.collapsed += 1,
            Err(HandError::Gone) => return Err(ended(hand).into()),
            Err(error) if error.try_again() => left.push(*region),
            Err(error) => done.note(&error),
        }
        thread::sleep(spent);
    }
    Ok(left)
}

/// Splits the huge pages of regions, and keeps khugepaged from making new ones where
/// it would.
pub fn split(hand: &Hand, regions: &[u64], notes: &mut Vec<String>) -> Result<Done> {
    let mut done = Done::default();
    forbid(hand, regions, notes);
    let began = Instant::now();
    let before = huge_around(hand.pid(), regions)?;
    let mut after = before;
    let mut idle = 0;
    while after != 0 && idle < SPLIT_TRIES {
        split_once(hand, regions)?;
        let now = huge_around(hand.pid(), regions)?;
        idle = if now < after { 0 } else { idle + 1 };
        after = now;
        thread::sleep(Duration::from_millis(10));
    }
    done.spent_ns = began.elapsed().as_nanos() as u64;
    done.split = before.saturating_sub(after) / REGION;
    notes.push(
        "the pages are small again; memory that only the huge pages brought stays with the process"
            .to_owned(),
    );
    Ok(done)
}

fn split_once(hand: &Hand, regions: &[u64]) -> Result<()> {
    for region in regions {
        match hand.split(*region) {
            Err(HandError::Gone) => return Err(ended(hand).into()),
            // Nothing mapped there (any more): nothing to split.
            Err(error) if error.try_again() => {}
            result => result?,
        }
    }
    Ok(())
}

/// Gives MADV_NOHUGEPAGE where the machine would make the regions huge again, within
/// the map budget.
fn forbid(hand: &Hand, regions: &[u64], notes: &mut Vec<String>) {
    let root = Root::system();
    let always = sys::Thp::read(&root).is_some_and(|thp| thp.region_mode() == sys::Mode::Always);
    if !always {
        return;
    }
    if let Some(reason) = hand.collapse_only() {
        notes.push(format!("khugepaged may make them huge again: {reason}"));
        return;
    }
    let ranges = Ranges::new(regions.iter().map(|region| (*region, region + REGION)));
    let mappings = proc::maps(&root, hand.pid()).map_or(usize::MAX, |maps| maps.len());
    let budget = map_budget(&root, mappings) / 2;
    for (start, end) in ranges.iter().take(budget as usize) {
        if let Err(error) = hand.advise(start, end - start, Advice::NoHuge) {
            notes.push(format!("khugepaged may make some huge again: {error}"));
            return;
        }
    }
    if ranges.iter().count() as u64 > budget {
        notes.push(
            "khugepaged may make some huge again: the process has too many mappings".to_owned(),
        );
    }
}

/// Bytes in huge pages of the mappings that hold these regions (smaps counts no finer).
fn huge_around(pid: u32, regions: &[u64]) -> Result<u64> {
    let regions = Ranges::new(regions.iter().map(|region| (*region, region + REGION)));
    let mut huge = 0;
    proc::smaps_each(&Root::system(), pid, |smap| {
        if regions.covered(smap.mapping.start, smap.mapping.end) != 0 {
            huge += smap.anon_huge;
        }
    })?;
    Ok(huge)
}

fn ended(hand: &Hand) -> UserError {
    UserError::Target(format!("process {} has ended", hand.pid()))
}
