// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a watcher looks for.

/// Regions to make huge. Intervals are bytes, `start..end`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WatchPlan {
    /// Relative to the start of the brk heap.
    pub heap: Vec<(u64, u64)>,
    /// Fixed addresses.
    pub addresses: Vec<(u64, u64)>,
    /// Named mappings (`[anon:NAME]`), each with intervals relative to its start.
    pub vmas: Vec<(String, Vec<(u64, u64)>)>,
    /// Files in memory, by the name that maps prints, each with intervals relative to its start.
    pub files: Vec<(String, Vec<(u64, u64)>)>,
    /// Runtimes with a heap that is wanted as a whole. Only `go`'s can be recognized by addresses
    /// and names.
    pub reservations: Vec<String>,
    /// Every region of private anonymous memory and of shared memory.
    pub all: bool,
}

impl WatchPlan {
    /// Whether there is nothing to watch for.
    pub fn is_empty(&self) -> bool {
        let nothing = self.heap.is_empty()
            && self.addresses.is_empty()
            && self.vmas.is_empty()
            && self.files.is_empty()
            && self.reservations.is_empty();
        nothing && !self.all
    }
}
