// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the planned memory of a plan in a running process.
//!
//! Its allocations were not observed, so no allocation can be matched exactly:
//! - heap, fixed addresses, named mappings: by their kind;
//! - a block from malloc or mmap: by the only mapping of its size, if there is exactly one;
//! - a runtime's reservation: by the name that Go gives its memory; otherwise not found.
//!
//! Sites that are not found are listed and never guessed; `touched` selects mappings in their
//! place.

use std::collections::BTreeMap;

use toll_linux::proc::{Kind, Mapping};
use toll_linux::watch::{ENOUGH, Ranges, heap_start};
use toll_model::REGION;
use toll_model::plan::Plan;
use toll_model::site::{Level, Site, SiteKind};

/// Smaller mappings are not "large anonymous memory".
const LARGE: u64 = REGION;
/// A block's mapping may exceed the block by its header and by 1/64 of its length.
const SLACK: u64 = 64;

/// The memory of a process that a plan selects.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Regions (addresses, ascending) to act on.
    pub regions: Vec<u64>,
    /// Planned sites that were found, with the match level.
    pub found: Vec<(String, Level)>,
    /// Planned sites that were not found.
    pub lost: Vec<String>,
    /// Planned bytes of the allocations in `lost`.
    pub lost_bytes: u64,
    /// Where the planned memory was found.
    pub places: Ranges,
}

/// Finds the planned memory of `plan` among the mappings of a process.
pub fn resolve(plan: &Plan, maps: &[Mapping]) -> Resolved {
    let mut wanted = Vec::new();
    let mut resolved = Resolved::default();
    for (id, intervals) in planned(plan) {
        let Some(site) = plan.site(id) else {
            continue;
        };
        let rivals = plan.sites.iter().filter(|other| is_rival(site, other));
        match place(site, maps, rivals.count()) {
            Some((places, level)) => {
                resolved.found.push((site.to_string(), level));
                wanted.extend(places.iter().flat_map(|place| place.intervals(&intervals)));
            }
            None => {
                resolved.lost.push(site.to_string());
                if let SiteKind::Alloc { .. } = site.kind {
                    let bytes = intervals.iter().map(|(start, end)| end - start);
                    resolved.lost_bytes += bytes.sum::<u64>();
                }
            }
        }
    }
    let wanted = Ranges::new(wanted);
    resolved.regions = regions(&wanted, maps);
    resolved.places = wanted;
    resolved
}

/// The regions of a list of addresses that can be huge in this process.
pub fn fixed(list: &[u64], maps: &[Mapping]) -> Resolved {
    let wanted = Ranges::new(
        list.iter()
            .map(|region| (*region, region.saturating_add(REGION))),
    );
    let regions = regions(&wanted, maps);
    let lost = list
        .iter()
        .filter(|region| regions.binary_search(region).is_err());
    Resolved {
        lost: lost.map(|region| format!("address {region:#x}")).collect(),
        found: Vec::new(),
        lost_bytes: 0,
        places: wanted,
        regions,
    }
}

/// The planned byte intervals of each site.
fn planned(plan: &Plan) -> BTreeMap<u32, Vec<(u64, u64)>> {
    let mut intervals: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for region in plan.huge() {
        let list = intervals.entry(region.site).or_default();
        list.push((region.offset, region.end()));
    }
    intervals
}

/// The start of a site, and how much of it is planned.
struct Place {
    start: u64,
    end: u64,
    /// The whole place is planned, whatever the intervals.
    whole: bool,
}

impl Place {
    fn of(mapping: &Mapping, whole: bool) -> Place {
        Place {
            start: mapping.start,
            end: mapping.end,
            whole,
        }
    }

    fn intervals(&self, planned: &[(u64, u64)]) -> Vec<(u64, u64)> {
        if self.whole {
            return vec![(self.start, self.end)];
        }
        let at = |offset: u64| self.start.saturating_add(offset).min(self.end);
        planned
            .iter()
            .map(|(from, to)| (at(*from), at(*to)))
            .collect()
    }
}

/// Returns where a site lies; `None`: not found. `rivals`: other sites of the plan that would match
/// the same places.
fn place(site: &Site, maps: &[Mapping], rivals: usize) -> Option<(Vec<Place>, Level)> {
    match &site.kind {
        SiteKind::Heap => {
            let start = heap_start(maps)?;
            let heap = maps.iter().filter(|mapping| mapping.kind() == Kind::Heap);
            let end = heap.map(|mapping| mapping.end).max()?;
            let whole = false;
            Some((vec![Place { start, end, whole }], Level::Exact))
        }
        SiteKind::Address { start } => {
            let end = start.checked_add(site.length)?;
            let mapped = maps.iter().any(|m| m.start < end && m.end > *start);
            let place = Place {
                start: *start,
                end,
                whole: false,
            };
            mapped.then(|| (vec![place], Level::Exact))
        }
        SiteKind::Vma { name } => {
            let found = all(maps, |mapping| mapping.kind() == Kind::Named(name), false)?;
            Some((found, Level::Kind))
        }
        SiteKind::Anonymous => {
            let large = |mapping: &Mapping| mapping.kind() == Kind::Anonymous && is_large(mapping);
            Some((all(maps, large, true)?, Level::Kind))
        }
        SiteKind::Reservation { runtime } if runtime == "go" => {
            Some((all(maps, Mapping::is_go_heap, true)?, Level::Kind))
        }
        SiteKind::Alloc { .. } if rivals == 0 => {
            let mut found = all(maps, |mapping| is_block(mapping, site.length), false)?;
            (found.len() == 1).then(|| (vec![found.remove(0)], Level::Kind))
        }
        SiteKind::Alloc { .. }
        | SiteKind::Reservation { .. }
        | SiteKind::Stack
        // Other processes map it too, so it could not be split again.
        | SiteKind::Shared { .. }
        | SiteKind::File { .. } => None,
    }
}

/// Whether two allocations would match the same mapping.
fn is_rival(one: &Site, other: &Site) -> bool {
    let both =
        matches!(one.kind, SiteKind::Alloc { .. }) && matches!(other.kind, SiteKind::Alloc { .. });
    let (short, long) = (one.length.min(other.length), one.length.max(other.length));
    both && one.id != other.id && long - short <= slack(short)
}

/// The mappings that `wanted` accepts; `None` if there are none.
fn all(maps: &[Mapping], wanted: impl Fn(&Mapping) -> bool, whole: bool) -> Option<Vec<Place>> {
    let places: Vec<Place> = maps
        .iter()
        .filter(|mapping| mapping.is_private_anonymous() && wanted(mapping))
        .map(|mapping| Place::of(mapping, whole))
        .collect();
    (!places.is_empty()).then_some(places)
}

fn is_large(mapping: &Mapping) -> bool {
    mapping.len() >= LARGE
}

/// Whether a mapping may hold one block of `length` bytes and nothing else.
fn is_block(mapping: &Mapping, length: u64) -> bool {
    let fits = length..=length.saturating_add(slack(length));
    mapping.kind() == Kind::Anonymous && fits.contains(&mapping.len())
}

fn slack(length: u64) -> u64 {
    length / SLACK + 2 * toll_model::PAGE
}

/// The regions inside one mapping that can be huge, with at least 75 % wanted.
fn regions(wanted: &Ranges, maps: &[Mapping]) -> Vec<u64> {
    let eligible = maps.iter().filter(|mapping| mapping.is_private_anonymous());
    eligible
        .flat_map(|mapping| {
            let first = mapping.start.next_multiple_of(REGION);
            let end = mapping.end;
            (first..end)
                .step_by(REGION as usize)
                .filter(move |region| end - region >= REGION)
        })
        .filter(|region| wanted.covered(*region, region + REGION) >= ENOUGH)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toll_model::plan::Verdict;
    use toll_testkit::model;

    use super::*;

    const BASE: u64 = 0x7f00_0000_0000;

    fn mapping(start: u64, length: u64, name: &str) -> Mapping {
        model::mapping(start, start + length, name)
    }

    /// A plan that wants the first `regions` regions of each of these sites.
    fn plan(wanted: Vec<(SiteKind, u64, u64)>) -> Plan {
        let (mut sites, mut regions) = (Vec::new(), Vec::new());
        for (id, (kind, length, number)) in (0..).zip(wanted) {
            sites.push(model::site(id, kind, length));
            regions.extend((0..number).map(|n| model::region(id, n, Verdict::Huge)));
        }
        model::plan(Path::new(""), sites, regions)
    }

    fn alloc(ordinal: u32) -> SiteKind {
        SiteKind::Alloc {
            frames: Vec::new(),
            class: 25,
            ordinal,
            thread: 0,
            shared: false,
        }
    }

    #[test]
    fn heap_intervals_follow_the_heap_and_its_alignment() {
        // The heap begins half a region past a boundary: three planned regions hold two whole ones.
        let heap = mapping(BASE + REGION / 2, 8 * REGION, "[heap]");
        let resolved = resolve(&plan(vec![(SiteKind::Heap, 8 * REGION, 3)]), &[heap]);
        assert_eq!(resolved.regions, [BASE + REGION, BASE + 2 * REGION]);
        assert_eq!(resolved.found, [("heap".to_owned(), Level::Exact)]);
    }

    #[test]
    fn a_block_is_found_by_its_size_only_where_there_is_one_such_mapping() {
        let length = 32 << 20;
        let plan = plan(vec![(alloc(0), length, 2)]);
        let one = mapping(BASE, length + 4096, "");
        let resolved = resolve(&plan, std::slice::from_ref(&one));
        assert_eq!(resolved.regions, [BASE, BASE + REGION]);
        assert_eq!(resolved.found[0].1, Level::Kind);
        let other = mapping(BASE + (1 << 30), length + 4096, "");
        let resolved = resolve(&plan, &[one, other]);
        assert!(resolved.regions.is_empty(), "never a guess");
        assert_eq!(resolved.lost.len(), 1);
    }

    #[test]
    fn two_blocks_of_one_size_are_not_told_apart() {
        let length = 32 << 20;
        let plan = plan(vec![(alloc(0), length, 2), (alloc(1), length, 0)]);
        let resolved = resolve(&plan, &[mapping(BASE, length + 4096, "")]);
        assert!(resolved.regions.is_empty());
        assert_eq!(resolved.lost.len(), 1);
    }

    #[test]
    fn shared_and_file_memory_is_left_alone() {
        let mut shared = mapping(BASE, 8 * REGION, "");
        shared.shared = true;
        let mut file = mapping(BASE + (1 << 30), 8 * REGION, "/lib/x.so");
        file.inode = 7;
        let address = SiteKind::Address { start: BASE };
        let resolved = resolve(&plan(vec![(address, 8 * REGION, 8)]), &[shared, file]);
        assert!(resolved.regions.is_empty());
    }

    #[test]
    fn what_the_plan_leaves_is_neither_found_nor_lost() {
        let plan = plan(vec![(SiteKind::Heap, 8 * REGION, 0)]);
        assert_eq!(resolve(&plan, &[]), Resolved::default());
    }

    #[test]
    fn anonymous_memory_is_taken_whole_from_2_mib_on() {
        let large = mapping(BASE, 4 * REGION, "");
        let small = mapping(BASE + (1 << 30), REGION - 4096, "");
        let plan = plan(vec![(SiteKind::Anonymous, 4 * REGION, 1)]);
        let resolved = resolve(&plan, &[large, small]);
        assert_eq!(resolved.regions.len(), 4);
    }
}
