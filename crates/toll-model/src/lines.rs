// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan in few lines, for readers and for verification.

use crate::REGION;
use crate::plan::{Plan, Region, Verdict};
use crate::site::Site;

/// Adjacent regions of one site with the same verdict, or all blocks of one call site that share
/// regions with their neighbours.
pub struct Line<'a> {
    pub first: &'a Region,
    /// Number of blocks, if the line stands for such neighbours.
    pub neighbours: u32,
    /// Indices of the plan's regions.
    pub regions: Vec<usize>,
    pub name: String,
    pub huge: bool,
    pub length: u64,
    pub misses: f64,
    /// CPU time that huge pages save, and that they cost, ns.
    pub benefit: f64,
    pub cost: f64,
}

/// The lines of a plan, in the order of its regions.
pub fn lines(plan: &Plan) -> Vec<Line<'_>> {
    let mut lines: Vec<Line> = Vec::new();
    for (index, region) in plan.regions.iter().enumerate() {
        let site = plan.site(region.site);
        let call_site = site
            .filter(|_| region.verdict == Verdict::Huge && region.length < REGION)
            .and_then(Site::call_site);
        let joins = |line: &Line| match &call_site {
            Some(call_site) => line.neighbours > 0 && line.name == *call_site,
            None => line.neighbours == 0 && follows(line, region),
        };
        // Other memory may lie between the neighbours of one site in the list.
        let known = match &call_site {
            Some(_) => lines.iter().position(joins),
            None => lines
                .len()
                .checked_sub(1)
                .filter(|&last| joins(&lines[last])),
        };
        let at = known.unwrap_or_else(|| {
            let name = || site.map(ToString::to_string).unwrap_or_default();
            lines.push(Line {
                first: region,
                neighbours: 0,
                regions: Vec::new(),
                name: call_site.clone().unwrap_or_else(name),
                huge: region.verdict == Verdict::Huge,
                length: 0,
                misses: 0.0,
                benefit: 0.0,
                cost: 0.0,
            });
            lines.len() - 1
        });
        let line = &mut lines[at];
        let is_next = |&last: &usize| plan.regions[last].site != region.site;
        if call_site.is_some() && line.regions.last().is_none_or(is_next) {
            line.neighbours += 1;
        }
        line.regions.push(index);
        line.length += region.length.min(REGION);
        line.misses += region.misses;
        line.benefit += region.benefit_ns;
        line.cost += region.cost_ns;
    }
    lines
}

/// Whether a region continues a line of the same site.
fn follows(line: &Line, region: &Region) -> bool {
    let first = line.first;
    first.site == region.site
        && first.why == region.why
        && first.offset + line.length == region.offset
}
