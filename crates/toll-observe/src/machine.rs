// SPDX-License-Identifier: MIT OR Apache-2.0
//! This machine's costs and settings, as estimates need them.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use toll_act::error::UserError;
use toll_act::{files, signals, thp};
use toll_linux::{Root, calibrate, sys};
use toll_model::cost::CostTable;
use toll_model::estimate::Options;

/// Whether this machine's costs have been measured.
pub fn costs_known() -> bool {
    known_costs().is_some()
}

fn known_costs() -> Option<CostTable> {
    calibrate::load(&calibrate::key(&Root::system()))
}

/// Returns the costs to estimate with: from the named file, else this machine's if they have been
/// measured, else defaults.
///
/// # Errors
/// [`UserError::Input`] if the file is not a cost table.
pub fn costs(path: Option<&Path>) -> Result<CostTable> {
    match path {
        Some(path) => files::read(path, |bytes| CostTable::from_json(bytes)),
        None => Ok(known_costs().unwrap_or_else(calibrate::default_costs)),
    }
}

/// Returns this machine's costs, measured within `within` (and stored) if they are not known;
/// default costs if `within` is zero. `progress` is called with a line for each step.
///
/// # Errors
/// [`UserError::Interrupted`].
pub fn measured_costs(within: Duration, progress: &mut dyn FnMut(&str)) -> Result<CostTable> {
    if let Some(table) = known_costs() {
        return Ok(table);
    }
    if within.is_zero() {
        return Ok(calibrate::default_costs());
    }
    let table = measure_costs(within, progress);
    if signals::interrupted().is_some() {
        return Err(UserError::Interrupted.into());
    }
    // A cache that cannot be written (a full disk) does not invalidate the costs.
    if let Some(path) = calibrate::cache_path(&calibrate::key(&Root::system())) {
        let _ = calibrate::store(&path, &table);
    }
    Ok(table)
}

/// Measures this machine's costs within `within`, or until a signal asks tollfree to end.
pub fn measure_costs(within: Duration, progress: &mut dyn FnMut(&str)) -> CostTable {
    let memory = calibrate::available_memory() / 2;
    calibrate::calibrate_with(
        within,
        memory,
        &|| signals::interrupted().is_some(),
        progress,
    )
}

/// The options of an estimate that are properties of this machine.
pub fn estimate_options() -> Options {
    Options {
        free_regions: sys::buddyinfo_free_regions(&Root::system()),
        thp_always: thp::is_always(),
        shared_forbidden: sys::Thp::read(&Root::system()).is_some_and(|thp| thp.forbids_shared()),
        ..Options::default()
    }
}
