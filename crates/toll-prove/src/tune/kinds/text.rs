// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which program text can pay in huge pages.

use toll_linux::symbols;
use toll_model::plan::Text;
use toll_model::{REGION, numbers};
use toll_observe::observation::{Observation, TextUse};

use super::Machine;

/// A file is part of the hot text with at least one of this many parts of what is touched.
const LEAST_SHARE: u64 = 20;

/// Selects the text to hold in huge pages.
///
/// # Errors
/// Why none can pay, as text.
pub fn hot_text(look: &Observation, machine: &Machine) -> Result<Vec<Text>, String> {
    let touched: u64 = look.text.iter().map(|text| text.touched).sum();
    let within = touched_text(look);
    if let Some(obstacle) = &machine.obstacle {
        return Err(format!(
            "the program does not load the preload library: {obstacle}"
        ));
    }
    if touched <= machine.text_reach {
        let reach = numbers::bytes(machine.text_reach);
        return Err(format!(
            "{within}, which the instruction TLB reaches with 4 KiB pages ({reach})"
        ));
    }
    let is_hot = |touched_of: u64| touched_of * LEAST_SHARE >= touched;
    let hot = look.text.iter().filter(|text| is_hot(text.touched));
    let long: Vec<Text> = hot
        .filter(|text| text.length >= REGION && text.path.starts_with('/'))
        .map(|text| Text {
            path: text.path.clone(),
            build_id: symbols::build_id(text.path.as_ref()),
            touched_bytes: text.touched,
        })
        .collect();
    match long.is_empty() {
        true => Err(format!("{within}, but in no segment of 2 MiB or more")),
        false => Ok(long),
    }
}

/// The text that is touched, and what of it is huge without tollfree.
pub(super) fn touched_text(look: &Observation) -> String {
    let sum = |of: fn(&TextUse) -> u64| look.text.iter().map(of).sum::<u64>();
    let touched = numbers::bytes(sum(|text| text.touched));
    let within = format!("{touched} in 4 KiB pages are touched within a second");
    match sum(|text| text.huge) {
        0 => within,
        huge => format!("{within}, {} are huge already", numbers::bytes(huge)),
    }
}
