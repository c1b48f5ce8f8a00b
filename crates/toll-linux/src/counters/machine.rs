// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of the whole machine.

use toll_model::losses::{Missing, Reading, Scope, Snapshot};

use super::sizes::Sizes;
use super::threads::Threads;
use super::vmstat::{self, numbers};
use super::{pressure, ticks_to_ns};
use crate::Root;

/// Reads the machine's counters. It keeps what does not change between reads.
#[derive(Debug, Default)]
pub(super) struct Machine {
    threads: Threads,
    sizes: Option<Sizes>,
}

impl Machine {
    pub(super) fn read(&mut self, root: &Root) -> Snapshot {
        let mut snapshot = Snapshot::default();
        vmstat::read(root, &mut snapshot);
        shootdowns(root, &mut snapshot);
        cpu(root, &mut snapshot);
        pressure::read(root, Scope::Machine, "/proc/pressure/memory", &mut snapshot);
        mapped(root, &mut snapshot);
        self.threads.read(root, &mut snapshot);
        self.sizes
            .get_or_insert_with(|| Sizes::find(root))
            .read(root, &mut snapshot);
        snapshot
    }
}

/// The line `TLB` of /proc/interrupts: TLB shootdowns that each CPU received.
fn shootdowns(root: &Root, snapshot: &mut Snapshot) {
    let reading = match root.read("/proc/interrupts") {
        Err(error) => Err(hidden(&error.to_string())),
        // A container's runtime puts /dev/null over it.
        Ok(text) if text.is_empty() => Err(hidden("empty: hidden from this container")),
        Ok(text) => received(&text).ok_or_else(|| {
            Missing::without_fix(
                "/proc/interrupts has no line TLB: this CPU's kernel flushes without interrupts",
            )
        }),
    };
    let value = reading.as_ref().map(|by| by.iter().sum());
    let reading = Reading {
        by_cpu: reading.as_ref().cloned().unwrap_or_default(),
        ..Reading::new(value.map_err(Clone::clone))
    };
    snapshot.set_reading(Scope::Machine, "tlb_shootdowns_received", reading);
}

fn hidden(why: &str) -> Missing {
    Missing::new(
        format!("/proc/interrupts: {why}"),
        "docker run --security-opt systempaths=unconfined (Kubernetes: procMount: Unmasked), or run it outside of the container",
    )
}

/// The numbers of the line, by the number of the CPU: the columns are those that are online.
fn received(text: &str) -> Option<Vec<u64>> {
    let mut lines = text.lines();
    let heads = lines.next()?.split_ascii_whitespace();
    let cpus = heads.map(|head| head.strip_prefix("CPU")?.parse::<usize>().ok());
    let line = lines.find_map(|line| line.trim_start().strip_prefix("TLB:"))?;
    let mut by_cpu = Vec::new();
    for (cpu, number) in cpus.zip(line.split_ascii_whitespace()) {
        let cpu = cpu?;
        if by_cpu.len() <= cpu {
            by_cpu.resize(cpu + 1, 0);
        }
        by_cpu[cpu] = number.parse().ok()?;
    }
    Some(by_cpu)
}

/// CPU time and context switches, of /proc/stat.
fn cpu(root: &Root, snapshot: &mut Snapshot) {
    let text = root.read("/proc/stat").unwrap_or_default();
    let missing = Missing::new(
        "/proc/stat cannot be read",
        "a complete /proc in the container",
    );
    snapshot.cpus = text
        .lines()
        .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "))
        .count() as u64;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "));
    let ticks: Vec<u64> = line
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq, steal, ...: proc_stat(5).
    let sum = |fields: &[usize]| {
        let ticks: Option<Vec<u64>> = fields.iter().map(|at| ticks.get(*at).copied()).collect();
        let sum = ticks.map(|ticks| ticks_to_ns(ticks.iter().sum()));
        sum.ok_or_else(|| missing.clone())
    };
    snapshot.set(Scope::Machine, "cpu_user", sum(&[0, 1]));
    snapshot.set(Scope::Machine, "cpu_system", sum(&[2, 5, 6]));
    let switches = numbers(&text).get("ctxt").copied().ok_or(missing);
    snapshot.set(Scope::Machine, "context_switches", switches);
}

/// Memory in huge pages and page tables, of /proc/meminfo.
fn mapped(root: &Root, snapshot: &mut Snapshot) {
    let text = root.read("/proc/meminfo").unwrap_or_default();
    let found = numbers(&text);
    let missing = |key: &str| {
        let reason = format!("/proc/meminfo has no {key}");
        Missing::new(reason, "a kernel with huge pages and a complete /proc")
    };
    for (name, key) in [
        ("mapped_huge_anon", "AnonHugePages"),
        ("mapped_huge_shmem", "ShmemPmdMapped"),
        ("mapped_huge_file", "FilePmdMapped"),
        ("mapped_hugetlb", "Hugetlb"),
        ("page_tables", "PageTables"),
    ] {
        let bytes = found.get(key).map(|kilobytes| kilobytes << 10);
        snapshot.set(Scope::Machine, name, bytes.ok_or_else(|| missing(key)));
    }
}
