// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a process that can be switched: mappings that were touched within a window, by
//! their accessed bits.
//!
//! The bits are counted for a mapping as a whole, so all of its regions are selected, those of the
//! most touched mappings first. A region with 4 KiB pages is selected if at least half of it is
//! resident: a collapse allocates the rest, and it stays allocated.

use std::collections::HashSet;
use std::io;

use toll_linux::Root;
use toll_linux::proc::{self, Kind, Pagemap, Smap};
use toll_linux::watch::{Backing, Ranges, WatchPlan, grown};
use toll_model::REGION;

/// A region is selected if at least this much of it is resident: half.
const MOSTLY: u64 = REGION / 2;

/// Memory that can be switched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Addresses, and whether the region is huge now; those of the most touched mappings first.
    pub regions: Vec<(u64, bool)>,
    /// Bytes without a page in these regions.
    pub holes: u64,
    pub left_out: Shares,
}

/// Resident bytes of memory that is left out, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shares {
    /// Private anonymous memory that was not touched.
    pub idle: u64,
    /// The same with MADV_NOHUGEPAGE, or locked by mlock.
    pub forbidden: u64,
    /// Shared memory and files.
    pub shared: u64,
}

impl Selection {
    /// Selects memory that was touched since [`clear`](toll_linux::accessed::clear).
    ///
    /// # Errors
    /// No such process, not permitted, or a kernel without PAGEMAP_SCAN.
    pub fn of(pid: u32) -> io::Result<Selection> {
        let (root, mut selection) = (Root::system(), Selection::default());
        let mut touched = Vec::new();
        proc::smaps_each(&root, pid, |smap| selection.sort(smap, &mut touched))?;
        touched.sort_by(|one, other| density(other).total_cmp(&density(one)));
        for smap in touched {
            selection.take(&root, pid, &smap)?;
        }
        Ok(selection)
    }

    /// Bytes of the regions that are huge now.
    pub fn huge(&self) -> u64 {
        self.regions.iter().filter(|(_, huge)| *huge).count() as u64 * REGION
    }

    /// The regions of one page size, ascending.
    pub fn of_size(&self, huge: bool) -> Vec<u64> {
        let regions = self.regions.iter().filter(|(_, is)| *is == huge);
        let mut regions: Vec<u64> = regions.map(|(region, _)| *region).collect();
        regions.sort_unstable();
        regions
    }

    /// Adds a mapping to `touched`, or its memory to what is left out.
    fn sort(&mut self, smap: Smap, touched: &mut Vec<Smap>) {
        let mapping = &smap.mapping;
        if !mapping.is_private_anonymous() || mapping.kind() == Kind::Stack {
            self.left_out.shared += smap.rss;
        } else if smap.advised_never || smap.locked {
            self.left_out.forbidden += smap.rss;
        } else if smap.referenced == 0 {
            self.left_out.idle += smap.rss;
        } else {
            touched.push(smap);
        }
    }

    fn take(&mut self, root: &Root, pid: u32, smap: &Smap) -> io::Result<()> {
        let everything = WatchPlan {
            all: true,
            ..WatchPlan::default()
        };
        let regions = grown(std::slice::from_ref(&smap.mapping), &everything, None);
        let (Some(first), Some(last)) = (regions.first(), regions.last()) else {
            return Ok(());
        };
        let range = (*first, last + REGION);
        let huge: HashSet<u64> = Backing::of(root, pid, &[range])?.huge.into_iter().collect();
        let present = Ranges::new(Pagemap::open(root, pid)?.present(range.0, range.1)?);
        for region in regions {
            let resident = present.covered(region, region + REGION);
            if resident >= MOSTLY {
                self.regions.push((region, huge.contains(&region)));
                self.holes += REGION - resident;
            }
        }
        Ok(())
    }
}

/// Touched bytes per resident byte.
fn density(smap: &Smap) -> f64 {
    smap.referenced as f64 / smap.rss.max(1) as f64
}
