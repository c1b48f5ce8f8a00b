// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observes a program while it runs: how much memory it touches within a second, how much is huge
//! already, which libraries it maps, and whether it disabled huge pages.
//!
//! Needs no privileges: `clear_refs` clears the accessed bits, `smaps` counts them.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use toll_act::traits::{Traits, mapped_files};
use toll_linux::Root;
use toll_linux::accessed;
use toll_linux::proc::{self, Kind, Mapping, Smap};

use crate::observation::{Hints, Observation, TextUse};

/// The first window; each is longer than the previous one, so that short programs are covered too.
const FIRST_WINDOW: Duration = Duration::from_millis(20);
/// Maximum window: a page that is not touched for this long has no significant overhead.
const LAST_WINDOW: Duration = Duration::from_secs(1);
/// Reading smaps takes at most 1/`SHARE` of the time.
const SHARE: u32 = 20;

/// Observes a process, a step at each tick.
#[derive(Debug)]
pub struct Observer {
    look: Observation,
    window: Duration,
    /// The process with cleared bits, and the end of the window.
    open: Option<(u32, Instant)>,
    /// Earliest time of the next step.
    next: Instant,
    /// The file that the process executes, and those that it maps.
    program: PathBuf,
    files: Vec<PathBuf>,
    /// CPU time of each process at the start of the last window, ticks.
    used: HashMap<u32, u64>,
}

impl Default for Observer {
    fn default() -> Observer {
        Observer {
            look: Observation::default(),
            window: FIRST_WINDOW,
            open: None,
            next: Instant::now(),
            program: PathBuf::new(),
            files: Vec::new(),
            used: HashMap::new(),
        }
    }
}

impl Observer {
    /// Ends the observation.
    pub fn look(mut self) -> Observation {
        self.look.traits = Traits::of(&self.program, &self.program, &self.files);
        self.look
    }

    /// Does the work that is due for the process tree of `pid`. Returns the time until the next
    /// call.
    pub fn tick(&mut self, pid: u32) -> Duration {
        let now = Instant::now();
        match self.open {
            Some((_, end)) if now < end => return end - now,
            None if now < self.next => return self.next - now,
            Some((of, _)) => self.close(of),
            None => self.begin(pid),
        }
        let until = self.open.map_or(self.next, |(_, end)| end);
        until.saturating_duration_since(Instant::now())
    }

    fn begin(&mut self, pid: u32) {
        let root = Root::system();
        let tree = proc::tree(&root, pid);
        let busiest = self.busiest(&root, &tree);
        let of = busiest
            .filter(|_| self.look.windows % 2 == 1)
            .or_else(|| biggest(&root, &tree))
            .unwrap_or(pid);
        match accessed::clear(of) {
            Ok(()) => self.open = Some((of, Instant::now() + self.window)),
            Err(_) => self.next = Instant::now() + FIRST_WINDOW,
        }
        // The process may end before the window does.
        if self.program.as_os_str().is_empty() {
            self.identify(of, || proc::maps(&root, of).unwrap_or_default());
        }
    }

    /// Notes the program of a process and the files that it maps, unless it has ended.
    fn identify(&mut self, pid: u32, mappings: impl FnOnce() -> Vec<Mapping>) {
        if let Ok(program) = fs::read_link(format!("/proc/{pid}/exe")) {
            self.program = program;
            self.files = mapped_files(&mappings());
        }
    }

    /// The process with the most CPU time since the start of the last window, if any.
    fn busiest(&mut self, root: &Root, tree: &[u32]) -> Option<u32> {
        let ticks = |pid: &u32| {
            let stat = proc::stat(root, *pid).ok()?;
            Some((*pid, stat.user_ticks + stat.system_ticks))
        };
        let now: HashMap<u32, u64> = tree.iter().filter_map(ticks).collect();
        let before = std::mem::replace(&mut self.used, now);
        let since = |(pid, now): (&u32, &u64)| {
            let spent = now.saturating_sub(before.get(pid).copied().unwrap_or(*now));
            (spent > 0).then_some((spent, *pid))
        };
        let busiest = self.used.iter().filter_map(since).max();
        busiest.map(|(_, pid)| pid)
    }

    /// Counts the memory touched since the start of the window.
    fn close(&mut self, pid: u32) {
        let begun = Instant::now();
        self.open = None;
        if self.count(pid).is_some() {
            self.look.windows += 1;
            self.window = (self.window * 2).min(LAST_WINDOW);
        }
        self.next = Instant::now() + begun.elapsed() * SHARE;
    }

    /// Returns `None` if the process has ended.
    fn count(&mut self, pid: u32) -> Option<()> {
        let smaps = proc::smaps(&Root::system(), pid)
            .ok()
            .filter(|smaps| !smaps.is_empty())?;
        let sum = |of: fn(&Smap) -> u64| smaps.iter().map(of).sum::<u64>();
        let look = &mut self.look;
        look.working_set = look.working_set.max(sum(|smap| smap.referenced));
        look.resident = look.resident.max(sum(|smap| smap.rss));
        look.text = TextUse::of(&smaps);
        let anonymous = sum(|smap| smap.anonymous);
        if anonymous >= look.anonymous {
            look.anonymous = anonymous;
            look.huge = sum(|smap| smap.anon_huge);
            look.hints = Hints::of(&smaps);
            look.heap = sum(|smap| match smap.mapping.kind() {
                Kind::Heap => smap.anonymous,
                _ => 0,
            });
            self.identify(pid, || smaps.into_iter().map(|smap| smap.mapping).collect());
        }
        if let Ok(status) = proc::status(&Root::system(), pid) {
            self.look.switched_off |= status.thp_enabled == Some(false);
        }
        Some(())
    }
}

/// The process with the most resident memory in a tree.
fn biggest(root: &Root, tree: &[u32]) -> Option<u32> {
    let rss = |pid: u32| {
        proc::status(root, pid)
            .ok()
            .and_then(|s| s.rss)
            .unwrap_or(0)
    };
    tree.iter().copied().max_by_key(|pid| rss(*pid))
}

#[cfg(test)]
mod tests;
