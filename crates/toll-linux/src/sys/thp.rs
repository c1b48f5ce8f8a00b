// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transparent huge pages: machine-wide settings.

use std::fmt;

use crate::Root;

const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

/// When the kernel uses huge pages by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Always,
    Madvise,
    /// mTHP sizes only: inherits the 2 MiB setting.
    Inherit,
    Never,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Always => "always",
            Mode::Madvise => "madvise",
            Mode::Inherit => "inherit",
            Mode::Never => "never",
        })
    }
}

impl Mode {
    fn parse(text: &str) -> Option<Mode> {
        match selected(text)? {
            "always" => Some(Mode::Always),
            "madvise" => Some(Mode::Madvise),
            "inherit" => Some(Mode::Inherit),
            "never" => Some(Mode::Never),
            _ => None,
        }
    }
}

/// Returns the word in brackets of a setting such as `always [madvise] never`.
pub fn selected(text: &str) -> Option<&str> {
    text.split_once('[')?
        .1
        .split_once(']')
        .map(|(word, _)| word)
}

/// The machine-wide settings of transparent huge pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thp {
    pub mode: Mode,
    /// Behaviour of a fault when no huge page is free (`always`, `defer`, ... `never`).
    pub defrag: String,
    /// Bytes of the huge page that a PMD maps.
    pub huge_page: u64,
    /// mTHP sizes in bytes with their settings, smallest first; empty before Linux 6.8.
    pub sizes: Vec<(u64, Mode)>,
    /// Huge page setting for shared memory (`always`, `within_size`, `advise`, ... `never`).
    pub shmem: Option<String>,
    /// The same for shared memory in pages of 2 MiB, since Linux 6.11 (also `inherit`).
    pub shmem_region: Option<String>,
    /// Maximum number of missing pages in a region that khugepaged collapses.
    pub max_ptes_none: Option<u64>,
    pub khugepaged: Khugepaged,
    /// Linux 6.12 and later split mostly unused huge pages under memory pressure.
    pub shrink_underused: Option<bool>,
}

impl Thp {
    /// Reads the settings; `None` if the kernel has no transparent huge pages.
    pub fn read(root: &Root) -> Option<Thp> {
        let file = |name: &str| root.line(format!("{DIRECTORY}/{name}"));
        let enabled = file("enabled")?;
        Some(Thp {
            mode: Mode::parse(&enabled)?,
            defrag: file("defrag")
                .and_then(|text| selected(&text).map(str::to_owned))
                .unwrap_or_default(),
            huge_page: file("hpage_pmd_size")
                .and_then(|text| text.parse().ok())
                .unwrap_or(toll_model::REGION),
            sizes: sizes(root),
            shmem: file("shmem_enabled").and_then(|text| selected(&text).map(str::to_owned)),
            shmem_region: file("hugepages-2048kB/shmem_enabled")
                .and_then(|text| selected(&text).map(str::to_owned)),
            max_ptes_none: root.number(format!("{DIRECTORY}/khugepaged/max_ptes_none")),
            khugepaged: Khugepaged::read(root),
            shrink_underused: root
                .number(format!("{DIRECTORY}/shrink_underused"))
                .map(|value| value != 0),
        })
    }

    /// Returns the setting for 2 MiB pages, with `inherit` resolved.
    pub fn region_mode(&self) -> Mode {
        let own = self.sizes.iter().find(|(size, _)| *size == self.huge_page);
        match own {
            Some((_, mode)) if *mode != Mode::Inherit => *mode,
            _ => self.mode,
        }
    }
}

impl Thp {
    /// Returns the setting for shared memory in pages of 2 MiB, with `inherit` resolved.
    pub fn shmem_mode(&self) -> Option<&str> {
        match self.shmem_region.as_deref() {
            Some(own) if own != "inherit" => Some(own),
            _ => self.shmem.as_deref(),
        }
    }

    /// Whether no huge page can hold shared memory, not even by a collapse.
    pub fn forbids_shared(&self) -> bool {
        self.shmem.as_deref() == Some("deny")
    }
}

/// The settings of khugepaged, the kernel's thread that makes memory huge later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Khugepaged {
    /// Number of pages that it looks at before it sleeps.
    pub pages_to_scan: Option<u64>,
    pub scan_sleep_ms: Option<u64>,
    /// Passes over all its memory since boot.
    pub full_scans: Option<u64>,
}

impl Khugepaged {
    fn read(root: &Root) -> Khugepaged {
        let number = |name: &str| root.number(format!("{DIRECTORY}/khugepaged/{name}"));
        Khugepaged {
            pages_to_scan: number("pages_to_scan"),
            scan_sleep_ms: number("scan_sleep_millisecs"),
            full_scans: number("full_scans"),
        }
    }
}

/// The file of the setting for anonymous memory in pages of this size.
pub fn size_setting(size: u64) -> String {
    format!("{DIRECTORY}/hugepages-{}kB/enabled", size >> 10)
}

fn sizes(root: &Root) -> Vec<(u64, Mode)> {
    let mut sizes: Vec<(u64, Mode)> = root
        .names(DIRECTORY)
        .iter()
        .filter_map(|name| {
            let kilobytes = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
            let setting = root.line(format!("{DIRECTORY}/{name}/enabled"))?;
            Some((kilobytes.parse::<u64>().ok()? << 10, Mode::parse(&setting)?))
        })
        .collect();
    sizes.sort_by_key(|(size, _)| *size);
    sizes
}
