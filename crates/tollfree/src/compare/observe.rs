// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observes a program while it runs: how much memory it touches within a second, how much is huge
//! already, which libraries it maps, and whether it disabled huge pages.
//!
//! Needs no privileges: `clear_refs` clears the accessed bits, `smaps` counts them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regex::bytes::Regex;
use serde::{Deserialize, Serialize};
use toll_act::permanent::Traits;
use toll_linux::Root;
use toll_linux::accessed;
use toll_linux::proc::{self, Kind, Smap};
use toll_model::numbers;

/// The first window; each is longer than the previous one, so that short programs are covered too.
const FIRST_WINDOW: Duration = Duration::from_millis(20);
/// Maximum window: a page that is not touched for this long has no significant overhead.
const LAST_WINDOW: Duration = Duration::from_secs(1);
/// Reading smaps takes at most 1/`SHARE` of the time.
const SHARE: u32 = 20;

/// The observations. Sizes are bytes, of the process with the most memory, and in every other
/// window of the one with the most CPU time: a server's children may do the work with less memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Number of windows in which touches were counted.
    pub windows: u32,
    /// Largest amount of memory touched within one window.
    pub working_set: u64,
    /// Largest resident memory.
    pub resident: u64,
    /// Largest anonymous memory, and the huge part of it at that time.
    pub anonymous: u64,
    pub huge: u64,
    /// Anonymous memory of the brk heap at that time.
    #[serde(default)]
    pub heap: u64,
    /// madvise hints on its anonymous memory at that time, from itself or a library.
    #[serde(default)]
    pub hints: Hints,
    /// Whether the program (or its parent) disabled huge pages for it.
    pub switched_off: bool,
    pub traits: Traits,
}

/// madvise hints on private anonymous mappings. A hint stays with its addresses: freed memory that
/// is reused still has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hints {
    /// Mappings with MADV_HUGEPAGE, and their bytes.
    pub huge_mappings: u64,
    pub huge_bytes: u64,
    /// Mappings with MADV_NOHUGEPAGE, and their bytes.
    pub never_mappings: u64,
    pub never_bytes: u64,
}

impl Hints {
    fn of(smaps: &[Smap]) -> Hints {
        let mut hints = Hints::default();
        let memory = smaps.iter().filter(|it| it.mapping.is_private_anonymous());
        for smap in memory {
            let bytes = smap.mapping.len();
            if smap.advised_huge {
                hints.huge_mappings += 1;
                hints.huge_bytes += bytes;
            }
            if smap.advised_never {
                hints.never_mappings += 1;
                hints.never_bytes += bytes;
            }
        }
        hints
    }

    /// Describes the hints; `None` if there are none. `planned`: some may come from a plan.
    pub fn text(&self, planned: bool) -> Option<String> {
        let some = |mappings: u64, bytes: u64, advice: &str| {
            let number = numbers::of(mappings as usize, "mapping");
            (mappings > 0).then(|| format!("{number} ({}) with {advice}", numbers::bytes(bytes)))
        };
        let said: Vec<String> = [
            some(self.huge_mappings, self.huge_bytes, "MADV_HUGEPAGE"),
            some(self.never_mappings, self.never_bytes, "MADV_NOHUGEPAGE"),
        ]
        .into_iter()
        .flatten()
        .collect();
        let by = match planned {
            true => "its plan, the program itself or a library",
            false => "the program itself or a library, no plan",
        };
        (!said.is_empty()).then(|| {
            format!(
                "hints by {by}: {}; a hint stays with its addresses when the memory is freed and \
                 reused",
                said.join(", ")
            )
        })
    }
}

/// Observes a process, a step at each tick.
#[derive(Debug)]
pub struct Observer {
    look: Observation,
    window: Duration,
    /// The process with cleared bits, and the end of the window.
    open: Option<(u32, Instant)>,
    /// Earliest time of the next step.
    next: Instant,
    /// The file that the process executes.
    program: PathBuf,
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
            used: HashMap::new(),
        }
    }
}

impl Observer {
    /// Ends the observation.
    pub fn look(mut self) -> Observation {
        self.look.traits.program = base_name(&self.program.to_string_lossy());
        self.look.traits.jemalloc_variable = jemalloc_variable(&self.program);
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
        let anonymous = sum(|smap| smap.anonymous);
        if anonymous >= look.anonymous {
            look.anonymous = anonymous;
            look.huge = sum(|smap| smap.anon_huge);
            look.hints = Hints::of(&smaps);
            look.heap = sum(|smap| match smap.mapping.kind() {
                Kind::Heap => smap.anonymous,
                _ => 0,
            });
            self.program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            look.traits.libraries = libraries(&smaps);
        }
        if let Ok(status) = proc::status(&Root::system(), pid) {
            look.switched_off |= status.thp_enabled == Some(false);
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

/// Base names of the files that a process maps.
fn libraries(smaps: &[Smap]) -> Vec<String> {
    let file = |smap: &Smap| match smap.mapping.kind() {
        Kind::File(path) => Some(base_name(path)),
        _ => None,
    };
    let mut libraries: Vec<String> = smaps.iter().filter_map(file).collect();
    libraries.sort();
    libraries.dedup();
    libraries
}

fn base_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// The configuration variable of a jemalloc inside the program file, found in its text.
fn jemalloc_variable(program: &Path) -> Option<String> {
    const LARGEST: u64 = 128 << 20;
    fs::metadata(program)
        .ok()
        .filter(|meta| meta.len() <= LARGEST)?;
    let bytes = fs::read(program).ok()?;
    // Prefixed builds (Rust's, Facebook's) read a variable of another name.
    let name = Regex::new(r"(?-u)\x00((?:_RJEM_|JE_)?MALLOC_CONF)\x00").expect("valid");
    let found = name.captures(&bytes)?;
    Some(String::from_utf8_lossy(&found[1]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sees_the_memory_that_a_process_touches() {
        let mut memory = vec![1u8; 32 << 20];
        let mut observer = Observer::default();
        while observer.look.windows < 2 {
            memory
                .iter_mut()
                .step_by(4096)
                .for_each(|byte| *byte = byte.wrapping_add(1));
            observer.tick(std::process::id());
        }
        // Not `Observer::look`, which would search the whole test binary for jemalloc.
        let look = observer.look;
        assert!(look.working_set >= 32 << 20, "{look:?}");
        assert!(look.resident >= look.working_set, "{look:?}");
        assert!(
            look.traits
                .libraries
                .iter()
                .any(|l| l.starts_with("libc.so")),
            "{look:?}"
        );
        std::hint::black_box(&memory);
    }

    #[test]
    fn the_biggest_may_be_the_child_of_any_thread() {
        let machine = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = machine.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (pid, rss) in [(7, 1000), (9, 5000)] {
            let status = format!(
                "Name:\tx\nState:\tS\nTgid:\t{pid}\nPPid:\t1\nTracerPid:\t0\nUid:\t0\t0\t0\t0\n\
                 Gid:\t0\t0\t0\t0\nVmRSS:\t{rss} kB\nThreads:\t1\nCapEff:\t0\nSeccomp:\t0\n"
            );
            write(&format!("proc/{pid}/status"), &status);
        }
        write("proc/7/task/7/children", "");
        write("proc/7/task/8/children", "9 ");
        let root = Root::at(machine.path());
        assert_eq!(biggest(&root, &proc::tree(&root, 7)), Some(9));
    }

    #[test]
    fn a_process_that_is_gone_is_not_an_error() {
        let mut observer = Observer::default();
        let child = std::process::Command::new("true")
            .spawn()
            .unwrap()
            .wait_with_output();
        assert!(child.is_ok());
        // No process has this id: it is above the kernel's maximum.
        assert!(observer.tick(u32::MAX / 2) > Duration::ZERO);
        assert_eq!(observer.look().windows, 0);
    }
}
