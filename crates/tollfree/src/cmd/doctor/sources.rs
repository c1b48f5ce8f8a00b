// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources for observing memory accesses, and the cost table.

use std::path::Path;
use std::process::Command;

use toll_act::install;
use toll_linux::{Root, accessed, bpf, calibrate, perf};
use toll_model::losses::Missing;
use toll_observe::record::Simulator;

use super::Check;

pub(super) fn checks(root: &Root) -> Vec<Check> {
    vec![
        pmu(root),
        programs(root),
        simulator(root),
        clear_refs(root),
        damon(root),
        costs(root),
    ]
}

fn pmu(root: &Root) -> Check {
    const NAME: &str = "PMU (perf mem)";
    match perf::probe_at(root) {
        perf::PerfAbility::Missing { reason, fix } => Check::missing(NAME, reason, fix),
        ability if ability.usable() => Check::ok(NAME, ability.to_string()),
        ability => Check::partial(
            NAME,
            ability.to_string(),
            "a CPU that reports TLB levels; until then, the simulator is used",
        ),
    }
}

/// Programs in the kernel, which count for stat, top and exporter.
fn programs(root: &Root) -> Check {
    const NAME: &str = "BPF programs";
    let fix = |missing: &Missing| {
        missing
            .fix
            .clone()
            .unwrap_or_else(|| "none known".to_owned())
    };
    match bpf::probe(root).as_deref() {
        Ok([first, ..]) => {
            let detail = format!("some cannot be started: {}", first.reason);
            Check::partial(NAME, detail, fix(first))
        }
        Ok([]) => Check::ok(
            NAME,
            "count shootdowns, and time faults, reclaim and compaction",
        ),
        Err(missing) => Check::missing(NAME, &*missing.reason, fix(missing)),
    }
}

fn simulator(root: &Root) -> Check {
    const NAME: &str = "simulator";
    let fix = install::qemu_advice(root);
    if !root.is_system() {
        let path = root.path("/usr/bin/qemu-x86_64");
        return match path.exists() {
            true => Check::ok(NAME, "qemu-x86_64"),
            false => Check::missing(NAME, "qemu-x86_64: not found", fix),
        };
    }
    let qemu = match install::component(install::QEMU) {
        Ok(qemu) => qemu,
        Err(error) => {
            // The remedy is in the simulator's line below.
            let error = format!("{error:#}");
            let what = error.split(": ").next().unwrap_or_default();
            let refused = !error.contains("is missing");
            return Check::missing(NAME, if refused { error.as_str() } else { what }, fix);
        }
    };
    if !takes_plugins(&qemu) {
        let detail = format!("{}: built without plugins", qemu.display());
        return Check::missing(NAME, detail, fix);
    }
    let missing = install::PLUGINS.map(install::component);
    if let Some(error) = missing.into_iter().find_map(Result::err) {
        let fix = "make -C plugins, or make install";
        return Check::missing(NAME, format!("{error:#}"), fix);
    }
    match Simulator::find() {
        Ok(simulator) => Check::ok(NAME, simulator.qemu.display().to_string()),
        // Without the cause, which is the remedy.
        Err(error) => Check::missing(NAME, error.to_string(), fix),
    }
}

fn takes_plugins(qemu: &Path) -> bool {
    let help = Command::new(qemu).arg("-h").output();
    help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("-plugin"))
}

fn clear_refs(root: &Root) -> Check {
    const NAME: &str = "clear_refs";
    let works = match root.is_system() {
        true => {
            let pid = std::process::id();
            accessed::clear(pid)
                .and_then(|()| accessed::referenced(pid))
                .is_ok_and(|found| !found.is_empty())
        }
        false => root.path("/proc/1/clear_refs").exists(),
    };
    match works {
        true => Check::ok(NAME, "touched pages of a mapping can be counted"),
        false => Check::missing(
            NAME,
            "accessed bits cannot be cleared or read",
            "a kernel with CONFIG_PROC_PAGE_MONITOR, and a writable /proc",
        ),
    }
}

fn damon(root: &Root) -> Check {
    const NAME: &str = "DAMON";
    match root.path("/sys/kernel/mm/damon/admin").exists() {
        true => Check::ok(NAME, "available (tollfree does not use it yet)"),
        false => Check::missing(
            NAME,
            "not in this kernel",
            "not needed; a kernel with CONFIG_DAMON_SYSFS",
        ),
    }
}

fn costs(root: &Root) -> Check {
    const NAME: &str = "cost table";
    const FIX: &str = "tollfree calibrate";
    if !root.is_system() {
        return Check::missing(NAME, "not measured yet", FIX);
    }
    match calibrate::load(&calibrate::key(root)) {
        Some(table) if table.complete => Check::ok(NAME, "measured on this CPU, kernel and memory"),
        Some(_) => Check::partial(NAME, "measured in part", FIX),
        None => Check::missing(
            NAME,
            "not measured yet (tune and plan do it when needed)",
            FIX,
        ),
    }
}
