// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why memory is in 4 KiB pages: divides the resident memory of one mapping by the reason.
//!
//! A byte has one reason: the one that is hardest to remove. Geometry and kind of the mapping come
//! first, then the settings that forbid huge pages, then the state of the machine. What remains has
//! its huge page to expect from khugepaged. The shares add up to the resident memory.
//!
//! Sources of the rules: Linux, `mm/huge_memory.c` (`__thp_vma_allowable_orders`), `mm/shmem.c`
//! (`shmem_allowable_huge_orders`), `mm/khugepaged.c`, and Documentation/admin-guide/mm/transhuge.rst.

mod reason;
mod sampled;

pub use reason::Reason;
pub use sampled::{Estimate, extrapolate, scan_rate};

use crate::{PAGE, REGION};

/// What holds the pages of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    Anonymous,
    /// Shared memory on the kernel's own mount: shared anonymous, memfd, System V.
    Shared,
    /// A file on a tmpfs mount.
    Tmpfs(HugeOption),
    /// A file on a disk or another file system.
    File,
    Hugetlb,
    /// Pages of the kernel or of a device.
    Kernel,
}

/// The setting of shared memory: `shmem_enabled`, or the option `huge=` of a tmpfs mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HugeOption {
    Always,
    /// Only where the whole huge page is within the file's size.
    WithinSize,
    /// Only with MADV_HUGEPAGE.
    Advise,
    Never,
    /// On the kernel's mount only: never, on all mounts.
    Deny,
    /// On the kernel's mount only: always, on all mounts.
    Force,
}

impl HugeOption {
    /// Parses a setting; unknown ones count as never.
    pub fn parse(text: &str) -> HugeOption {
        match text {
            "always" => HugeOption::Always,
            "within_size" => HugeOption::WithinSize,
            "advise" => HugeOption::Advise,
            "deny" => HugeOption::Deny,
            "force" => HugeOption::Force,
            _ => HugeOption::Never,
        }
    }
}

/// Advice that a mapping carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    None,
    /// MADV_HUGEPAGE.
    Huge,
    /// MADV_NOHUGEPAGE.
    Never,
}

/// The setting for 2 MiB pages in anonymous memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The kernel has no transparent huge pages, or none are visible here.
    Missing,
    Never,
    Madvise,
    Always,
}

/// What decides for all mappings of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub mode: Mode,
    pub shmem: HugeOption,
    /// `PR_SET_THP_DISABLE` is set.
    pub disabled: bool,
    /// The control group has no room for a huge page.
    pub group_is_full: bool,
    /// khugepaged looks at no page.
    pub khugepaged_is_off: bool,
}

/// One mapping. Sizes are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub start: u64,
    pub end: u64,
    /// Offset into the file or shared memory.
    pub offset: u64,
    pub backing: Backing,
    pub advice: Advice,
    pub userfaultfd: bool,
    /// The kernel's own answer, where it gives one.
    pub eligible: Option<bool>,
    /// Resident memory, with hugetlb.
    pub resident: u64,
    /// The part of it that huge pages of 2 MiB or more map.
    pub huge: u64,
    /// Private copies of pages of a file.
    pub copied: u64,
    /// Resident in 4 KiB pages before the first and behind the last region.
    pub edges: u64,
    /// Resident in 4 KiB pages of regions with more missing pages than khugepaged accepts.
    pub sparse: u64,
}

/// Resident memory in 4 KiB pages, for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub reason: Reason,
    pub bytes: u64,
}

/// What is known about one mapping.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Bytes of the address range that the kernel may map by huge pages.
    pub eligible: u64,
    /// Shares of the memory in 4 KiB pages, the hardest reason first.
    pub shares: Vec<Share>,
    /// Settings that forbid huge pages besides that of the last share.
    pub also: Vec<Reason>,
}

/// Returns the regions in an address range: start and end, equal without any.
pub fn regions(start: u64, end: u64, offset: u64, backing: Backing) -> (u64, u64) {
    let is_offset = !matches!(backing, Backing::Anonymous);
    if is_offset && start.wrapping_sub(offset) % REGION != 0 {
        return (start, start);
    }
    let first = start.next_multiple_of(REGION);
    let last = end / REGION * REGION;
    if first < last {
        (first, last)
    } else {
        (start, start)
    }
}

impl Facts {
    fn regions(&self) -> (u64, u64) {
        regions(self.start, self.end, self.offset, self.backing)
    }

    fn small(&self) -> u64 {
        self.resident.saturating_sub(self.huge)
    }

    /// Divides the mapping by reasons.
    pub fn judge(&self, policy: &Policy) -> Verdict {
        let mut rest = Rest::new(self.small());
        if self.backing != Backing::Anonymous {
            rest.take(Reason::Copied, self.copied);
        }
        if let Some(reason) = self.kind() {
            rest.take(reason, u64::MAX);
            return rest.verdict(0, Vec::new());
        }
        let (first, last) = self.regions();
        if first == last {
            let mut reasons = self.without_region(policy).into_iter();
            rest.take(reasons.next().unwrap_or(Reason::Short), u64::MAX);
            return rest.verdict(0, reasons.collect());
        }
        rest.take(Reason::Edge, self.edges);
        let mut forbids = self.forbids(policy).into_iter();
        if let Some(reason) = forbids.next() {
            rest.take(reason, u64::MAX);
            return rest.verdict(0, forbids.collect());
        }
        rest.take(Reason::Sparse, self.sparse);
        rest.take(later(policy), u64::MAX);
        rest.verdict(last - first, Vec::new())
    }

    /// The reason that lies in the kind of the mapping, if huge pages need another kind.
    fn kind(&self) -> Option<Reason> {
        match self.backing {
            Backing::Kernel => Some(Reason::Kernel),
            Backing::File => Some(Reason::File),
            _ => None,
        }
    }

    /// What keeps a mapping without a region from huge pages. The kernel aligns shared memory if its
    /// setting allows huge pages, so there the setting is the first cause.
    fn without_region(&self, policy: &Policy) -> Vec<Reason> {
        let geometry = self.geometry();
        let mut reasons = match geometry {
            Reason::Offset if self.is_shared() => self.forbids(policy),
            _ => Vec::new(),
        };
        reasons.push(geometry);
        reasons
    }

    fn is_shared(&self) -> bool {
        matches!(self.backing, Backing::Shared | Backing::Tmpfs(_))
    }

    /// Why the mapping contains no region.
    fn geometry(&self) -> Reason {
        let (first, last) = regions(self.start, self.end, self.offset, Backing::Anonymous);
        if self.end - self.start < REGION {
            Reason::Short
        } else if first == last {
            Reason::Unaligned
        } else {
            Reason::Offset
        }
    }

    /// Everything that forbids huge pages in this mapping, the hardest to change first.
    fn forbids(&self, policy: &Policy) -> Vec<Reason> {
        let setting = match self.backing {
            Backing::Hugetlb => None,
            Backing::Tmpfs(option) => self.shared(option, policy.shmem, Reason::Tmpfs),
            Backing::Shared => self.shared(policy.shmem, policy.shmem, Reason::Shared),
            _ => self.anonymous(policy.mode),
        };
        let missing = policy.mode == Mode::Missing;
        let known = [
            (missing, Reason::Missing),
            (policy.disabled, Reason::Disabled),
            (self.advice == Advice::Never, Reason::AdvisedNever),
            (self.userfaultfd, Reason::Userfaultfd),
        ];
        let mut all: Vec<Reason> = known
            .into_iter()
            .filter_map(|(applies, reason)| applies.then_some(reason))
            .chain(setting.filter(|_| !missing))
            .collect();
        if all.is_empty() && self.eligible == Some(false) {
            all.push(Reason::Refused);
        }
        all
    }

    fn anonymous(&self, mode: Mode) -> Option<Reason> {
        match mode {
            Mode::Never => Some(Reason::Never),
            Mode::Madvise if self.advice != Advice::Huge => Some(Reason::NotAdvised),
            _ => None,
        }
    }

    /// `of_all` holds for all mounts if it is deny or force.
    fn shared(&self, own: HugeOption, of_all: HugeOption, reason: Reason) -> Option<Reason> {
        let setting = match of_all {
            HugeOption::Deny | HugeOption::Force => of_all,
            _ => own,
        };
        match setting {
            HugeOption::Always | HugeOption::WithinSize | HugeOption::Force => None,
            HugeOption::Advise if self.advice == Advice::Huge => None,
            HugeOption::Advise => Some(Reason::SharedNotAdvised),
            HugeOption::Never => Some(reason),
            HugeOption::Deny => Some(Reason::Shared),
        }
    }
}

/// Why eligible memory is not huge yet.
fn later(policy: &Policy) -> Reason {
    if policy.group_is_full {
        Reason::GroupFull
    } else if policy.khugepaged_is_off {
        Reason::NoKhugepaged
    } else {
        Reason::Waiting
    }
}

/// Memory in 4 KiB pages that has no reason yet.
struct Rest {
    bytes: u64,
    shares: Vec<Share>,
}

impl Rest {
    fn new(bytes: u64) -> Rest {
        Rest {
            bytes,
            shares: Vec::new(),
        }
    }

    /// Gives a reason to at most `bytes` of the rest.
    fn take(&mut self, reason: Reason, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        if bytes > 0 {
            self.shares.push(Share { reason, bytes });
        }
    }

    fn verdict(self, eligible: u64, also: Vec<Reason>) -> Verdict {
        Verdict {
            eligible,
            shares: self.shares,
            also,
        }
    }
}

/// Divides the present pages around and in the regions `first..last`: bytes outside of them, and
/// bytes in regions with more than `missing` absent pages. `runs` are ascending byte ranges.
pub fn spread(runs: &[(u64, u64)], (first, last): (u64, u64), missing: u64) -> (u64, u64) {
    let (mut edges, mut sparse) = (0, 0);
    let mut of_region = (first, 0);
    let least = (REGION / PAGE).saturating_sub(missing) * PAGE;
    let mut close = |bytes: u64| {
        if bytes < least {
            sparse += bytes;
        }
    };
    for (start, end) in runs {
        let (mut start, end) = (*start, *end);
        while start < end {
            let stop = end.min((start / REGION + 1) * REGION);
            let region = start / REGION * REGION;
            if region < first || region >= last {
                edges += stop - start;
            } else {
                if region != of_region.0 {
                    close(of_region.1);
                    of_region = (region, 0);
                }
                of_region.1 += stop - start;
            }
            start = stop;
        }
    }
    close(of_region.1);
    (edges, sparse)
}

#[cfg(test)]
mod tests;
