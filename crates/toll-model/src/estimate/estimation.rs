// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of an estimation: chunks, the units to choose from, and their common uncertainty.

use std::collections::HashSet;

use super::choose::Unit;
use super::chunk::{Chunk, eligible};
use super::doubts::{place_doubt, sampled, source_doubt};
use super::neighbours::Group;
use super::options::Options;
use super::range::{Doubt, sum};
use crate::cost::CostTable;
use crate::plan::Estimate;
use crate::profile::Profile;
use crate::site::SiteKind;

/// State of an estimation.
pub(super) struct Estimation<'a> {
    pub profile: &'a Profile,
    pub costs: &'a CostTable,
    pub options: Options,
    pub chunks: Vec<Chunk>,
    pub units: Vec<Unit>,
    /// Small blocks that fill regions together.
    pub groups: Vec<Group>,
    /// Benefit of making everything eligible huge, ns.
    pub everything: f64,
    /// All misses of the profile.
    pub misses: f64,
    /// Time in walks that huge pages could avert if all memory were huge, ns.
    pub overhead: Estimate,
    /// Time of one run without the plan, ns, if known.
    pub baseline: Option<Estimate>,
    /// Whether the heap is one unit, which the allocator makes huge.
    pub whole_heap: bool,
    /// Time that everything huge saves, ns, from a measured upper bound combined with the model.
    pub measured: Option<Estimate>,
}

impl Estimation<'_> {
    /// Returns all sources of uncertainty of the benefit of some chunks.
    pub fn doubts(&self, chunks: &[&Chunk]) -> [Doubt; 3] {
        let [estimate, source] = self.shared(sum(chunks.iter().map(|chunk| chunk.benefit)));
        [estimate, source, sampled(chunks)]
    }

    /// Returns the uncertainty of a set's benefit relative to that of all other eligible memory. A
    /// common error of all costs is excluded: it does not change shares.
    pub fn odds(&self, set: &[&Chunk]) -> Doubt {
        let in_set: HashSet<*const Chunk> = set.iter().map(|&chunk| chunk as *const _).collect();
        let is_rest = |chunk: &&Chunk| !in_set.contains(&(*chunk as *const _));
        let rest: Vec<&Chunk> = eligible(&self.chunks).filter(is_rest).collect();
        let benefit = |chunks: &[&Chunk]| sum(chunks.iter().map(|chunk| chunk.benefit));
        Doubt::all(&[
            Doubt::beside(benefit(set), benefit(&rest)),
            place_doubt(self.profile.source),
            sampled(set),
            sampled(&rest).inverse(),
        ])
    }

    /// Returns the uncertainty of a benefit that all regions share.
    fn shared(&self, benefit: Estimate) -> [Doubt; 2] {
        [Doubt::of(benefit), source_doubt(self.profile.source)]
    }

    /// Returns the chunks that can be huge, as regions or whole sites.
    pub fn units(&self) -> Vec<Unit> {
        let in_groups = self.groups.iter().flat_map(|group| &group.chunks);
        let joint: HashSet<usize> = in_groups.copied().collect();
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for (index, chunk) in self.chunks.iter().enumerate() {
            let same = |set: &Vec<usize>| self.chunks[set[0]].site == chunk.site;
            match sets.last_mut() {
                _ if joint.contains(&index) => {}
                Some(last) if self.is_whole(chunk.site) && same(last) => last.push(index),
                _ => sets.push(vec![index]),
            }
        }
        let alone = sets.into_iter().map(|set| self.unit(set));
        let together = self.groups.iter().map(|group| Unit {
            is_joint: true,
            regions: group.regions,
            ..self.unit(group.chunks.clone())
        });
        let units = alone.chain(together);
        units.filter(|unit| unit.regions > 0).collect()
    }

    /// Combines chunks into one unit; must not be empty.
    fn unit(&self, chunks: Vec<usize>) -> Unit {
        let first = &self.chunks[chunks[0]];
        let last = &self.chunks[chunks[chunks.len() - 1]];
        let mut unit = Unit {
            site: first.site,
            bytes: first.offset..last.offset + last.length,
            is_joint: false,
            chunks: Vec::new(),
            regions: 0,
            benefit: 0.0,
            refund: 0.0,
            net: Estimate::exact(0.0),
            most: 0.0,
            misses: 0.0,
            verdict: None,
        };
        for chunk in self.eligible(&chunks) {
            unit.regions += 1;
            unit.benefit += chunk.benefit.median;
            unit.refund += (-chunk.cost()).max(0.0);
            unit.net = sum([unit.net, chunk.net(&[])].into_iter());
            unit.most += chunk.net(&self.shared(chunk.benefit)).high;
            unit.misses += chunk.misses;
        }
        Unit { chunks, ..unit }
    }

    /// Filters chunks that can be huge.
    pub fn eligible<'c>(&'c self, chunks: &'c [usize]) -> impl Iterator<Item = &'c Chunk> {
        let chunks = chunks.iter().map(|&index| &self.chunks[index]);
        chunks.filter(|chunk| chunk.barred.is_none())
    }

    /// Whether a site is advised as a whole because its offsets have no meaning in another run.
    fn is_whole(&self, site: u32) -> bool {
        let kind = &self.profile.sites[site as usize].site.kind;
        match kind {
            SiteKind::Anonymous | SiteKind::Reservation { .. } => true,
            SiteKind::Heap => self.whole_heap,
            _ => false,
        }
    }

    /// Returns the time that everything huge takes. Unused regions are left out: the program does
    /// not wait for them.
    pub fn times(&self) -> Estimate {
        let used = eligible(&self.chunks).filter(|chunk| chunk.is_used());
        sum(used.map(|chunk| chunk.time))
    }

    /// Returns the share of a benefit in that of everything huge.
    pub fn share(&self, benefit: f64) -> f64 {
        match self.everything > 0.0 {
            true => (benefit / self.everything).min(1.0),
            false => 0.0,
        }
    }
}
