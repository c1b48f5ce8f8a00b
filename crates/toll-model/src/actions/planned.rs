// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sites of a plan, with the byte intervals to act on.

use std::collections::HashMap;

use crate::REGION;
use crate::intervals::merged;
use crate::plan::{Plan, Verdict, Why};
use crate::site::Site;

/// A site of a plan with the byte intervals to act on.
pub(super) struct Planned<'a> {
    pub site: &'a Site,
    pub huge: Vec<(u64, u64)>,
    pub losers: Vec<(u64, u64)>,
    /// Whether its blocks fill regions with their neighbours.
    pub together: bool,
    pub benefit: f64,
}

impl Planned<'_> {
    pub fn acts(&self) -> bool {
        !self.huge.is_empty() || !self.losers.is_empty()
    }
}

/// Returns every site of a plan, in order.
pub(super) fn planned_sites(plan: &Plan) -> Vec<Planned<'_>> {
    let empty = |site| Planned {
        site,
        huge: Vec::new(),
        losers: Vec::new(),
        together: false,
        benefit: 0.0,
    };
    let mut planned: Vec<Planned> = plan.sites.iter().map(empty).collect();
    let index: HashMap<u32, usize> = plan
        .sites
        .iter()
        .enumerate()
        .map(|(index, site)| (site.id, index))
        .collect();
    for region in &plan.regions {
        let Some(&index) = index.get(&region.site) else {
            continue;
        };
        let planned = &mut planned[index];
        let interval = (region.offset, region.end());
        if region.verdict == Verdict::Huge {
            planned.huge.push(interval);
            planned.together |= region.length < REGION;
            planned.benefit += region.benefit_ns;
        } else if plan.thp_always && region.why == Why::CostsMore {
            planned.losers.push(interval);
        }
    }
    for planned in &mut planned {
        planned.huge = merged(std::mem::take(&mut planned.huge));
        planned.losers = merged(std::mem::take(&mut planned.losers));
    }
    planned
}
