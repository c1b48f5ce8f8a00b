// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons, their names and titles.

use serde::Serialize;

/// Why memory is in 4 KiB pages, the hardest to change first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Pages of the kernel or of a device.
    Kernel,
    /// A file outside of tmpfs.
    File,
    /// Private copies of a file's pages: data of programs and libraries.
    Copied,
    /// Shorter than 2 MiB.
    Short,
    /// Long enough, but without an aligned region.
    Unaligned,
    /// Address and file offset differ modulo 2 MiB.
    Offset,
    /// Before the first and behind the last region of a mapping.
    Edge,
    /// The kernel has no transparent huge pages.
    Missing,
    /// `PR_SET_THP_DISABLE`.
    Disabled,
    /// MADV_NOHUGEPAGE.
    AdvisedNever,
    Userfaultfd,
    /// The machine's setting is `never`.
    Never,
    /// The machine's setting is `madvise`, and the memory is not advised.
    NotAdvised,
    /// `shmem_enabled` forbids it.
    Shared,
    /// The mount of the tmpfs forbids it.
    Tmpfs,
    /// Shared memory that is huge only by advice, without it.
    SharedNotAdvised,
    /// The kernel says no, and none of the above applies.
    Refused,
    /// Regions with more missing pages than khugepaged accepts.
    Sparse,
    /// The control group has no room.
    GroupFull,
    /// khugepaged looks at no page.
    NoKhugepaged,
    /// khugepaged has not come yet.
    Waiting,
    /// The mappings cannot be read.
    Unread,
}

impl Reason {
    /// What the bill prints.
    pub fn title(self) -> &'static str {
        match self {
            Reason::Kernel => "pages of the kernel or a device",
            Reason::File => "pages of files",
            Reason::Copied => "private copies of pages of files",
            Reason::Short => "mappings below 2 MiB",
            Reason::Unaligned => "mappings without an aligned 2 MiB",
            Reason::Offset => "address and file offset differ",
            Reason::Edge => "edges of mappings",
            Reason::Missing => "no transparent huge pages here",
            Reason::Disabled => "switched off by the process",
            Reason::AdvisedNever => "advised against (MADV_NOHUGEPAGE)",
            Reason::Userfaultfd => "watched by userfaultfd",
            Reason::Never => "THP never on this machine",
            Reason::NotAdvised => "no advice (THP madvise)",
            Reason::Shared => "shared memory (shmem_enabled)",
            Reason::Tmpfs => "tmpfs without huge=",
            Reason::SharedNotAdvised => "shared memory without advice",
            Reason::Refused => "refused by the kernel",
            Reason::Sparse => "too many missing pages",
            Reason::GroupFull => "the cgroup is at its limit",
            Reason::NoKhugepaged => "khugepaged is off",
            Reason::Waiting => "khugepaged is not there yet",
            Reason::Unread => "not readable",
        }
    }
}
