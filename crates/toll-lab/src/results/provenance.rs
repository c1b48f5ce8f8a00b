// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes how results were produced, and what they can show.

use super::Results;

/// Describes how the results were produced; printed with every figure from the lab.
pub fn provenance(results: &Results) -> String {
    let environment = &results.environment;
    let machine = &environment.machine;
    let kernels: Vec<String> = environment
        .kernels
        .iter()
        .map(|kernel| {
            let lab = kernel
                .patches
                .iter()
                .filter(|patch| patch.starts_with('9'))
                .count();
            format!(
                "{} {} ({lab} lab-only seams)",
                kernel.variant, kernel.release
            )
        })
        .collect();
    let clock = match (machine.icount, machine.turns_us) {
        (true, 0) => "one host thread, instruction-count clock".to_owned(),
        (true, us) => format!("one host thread, turns within {us} us, instruction-count clock"),
        (false, _) => "one host thread per CPU".to_owned(),
    };
    let pcid = if machine.pcid {
        "PCIDs in software"
    } else {
        "no PCIDs"
    };
    format!(
        "{}, {} form, {}, {}: {}; {} CPUs, {} MiB, {clock}, {pcid}; QEMU {}; preset {}; first touch: {}.",
        results.scenario,
        results.form.name(),
        runs(results),
        environment.date,
        kernels.join(", "),
        machine.cpus,
        machine.memory_mib + machine.slow_mib,
        environment.qemu,
        results.preset,
        environment.first_touch
    )
}

/// The number of runs of each variant and policy, the lowest of all.
fn runs(results: &Results) -> String {
    match results.results.iter().map(|entry| entry.samples).min() {
        Some(1) => "1 run".to_owned(),
        runs => format!("{} runs", runs.unwrap_or(0)),
    }
}

/// Describes the resolution of the counts: the rounds that a change of 3 % needs, from the spread
/// of the first variant's runs.
pub fn resolution(results: &Results) -> Option<String> {
    const CHANGE: f64 = 0.03;
    if results.environment.machine.icount {
        let say = "Counts of the same run repeat within 1 %: one run is enough.";
        return Some(say.to_owned());
    }
    let judges = results.judged_by.join(", ");
    let (needed, judge) = results.rounds_for(CHANGE)?;
    let made = results.results.first()?.samples as u32;
    Some(match needed <= made {
        true => format!("Judged by {judges}: {made} rounds detect a change of 3 %."),
        false => format!(
            "Judged by {judges}: a change of 3 % needs {needed} rounds ({judge}); {made} were run."
        ),
    })
}
