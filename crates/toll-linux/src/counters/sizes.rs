// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of each size of huge pages (mTHP): `hugepages-*kB/stats`, since Linux 6.10.

use toll_model::losses::{Missing, Scope, Snapshot};

use crate::Root;

const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

/// The files of all sizes, with the names of their counters. They do not change until the next boot.
#[derive(Debug)]
pub(super) struct Sizes(Vec<(String, String)>);

impl Sizes {
    pub(super) fn find(root: &Root) -> Sizes {
        let mut files = Vec::new();
        for name in root.names(DIRECTORY) {
            let Some(size) = name.strip_prefix("hugepages-") else {
                continue;
            };
            let directory = format!("{DIRECTORY}/{name}/stats");
            for statistic in root.names(&directory) {
                let path = format!("{directory}/{statistic}");
                files.push((format!("mthp_{size}_{statistic}"), path));
            }
        }
        Sizes(files)
    }

    pub(super) fn read(&self, root: &Root, snapshot: &mut Snapshot) {
        if self.0.is_empty() {
            let missing = Missing::new(
                "this kernel has no statistics by size",
                "Linux 6.10 or later, and a complete /sys in the container",
            );
            snapshot.miss(Scope::Machine, &["mthp"], &missing);
        }
        for (name, path) in &self.0 {
            if let Some(value) = root.number(path) {
                snapshot.set(Scope::Machine, name.as_str(), Ok(value));
            }
        }
    }
}
