// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of large pages that can hold a program's memory.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// A kind of large pages, and the memory that they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PageKind {
    /// Huge pages of 2 MiB in private anonymous memory.
    #[serde(rename = "anonymous-2m")]
    Anonymous,
    /// The same in shared memory: shared anonymous, memfd, tmpfs.
    #[serde(rename = "shared-2m")]
    Shared,
    /// The same in program text.
    #[serde(rename = "text-2m")]
    Text,
    /// Large pages of the page cache, which hold files of a disk.
    #[serde(rename = "file")]
    File,
    /// Pages of 16 KiB to 1 MiB in anonymous memory (mTHP).
    #[serde(rename = "mthp")]
    Mthp,
    /// Reserved pages of 2 MiB.
    #[serde(rename = "hugetlb-2m")]
    Hugetlb2m,
    /// Reserved pages of 1 GiB.
    #[serde(rename = "hugetlb-1g")]
    Hugetlb1g,
}

impl PageKind {
    /// All kinds, in the order of their names in lists.
    pub const ALL: [PageKind; 7] = [
        PageKind::Anonymous,
        PageKind::Shared,
        PageKind::Text,
        PageKind::File,
        PageKind::Mthp,
        PageKind::Hugetlb2m,
        PageKind::Hugetlb1g,
    ];

    /// Returns a short text for lists.
    pub fn words(self) -> &'static str {
        match self {
            PageKind::Anonymous => "anonymous, 2 MiB",
            PageKind::Shared => "shared memory, 2 MiB",
            PageKind::Text => "program text, 2 MiB",
            PageKind::File => "files",
            PageKind::Mthp => "16 KiB to 1 MiB",
            PageKind::Hugetlb2m => "hugetlb, 2 MiB",
            PageKind::Hugetlb1g => "hugetlb, 1 GiB",
        }
    }
}

impl fmt::Display for PageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl Plan {
    /// Returns the kinds of pages that the plan uses.
    pub fn pages(&self) -> Vec<PageKind> {
        let kind = |region: &crate::plan::Region| {
            let is_shared = self.site(region.site)?.kind.is_shared();
            Some(match is_shared {
                true => PageKind::Shared,
                false => PageKind::Anonymous,
            })
        };
        let text = (!self.text.is_empty()).then_some(PageKind::Text);
        let mut kinds: Vec<PageKind> = self.huge().filter_map(kind).chain(text).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}
