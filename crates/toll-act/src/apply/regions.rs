// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes regions of a running process huge, or splits them into 4 KiB pages again.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use toll_linux::remote::{Advice, RemoteError, RemoteProcess, drain};
use toll_linux::watch::{Ranges, map_budget};
use toll_linux::{Root, proc};
use toll_model::REGION;

use crate::error::UserError;
use crate::thp;

/// How long regions without resident memory are retried.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(500);
/// Attempts to split a page; a split fails while another CPU handles the page.
const SPLIT_TRIES: usize = 5;

/// The result per region.
#[derive(Debug, Default, Serialize)]
pub struct Done {
    /// Huge now (including those that already were).
    pub collapsed: u64,
    /// 4 KiB pages again.
    pub split: u64,
    /// Not collapsed by the end: nothing resident, or no huge page was free.
    pub waiting: u64,
    pub failed: u64,
    /// The first failure, as text.
    pub failure: Option<String>,
    /// CPU and waiting time of the calls, ns.
    pub spent_ns: u64,
}

impl Done {
    fn note(&mut self, error: &RemoteError) {
        self.failed += 1;
        self.failure.get_or_insert_with(|| error.to_string());
    }
}

/// Collapses regions. Uses at most half of the time, because the process's page faults wait during
/// a collapse.
pub fn collapse(remote: &RemoteProcess, regions: &[u64]) -> Result<Done> {
    let began = Instant::now();
    let mut done = Done::default();
    let mut left = regions.to_vec();
    loop {
        left = round(remote, &left, &mut done)?;
        if left.is_empty() || began.elapsed() > PATIENCE {
            done.waiting = left.len() as u64;
            return Ok(done);
        }
        thread::sleep(RETRY);
    }
}

/// Tries each region once. Returns those to retry.
fn round(remote: &RemoteProcess, regions: &[u64], done: &mut Done) -> Result<Vec<u64>> {
    let mut left = Vec::new();
    for region in regions {
        let began = Instant::now();
        let result = remote.collapse(*region, REGION);
        let spent = began.elapsed();
        done.spent_ns += spent.as_nanos() as u64;
        match result {
            Ok(()) => done.collapsed += 1,
            Err(RemoteError::Gone) => return Err(ended(remote).into()),
            Err(error) if error.try_again() => left.push(*region),
            Err(error) => done.note(&error),
        }
        thread::sleep(spent);
    }
    Ok(left)
}

/// Splits the huge pages of regions, and prevents khugepaged from collapsing them again.
pub fn split(remote: &RemoteProcess, regions: &[u64], notes: &mut Vec<String>) -> Result<Done> {
    let mut done = Done::default();
    forbid(remote, regions, notes);
    let began = Instant::now();
    let before = huge_around(remote.pid(), regions)?;
    let mut after = before;
    let mut idle = 0;
    while after != 0 && idle < SPLIT_TRIES {
        split_once(remote, regions)?;
        let now = huge_around(remote.pid(), regions)?;
        idle = if now < after { 0 } else { idle + 1 };
        after = now;
        thread::sleep(Duration::from_millis(10));
    }
    done.spent_ns = began.elapsed().as_nanos() as u64;
    done.split = before.saturating_sub(after) / REGION;
    notes.push(
        "the huge pages are split; memory allocated only by making them huge stays allocated"
            .to_owned(),
    );
    Ok(done)
}

fn split_once(remote: &RemoteProcess, regions: &[u64]) -> Result<()> {
    drain();
    for region in regions {
        match remote.split(*region) {
            Err(RemoteError::Gone) => return Err(ended(remote).into()),
            // Nothing is mapped there (any more): nothing to split.
            Err(error) if error.try_again() => {}
            result => result?,
        }
    }
    Ok(())
}

/// Applies MADV_NOHUGEPAGE where the machine would make the regions huge again, within the map
/// budget.
fn forbid(remote: &RemoteProcess, regions: &[u64], notes: &mut Vec<String>) {
    if !thp::is_always() {
        return;
    }
    if let Some(reason) = remote.collapse_only() {
        notes.push(format!("khugepaged may make them huge again: {reason}"));
        return;
    }
    let ranges = Ranges::new(regions.iter().map(|region| (*region, region + REGION)));
    let root = Root::system();
    let mappings = proc::maps(&root, remote.pid()).map_or(usize::MAX, |maps| maps.len());
    let budget = map_budget(&root, mappings) / 2;
    for (start, end) in ranges.iter().take(budget as usize) {
        if let Err(error) = remote.advise(start, end - start, Advice::NoHuge) {
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

/// Huge-page bytes of the mappings that contain these regions (the granularity of smaps).
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

fn ended(remote: &RemoteProcess) -> UserError {
    UserError::Target(format!("process {} has ended", remote.pid()))
}
