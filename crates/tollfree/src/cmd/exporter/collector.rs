// SPDX-License-Identifier: MIT OR Apache-2.0
//! The metrics. Counters are the kernel's own totals; losses are added up from the start on.

mod lost;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use toll_linux::Root;
use toll_linux::counters::{Live, Look, Process};
use toll_model::losses::{
    self, Counter, EventCosts, Kind as Change, Loss, Missing, Scope, Snapshot, Unit,
};

use super::exposition::{Families, Kind, Labels};
use lost::{Lost, add_lost, of_process};

/// Requests within this time get the same values: scrapers do not multiply the cost.
const FRESH: Duration = Duration::from_secs(1);

/// Looks at everything, and keeps what was lost so far.
pub struct Collector {
    live: Live,
    costs: EventCosts,
    /// Number of processes with metrics of their own.
    most: usize,
    last: Look,
    looks: u64,
    machine: Lost,
    groups: BTreeMap<Arc<str>, Lost>,
    /// By id and start time.
    processes: BTreeMap<(u32, u64), Loss>,
}

impl Collector {
    pub fn new(root: &Root, costs: EventCosts, most: usize) -> Collector {
        let mut live = Live::new(root);
        Collector {
            last: live.look(),
            live,
            costs,
            most,
            looks: 1,
            machine: Lost::default(),
            groups: BTreeMap::new(),
            processes: BTreeMap::new(),
        }
    }

    /// All metrics now.
    pub fn collect(&mut self) -> Families {
        if self.last.at.elapsed() >= FRESH {
            self.look();
        }
        let mut families = Families::default();
        self.add_own(&mut families);
        self.add_scope(
            Scope::Machine,
            &self.last.machine,
            &[],
            &self.machine,
            &mut families,
        );
        for (path, snapshot) in &self.last.groups {
            let none = Lost::default();
            let lost = self.groups.get(path).unwrap_or(&none);
            let labels = [("cgroup", &**path)];
            self.add_scope(Scope::Cgroup, snapshot, &labels, lost, &mut families);
        }
        for (process, loss) in self.largest() {
            add_process(process, loss, &mut families);
        }
        families
    }

    fn look(&mut self) {
        let before = std::mem::replace(&mut self.last, self.live.look());
        self.looks += 1;
        let (earlier, later) = (&before.machine, &self.last.machine);
        let counters = losses::counters(earlier, later, &self.costs);
        self.machine.add(&counters);
        self.look_at_groups(&before);
        self.look_at_processes(&before);
    }

    fn look_at_groups(&mut self, before: &Look) {
        let now = &self.last.groups;
        self.groups.retain(|path, _| now.contains_key(path));
        for (path, snapshot) in now {
            let earlier = before.groups.get(path).unwrap_or(snapshot);
            let counters = losses::counters(earlier, snapshot, &self.costs);
            self.groups.entry(path.clone()).or_default().add(&counters);
        }
    }

    fn look_at_processes(&mut self, before: &Look) {
        let now = &self.last;
        let started = |pid: &u32| now.processes.get(pid).map(|it| it.started);
        self.processes
            .retain(|(pid, start), _| started(pid) == Some(*start));
        for process in now.processes.values() {
            let loss = of_process(process, before, now, &self.costs);
            if loss.ns > 0.0 {
                let key = (process.pid, process.started);
                let sum = self.processes.entry(key).or_insert(Loss::NOTHING);
                *sum = *sum + loss;
            }
        }
    }

    /// The processes that lost most.
    fn largest(&self) -> Vec<(&Process, Loss)> {
        let mut all: Vec<(u32, Loss)> = self
            .processes
            .iter()
            .map(|((pid, _), loss)| (*pid, *loss))
            .collect();
        all.sort_by(|one, other| other.1.ns.total_cmp(&one.1.ns));
        let largest = all.into_iter().take(self.most);
        let process = |(pid, loss)| Some((self.last.processes.get(&pid)?, loss));
        largest.filter_map(process).collect()
    }

    /// About the exporter itself, and what it cannot measure.
    fn add_own(&self, families: &mut Families) {
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        families.add(
            Kind::Info,
            "tollfree_build",
            "Version of the exporter.",
            &version,
            1.0,
        );
        let help = "Looks at the machine, at most one a second.";
        families.add(
            Kind::Counter,
            "tollfree_exporter_looks",
            help,
            &[],
            self.looks as f64,
        );
        let used = cpu_time().as_secs_f64();
        let help = "CPU time of the exporter.";
        families.add(
            Kind::Counter,
            "tollfree_exporter_cpu_seconds",
            help,
            &[],
            used,
        );
        if let Some(missing) = &self.last.hidden {
            add_missing("processes", missing, families);
        }
        let counters = losses::counters(&self.last.machine, &self.last.machine, &self.costs);
        for counter in counters.iter().filter(|it| it.scope == Scope::Machine) {
            if let Some(missing) = &counter.missing {
                add_missing(&counter.name, missing, families);
            }
        }
    }

    /// The counters of a scope, and what was lost to each of them.
    fn add_scope(
        &self,
        scope: Scope,
        snapshot: &Snapshot,
        labels: Labels,
        lost: &Lost,
        families: &mut Families,
    ) {
        for counter in losses::counters(snapshot, snapshot, &self.costs) {
            if let Some(value) = snapshot.value(scope, &counter.name) {
                add_counter(scope, &counter, value as f64, labels, families);
            }
        }
        let prefix = format!("tollfree_{scope}");
        for (cause, loss) in lost.causes() {
            let labels = [labels, &[("cause", cause)]].concat();
            add_lost(&prefix, *loss, &labels, families);
        }
    }
}

fn add_process(process: &Process, loss: Loss, families: &mut Families) {
    let pid = process.pid.to_string();
    let labels = [
        ("pid", pid.as_str()),
        ("command", &*process.name),
        ("cgroup", process.cgroup.as_deref().unwrap_or_default()),
    ];
    let mut add = |kind, name: &str, help, value: f64| {
        let name = format!("tollfree_process_{name}");
        families.add(kind, &name, help, &labels, value);
    };
    let cpu = process.cpu_ns() as f64 / 1e9;
    add(Kind::Counter, "cpu_seconds", "CPU time.", cpu);
    let (faults, major) = (process.faults() as f64, process.major_faults() as f64);
    add(Kind::Counter, "page_faults", "Page faults.", faults);
    add(
        Kind::Counter,
        "page_faults_major",
        "Major page faults.",
        major,
    );
    if let Some(sent) = process.shootdowns_sent() {
        let help = "TLB shootdowns sent, since BPF programs count them.";
        add(Kind::Counter, "tlb_shootdowns_sent", help, sent as f64);
    }
    let resident = process.resident as f64;
    add(Kind::Gauge, "resident_bytes", "Memory.", resident);
    if let Ok(huge) = process.huge() {
        add(
            Kind::Gauge,
            "huge_bytes",
            "Memory in huge pages.",
            huge as f64,
        );
    }
    add_lost("tollfree_process", loss, &labels, families);
}

/// A counter as a metric: its name has the unit.
fn add_counter(
    scope: Scope,
    counter: &Counter,
    value: f64,
    labels: Labels,
    families: &mut Families,
) {
    let definition = &counter.definition;
    let (unit, divisor) = match definition.unit {
        Unit::Ns => ("_seconds", 1e9),
        Unit::Bytes => ("_bytes", 1.0),
        Unit::Count | Unit::Pages => ("", 1.0),
        Unit::Ratio | Unit::PerThousandInstructions => return,
    };
    let kind = match definition.kind {
        Change::Change => Kind::Counter,
        Change::Level => Kind::Gauge,
    };
    // Statistics of a size of huge pages: `mthp_64kB_anon_fault_alloc`.
    let sized = counter.name.strip_prefix("mthp_");
    let sized = sized.and_then(|rest| rest.split_once("kB_"));
    let help = format!("{}.", sentence(&definition.title));
    match sized {
        Some((size, statistic)) => {
            let size = format!("{size}kB");
            let labels = [labels, &[("size", size.as_str())]].concat();
            let name = format!("tollfree_{scope}_mthp_{statistic}{unit}");
            let help = "Statistic of the kernel for a size of huge pages.";
            families.add(kind, &name, help, &labels, value / divisor);
        }
        None => {
            let name = format!("tollfree_{scope}_{}{unit}", counter.name);
            families.add(kind, &name, &help, labels, value / divisor);
        }
    }
}

fn add_missing(counter: &str, missing: &Missing, families: &mut Families) {
    let help = "1 for what cannot be measured here, with the reason and the fix.";
    let labels = [
        ("counter", counter),
        ("reason", missing.reason.as_str()),
        ("fix", missing.fix.as_deref().unwrap_or_default()),
    ];
    families.add(Kind::Gauge, "tollfree_missing", help, &labels, 1.0);
}

/// With a capital letter.
fn sentence(title: &str) -> String {
    let mut rest = title.chars();
    let first = rest.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(rest).collect()
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
