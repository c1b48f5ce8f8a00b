// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a plan to verify.

use toll_model::lines::{Line, lines};
use toll_model::plan::{Plan, Verdict, Why};
use toll_model::site::SiteKind;

/// A line to verify.
#[derive(Debug)]
pub struct Claim {
    pub memory: String,
    pub offset: u64,
    pub length: u64,
    pub predicted_ns: f64,
    /// Indices of the plan's regions.
    pub regions: Vec<usize>,
    /// The allocator makes the heap huge, which is all or nothing.
    pub whole_heap: bool,
}

/// The lines with the largest predicted savings.
pub fn claims(plan: &Plan, wanted: usize) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for line in lines(plan).into_iter().filter(|line| line.huge) {
        let site = plan.site(line.first.site);
        let in_heap = plan.whole_heap && site.is_some_and(|it| it.kind == SiteKind::Heap);
        match claims.iter_mut().find(|claim| in_heap && claim.whole_heap) {
            Some(heap) => heap.join(line),
            None => claims.push(Claim::new(line, in_heap)),
        }
    }
    claims.sort_by(|a, b| b.predicted_ns.total_cmp(&a.predicted_ns));
    claims.truncate(wanted);
    claims
}

impl Claim {
    fn new(line: Line<'_>, whole_heap: bool) -> Claim {
        Claim {
            offset: line.first.offset,
            length: line.length,
            predicted_ns: line.benefit - line.cost,
            memory: line.name,
            regions: line.regions,
            whole_heap,
        }
    }

    fn join(&mut self, line: Line<'_>) {
        self.length += line.length;
        self.predicted_ns += line.benefit - line.cost;
        self.regions.extend(line.regions);
    }

    /// The plan without this line.
    pub fn removed_from(&self, plan: &Plan) -> Plan {
        let mut rest = plan.clone();
        for &index in &self.regions {
            rest.regions[index].verdict = Verdict::Leave;
            // Under THP `always`, a plan removes huge pages that cost more than they save.
            rest.regions[index].why = if plan.thp_always {
                Why::CostsMore
            } else {
                Why::Spare
            };
        }
        rest.whole_heap &= !self.whole_heap;
        rest
    }
}
