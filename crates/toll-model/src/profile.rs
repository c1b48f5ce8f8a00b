// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles: what was observed, as counts per byte interval of an anchor.
//!
//! On disk a profile is one JSON document; `schemas/profile.schema.json`
//! describes it and docs/guide/formats.md explains it.

use serde::{Deserialize, Serialize};

use crate::anchor::Anchor;

/// What stands in the `format` field of a profile.
pub const FORMAT: &str = "tollfree-profile";
/// The version of the format that this build writes and reads.
pub const VERSION: u32 = 1;

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
    #[serde(default)]
    pub accesses: f64,
    /// Page walks (misses of every TLB level) with the page sizes of the recorded run.
    pub misses: f64,
    /// Page walks that remain if every eligible region of the program is huge;
    /// absent where the source cannot tell (then taken as 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses_huge: Option<f64>,
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

/// The rows of one anchor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnchorRows {
    #[serde(flatten)]
    pub anchor: Anchor,
    /// Sorted by offset, without overlap.
    pub rows: Vec<Row>,
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
