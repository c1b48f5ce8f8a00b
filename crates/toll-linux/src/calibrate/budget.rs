// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of a calibration.

use std::time::{Duration, Instant};

/// Limits of a calibration.
pub(super) struct Budget<'a> {
    pub began: Instant,
    pub within: Duration,
    /// Maximum bytes in use at any time.
    pub memory: u64,
    pub stop: &'a dyn Fn() -> bool,
}

impl Budget<'_> {
    pub fn is_over(&self) -> bool {
        !self.allows(0.0)
    }

    /// Whether `seconds` more seconds fit into the limit.
    pub fn allows(&self, seconds: f64) -> bool {
        let spent = self.began.elapsed().as_secs_f64();
        !(self.stop)() && spent + seconds < self.within.as_secs_f64()
    }

    /// Whether there is time for a fine grid.
    pub fn is_ample(&self) -> bool {
        self.within >= Duration::from_secs(30)
    }
}
