// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU time of the kernel's threads for memory.

use toll_model::losses::{Missing, Scope, Snapshot};

use super::ticks_to_ns;
use crate::{Root, proc};

/// Counter and the start of the names of its threads.
const KINDS: [(&str, &str); 3] = [
    ("cpu_khugepaged", "khugepaged"),
    ("cpu_kcompactd", "kcompactd"),
    ("cpu_kswapd", "kswapd"),
];
/// Reads between two searches: to look at every process costs more than all other counters.
const SEARCH_EVERY: u32 = 60;

/// The threads, found once: a node that comes online later brings new ones.
#[derive(Debug, Default)]
pub(super) struct Threads {
    found: Vec<(usize, u32)>,
    /// Whether any kernel thread is visible.
    any: bool,
    until_search: u32,
}

impl Threads {
    pub(super) fn read(&mut self, root: &Root, snapshot: &mut Snapshot) {
        if self.until_search == 0 {
            self.search(root);
        }
        self.until_search -= 1;
        let mut ticks = [0; KINDS.len()];
        for (kind, pid) in &self.found {
            match proc::stat(root, *pid) {
                Ok(stat) => ticks[*kind] += stat.user_ticks + stat.system_ticks,
                // It ended, as khugepaged does when THP is set to never.
                Err(_) => self.until_search = 0,
            }
        }
        let missing = Missing::new(
            "the kernel's threads are not visible",
            "run it outside of the container (docker run --pid host)",
        );
        for ((name, _), ticks) in KINDS.iter().zip(ticks) {
            let value = match self.any {
                true => Ok(ticks_to_ns(ticks)),
                false => Err(missing.clone()),
            };
            snapshot.set(Scope::Machine, *name, value);
        }
    }

    fn search(&mut self, root: &Root) {
        self.until_search = SEARCH_EVERY;
        self.found.clear();
        self.any = false;
        for pid in proc::processes(root) {
            let Ok(stat) = proc::stat(root, pid) else {
                continue;
            };
            if !stat.is_kernel_thread {
                continue;
            }
            self.any = true;
            if let Some(kind) = kind(&stat.name) {
                self.found.push((kind, pid));
            }
        }
    }
}

fn kind(name: &str) -> Option<usize> {
    KINDS.iter().position(|(_, start)| name.starts_with(start))
}

/// The counter of a kernel thread's CPU time, if the thread works for memory.
pub(super) fn counter(name: &str) -> Option<&'static str> {
    kind(name).map(|kind| KINDS[kind].0)
}
