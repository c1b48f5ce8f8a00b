// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which kinds of large pages are tried, and why the others are not.

mod machine;
mod text;

use serde::{Deserialize, Serialize};
use toll_linux::sys::Mode;
use toll_model::pages::PageKind;
use toll_model::plan::Plan;
use toll_model::profile::{Profile, SiteRows};
use toll_model::site::{Site, SiteKind};
use toll_model::{REGION, numbers};
use toll_observe::observation::Observation;

pub use machine::{Machine, pages};
pub use text::hot_text;
use text::touched_text;

/// Bytes of a reserved page of the largest size.
const GIB: u64 = 1 << 30;
/// A kind with a smaller share of the misses cannot pay: even without them the program would gain
/// less than the 2 % that matter, as no program spends all of its time in misses.
const LEAST: f64 = 0.02;
/// How pages below 2 MiB are tried.
const TRY_SMALLER: &str = "as root, `tune --mthp 64K` tries those of 64 KiB";
const SYSFS: &str = "/sys/kernel/mm/transparent_hugepage";

/// A kind of pages, and whether it is tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    pub pages: PageKind,
    pub tried: bool,
    pub reason: String,
}

/// What the kinds are judged by.
#[derive(Debug)]
pub struct Evidence<'a> {
    pub look: &'a Observation,
    pub machine: &'a Machine,
    pub profile: Option<&'a Profile>,
    pub plan: Option<&'a Plan>,
    /// The kinds of all variants that ran.
    pub ran: Vec<PageKind>,
    /// Whether the program has the malloc of glibc.
    pub has_glibc: bool,
    /// The share of the CPU time that page faults take, by the cost of one on this machine.
    pub fault_share: Option<f64>,
}

impl Evidence<'_> {
    /// Returns all kinds, with the reason for trying each or not.
    pub fn kinds(&self) -> Vec<Kind> {
        PageKind::ALL.into_iter().map(|it| self.kind(it)).collect()
    }

    fn kind(&self, pages: PageKind) -> Kind {
        let tried = self.ran.contains(&pages);
        let reason = match tried {
            true => self.gives(pages),
            false => self.without(pages),
        };
        Kind {
            pages,
            tried,
            reason,
        }
    }

    /// Why a kind is not tried by itself.
    fn without(&self, pages: PageKind) -> String {
        match pages {
            PageKind::Anonymous => self.without_plan(),
            PageKind::Shared => self.without_shared(),
            PageKind::Text => self.without_text(),
            PageKind::File => self.files(),
            PageKind::Mthp => self.mthp(),
            PageKind::Hugetlb2m => self.without_pool(REGION),
            PageKind::Hugetlb1g => self.without_pool(GIB),
        }
    }

    /// What was tried of a kind.
    fn gives(&self, pages: PageKind) -> String {
        let planned = |plan: &Plan| -> u64 {
            let is_kind = |site: &Site| site.kind.is_shared() == (pages == PageKind::Shared);
            let of_kind = |id: u32| plan.site(id).is_some_and(is_kind);
            let regions = plan.huge().filter(|region| of_kind(region.site));
            regions.map(|region| region.length).sum()
        };
        match pages {
            PageKind::Anonymous | PageKind::Shared => match self.plan.map_or(0, planned) {
                0 => format!("only as part of everything huge: {}", self.without(pages)),
                bytes => format!("the plan has {}", numbers::bytes(bytes)),
            },
            PageKind::Text => touched_text(self.look),
            PageKind::Mthp => self.smaller_pages(),
            _ => format!("malloc has {}", numbers::bytes(self.look.anonymous)),
        }
    }

    fn without_plan(&self) -> String {
        match self.plan {
            Some(plan) if plan.does_nothing() => plan
                .reason
                .trim_start_matches("Do nothing: ")
                .trim_end_matches('.')
                .to_owned(),
            Some(_) => "no region of it pays".to_owned(),
            None => "there is no plan".to_owned(),
        }
    }

    fn without_shared(&self) -> String {
        let share = self.share(SiteKind::is_shared);
        let Some(share) = share else {
            return "there is no profile".to_owned();
        };
        let within = format!("{} of the misses are in it", numbers::percent(share));
        match self.machine.shared_forbidden {
            _ if share < LEAST => within,
            true => format!(
                "{within}, but shmem_enabled is deny: as root, `echo never >{SYSFS}/shmem_enabled`"
            ),
            false => format!("{within}, but no region of it pays"),
        }
    }

    fn without_text(&self) -> String {
        hot_text(self.look, self.machine)
            .err()
            .unwrap_or_else(|| "there was no time for it".to_owned())
    }

    fn files(&self) -> String {
        // Programs and libraries have a build-id.
        let is_data = |kind: &SiteKind| matches!(kind, SiteKind::File { build_id, .. } if build_id.is_empty());
        let share = self.share(is_data);
        let Some(share) = share else {
            return "there is no profile".to_owned();
        };
        let within = format!("{} of the misses are in files", numbers::percent(share));
        match share < LEAST {
            true => within,
            false => format!(
                "{within}; no advice makes pages of a disk's file system larger: `tollfree run \
                 --morsel FILE` serves a file from huge pages"
            ),
        }
    }

    /// Pages below 2 MiB pay where a block is too short for one of 2 MiB, and where many pages are
    /// touched for the first time: a fault for 64 KiB replaces up to 16. Only settings of the whole
    /// machine allow them, so they are tried on request only.
    fn mthp(&self) -> String {
        let Some((short, within)) = self.short_blocks() else {
            return "there is no profile".to_owned();
        };
        let faults = self.fault_share.unwrap_or_default();
        match short.max(faults) < LEAST {
            true => within,
            false => format!("{within}; {}", self.smaller_sizes()),
        }
    }

    /// The pages below 2 MiB that were tried, and what the profile says about them.
    fn smaller_pages(&self) -> String {
        let size = numbers::bytes(self.machine.may_try.unwrap_or_default());
        match self.short_blocks() {
            None => format!("pages of {size}"),
            Some((_, within)) => format!("pages of {size}; {within}"),
        }
    }

    /// The share of the misses in short blocks; in words, that of page faults as well.
    fn short_blocks(&self) -> Option<(f64, String)> {
        let share = self.short()?;
        let mut within = format!(
            "{} of the misses are in blocks that are too short for 2 MiB",
            numbers::percent(share)
        );
        if let Some(faults) = self.fault_share {
            within += &format!(
                ", about {} of the CPU time is in page faults",
                numbers::percent(faults)
            );
        }
        Some((share, within))
    }

    /// What the settings do with pages below 2 MiB.
    fn smaller_sizes(&self) -> String {
        let sizes = &self.machine.sizes;
        let largest = |wanted: Mode| {
            let found = sizes.iter().rfind(|(_, mode)| *mode == wanted);
            found.map(|(size, _)| numbers::bytes(*size))
        };
        match (largest(Mode::Always), largest(Mode::Madvise)) {
            _ if sizes.is_empty() => "this kernel has no such sizes (Linux 6.8)".to_owned(),
            (Some(size), _) => format!("pages of {size} are used already"),
            (None, Some(size)) => format!(
                "pages of {size} need advice, which only memory of at least 2 MiB gets: \
                 {TRY_SMALLER}"
            ),
            (None, None) => format!("larger ones take a setting of the machine: {TRY_SMALLER}"),
        }
    }

    /// Why no memory is taken from the pool with pages of this size.
    fn without_pool(&self, page: u64) -> String {
        let needed = pages(page, self.look.anonymous);
        let is_planned = |plan: &Plan| plan.pages().contains(&PageKind::Anonymous);
        if !self.plan.is_some_and(is_planned) {
            return "no plan has anonymous memory".to_owned();
        }
        if !self.has_glibc {
            return "only malloc of glibc can take all its memory from a pool".to_owned();
        }
        let Some(pool) = self.machine.pool(page) else {
            return "this machine has no such pages".to_owned();
        };
        let available = pool.free + pool.overcommit;
        if available >= needed {
            return "there was no time for it".to_owned();
        }
        let total = pool.total - pool.free + needed;
        let kilobytes = page >> 10;
        format!(
            "the pool has {available} of the {} needed: as root, `echo {total} \
             >/sys/kernel/mm/hugepages/hugepages-{kilobytes}kB/nr_hugepages`",
            numbers::of(needed as usize, "page")
        )
    }

    /// The share of the misses in sites of a kind.
    fn share(&self, wanted: impl Fn(&SiteKind) -> bool) -> Option<f64> {
        let profile = self.profile?;
        let sites = profile.sites.iter().filter(|rows| wanted(&rows.site.kind));
        Some(misses(sites) / profile.misses().max(1.0))
    }

    /// The share of the misses in blocks that are too short.
    fn short(&self) -> Option<f64> {
        let profile = self.profile?;
        let is_block = |kind: &SiteKind| matches!(kind, SiteKind::Alloc { .. });
        let short = profile
            .sites
            .iter()
            .filter(|rows| rows.site.length < REGION && is_block(&rows.site.kind));
        Some(misses(short) / profile.misses().max(1.0))
    }
}

/// The sum over some sites; 0 without any, where `sum` returns -0.
fn misses<'a>(sites: impl Iterator<Item = &'a SiteRows>) -> f64 {
    let rows = sites.flat_map(|rows| &rows.rows);
    rows.fold(0.0, |sum, row| sum + row.misses)
}

#[cfg(test)]
mod tests;
