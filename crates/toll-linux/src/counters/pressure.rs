// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pressure stall information: time in which tasks waited for memory.

use std::path::Path;

use toll_model::losses::{Missing, Scope, Snapshot};

use crate::Root;

/// Reads the totals of a pressure file.
pub(super) fn read(root: &Root, scope: Scope, path: impl AsRef<Path>, snapshot: &mut Snapshot) {
    let text = root.read(path);
    let missing = |_| {
        Missing::new(
            "this kernel keeps no pressure information",
            "CONFIG_PSI, and psi=1 on the kernel's command line",
        )
    };
    for (name, line) in [("pressure_some", "some"), ("pressure_full", "full")] {
        let total = match &text {
            Ok(text) => total(text, line).ok_or(()),
            Err(_) => Err(()),
        };
        snapshot.set(scope, name, total.map_err(missing));
    }
}

/// The total of a line such as `some avg10=0.00 avg60=0.00 avg300=0.00 total=17`, in ns.
fn total(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(kind))?;
    let (_, microseconds) = line.split_once("total=")?;
    let microseconds: u64 = microseconds.trim().parse().ok()?;
    Some(microseconds.saturating_mul(1_000))
}
