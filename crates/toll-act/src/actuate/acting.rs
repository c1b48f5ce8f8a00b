// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parent's work while a target runs.

use std::time::Duration;

use toll_linux::watch::Watcher;

/// The parent's work while a target runs.
#[derive(Debug)]
pub struct Acting {
    pub(super) watcher: Option<Watcher>,
    /// Why the parent cannot act on the target.
    pub(super) failure: Option<String>,
}

impl Acting {
    /// Does the work that is due. Returns the time until the next call.
    pub fn tick(&mut self) -> Duration {
        match &mut self.watcher {
            Some(watcher) => watcher.tick(),
            None => Duration::MAX,
        }
    }

    /// Returns why the parent could not act, if so.
    pub fn failure(&self) -> Option<&str> {
        let of_watcher = self
            .watcher
            .as_ref()
            .and_then(|w| w.counters().failure.as_deref());
        self.failure.as_deref().or(of_watcher)
    }
}
