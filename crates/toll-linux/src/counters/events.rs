// SPDX-License-Identifier: MIT OR Apache-2.0
//! The perf events of a subject: TLB misses and page walks by the PMU, page faults and context
//! switches by the kernel, others by tracepoints.
//!
//! Hardware events count user mode only: so the time in page walks does not overlap with the time in
//! page faults, and ordinary users may count them.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;

use toll_model::losses::{Missing, Reading, Scope, Snapshot};

use super::cgroup::Cgroup;
use super::{pmu, tracepoints};
use crate::Root;
use crate::bpf::Probes;
use crate::perf::Event;
use crate::perf::counting::{Counting, Of};

const SOFTWARE: u32 = 1;
/// Software events: the counter, and its number.
const FAULTS_AND_SWITCHES: [(&str, u64); 3] = [
    ("page_faults_minor", 5),
    ("page_faults_major", 6),
    ("context_switches", 3),
];

/// What the events are opened for.
#[derive(Debug)]
pub(super) enum Subject<'a> {
    Machine,
    Cgroup(&'a Cgroup),
    /// Running processes, with their descendants from now on.
    Processes(Vec<u32>),
    /// Programs that this thread will start.
    Children,
}

/// The events of one counter: its value is their sum.
#[derive(Debug)]
struct Open {
    name: &'static str,
    events: Result<Vec<Counting>, Missing>,
}

/// The open events.
#[derive(Debug)]
pub(super) struct Events {
    scope: Scope,
    open: Vec<Open>,
}

impl Events {
    /// Opens what can be opened; the rest has a reason.
    pub(super) fn open(root: &Root, subject: &Subject, probes: &Result<Probes, Missing>) -> Events {
        let scope = match subject {
            Subject::Machine => Scope::Machine,
            Subject::Cgroup(_) => Scope::Cgroup,
            Subject::Processes(_) | Subject::Children => Scope::Tree,
        };
        let opener = Opener { root, subject };
        let mut open = Vec::new();
        for (name, events) in pmu::events(root) {
            let events = events.and_then(|events| opener.all(&events, false, None));
            open.push(Open { name, events });
        }
        if scope == Scope::Tree {
            for (name, number) in FAULTS_AND_SWITCHES {
                let events = opener.all(&[event(SOFTWARE, number)], true, None);
                open.push(Open { name, events });
            }
        }
        let has_probe = |name| probes.as_ref().is_ok_and(|probes| probes.counts(name));
        for tracepoint in tracepoints::of(root, scope) {
            let name = tracepoint.counter;
            if !has_probe(name) {
                let event = tracepoint.event(root);
                let events = event.and_then(|it| opener.all(&[it], true, tracepoint.filter));
                open.push(Open { name, events });
            }
        }
        Events { scope, open }
    }

    /// Sets the counters. A count replaces that of /proc, or the reason why that is missing.
    pub(super) fn read(&self, snapshot: &mut Snapshot) {
        for open in &self.open {
            let reading = open.read();
            if reading.value.is_ok() || !snapshot.has(self.scope, open.name) {
                snapshot.set_reading(self.scope, open.name, reading);
            }
        }
    }

    /// Whether page faults are counted by events.
    pub(super) fn have_faults(&self) -> bool {
        let is_one = |open: &Open| open.name == "page_faults_minor" && open.events.is_ok();
        self.open.iter().any(is_one)
    }
}

impl Open {
    fn read(&self) -> Reading {
        let events = match &self.events {
            Ok(events) => events,
            Err(missing) => return reading(Err(missing.clone()), None),
        };
        let (mut value, mut enabled, mut running) = (0u64, 0u64, 0u64);
        for event in events {
            match event.read() {
                Ok(Some(count)) => {
                    value = value.saturating_add(count.value);
                    enabled = enabled.saturating_add(count.enabled);
                    running = running.saturating_add(count.running);
                }
                Ok(None) => return reading(Err(never_counted()), Some(0.0)),
                Err(error) => {
                    let missing = Missing::without_fix(format!("reading the event: {error}"));
                    return reading(Err(missing), None);
                }
            }
        }
        let counted = (enabled > 0).then(|| (running as f64 / enabled as f64).min(1.0));
        reading(Ok(value), counted)
    }
}

fn reading(value: Result<u64, Missing>, counted: Option<f64>) -> Reading {
    Reading {
        counted,
        source: Some("perf"),
        ..Reading::new(value)
    }
}

fn never_counted() -> Missing {
    Missing::new(
        "the event never got a counter of the PMU",
        "end other uses of the PMU (perf, the NMI watchdog: `sysctl kernel.nmi_watchdog=0`)",
    )
}

/// Opens events of a subject.
struct Opener<'a> {
    root: &'a Root,
    subject: &'a Subject<'a>,
}

impl Opener<'_> {
    fn all(
        &self,
        events: &[Event],
        with_kernel: bool,
        filter: Option<&CStr>,
    ) -> Result<Vec<Counting>, Missing> {
        if !self.root.is_system() {
            return Err(Missing::without_fix(
                "only the running machine can be asked",
            ));
        }
        let mut open = Vec::new();
        for event in events {
            open.extend(
                self.one(event, with_kernel, filter)
                    .map_err(|error| refused(self.root, &error))?,
            );
        }
        Ok(open)
    }

    /// Opens an event for every part of the subject.
    fn one(
        &self,
        event: &Event,
        with_kernel: bool,
        filter: Option<&CStr>,
    ) -> io::Result<Vec<Counting>> {
        let open = |of| Counting::open(event, of, with_kernel, filter);
        match self.subject {
            Subject::Children => Ok(vec![open(Of::Children)?]),
            Subject::Machine => cpus(self.root)
                .into_iter()
                .map(|cpu| open(Of::Cpu(cpu)))
                .collect(),
            Subject::Cgroup(cgroup) => {
                let directory: OwnedFd = File::open(self.root.path(&cgroup.perf))?.into();
                let cpus = cpus(self.root).into_iter();
                cpus.map(|cpu| open(Of::Cgroup(&directory, cpu))).collect()
            }
            Subject::Processes(pids) => {
                let threads: Vec<u32> = pids.iter().flat_map(|pid| threads(*pid)).collect();
                let mut counting = Vec::new();
                for thread in threads {
                    match open(Of::Thread(thread)) {
                        Ok(one) => counting.push(one),
                        // It has ended meanwhile.
                        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(counting)
            }
        }
    }
}

fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let thread = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.flatten().filter_map(thread).collect()
}

/// The CPUs that are online.
fn cpus(root: &Root) -> Vec<u32> {
    let text = root
        .line("/sys/devices/system/cpu/online")
        .unwrap_or_default();
    text.split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.parse::<u32>().ok()?..=last.parse().ok()?)
        })
        .flatten()
        .collect()
}

fn event(kind: u32, config: u64) -> Event {
    Event {
        kind,
        config,
        ..Event::default()
    }
}

/// Why an event cannot be opened.
fn refused(root: &Root, error: &io::Error) -> Missing {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let level = root.line("/proc/sys/kernel/perf_event_paranoid");
            let level = level.unwrap_or_else(|| "unknown".to_owned());
            Missing::new(
                format!("perf events: not permitted (kernel.perf_event_paranoid is {level})"),
                "CAP_PERFMON (docker run --cap-add PERFMON), or `sysctl kernel.perf_event_paranoid=-1` as root on the host",
            )
        }
        Some(libc::ENOSYS) => Missing::new(
            "perf events: blocked (a container's seccomp profile?)",
            "allow perf_event_open in the container (docker run --cap-add PERFMON)",
        ),
        Some(libc::EMFILE) => Missing::new(
            "perf events: too many threads or CPUs for the limit of open files",
            "`ulimit -n` with a higher limit",
        ),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            Missing::without_fix("this CPU's PMU does not count it")
        }
        _ => Missing::without_fix(format!("perf events: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use toll_testkit::Directory;

    use super::*;

    #[test]
    fn online_cpus_are_ranges() {
        let machine = Directory::with(&[("sys/devices/system/cpu/online", "0-2,5,7-8\n")]);
        assert_eq!(cpus(&Root::at(machine.as_path())), [0, 1, 2, 5, 7, 8]);
    }

    #[test]
    fn refusals_have_a_fix() {
        let machine = Directory::with(&[("proc/sys/kernel/perf_event_paranoid", "4\n")]);
        let refused = |code| {
            refused(
                &Root::at(machine.as_path()),
                &io::Error::from_raw_os_error(code),
            )
        };
        assert!(refused(libc::EACCES).reason.contains("is 4"));
        assert!(refused(libc::EACCES).fix.unwrap().contains("CAP_PERFMON"));
        assert!(refused(libc::ENOSYS).fix.unwrap().contains("container"));
        assert!(refused(libc::EMFILE).fix.unwrap().contains("ulimit"));
    }
}
