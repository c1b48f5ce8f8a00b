// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened between two looks: what `--json` prints, and what the text shows.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use toll_linux::counters::{Look, Process};
use toll_model::losses::{self, Counter, EventCosts, Group as Heading, Missing, Scope};

use super::gaps::{Gaps, Rows};
use super::rows::Figures;

/// An interval.
#[derive(Debug, Serialize)]
pub struct Document {
    pub format: &'static str,
    pub version: u32,
    pub interval_ns: u64,
    /// Number of CPUs that are online; 0 if it is unknown.
    pub cpus: u64,
    /// Costs that were not measured on this machine.
    pub default_costs: Vec<&'static str>,
    pub machine: Figures,
    /// The largest loss first.
    pub cgroups: Vec<GroupRow>,
    /// The largest loss first.
    pub processes: Vec<ProcessRow>,
    pub missing: Gaps,
}

#[derive(Debug, Serialize)]
pub struct ProcessRow {
    pub pid: u32,
    pub command: Arc<str>,
    pub cgroup: Option<Arc<str>>,
    /// Its id in its own pid namespace, if that is another one than this command's.
    pub namespace_pid: Option<u32>,
    pub resident_bytes: u64,
    #[serde(flatten)]
    pub figures: Figures,
}

#[derive(Debug, Serialize)]
pub struct GroupRow {
    pub cgroup: Arc<str>,
    /// Number of its processes, without those of groups below it.
    pub processes: usize,
    pub counted_by: Counted,
    #[serde(flatten)]
    pub figures: Figures,
}

/// Where the figures of a cgroup are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Counted {
    /// Counters of the cgroup: groups below it and ended processes are included.
    Kernel,
    /// The sum of its processes that are visible.
    Processes,
}

impl Document {
    pub fn new(before: &Look, now: &Look, costs: &EventCosts) -> Document {
        let mut gaps = Gaps::default();
        let machine = machine(before, now, costs, &mut gaps);
        let mut processes = processes(before, now, costs, &mut gaps);
        let mut cgroups = groups(before, now, costs, &processes, &mut gaps);
        sort(&mut processes, |row| (&row.figures, u64::from(row.pid)));
        sort(&mut cgroups, |row| (&row.figures, 0));
        Document {
            format: "tollfree-top",
            version: 1,
            interval_ns: now.at.duration_since(before.at).as_nanos() as u64,
            cpus: now.machine.cpus,
            default_costs: costs.defaults.clone(),
            machine,
            cgroups,
            processes,
            missing: gaps,
        }
    }
}

/// The largest loss first, then the most CPU time.
fn sort<T>(rows: &mut [T], key: impl Fn(&T) -> (&Figures, u64)) {
    rows.sort_by(|one, other| {
        let ((one, first), (other, second)) = (key(one), key(other));
        descending(one.loss_ns, other.loss_ns)
            .then(descending(one.cpu_ns, other.cpu_ns))
            .then(first.cmp(&second))
    });
}

/// Larger values first, missing ones last.
pub fn descending(one: Option<f64>, other: Option<f64>) -> Ordering {
    let or_least = |value: Option<f64>| value.unwrap_or(f64::NEG_INFINITY);
    or_least(other).total_cmp(&or_least(one))
}

fn machine(before: &Look, now: &Look, costs: &EventCosts, gaps: &mut Gaps) -> Figures {
    let counters = losses::counters(&before.machine, &now.machine, costs);
    let walks = counters.iter().filter(|counter| {
        let is_of_walks = counter.definition.group == Heading::Walks;
        is_of_walks && counter.scope == Scope::Machine
    });
    for missing in walks.filter_map(|counter| counter.missing.as_ref()) {
        let reason = format!("without page walks and TLB misses: {}", missing.reason);
        let missing = Missing {
            reason,
            fix: missing.fix.clone(),
        };
        gaps.note(Rows::Machine, "loss_ns", &missing);
    }
    Figures::of_scope(&counters, Scope::Machine, None, Rows::Machine, gaps)
}

fn processes(before: &Look, now: &Look, costs: &EventCosts, gaps: &mut Gaps) -> Vec<ProcessRow> {
    gaps.note(Rows::Processes, "shootdowns_received", &received_by_cpu());
    if let Some(missing) = &now.uncounted {
        gaps.note(Rows::Processes, "shootdowns_sent", &by_cpu(missing));
        gaps.note(Rows::Processes, "loss_ns", &only_faults(missing));
    } else {
        gaps.note(Rows::Processes, "loss_ns", &without_walks());
    }
    if let Some(missing) = &now.hidden {
        gaps.note(Rows::Processes, "pid", missing);
    }
    let row = |process: &Process| {
        let earlier = before.processes.get(&process.pid);
        let earlier = earlier.filter(|it| it.is(process));
        ProcessRow {
            pid: process.pid,
            command: process.name.clone(),
            cgroup: process.cgroup.clone(),
            namespace_pid: process.namespace_pid,
            resident_bytes: process.resident,
            figures: Figures::of_process(earlier, process, (before, now), costs, gaps),
        }
    };
    now.processes.values().map(row).collect()
}

/// Why BPF programs do not count, behind what is missing without them.
fn without_bpf(what: &str, missing: &Missing) -> Missing {
    Missing {
        reason: format!("{what} ({})", missing.reason),
        fix: missing.fix.clone(),
    }
}

fn by_cpu(missing: &Missing) -> Missing {
    without_bpf(
        "Linux counts TLB shootdowns by CPU, not by process; BPF programs do",
        missing,
    )
}

fn received_by_cpu() -> Missing {
    Missing::without_fix("received TLB shootdowns are counted by CPU, not by process")
}

fn only_faults(missing: &Missing) -> Missing {
    let what = "page faults alone: page walks, TLB shootdowns and reclaim are counted for the machine; BPF programs count the last two by process";
    without_bpf(what, missing)
}

fn without_walks() -> Missing {
    Missing::new(
        "without page walks, which are counted for the machine, not for each process",
        "`tollfree stat -p PID` counts them for one process",
    )
}

fn groups(
    before: &Look,
    now: &Look,
    costs: &EventCosts,
    processes: &[ProcessRow],
    gaps: &mut Gaps,
) -> Vec<GroupRow> {
    let mut members: BTreeMap<&Arc<str>, Vec<&Figures>> = BTreeMap::new();
    for row in processes {
        if let Some(cgroup) = &row.cgroup {
            members.entry(cgroup).or_default().push(&row.figures);
        }
    }
    let row = |(path, members): (&Arc<str>, Vec<&Figures>)| {
        let counters = now.groups.get(path).map(|snapshot| {
            let earlier = before.groups.get(path).unwrap_or(snapshot);
            losses::counters(earlier, snapshot, costs)
        });
        group(path, &members, counters.as_deref(), gaps)
    };
    members.into_iter().map(row).collect()
}

/// A cgroup with its own counters, or else those of its processes.
fn group(
    path: &Arc<str>,
    members: &[&Figures],
    counters: Option<&[Counter]>,
    gaps: &mut Gaps,
) -> GroupRow {
    let sum = Figures::sum(members.iter().copied());
    let (counted_by, figures) = match counters {
        Some(counters) => {
            let cpu = sum.cpu_ns;
            let own = Figures::of_scope(counters, Scope::Cgroup, cpu, Rows::Cgroups, gaps);
            (Counted::Kernel, own)
        }
        None => {
            gaps.note(Rows::Cgroups, "counted_by", &no_counters());
            sum.explain_sum(gaps);
            (Counted::Processes, sum)
        }
    };
    GroupRow {
        cgroup: path.clone(),
        processes: members.len(),
        counted_by,
        figures,
    }
}

fn no_counters() -> Missing {
    Missing::new(
        "a cgroup without counters of its own has the sum of its visible processes",
        "the memory controller for it, and its hierarchy mounted here",
    )
}
