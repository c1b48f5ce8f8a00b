// SPDX-License-Identifier: MIT OR Apache-2.0
//! Crashes that a scenario asks for: results beside those of its guests.

use anyhow::Result;

use super::{crash_states, power_cuts};
use crate::counters::Counters;
use crate::results::{Detail, Entry, Results};
use crate::run::Request;
use crate::workspace::Workspace;

/// Adds the sections `crash-states`, `kernel-crash-states` and `power-cuts` to the results, if the form asks for them and
/// the kernel is one of the variants.
///
/// # Errors
/// As of the commands of these names. What was counted until then is in the results.
pub fn add(workspace: &Workspace, request: &Request<'_>, results: &mut Results) -> Result<()> {
    let Some(crashes) = &request.scenario.form(request.size).crashes else {
        return Ok(());
    };
    if !request.variants.contains(&crashes.variant) {
        return Ok(());
    }
    let mut add = |section: &str, counters: Counters| {
        let policy = &request.scenario.policies[0].name;
        let mut entry = Entry::new(&crashes.variant, policy, section);
        entry.add(counters, Detail::default(), false);
        results.results.push(entry);
    };
    let states = crash_states::examined(crashes.states);
    add(
        "crash-states",
        counters(&[
            ("crash_states", states.crash_states),
            ("lost", states.lost),
            ("planted", states.planted),
            ("caught", states.caught),
        ]),
    );
    states.conclude()?;
    let kernel = crash_states::examine(workspace, &crashes.variant, crashes.operations, None)?;
    add(
        "kernel-crash-states",
        counters(&[
            ("operations", kernel.operations),
            ("crash_states", kernel.crash_states),
            ("mounted", kernel.mounted),
            ("lost", kernel.lost),
        ]),
    );
    kernel.conclude()?;
    let seed = power_cuts::new_seed();
    let cuts = power_cuts::cut(workspace, &crashes.variant, crashes.power_cuts, seed, None)?;
    add(
        "power-cuts",
        counters(&[
            ("power_cuts", u64::from(cuts.power_cuts)),
            ("lost", cuts.lost),
            ("interrupted", cuts.tally.interrupted),
            ("done", cuts.tally.done),
        ]),
    );
    cuts.conclude()
}

fn counters(all: &[(&str, u64)]) -> Counters {
    let counter = |(name, count): &(&str, u64)| ((*name).to_owned(), *count as f64);
    all.iter().map(counter).collect()
}
