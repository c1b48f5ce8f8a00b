// SPDX-License-Identifier: MIT OR Apache-2.0
//! The PMU's events for TLB misses and page walks, by CPU. `docs/guide/stat.md` names the source of
//! each code.

use toll_model::losses::Missing;

use crate::Root;
use crate::perf::Event;

const HARDWARE: u32 = 0;
const HARDWARE_CACHE: u32 = 3;
const CYCLES: u64 = 0;
const INSTRUCTIONS: u64 = 1;

/// Counters of the PMU.
pub(super) const NAMES: [&str; 5] = [
    "cycles",
    "instructions",
    "page_walk_cycles",
    "dtlb_misses",
    "itlb_misses",
];

/// What decides which events a CPU has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cpu {
    Intel { model: u32 },
    Amd { family: u32 },
    Arm,
    Other,
}

impl Cpu {
    pub(super) fn read(root: &Root) -> Cpu {
        let text = root.read("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let lines = text.lines().filter_map(|line| line.split_once(':'));
            let mut values = lines.filter(|(key, _)| key.trim() == name);
            values.next().map(|(_, value)| value.trim())
        };
        let number = |name| field(name).and_then(|value| value.parse().ok());
        match (field("vendor_id"), number("cpu family"), number("model")) {
            (Some("GenuineIntel"), Some(6), Some(model)) => Cpu::Intel { model },
            (Some("AuthenticAMD" | "HygonGenuine"), Some(family), _) => Cpu::Amd { family },
            _ if field("CPU implementer").is_some() => Cpu::Arm,
            _ => Cpu::Other,
        }
    }
}

/// Codes of a CPU's events. A counter is the sum of its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Codes {
    pub walk_cycles: Result<Vec<u64>, &'static str>,
    /// `None`: the kernel's generic events.
    pub data_misses: Option<Vec<u64>>,
    pub instruction_misses: Option<Vec<u64>>,
}

/// Intel's encoding: event, unit mask, counter mask.
const fn intel(event: u64, mask: u64, counter: u64) -> u64 {
    event | mask << 8 | counter << 24
}

const NO_TABLE: &str = "tollfree has no table of events for this CPU";

pub(super) fn codes(cpu: &Cpu) -> Codes {
    match cpu {
        Cpu::Intel { model } => intel_codes(*model),
        Cpu::Amd { family: 0x17.. } => Codes {
            walk_cycles: Err("AMD's CPUs do not count the cycles of page walks"),
            // ls_l1_d_tlb_miss.all_l2_miss, bp_l1_tlb_miss_l2_tlb_miss.all
            data_misses: Some(vec![0xf045]),
            instruction_misses: Some(vec![0xff85]),
        },
        Cpu::Arm => Codes {
            // DTLB_WALK_PERCYC, ITLB_WALK_PERCYC
            walk_cycles: Ok(vec![0x8128, 0x8129]),
            // DTLB_WALK, ITLB_WALK
            data_misses: Some(vec![0x34]),
            instruction_misses: Some(vec![0x35]),
        },
        _ => Codes {
            walk_cycles: Err(NO_TABLE),
            data_misses: None,
            instruction_misses: None,
        },
    }
}

fn intel_codes(model: u32) -> Codes {
    /// Events of loads, stores and instruction fetches; from Haswell on.
    const EARLIER: [u64; 3] = [0x08, 0x49, 0x85];
    /// From Golden Cove on.
    const LATER: [u64; 3] = [0x12, 0x13, 0x11];
    let (events, counter) = match model {
        // Haswell, Broadwell: WALK_DURATION.
        0x3c | 0x3f | 0x45 | 0x46 | 0x3d | 0x47 | 0x4f | 0x56 => (EARLIER, 0),
        // Skylake to Rocket Lake: WALK_ACTIVE.
        0x4e | 0x5e | 0x55 | 0x8e | 0x9e | 0xa5 | 0xa6 | 0x66 | 0x6a | 0x6c | 0x7d | 0x7e
        | 0x8c | 0x8d | 0xa7 => (EARLIER, 1),
        // Alder Lake, Raptor Lake, Meteor Lake; Sapphire, Emerald and Granite Rapids.
        0x97 | 0x9a | 0xb7 | 0xba | 0xbf | 0xaa | 0xac | 0x8f | 0xcf | 0xad | 0xae => (LATER, 1),
        _ => {
            return Codes {
                walk_cycles: Err(NO_TABLE),
                data_misses: None,
                instruction_misses: None,
            };
        }
    };
    let [loads, stores, fetches] = events;
    let all = |mask, counter| events.map(|event| intel(event, mask, counter)).to_vec();
    Codes {
        walk_cycles: Ok(all(0x10, counter)),
        // WALK_COMPLETED
        data_misses: Some(vec![intel(loads, 0x0e, 0), intel(stores, 0x0e, 0)]),
        instruction_misses: Some(vec![intel(fetches, 0x0e, 0)]),
    }
}

/// The events of each counter of [`NAMES`], or why it cannot be counted.
pub(super) fn events(root: &Root) -> Vec<(&'static str, Result<Vec<Event>, Missing>)> {
    let Some(kind) = pmu(root) else {
        let missing = no_pmu(root);
        return NAMES
            .iter()
            .map(|name| (*name, Err(missing.clone())))
            .collect();
    };
    let codes = codes(&Cpu::read(root));
    let raw =
        |codes: &[u64]| -> Vec<Event> { codes.iter().map(|code| event(kind, *code)).collect() };
    let or_generic = |codes: &Option<Vec<u64>>, generic: &[u64]| match codes {
        Some(codes) => raw(codes),
        None => generic
            .iter()
            .map(|code| event(HARDWARE_CACHE, *code))
            .collect(),
    };
    let walks = match &codes.walk_cycles {
        Ok(codes) => Ok(raw(codes)),
        Err(reason) => Err(Missing::without_fix(*reason)),
    };
    vec![
        ("cycles", Ok(vec![event(HARDWARE, CYCLES)])),
        ("instructions", Ok(vec![event(HARDWARE, INSTRUCTIONS)])),
        ("page_walk_cycles", walks),
        (
            "dtlb_misses",
            Ok(or_generic(&codes.data_misses, &[0x1_0003, 0x1_0103])),
        ),
        (
            "itlb_misses",
            Ok(or_generic(&codes.instruction_misses, &[0x1_0004])),
        ),
    ]
}

fn event(kind: u32, config: u64) -> Event {
    Event {
        kind,
        config,
        ..Event::default()
    }
}

/// The type of the PMU of the CPUs; of the performance cores where there are two kinds.
fn pmu(root: &Root) -> Option<u32> {
    const DEVICES: &str = "/sys/bus/event_source/devices";
    let names = root.names(DEVICES);
    let known = ["cpu", "cpu_core"]
        .into_iter()
        .find(|known| names.iter().any(|it| it == known));
    let arm = || names.iter().find(|name| name.starts_with("armv8"));
    let name = known.or_else(|| arm().map(String::as_str))?;
    root.line(format!("{DEVICES}/{name}/type"))?.parse().ok()
}

fn no_pmu(root: &Root) -> Missing {
    let is_guest = root
        .read("/proc/cpuinfo")
        .is_ok_and(|text| text.contains("hypervisor"));
    let reason = match is_guest {
        true => "this virtual machine has no PMU",
        false => "the kernel shows no PMU of this CPU",
    };
    Missing::new(reason, "a machine or instance type with a PMU")
}

#[cfg(test)]
mod tests;
