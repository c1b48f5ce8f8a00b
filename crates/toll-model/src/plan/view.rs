// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan for `plan --json`.

use std::collections::HashMap;

use serde::Serialize;

use super::{Estimate, Plan, Region, Text, Verdict, Why};
use crate::profile::{Program, Source};
use crate::site::{Level, Site};

/// A plan as `plan --json` prints it: the stored content, with each region's site by name.
#[derive(Debug, Serialize)]
pub struct View<'a> {
    format: &'a str,
    version: u32,
    program: &'a Program,
    source: Source,
    cpu: &'a str,
    saved_ns: Estimate,
    saved_all_ns: Estimate,
    baseline_ns: Option<f64>,
    predicted_speedup: Estimate,
    reason: &'a str,
    warnings: &'a [String],
    thp_always: bool,
    whole_heap: bool,
    text: &'a [Text],
    sites: &'a [Site],
    regions: Vec<RegionView<'a>>,
}

/// A region of a [`View`].
#[derive(Debug, Serialize)]
struct RegionView<'a> {
    site: &'a str,
    site_id: u32,
    offset: u64,
    length: u64,
    level: Level,
    misses: f64,
    benefit_ns: f64,
    cost_ns: f64,
    verdict: Verdict,
    why: Why,
    touched_pages: u32,
}

/// Names of sites by id, for [`Plan::view`].
#[derive(Debug)]
pub struct Names(HashMap<u32, String>);

impl Plan {
    /// Returns the names of all sites.
    pub fn names(&self) -> Names {
        let name = |site: &Site| (site.id, site.to_string());
        Names(self.sites.iter().map(name).collect())
    }

    /// Returns the plan for `plan --json`.
    pub fn view<'a>(&'a self, names: &'a Names) -> View<'a> {
        let region = |region: &Region| RegionView {
            site: names.0.get(&region.site).map_or("", String::as_str),
            site_id: region.site,
            offset: region.offset,
            length: region.length,
            level: region.level,
            misses: region.misses,
            benefit_ns: region.benefit_ns,
            cost_ns: region.cost_ns,
            verdict: region.verdict,
            why: region.why,
            touched_pages: region.touched_pages,
        };
        View {
            format: &self.format,
            version: self.version,
            program: &self.program,
            source: self.source,
            cpu: &self.cpu,
            saved_ns: self.saved_ns,
            saved_all_ns: self.saved_all_ns,
            baseline_ns: self.baseline_ns,
            predicted_speedup: self.predicted_speedup,
            reason: &self.reason,
            warnings: &self.warnings,
            thp_always: self.thp_always,
            whole_heap: self.whole_heap,
            text: &self.text,
            sites: &self.sites,
            regions: self.regions.iter().map(region).collect(),
        }
    }
}
