// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU's event for sampled memory accesses, as sysfs describes it.

use crate::Root;

const DEVICES: &str = "/sys/bus/event_source/devices";

/// Parameters of an event for perf_event_open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Name for `perf record -e`.
    pub name: String,
    pub kind: u32,
    pub config: u64,
    pub config1: u64,
    pub config2: u64,
    /// PEBS must be requested; IBS is precise by itself.
    pub precise: u64,
    pub period: u64,
    /// An event that must lead its group (Intel since Sapphire Rapids).
    pub leader: Option<Box<Event>>,
}

/// Finds the CPU's event for sampled memory accesses; `None` if there is none.
pub fn memory_event(root: &Root) -> Option<Event> {
    amd(root).or_else(|| {
        ["cpu", "cpu_core"]
            .into_iter()
            .find_map(|pmu| intel(root, pmu))
    })
}

/// Whether a CPU PMU exists.
pub fn has_pmu(root: &Root) -> bool {
    let is_cpu = |name: &String| name == "cpu" || name == "cpu_core" || name.starts_with("ibs_");
    root.names(DEVICES).iter().any(is_cpu)
}

/// Instruction-based sampling that counts micro-operations.
fn amd(root: &Root) -> Option<Event> {
    let kind = kind(root, "ibs_op")?;
    let mut event = Event {
        name: "ibs_op//".to_owned(),
        kind,
        // IBS counts in steps of 16.
        period: 0x4000,
        ..Event::default()
    };
    // Without that bit it counts cycles, which also works.
    if let Some(format) = root.line(format!("{DEVICES}/ibs_op/format/cnt_ctl")) {
        place(&mut event, &format, 1);
    }
    Some(event)
}

fn intel(root: &Root, pmu: &str) -> Option<Event> {
    let mut event = described(root, pmu, "mem-loads")?;
    event.leader = described(root, pmu, "mem-loads-aux").map(Box::new);
    Some(event)
}

fn kind(root: &Root, pmu: &str) -> Option<u32> {
    root.line(format!("{DEVICES}/{pmu}/type"))?.parse().ok()
}

/// Parses an event of a PMU's `events` directory, such as `event=0xcd,umask=0x1,ldlat=3`.
fn described(root: &Root, pmu: &str, name: &str) -> Option<Event> {
    let terms = root.line(format!("{DEVICES}/{pmu}/events/{name}"))?;
    let mut event = Event {
        name: format!("{pmu}/{name}/P"),
        kind: kind(root, pmu)?,
        precise: 2,
        period: 1000,
        ..Event::default()
    };
    for term in terms.split(',') {
        let (key, value) = term.split_once('=').unwrap_or((term, "1"));
        let format = root.line(format!("{DEVICES}/{pmu}/format/{key}"))?;
        place(&mut event, &format, number(value)?)?;
    }
    Some(event)
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Stores a value in the bits of a format such as `config:0-7,21`.
fn place(event: &mut Event, format: &str, mut value: u64) -> Option<()> {
    let (word, ranges) = format.split_once(':')?;
    let word = match word {
        "config" => &mut event.config,
        "config1" => &mut event.config1,
        "config2" => &mut event.config2,
        _ => return None,
    };
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (low, high): (u32, u32) = (low.parse().ok()?, high.parse().ok()?);
        for bit in low..=high.min(63) {
            *word |= (value & 1) << bit;
            value >>= 1;
        }
    }
    Some(())
}
