// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans: regions with benefit, cost and verdict.
//!
//! On disk a plan is TOML (docs/guide/formats.md); `plan --json` prints the
//! same content.

use serde::{Deserialize, Serialize};

use crate::anchor::{Anchor, Level};
use crate::profile::{Program, Source};

/// What stands in the `format` field of a plan.
pub const FORMAT: &str = "tollfree-plan";
/// The version of the format that this build writes and reads.
pub const VERSION: u32 = 1;

/// What to do with a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Huge,
    Leave,
}

/// An estimate with its 80 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// One priced region of an anchor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Region {
    /// Id of the anchor (JSON output also carries the anchor's name).
    pub anchor: u32,
    /// First byte, from the anchor's start.
    pub offset: u64,
    /// Bytes; 2 MiB, less at an anchor's ends.
    pub length: u64,
    pub level: Level,
    pub misses: f64,
    /// CPU time that huge pages save here over a run, given the whole set, ns.
    pub benefit_ns: f64,
    /// CPU time that making it huge costs, bloat and risk included, ns.
    pub cost_ns: f64,
    pub verdict: Verdict,
    /// 4 KiB pages of the region that the program touched.
    pub touched_pages: u32,
}

/// Priced advice for one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub format: String,
    pub version: u32,
    pub program: Program,
    pub source: Source,
    /// Key of the cost table that priced it.
    pub cpu: String,
    /// Time saved by the planned set over one run, ns.
    pub saved_ns: Estimate,
    /// The same for everything huge.
    pub saved_all_ns: Estimate,
    /// Time of one run without the plan, ns, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_ns: Option<f64>,
    /// Time without / with the plan; above 1 is faster.
    pub predicted_speedup: Estimate,
    /// Why the plan is what it is, in one sentence.
    pub reason: String,
    #[serde(default)]
    pub warnings: Vec<String>,
    pub anchors: Vec<Anchor>,
    pub regions: Vec<Region>,
}
