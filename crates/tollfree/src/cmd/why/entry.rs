// SPDX-License-Identifier: MIT OR Apache-2.0
//! One mapping with its verdict. A process may have 60,000 of them, so an entry is small.

use serde::Serialize;
use toll_linux::mappings::{Inner, Survey};
use toll_linux::proc::{Kind as Name, Smap};
use toll_model::eligibility::{Advice, Backing, Reason, Share, regions};

/// Kind of a mapping, as it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Anonymous,
    Heap,
    Stack,
    SharedMemory,
    Tmpfs,
    File,
    Hugetlb,
    Kernel,
}

impl Kind {
    pub fn title(self) -> &'static str {
        match self {
            Kind::Anonymous => "anonymous",
            Kind::Heap => "heap",
            Kind::Stack => "stack",
            Kind::SharedMemory => "shared memory",
            Kind::Tmpfs => "tmpfs",
            Kind::File => "file",
            Kind::Hugetlb => "hugetlb",
            Kind::Kernel => "kernel",
        }
    }
}

/// A mapping. Sizes are bytes.
#[derive(Debug, Clone)]
pub struct Entry {
    pub start: u64,
    pub end: u64,
    pub kind: Kind,
    /// Path or bracketed name; empty for anonymous memory.
    pub name: Box<str>,
    pub resident: u64,
    pub huge: u64,
    /// Size of the pages that `huge` counts.
    pub huge_page: u64,
    pub eligible: u64,
    pub swap: u64,
    pub lazy_free: u64,
    pub advice: Advice,
    /// Anonymous memory, which may have huge pages with unused parts.
    is_anonymous: bool,
    pub shares: Vec<Share>,
    pub also: Vec<Reason>,
}

impl Entry {
    pub fn new(survey: &Survey, smap: Smap) -> Entry {
        let facts = survey.facts(&smap);
        let verdict = facts.judge(&survey.policy);
        Entry {
            start: facts.start,
            end: facts.end,
            kind: kind(&smap, facts.backing),
            resident: facts.resident,
            huge: facts.huge.min(facts.resident),
            huge_page: smap.page.max(toll_model::REGION),
            eligible: verdict.eligible,
            swap: smap.swap,
            lazy_free: smap.lazy_free,
            advice: facts.advice,
            is_anonymous: facts.backing == Backing::Anonymous,
            shares: verdict.shares,
            also: verdict.also,
            name: smap.mapping.name,
        }
    }

    /// The reason for the most memory in 4 KiB pages.
    pub fn reason(&self) -> Option<Reason> {
        let largest = self.shares.iter().max_by_key(|share| share.bytes);
        largest.map(|share| share.reason)
    }

    /// The regions in which pages can be looked up, if it has resident ones.
    pub fn inner(&self) -> Option<Inner> {
        let (start, end) = regions(self.start, self.end, 0, Backing::Anonymous);
        (self.is_anonymous && start < end && self.resident > 0).then_some(Inner {
            start,
            end,
            huge: self.huge,
        })
    }
}

fn kind(smap: &Smap, backing: Backing) -> Kind {
    match (backing, smap.mapping.kind()) {
        (Backing::Anonymous, Name::Heap) => Kind::Heap,
        (Backing::Anonymous, Name::Stack) => Kind::Stack,
        (Backing::Anonymous, _) => Kind::Anonymous,
        (Backing::Shared, _) => Kind::SharedMemory,
        (Backing::Tmpfs(_), _) => Kind::Tmpfs,
        (Backing::File, _) => Kind::File,
        (Backing::Hugetlb, _) => Kind::Hugetlb,
        (Backing::Kernel, _) => Kind::Kernel,
    }
}
