// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared memory that only forks of the watched process touch, as the backends of a database do: no
//! page table of the watched process shows it.

use std::io;

use toll_model::REGION;

use super::{Backing, Ranges};
use crate::Root;
use crate::proc::{self, Mapping};

/// Returns the backing in forks of a process, of those of its regions that are shared memory.
pub fn of_forks(root: &Root, pid: u32, maps: &[Mapping], regions: &[u64]) -> Backing {
    let mut all = Backing::default();
    let mut rest = shared(maps, regions);
    if rest.is_empty() {
        return all;
    }
    for fork in proc::tree(root, pid).into_iter().skip(1) {
        if rest.is_empty() {
            break;
        }
        let found = of_fork(root, fork, maps, &rest).unwrap_or_default();
        rest.retain(|region| !found.has(*region));
        all.huge.extend(found.huge);
        all.small.extend(found.small);
    }
    all
}

fn shared(maps: &[Mapping], regions: &[u64]) -> Vec<u64> {
    let is_shared = |region: &&u64| mapping_at(maps, **region).is_some_and(|it| it.shared);
    regions.iter().filter(is_shared).copied().collect()
}

/// A fork has the mappings of its parent where neither has changed them.
fn of_fork(root: &Root, pid: u32, maps: &[Mapping], regions: &[u64]) -> io::Result<Backing> {
    let theirs = proc::maps(root, pid)?;
    let is_same = |region: &&u64| mapping_at(&theirs, **region) == mapping_at(maps, **region);
    let same = regions.iter().filter(is_same);
    let ranges = Ranges::new(same.map(|region| (*region, region + REGION)));
    Backing::of(root, pid, &ranges.iter().collect::<Vec<_>>())
}

/// Returns the mapping at an address, of a list in ascending order.
pub(super) fn mapping_at(maps: &[Mapping], address: u64) -> Option<&Mapping> {
    let at = maps.partition_point(|mapping| mapping.end <= address);
    maps.get(at).filter(|mapping| mapping.start <= address)
}
