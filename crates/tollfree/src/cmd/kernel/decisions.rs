// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decisions of the kernel's estimator, as `explain` and `top` print them.

use toll_linux::econ::{Account, DIRECTORY};
use toll_model::numbers::count;
use toll_model::units::format_ns;

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

/// The cells of a line of a table: asked, done, cost, saves, left.
pub fn cells(name: String, account: &Account) -> [String; 6] {
    [
        name,
        count(account.asked as f64),
        count(account.approved as f64),
        format_ns(account.cost_ns as f64),
        format_ns(account.benefit_ns as f64),
        format_ns(account.refused_ns as f64),
    ]
}

/// The error for a kernel without econ.
pub fn no_econ() -> String {
    format!("{DIRECTORY}: not found: this kernel has no econ (CONFIG_ECON)")
}
