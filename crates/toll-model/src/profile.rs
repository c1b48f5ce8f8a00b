// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles: observations as counts per byte interval of a site.
//!
//! A profile is stored as one JSON document; `schemas/profile.schema.json` describes it and
//! docs/guide/formats.md explains it.

mod stack;
mod stored;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::PAGE;
use crate::error::FormatError;
use crate::format::{Format, first_impossible};
use crate::site::Site;

pub use stack::Stack;

/// Value of the `format` field of a profile.
pub const FORMAT: &str = "tollfree-profile";
/// The version of the format that this build writes and reads.
pub const VERSION: u32 = 1;

const PROFILE: Format = Format {
    what: "profile",
    name: FORMAT,
    version: VERSION,
};

/// Source of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// `perf mem` samples: counts are samples x period.
    Perf,
    /// The simulator: counts are modelled TLB misses.
    Sim,
    /// Accessed bits: counts are page touches, an upper bound of misses.
    #[serde(alias = "refs")]
    Accessed,
}

/// Counts for one byte interval of a site, for the whole run (already scaled up if the source
/// samples).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// First byte, from the site's start; a multiple of 4096.
    pub offset: u64,
    /// Bytes covered; a multiple of 4096.
    pub length: u64,
    /// Accesses (0 if the source does not know).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub accesses: f64,
    /// Page walks (misses of every TLB level) with the page sizes of the recorded run.
    pub misses: f64,
    /// Page walks that remain if every eligible region of the program is huge; absent if the source
    /// does not know (then taken as 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses_huge: Option<f64>,
    /// Accesses that miss the first-level TLB but not the second, and would hit the first if every
    /// eligible region were huge (0 if the source does not know).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub l2_spared: f64,
    /// Mean of log2(reuse distance of the PTE's cache line, expressed as the
    /// bytes of data that the distinct PTE lines in between map); absent: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse_log2: Option<f32>,
    /// Share of the misses with an address that depends on an earlier load, 0..1; absent: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependent: Option<f32>,
    /// 4 KiB pages of the interval that were touched (the rest is bloat).
    pub touched_pages: u32,
    /// True if the interval was already backed by huge pages in the recorded run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub huge: bool,
}

/// The mapping of a byte interval of a site, in the kernel's terms, which exclude call sites: the
/// nth private anonymous mapping of its length class and protection since the program began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// First byte, from the site's start.
    pub offset: u64,
    pub length: u64,
    /// `floor(log2(length of the mapping))`.
    pub class: u8,
    /// PROT_READ, PROT_WRITE and PROT_EXEC at the time of the mapping.
    pub protection: u8,
    /// Number of earlier mappings with this class and protection.
    pub ordinal: u32,
    /// Start of the interval in the mapping, bytes.
    pub at: u64,
}

/// The rows of one site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteRows {
    #[serde(flatten)]
    pub site: Site,
    /// Sorted by offset, disjoint.
    pub rows: Vec<Row>,
    /// Sorted by offset, disjoint; empty if the source does not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
    /// Address of its first byte in the recorded run; absent if the source does not know, or if it
    /// moved. It shows which sites were neighbours, and has no meaning in another run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Bytes of this site that are no longer part of any event (freed before the end).
    #[serde(default)]
    pub freed: bool,
}

/// Description of the recording, the program and the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub format: String,
    pub version: u32,
    pub source: Source,
    /// Description of the source for the user: preset, sampling, tool versions.
    pub source_detail: String,
    /// Path and build-id of the main program.
    pub program: Program,
    pub command: Vec<String>,
    /// False if recording was cut short; the counts then cover a part of the run.
    pub complete: bool,
    /// Share of the run that was observed, 0..1 (counts are scaled up by its inverse).
    pub sampled: f64,
    /// Number of raw observations behind the counts (samples, or misses seen):
    /// the relative sampling error of a count c out of them is about 1/sqrt(c * sampled).
    pub observations: u64,
    /// Instructions of the whole run, if the source knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// Wall time of a native run in ns, if one was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_ns: Option<u64>,
    /// CPU time of all threads in that run, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_cpu_ns: Option<u64>,
    /// Data footprint in bytes (touched pages x 4096).
    pub footprint: u64,
    /// Notes for the user: children not profiled, events lost, AVX-512 hidden...
    #[serde(default)]
    pub warnings: Vec<String>,
    pub sites: Vec<SiteRows>,
    /// Code stacks, most misses first; empty if the source does not know them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
}

/// A program file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub path: String,
    /// GNU build-id in hex; empty if it has none.
    pub build_id: String,
}

/// Used by serde to omit a count of 0.
fn is_zero(count: &f64) -> bool {
    *count == 0.0
}

impl Profile {
    /// Returns the page walks of all rows.
    pub fn misses(&self) -> f64 {
        self.rows().map(|row| row.misses).sum()
    }

    /// Returns the rows of all sites.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sites.iter().flat_map(|site| &site.rows)
    }

    /// Checks the invariants that the types do not enforce.
    fn check(&self) -> Result<(), FormatError> {
        PROFILE.check(&self.format, self.version)?;
        if !(self.sampled > 0.0 && self.sampled <= 1.0) {
            return Err(PROFILE.invalid(format!("sampled is {}, not in 0..1", self.sampled)));
        }
        let mut ids = HashSet::with_capacity(self.sites.len());
        for rows in &self.sites {
            let site = &rows.site;
            let wrong = |detail| PROFILE.invalid(format!("site {} ({site}): {detail}", site.id));
            site.check().map_err(wrong)?;
            if !ids.insert(site.id) {
                return Err(wrong("its id is taken by an earlier site".to_owned()));
            }
            rows.check().map_err(wrong)?;
        }
        for (number, stack) in self.stacks.iter().enumerate() {
            let wrong = |detail| PROFILE.invalid(format!("stack {number}: {detail}"));
            stack.check().map_err(wrong)?;
        }
        Ok(())
    }
}

impl SiteRows {
    fn check(&self) -> Result<(), String> {
        if let Some(address) = self.address.filter(|at| *at > crate::site::MAX_LENGTH) {
            return Err(format!("address {address:#x} is no user address"));
        }
        let mut end = 0;
        for (number, row) in self.rows.iter().enumerate() {
            let wrong = |detail| format!("row {number}: {detail}");
            row.check().map_err(wrong)?;
            if row.offset < end {
                let at = row.offset;
                return Err(wrong(format!(
                    "offset {at:#x} lies before {end:#x}, the end of the row before it"
                )));
            }
            end = row.end();
        }
        let mut last = 0;
        for (number, place) in self.places.iter().enumerate() {
            place
                .check(last)
                .map_err(|detail| format!("place {number}: {detail}"))?;
            last = place.offset + place.length;
        }
        let length = self.site.length;
        if end > length.saturating_add(PAGE - 1) {
            return Err(format!(
                "its rows end at {end:#x}, behind its length {length:#x}"
            ));
        }
        Ok(())
    }
}

impl Place {
    fn check(&self, last: u64) -> Result<(), String> {
        if self.offset < last {
            return Err(format!(
                "offset {:#x} lies before {last:#x}, the end of the place before it",
                self.offset
            ));
        }
        if self.length == 0 || self.offset.checked_add(self.length).is_none() {
            return Err("it is empty, or offset + length overflows".to_owned());
        }
        if self.class > 63 || self.protection > 7 || self.at > crate::site::MAX_LENGTH {
            return Err("it is in no mapping that there can be".to_owned());
        }
        Ok(())
    }
}

impl Row {
    /// Returns the end of the row.
    pub fn end(&self) -> u64 {
        self.offset + self.length
    }

    /// Returns the number of 4 KiB pages that the row covers.
    pub fn pages(&self) -> u64 {
        self.length / PAGE
    }

    fn check(&self) -> Result<(), String> {
        let counts = [
            ("accesses", self.accesses),
            ("misses", self.misses),
            ("misses_huge", self.misses_huge.unwrap_or(0.0)),
            ("l2_spared", self.l2_spared),
            ("reuse_log2", f64::from(self.reuse_log2.unwrap_or(0.0))),
            ("dependent", f64::from(self.dependent.unwrap_or(0.0))),
        ];
        if let Some(detail) = first_impossible(&counts, 0.0) {
            return Err(detail);
        }
        if self.dependent.is_some_and(|share| share > 1.0) {
            return Err("dependent is above 1".to_owned());
        }
        if self.reuse_log2.is_some_and(|bits| bits > 64.0) {
            return Err("reuse_log2 is above 64".to_owned());
        }
        if self.offset % PAGE != 0 || self.length % PAGE != 0 {
            return Err("offset and length are not multiples of 4096".to_owned());
        }
        if self.length == 0 {
            return Err("it is empty".to_owned());
        }
        if self.offset.checked_add(self.length).is_none() {
            return Err("offset + length overflows".to_owned());
        }
        if u64::from(self.touched_pages) > self.pages() {
            return Err(format!(
                "touched_pages is {}, of {} pages",
                self.touched_pages,
                self.pages()
            ));
        }
        Ok(())
    }
}
