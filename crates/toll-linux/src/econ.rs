// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's estimator (mm/econ of the patch queue): profiles of processes, and the decisions
//! made for them.

mod costs;
mod ledger;
mod profile;

pub use self::costs::{LoadError, Samples, costs, load_costs, samples};
pub use self::ledger::{Account, Ledger, Machine, Process, processes};
pub use self::profile::{GiveError, MAGIC, Row, give, rows};

/// Sysfs directory of the estimator.
pub const DIRECTORY: &str = "/sys/kernel/mm/econ";
