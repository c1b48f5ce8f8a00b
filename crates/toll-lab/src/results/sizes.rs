// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mapping cost by size and by what is mapped.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::Entry;
use crate::scenario::SizeSections;

/// One size: instructions of all CPUs for one mapping and its first read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizeCost {
    pub size_bytes: u64,
    pub base_instr: u64,
    pub hugetlb_instr: u64,
    pub morsel_instr: u64,
    /// Of memory that is pinned page by page, if the scenario has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned_instr: Option<u64>,
    /// Base divided by morsel.
    pub reduction_factor: f64,
}

/// Collects the sizes of each kind, smallest first. A section describes a size if its program notes
/// `bytes` and `rounds`. If several variants have it, the first one counts, so that the reference
/// is the stock kernel if that ran.
pub fn sizes(entries: &[Entry], sections: &SizeSections) -> Vec<SizeCost> {
    let prefix = format!("{}-", sections.morsel);
    let labels = entries
        .iter()
        .filter_map(|entry| entry.section.strip_prefix(&prefix));
    let cost = |label: &str| {
        let of = |kind: &str| of_section(entries, &format!("{kind}-{label}"));
        let (base_bytes, base) = of(&sections.base)?;
        let (hugetlb_bytes, hugetlb) = of(&sections.hugetlb)?;
        let (bytes, morsel) = of(&sections.morsel)?;
        let is_one_size = bytes == base_bytes && bytes == hugetlb_bytes;
        (is_one_size && morsel > 0.0).then(|| SizeCost {
            size_bytes: bytes as u64,
            base_instr: base.round() as u64,
            hugetlb_instr: hugetlb.round() as u64,
            morsel_instr: morsel.round() as u64,
            pinned_instr: sections
                .pinned
                .as_ref()
                .and_then(|kind| of(kind))
                .map(|(_, pinned)| pinned.round() as u64),
            reduction_factor: base / morsel,
        })
    };
    let mut found: Vec<SizeCost> = labels.filter_map(cost).collect();
    found.sort_by_key(|cost| cost.size_bytes);
    found.dedup_by_key(|cost| cost.size_bytes);
    found
}

/// Returns the bytes, and the instructions of one round.
fn of_section(entries: &[Entry], section: &str) -> Option<(f64, f64)> {
    let entry = entries.iter().find(|entry| entry.section == section)?;
    let get = |name: &str| entry.counters.get(name).map(|it| it.median);
    let rounds = get("note_rounds").filter(|rounds| *rounds > 0.0)?;
    let instructions = get("instructions_user")? + get("instructions_kernel")?;
    Some((get("note_bytes")?, instructions / rounds))
}

/// Formats the sizes as a table.
pub fn sizes_table(sizes: &[SizeCost]) -> String {
    let mut text = "Instructions of a mapping and the first read of it\n\n\
             | bytes | base | hugetlb | morsel | base by morsel |\n|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for cost in sizes {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.1} |",
            cost.size_bytes,
            cost.base_instr,
            cost.hugetlb_instr,
            cost.morsel_instr,
            cost.reduction_factor
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;
    use crate::results::Detail;

    fn entry(variant: &str, section: &str, counters: &[(&str, f64)]) -> Entry {
        let mut entry = Entry::new(variant, "default", section);
        let counters: Counters = counters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect();
        entry.add(counters, Detail::default(), false);
        entry
    }

    /// A section of 2 rounds with 2 user instructions.
    fn section(variant: &str, name: &str, bytes: f64, kernel: f64) -> Entry {
        let counters = [
            ("instructions_user", 2.0),
            ("instructions_kernel", kernel),
            ("note_bytes", bytes),
            ("note_rounds", 2.0),
        ];
        entry(variant, name, &counters)
    }

    fn kinds() -> SizeSections {
        let name = str::to_owned;
        SizeSections {
            base: name("ext4"),
            hugetlb: name("hugetlb"),
            morsel: name("sealed"),
            pinned: Some(name("pinned")),
        }
    }

    #[test]
    fn a_size_is_a_round_of_each_kind_with_the_first_variant_as_the_base() {
        let entries = [
            section("vanilla", "ext4-1g", 1024.0, 39_998.0),
            section("tollfree", "ext4-1g", 1024.0, 1e9),
            section("vanilla", "hugetlb-1g", 1024.0, 398.0),
            section("tollfree", "sealed-1g", 1024.0, 6.0),
            section("vanilla", "pinned-1g", 1024.0, 138.0),
            section("vanilla", "ext4-4k", 16.0, 98.0),
            section("vanilla", "hugetlb-4k", 16.0, 48.0),
            section("tollfree", "sealed-4k", 16.0, 48.0),
        ];
        let found = sizes(&entries, &kinds());
        let small = SizeCost {
            size_bytes: 16,
            base_instr: 50,
            hugetlb_instr: 25,
            morsel_instr: 25,
            pinned_instr: None,
            reduction_factor: 2.0,
        };
        let large = SizeCost {
            size_bytes: 1024,
            base_instr: 20_000,
            hugetlb_instr: 200,
            morsel_instr: 4,
            pinned_instr: Some(70),
            reduction_factor: 5000.0,
        };
        assert_eq!(found, [small, large]);
        assert!(sizes_table(&found).contains("| 1024 | 20000 | 200 | 4 | 5000.0 |"));
    }

    #[test]
    fn what_is_not_there_of_each_kind_is_no_size() {
        let of = |entries: &[Entry]| sizes(entries, &kinds()).len();
        let [base, hugetlb, morsel] =
            ["ext4-1g", "hugetlb-1g", "sealed-1g"].map(|name| section("v", name, 8.0, 9.0));
        let all = [base.clone(), hugetlb.clone(), morsel.clone()];
        assert_eq!(of(&all), 1);
        assert_eq!(of(&[base.clone(), hugetlb.clone()]), 0);
        assert_eq!(of(&[base, morsel.clone()]), 0);
        // A duplicate size, and a section that does not describe a size.
        let other = section("v", "ext4-1g", 9.0, 9.0);
        assert_eq!(of(&[other, hugetlb.clone(), morsel.clone()]), 0);
        let unmapping = entry("v", "ext4-1g", &[("instructions_kernel", 9.0)]);
        assert_eq!(of(&[unmapping, hugetlb, morsel]), 0);
    }
}
