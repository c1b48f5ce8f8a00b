// SPDX-License-Identifier: MIT OR Apache-2.0
//! All processes.

use std::collections::BTreeMap;
use std::sync::Arc;

use toll_model::losses::Missing;

use super::clock;
use super::heirs;
use super::process::Process;
use super::rollups::{Huge, Rollups};
use crate::bpf::Sums;
use crate::{Root, proc};

/// Looks after which the control group of a process is read again.
const MOVES_AFTER: u32 = 30;

/// The processes at the last look.
#[derive(Debug)]
pub(super) struct Processes {
    seen: BTreeMap<u32, Process>,
    has_clocks: bool,
    looks: u32,
    rollups: Rollups,
}

impl Processes {
    pub(super) fn new(root: &Root) -> Processes {
        Processes {
            seen: BTreeMap::new(),
            has_clocks: clock::has_clocks(root),
            looks: 0,
            rollups: Rollups::new(),
        }
    }

    /// Looks at every process.
    pub(super) fn look(&mut self, root: &Root, huge: Huge) {
        let pids = proc::processes(root).into_iter();
        let found = pids.filter_map(|pid| Some((pid, self.visit(root, pid)?)));
        let mut now: BTreeMap<u32, Process> = found.collect();
        heirs::inherit(&self.seen, &mut now);
        self.rollups.look(root, &mut now, huge);
        self.seen = now;
        self.looks += 1;
    }

    fn visit(&self, root: &Root, pid: u32) -> Option<Process> {
        let known = self.seen.get(&pid);
        let clock = self.has_clocks.then(|| clock::cpu_time(pid)).flatten();
        if let Some(known) = known.filter(|it| clock.is_some() && it.clock == clock) {
            let mut idle = known.clone();
            idle.is_active = false;
            return Some(idle);
        }
        let stat = proc::stat(root, pid).ok()?;
        let known = known.filter(|it| it.started == stat.start_ticks);
        let is_new = known.is_none();
        let mut process = known.map_or_else(|| Process::new(pid, &stat), Process::clone);
        process.update(&stat, clock);
        let may_have_moved = (self.looks.wrapping_add(pid)) % MOVES_AFTER == 0;
        if !process.is_kernel_thread && is_new {
            let status = proc::status(root, pid).ok();
            process.namespace_pid = status.and_then(|status| status.namespace_pid);
        }
        if !process.is_kernel_thread && (is_new || may_have_moved) {
            process.cgroup = proc::cgroup(root, pid).ok().flatten().map(Arc::from);
        }
        Some(process)
    }

    pub(super) fn has(&self, pid: u32) -> bool {
        self.seen.contains_key(&pid)
    }

    /// Gives each process what BPF programs counted for it.
    pub(super) fn count(&mut self, sums: &Sums) {
        for process in self.seen.values_mut() {
            process.counted = Some(sums.of_process(process.pid));
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Process> {
        self.seen.values()
    }

    /// The processes, and the kernel's threads for memory.
    pub(super) fn shown(&self) -> BTreeMap<u32, Process> {
        let is_shown = |it: &&Process| !it.is_kernel_thread || it.thread().is_some();
        let shown = self.all().filter(is_shown);
        shown.map(|it| (it.pid, it.clone())).collect()
    }

    /// Why other processes are not visible; `None` if all are.
    pub(super) fn hidden(&self, root: &Root) -> Option<Missing> {
        if self.all().any(|it| it.is_kernel_thread) {
            return None;
        }
        Some(match hides(root) {
            true => Missing::new(
                "/proc hides the processes of other users (mount option hidepid)",
                "run it as root, or `mount -o remount,hidepid=0 /proc`",
            ),
            false => Missing::new(
                "only the processes of this container are visible",
                "run it outside of the container (docker run --pid host)",
            ),
        })
    }
}

/// Whether /proc is mounted so that it hides processes.
fn hides(root: &Root) -> bool {
    let text = root.read("/proc/self/mountinfo").unwrap_or_default();
    let is_proc = |line: &&str| line.contains(" /proc ") && line.contains(" - proc ");
    // The last mount hides the ones before it.
    let mounted = text.lines().rev().find(is_proc);
    let option = mounted.and_then(|line| line.split("hidepid=").nth(1));
    option.is_some_and(|value| !value.starts_with(['0', 'o']))
}
