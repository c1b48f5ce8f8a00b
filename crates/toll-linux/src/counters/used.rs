// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a process used: page faults and CPU time.

use super::ticks_to_ns;
use crate::proc::Stat;

/// Faults, and CPU time in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub minor: u64,
    pub major: u64,
    pub user: u64,
    pub system: u64,
}

impl Used {
    /// What a process used itself.
    pub(super) fn own(stat: &Stat) -> Used {
        Used {
            minor: stat.minor_faults,
            major: stat.major_faults,
            user: ticks_to_ns(stat.user_ticks),
            system: ticks_to_ns(stat.system_ticks),
        }
    }

    /// What its children used that ended and were waited for.
    pub(super) fn by_children(stat: &Stat) -> Used {
        let children = &stat.children;
        Used {
            minor: children.minor_faults,
            major: children.major_faults,
            user: ticks_to_ns(children.user_ticks),
            system: ticks_to_ns(children.system_ticks),
        }
    }

    fn all(self) -> [u64; 4] {
        [self.minor, self.major, self.user, self.system]
    }

    fn of(values: [u64; 4]) -> Used {
        let [minor, major, user, system] = values;
        Used {
            minor,
            major,
            user,
            system,
        }
    }

    pub(super) fn with(self, other: Used, combine: impl Fn(u64, u64) -> u64) -> Used {
        let (one, other) = (self.all(), other.all());
        Used::of(std::array::from_fn(|at| combine(one[at], other[at])))
    }

    pub(super) fn plus(self, other: Used) -> Used {
        self.with(other, u64::saturating_add)
    }

    pub(super) fn minus(self, other: Used) -> Used {
        self.with(other, u64::saturating_sub)
    }

    pub(super) fn cpu(self) -> u64 {
        self.user.saturating_add(self.system)
    }
}
