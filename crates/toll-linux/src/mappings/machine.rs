// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the machine's huge faults ended since boot.

use std::time::Duration;

use crate::Root;
use crate::sys::Khugepaged;

/// Events since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Machine {
    /// Faults that allocated a huge page.
    pub allocated: u64,
    /// Faults that found no free block, or no room in the control group.
    pub fell_back: u64,
    pub uptime: Duration,
}

impl Machine {
    /// Reads the events; what cannot be read is 0.
    pub fn read(root: &Root) -> Machine {
        let vmstat = root.read("/proc/vmstat").unwrap_or_default();
        let number = |name: &str| {
            let mut lines = vmstat.lines().filter_map(|line| line.split_once(' '));
            let found = lines.find(|(key, _)| *key == name);
            found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
        };
        let uptime = root.line("/proc/uptime").unwrap_or_default();
        let seconds = uptime.split(' ').next().and_then(|text| text.parse().ok());
        Machine {
            allocated: number("thp_fault_alloc"),
            fell_back: number("thp_fault_fallback"),
            uptime: Duration::try_from_secs_f64(seconds.unwrap_or(0.0)).unwrap_or_default(),
        }
    }

    /// The mean time of a pass of khugepaged since boot, if it has completed one.
    pub fn mean_pass(&self, khugepaged: &Khugepaged) -> Option<Duration> {
        let passes = khugepaged.full_scans.filter(|passes| *passes > 0)?;
        Some(self.uptime.div_f64(passes as f64))
    }
}
