// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the machine offers in large pages.

use toll_linux::sys::{Hugetlb, Mode, Thp, hugetlb};
use toll_linux::{Root, cpu};
use toll_model::REGION;

/// What the machine offers.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// Whether no huge page can hold shared memory.
    pub shared_forbidden: bool,
    /// Sizes below 2 MiB with their settings, `inherit` resolved.
    pub sizes: Vec<(u64, Mode)>,
    /// The size below 2 MiB that `tune` may try, although that changes the machine for each run.
    pub may_try: Option<u64>,
    pub pools: Vec<Hugetlb>,
    /// Program text that the instruction TLB reaches with 4 KiB pages, bytes.
    pub text_reach: u64,
    /// Why the program does not load the preload library, if so.
    pub obstacle: Option<String>,
}

impl Machine {
    /// Reads the settings of this machine; `obstacle` is of the program.
    pub fn here(obstacle: Option<String>, may_try: Option<u64>) -> Machine {
        let root = Root::system();
        let thp = Thp::read(&root);
        Machine {
            shared_forbidden: thp.as_ref().is_some_and(Thp::forbids_shared),
            sizes: thp.as_ref().map_or_else(Vec::new, smaller_sizes),
            may_try,
            pools: hugetlb(&root),
            text_reach: cpu::instruction_reach(),
            obstacle,
        }
    }

    /// The size to try: the given one, unless memory has it already.
    pub fn size_to_try(&self) -> Option<u64> {
        let is_used = |size: &u64| self.sizes.contains(&(*size, Mode::Always));
        self.may_try.filter(|size| !is_used(size))
    }

    pub(super) fn pool(&self, page: u64) -> Option<&Hugetlb> {
        self.pools.iter().find(|pool| pool.page == page)
    }

    /// Whether the pool has room for this much memory, in pages of this size.
    pub fn has_pool(&self, page: u64, bytes: u64) -> bool {
        let available = self
            .pool(page)
            .map_or(0, |pool| pool.free + pool.overcommit);
        available >= pages(page, bytes)
    }
}

fn smaller_sizes(thp: &Thp) -> Vec<(u64, Mode)> {
    let resolved = |mode| match mode {
        Mode::Inherit => thp.mode,
        own => own,
    };
    let sizes = thp.sizes.iter().filter(|(size, _)| *size < REGION);
    sizes.map(|(size, mode)| (*size, resolved(*mode))).collect()
}

/// Pages that hold this much memory.
pub fn pages(page: u64, bytes: u64) -> u64 {
    bytes.div_ceil(page).max(1)
}
