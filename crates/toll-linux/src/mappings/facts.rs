// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings that hold for a process, and the facts of each mapping.

use toll_model::eligibility::{Advice, Backing, Facts, HugeOption, Mode, Policy, regions, spread};
use toll_model::{PAGE, REGION};

use crate::Root;
use crate::proc::{self, Kind, Mapping, Mount, Pagemap, Smap, Status};
use crate::sys::{self, Limit, Thp};

/// Longest mapping for which all pages are looked up: 512 MiB of page map entries.
const LONGEST: u64 = 256 << 30;

/// What is the same for all mappings of a process.
#[derive(Debug)]
pub struct Survey {
    pub thp: Option<Thp>,
    pub policy: Policy,
    /// The control group's limit, if it has one.
    pub limit: Option<Limit>,
    pub headroom: Option<u64>,
    mounts: Vec<Mount>,
    pagemap: Option<Pagemap>,
}

impl Survey {
    /// Reads the settings. What cannot be read counts as not set.
    pub fn read(root: &Root, pid: u32, status: Option<&Status>) -> Survey {
        let thp = Thp::read(root);
        let limit = sys::limit_of(root, pid);
        let headroom = limit.as_ref().map(|limit| limit.headroom(root));
        let shmem = thp.as_ref().and_then(Thp::shmem_mode);
        let policy = Policy {
            mode: thp.as_ref().map_or(Mode::Missing, mode),
            shmem: shmem.map_or(HugeOption::Never, HugeOption::parse),
            disabled: status.is_some_and(|status| status.thp_enabled == Some(false)),
            group_is_full: headroom.is_some_and(|bytes| bytes < REGION),
            khugepaged_is_off: thp
                .as_ref()
                .is_some_and(|thp| thp.khugepaged.pages_to_scan == Some(0)),
        };
        Survey {
            thp,
            policy,
            limit,
            headroom,
            mounts: proc::mounts(root, pid).unwrap_or_default(),
            pagemap: Pagemap::open(root, pid).ok(),
        }
    }

    /// Whether it is known where in a mapping the pages are.
    pub fn sees_pages(&self) -> bool {
        self.pagemap.is_some()
    }

    /// What holds the pages of a mapping.
    pub fn backing(&self, smap: &Smap) -> Backing {
        let mapping = &smap.mapping;
        match mapping.kind() {
            _ if smap.page > PAGE || smap.hugetlb > 0 => Backing::Hugetlb,
            _ if smap.device => Backing::Kernel,
            Kind::Special => Backing::Kernel,
            Kind::File(path) => self.of_file(mapping, path),
            Kind::Named(_) if mapping.shared => Backing::Shared,
            _ => Backing::Anonymous,
        }
    }

    fn of_file(&self, mapping: &Mapping, path: &str) -> Backing {
        let mut mounts = self.mounts.iter().rev();
        match mounts.find(|mount| mount.device == mapping.device) {
            Some(mount) if mount.kind == "tmpfs" => {
                let option = mount.option("huge").unwrap_or("never");
                Backing::Tmpfs(HugeOption::parse(option))
            }
            Some(_) => Backing::File,
            // The kernel's own mount is in no list.
            None if proc::OWN.iter().any(|name| path.starts_with(name)) => Backing::Shared,
            None => Backing::File,
        }
    }

    /// The facts of one mapping.
    pub fn facts(&self, smap: &Smap) -> Facts {
        let mapping = &smap.mapping;
        let backing = self.backing(smap);
        let mut facts = Facts {
            start: mapping.start,
            end: mapping.end,
            offset: mapping.offset,
            backing,
            advice: advice(smap),
            userfaultfd: smap.userfaultfd,
            eligible: smap.eligible,
            resident: smap.rss + smap.hugetlb,
            huge: smap.huge(),
            copied: smap.anonymous,
            edges: 0,
            sparse: 0,
        };
        if facts.resident > facts.huge && !matches!(backing, Backing::File | Backing::Kernel) {
            (facts.edges, facts.sparse) = self.spread(&facts).unwrap_or_default();
        }
        facts
    }

    /// Where the pages are: bytes outside of regions, and in regions with few pages.
    fn spread(&self, facts: &Facts) -> Option<(u64, u64)> {
        const ALL: u64 = REGION / PAGE - 1;
        let pagemap = self.pagemap.as_ref()?;
        let inner = regions(facts.start, facts.end, facts.offset, facts.backing);
        if inner.0 == inner.1 {
            return None;
        }
        let missing = self.thp.as_ref().and_then(|thp| thp.max_ptes_none);
        let missing = missing.unwrap_or(ALL);
        let runs = if missing < ALL && facts.end - facts.start <= LONGEST {
            pagemap.present(facts.start, facts.end).ok()?
        } else {
            let mut runs = pagemap.present(facts.start, inner.0).ok()?;
            runs.extend(pagemap.present(inner.1, facts.end).ok()?);
            runs
        };
        Some(spread(&runs, inner, missing))
    }
}

fn mode(thp: &Thp) -> Mode {
    match thp.region_mode() {
        sys::Mode::Always => Mode::Always,
        sys::Mode::Madvise => Mode::Madvise,
        sys::Mode::Inherit | sys::Mode::Never => Mode::Never,
    }
}

fn advice(smap: &Smap) -> Advice {
    match (smap.advised_never, smap.advised_huge) {
        (true, _) => Advice::Never,
        (_, true) => Advice::Huge,
        _ => Advice::None,
    }
}

#[cfg(test)]
mod tests;
