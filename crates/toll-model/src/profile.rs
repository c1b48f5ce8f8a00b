// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles: what was observed, as counts per byte interval of an anchor.
//!
//! On disk a profile is one JSON document; `schemas/profile.schema.json`
//! describes it and docs/guide/formats.md explains it.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::PAGE;
use crate::anchor::Anchor;
use crate::error::FormatError;
use crate::format::{Format, first_impossible};
use crate::stored::{Stored, Written};

/// What stands in the `format` field of a profile.
pub const FORMAT: &str = "tollfree-profile";
/// The version of the format that this build writes and reads.
pub const VERSION: u32 = 1;

const PROFILE: Format = Format {
    what: "profile",
    name: FORMAT,
    version: VERSION,
};

/// Where the counts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// `perf mem` samples: counts are samples x period.
    Perf,
    /// The simulator: counts are modelled TLB misses.
    Sim,
    /// Referenced bits: counts are page touches, an upper bound for misses.
    Refs,
}

/// Counts for one byte interval of an anchor, for the whole run
/// (scaled up already where the source samples).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// First byte, from the anchor's start; a multiple of 4096.
    pub offset: u64,
    /// Bytes covered; a multiple of 4096.
    pub length: u64,
    /// Accesses (0 where the source cannot tell).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub accesses: f64,
    /// Page walks (misses of every TLB level) with the page sizes of the recorded run.
    pub misses: f64,
    /// Page walks that remain if every eligible region of the program is huge;
    /// absent where the source cannot tell (then taken as 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses_huge: Option<f64>,
    /// Accesses that miss the first-level TLB but not the second, and would hit the first if
    /// every eligible region were huge (0 where the source cannot tell).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub l2_spared: f64,
    /// Mean of log2(reuse distance of the PTE's cache line, expressed as the
    /// bytes of data that the distinct PTE lines in between map); absent: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse_log2: Option<f32>,
    /// Share of the misses whose address depends on an earlier load, 0..1; absent: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependent: Option<f32>,
    /// 4 KiB pages of the interval that were touched at all (bloat is what is left).
    pub touched_pages: u32,
    /// True where the interval was backed by huge pages in the recorded run already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub huge: bool,
}

/// Which mapping a byte interval of an anchor lay in, for a kernel, which knows no call sites: the
/// nth private anonymous mapping of its length class and protection since the program began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// First byte, from the anchor's start.
    pub offset: u64,
    pub length: u64,
    /// `floor(log2(length of the mapping))`.
    pub class: u8,
    /// PROT_READ, PROT_WRITE and PROT_EXEC, as it was mapped.
    pub protection: u8,
    /// How many mappings of this class and protection came before.
    pub ordinal: u32,
    /// Where the interval lay in the mapping, bytes from its start.
    pub at: u64,
}

/// The rows of one anchor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnchorRows {
    #[serde(flatten)]
    pub anchor: Anchor,
    /// Sorted by offset, without overlap.
    pub rows: Vec<Row>,
    /// Sorted by offset, without overlap; empty where the source cannot tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
    /// Address of its first byte in the recorded run; absent where the source cannot tell, and where
    /// it moved. It says which anchors were neighbours, and nothing about another run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Bytes of this anchor that no event names any more (freed before the end).
    #[serde(default)]
    pub freed: bool,
}

/// What was recorded, of which program, on which machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub format: String,
    pub version: u32,
    pub source: Source,
    /// What the source was exactly, for people: preset, sampling, tool versions.
    pub source_detail: String,
    /// Path and build-id of the main program.
    pub program: Program,
    pub command: Vec<String>,
    /// False if recording was cut short; the counts are then a part of the run.
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
    /// Data footprint in bytes (touched pages x 4096).
    pub footprint: u64,
    /// Things a reader must know: children not profiled, events lost, AVX-512 hidden...
    #[serde(default)]
    pub warnings: Vec<String>,
    pub anchors: Vec<AnchorRows>,
}

/// A program file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub path: String,
    /// GNU build-id in hex; empty if it has none.
    pub build_id: String,
}

/// For serde: what is left out of a file because it is 0.
fn is_zero(count: &f64) -> bool {
    *count == 0.0
}

impl Profile {
    /// The profile as one JSON document.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if it says something impossible: no reader would take it back.
    pub fn to_json(&self) -> Result<String, FormatError> {
        self.check()?;
        serde_json::to_string(&Written::new(self))
            .map_err(|error| PROFILE.invalid(error.to_string()))
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// [`FormatError`] names what is wrong and where; no input panics.
    pub fn from_json(bytes: impl AsRef<[u8]>) -> Result<Profile, FormatError> {
        let stored: Stored = PROFILE.read_json(bytes.as_ref())?;
        let profile = stored
            .into_profile()
            .map_err(|detail| PROFILE.invalid(detail))?;
        profile.check()?;
        Ok(profile)
    }

    /// Page walks of all rows.
    pub fn misses(&self) -> f64 {
        self.rows().map(|row| row.misses).sum()
    }

    /// The rows of all anchors.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.anchors.iter().flat_map(|anchor| &anchor.rows)
    }

    /// Checks everything that the types do not.
    fn check(&self) -> Result<(), FormatError> {
        PROFILE.check(&self.format, self.version)?;
        if !(self.sampled > 0.0 && self.sampled <= 1.0) {
            return Err(PROFILE.invalid(format!("sampled is {}, not in 0..1", self.sampled)));
        }
        let mut ids = HashSet::with_capacity(self.anchors.len());
        for rows in &self.anchors {
            let anchor = &rows.anchor;
            let wrong =
                |detail| PROFILE.invalid(format!("anchor {} ({anchor}): {detail}", anchor.id));
            anchor.check().map_err(wrong)?;
            if !ids.insert(anchor.id) {
                return Err(wrong("its id is taken by an earlier anchor".to_owned()));
            }
            rows.check().map_err(wrong)?;
        }
        Ok(())
    }
}

impl AnchorRows {
    fn check(&self) -> Result<(), String> {
        if let Some(address) = self.address.filter(|at| *at > crate::anchor::MAX_LENGTH) {
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
        let length = self.anchor.length;
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
        if self.class > 63 || self.protection > 7 || self.at > crate::anchor::MAX_LENGTH {
            return Err("it is in no mapping that there can be".to_owned());
        }
        Ok(())
    }
}

impl Row {
    /// First byte behind the row.
    pub fn end(&self) -> u64 {
        self.offset + self.length
    }

    /// 4 KiB pages that the row covers.
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
