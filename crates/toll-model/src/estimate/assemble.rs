// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assembles the plan: the regions and sites to list, with what the chosen set saves.

use std::collections::HashSet;
use std::sync::Arc;

use super::choose::{ALONE, Unit, together};
use super::chunk::Chunk;
use super::decision::Decision;
use super::estimation::Estimation;
use super::range::negative;
use super::run_time::speedup;
use crate::REGION;
use crate::plan::{Estimate, FORMAT, Plan, Region, VERSION, Verdict, Why};
use crate::site::{Frame, Site, SiteKind};

/// Maximum number of regions with verdict `leave` in a plan: those with the most misses.
pub const MAX_LEAVES: usize = 4096;

impl Estimation<'_> {
    /// Builds the plan.
    pub fn plan(self, decision: Decision) -> Plan {
        let (saved_all, _) = self.saved(|_| true);
        let (saved, share) = match decision {
            Decision::Huge => self.saved(Unit::is_huge),
            Decision::Nothing(_) => (Estimate::exact(0.0), 0.0),
            Decision::Less => {
                let (lost, share) = self.saved(|unit| unit.verdict == Some(Why::CostsMore));
                (negative(lost), share)
            }
        };
        let predicted_speedup = match decision {
            Decision::Nothing(_) => Estimate::exact(1.0),
            _ => {
                let repeats = self.options.repeats.unwrap_or(0.0);
                speedup(saved, self.baseline, share, repeats)
            }
        };
        let (regions, left_out) = self.regions(share);
        Plan {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: self.profile.program.clone(),
            source: self.profile.source,
            cpu: self.costs.cpu.clone(),
            saved_ns: saved,
            saved_all_ns: saved_all,
            baseline_ns: self.baseline.map(|run| run.median),
            predicted_speedup,
            reason: self.reason(&decision, [saved, saved_all], predicted_speedup),
            warnings: self.warnings(left_out),
            thp_always: self.options.thp_always,
            whole_heap: self.whole_heap && self.takes_heap(),
            text: Vec::new(),
            sites: self.sites(&regions),
            regions,
        }
    }

    /// Whether the heap is among the memory to make huge.
    fn takes_heap(&self) -> bool {
        let is_heap =
            |unit: &Unit| self.profile.sites[unit.site as usize].site.kind == SiteKind::Heap;
        self.units
            .iter()
            .any(|unit| is_heap(unit) && unit.is_huge())
    }

    /// Returns the regions to list in the plan, in the order of the profile, and the number of
    /// omitted ones.
    fn regions(&self, share: f64) -> (Vec<Region>, usize) {
        let mut verdicts: Vec<Option<Why>> = self.chunks.iter().map(|chunk| chunk.barred).collect();
        for unit in &self.units {
            for &index in &unit.chunks {
                verdicts[index] = verdicts[index].or(unit.verdict);
            }
        }
        let whys: Vec<Why> = verdicts
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect();
        let acts = |why: Why| why.is_for_huge() || self.options.thp_always && why == Why::CostsMore;
        let mut leaves: Vec<usize> = (0..whys.len())
            .filter(|&index| !acts(whys[index]))
            .collect();
        let left_out = leaves.len().saturating_sub(MAX_LEAVES);
        if left_out > 0 {
            let misses = |&index: &usize| self.chunks[index].misses;
            leaves.sort_by(|a, b| misses(b).total_cmp(&misses(a)).then(a.cmp(b)));
            leaves.truncate(MAX_LEAVES);
        }
        let leaves: HashSet<usize> = leaves.into_iter().collect();
        let listed = |index: &usize| acts(whys[*index]) || leaves.contains(index);
        let together = together(ALONE[1], share);
        let region = |index: usize| self.region(&self.chunks[index], whys[index], together);
        (
            (0..whys.len()).filter(listed).map(region).collect(),
            left_out,
        )
    }

    fn region(&self, chunk: &Chunk, why: Why, together: f64) -> Region {
        let site = &self.profile.sites[chunk.site as usize].site;
        let huge = why.is_for_huge();
        Region {
            site: site.id,
            offset: chunk.offset,
            length: chunk.length,
            level: site.level,
            misses: chunk.misses,
            benefit_ns: chunk.benefit.median * together,
            cost_ns: chunk.cost(),
            verdict: if huge { Verdict::Huge } else { Verdict::Leave },
            why,
            touched_pages: chunk.touched.round() as u32,
        }
    }

    /// Returns the sites of the listed regions, and those that share a call site with one to act
    /// on: a class rule must take them into account.
    fn sites(&self, regions: &[Region]) -> Vec<Site> {
        let listed: HashSet<u32> = regions.iter().map(|region| region.site).collect();
        let acted: HashSet<u32> = regions
            .iter()
            .filter(|region| region.verdict == Verdict::Huge)
            .map(|region| region.site)
            .collect();
        let all = || self.profile.sites.iter().map(|rows| &rows.site);
        let call_sites: HashSet<&[Arc<Frame>]> = all()
            .filter(|site| acted.contains(&site.id))
            .filter_map(|site| site.kind.frames())
            .collect();
        let keeps = |site: &&Site| {
            let shares = site
                .kind
                .frames()
                .is_some_and(|frames| call_sites.contains(frames));
            listed.contains(&site.id) || shares && site.length >= REGION
        };
        all().filter(keeps).cloned().collect()
    }
}
