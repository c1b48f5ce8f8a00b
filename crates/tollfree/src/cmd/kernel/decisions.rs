// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decisions of the kernel's estimator, as `explain` and `top` print them.

use serde::Serialize;
use toll_linux::econ::{Account, DIRECTORY};

/// The decisions of one model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Decisions {
    pub model: String,
    pub asked: u64,
    pub approved: u64,
    pub cost_ns: u64,
    pub benefit_ns: u64,
    pub refused_ns: u64,
}

impl From<&Account> for Decisions {
    fn from(account: &Account) -> Decisions {
        Decisions {
            model: account.model.clone(),
            asked: account.asked,
            approved: account.approved,
            cost_ns: account.cost_ns,
            benefit_ns: account.benefit_ns,
            refused_ns: account.refused_ns,
        }
    }
}

/// Describes the decision of each model.
pub fn what(model: &str) -> &str {
    match model {
        "huge" => "a huge page at the first touch",
        "large" => "several pages at the first touch",
        "direct" => "waiting for a block in the fault",
        "promote" => "copying a region together",
        "demote" => "splitting a huge page",
        "compact" => "putting a block together",
        "zero" => "zeroing a block ahead",
        "pool" => "a larger pool of lazy unmap flush",
        "swap" => "several pages from swap at once",
        other => other,
    }
}

/// The error for a kernel without econ.
pub fn no_econ() -> String {
    format!("{DIRECTORY}: not found: this kernel has no econ (CONFIG_ECON)")
}
