// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parent's work while a target runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use toll_linux::watch::{Restore, Watcher};

/// The parent's work while a target runs.
#[derive(Debug)]
pub struct Acting {
    pub(super) watcher: Option<Watcher>,
    /// Why the parent cannot act on the target.
    pub(super) failure: Option<String>,
    /// Receives what has to be undone after the end of the target.
    pub(super) changed: Changed,
}

/// Huge pages that outlive a target.
#[derive(Debug, Clone, Default)]
pub(super) struct Changed(Arc<Mutex<Restore>>);

impl Changed {
    fn add(&self, more: &Restore) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.add(more);
    }

    /// Splits them. Returns how many could not be split.
    pub fn split(&self) -> usize {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.split()
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        if let Some(watcher) = &self.watcher {
            self.changed.add(watcher.restore());
        }
    }
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
