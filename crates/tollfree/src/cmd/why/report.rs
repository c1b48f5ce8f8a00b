// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `--json` prints, and what the text shows.

use serde::Serialize;
use toll_act::settings::Setting;
use toll_linux::Root;
use toll_linux::proc::Place;
use toll_linux::sys::{self, Charged};
use toll_model::eligibility::{Advice, Estimate, Reason, Share, extrapolate};

use super::bill::{self, Line};
use super::entry::{Entry, Kind};
use super::fixes::{Fixes, Pace};
use super::program::Found;
use super::reading::{Missing, Reading};

/// A report. Sizes are bytes.
#[derive(Serialize)]
pub struct Report<'a> {
    format: &'static str,
    version: u32,
    pub pid: u32,
    /// Its id in its own pid namespace, if that is another one than this command's.
    pub namespace_pid: Option<u32>,
    pub cgroup_path: Option<&'a str>,
    #[serde(skip)]
    pub place: &'a Place,
    pub name: &'a str,
    pub thp: Thp<'a>,
    pub resident_bytes: u64,
    pub huge_bytes: u64,
    pub small_bytes: u64,
    /// Of the address space, touched or not.
    pub eligible_bytes: u64,
    /// Resident in mappings with MADV_HUGEPAGE, and the part of it in huge pages.
    pub advised_bytes: u64,
    pub advised_huge_bytes: u64,
    pub swap_bytes: u64,
    /// Given back by MADV_FREE, still resident.
    pub lazy_free_bytes: u64,
    pub page_table_bytes: Option<u64>,
    /// The lines add up to `resident_bytes`.
    pub bill: Vec<Line<'a>>,
    pub unused: Option<Unused>,
    pub folios: Option<Sizes>,
    pub khugepaged: Option<&'a Pace>,
    pub cgroup: Option<Group>,
    pub settings: &'a [Setting],
    pub missing: &'a [Missing],
    pub mappings: Vec<Mapping<'a>>,
}

/// The settings that hold for the process.
#[derive(Serialize)]
pub struct Thp<'a> {
    /// Of 2 MiB pages: `always`, `madvise` or `never`; null: no transparent huge pages.
    pub enabled: Option<String>,
    pub defrag: Option<&'a str>,
    pub shmem_enabled: Option<&'a str>,
    /// Switched off by the process; null: unknown.
    pub disabled: Option<bool>,
}

/// Parts of huge pages that hold only zeros.
#[derive(Serialize)]
pub struct Unused {
    pub bytes: f64,
    pub interval: [f64; 2],
    pub huge_pages: usize,
    pub read: usize,
}

impl Unused {
    fn of(reading: &Reading) -> Option<Unused> {
        let content = reading.content.as_ref()?;
        let Estimate { bytes, low, high } = extrapolate(content.regions, &content.zero)?;
        Some(Unused {
            bytes,
            interval: [low, high.min(reading.content_bytes() as f64)],
            huge_pages: content.regions,
            read: content.zero.len(),
        })
    }
}

/// The sizes of the pages behind 4 KiB entries.
#[derive(Serialize)]
pub struct Sizes {
    /// 2 MiB regions with 4 KiB entries, and those that were read.
    pub regions: usize,
    pub read: usize,
    pub sizes: Vec<Size>,
    /// Memory of split huge pages that is mapped nowhere and not free yet.
    pub retained_bytes: u64,
}

#[derive(Serialize)]
pub struct Size {
    pub page_bytes: u64,
    pub bytes: u64,
}

impl Sizes {
    fn of(reading: &Reading) -> Option<Sizes> {
        let folios = reading.folios.as_ref()?;
        let size = |(page_bytes, bytes)| Size { page_bytes, bytes };
        Some(Sizes {
            regions: folios.regions,
            read: folios.read,
            sizes: reading.folio_sizes().into_iter().map(size).collect(),
            retained_bytes: reading.retained()?,
        })
    }
}

/// What the control group of the process is charged with.
#[derive(Serialize)]
pub struct Group {
    pub directory: String,
    pub usage_bytes: u64,
    pub working_set_bytes: u64,
    pub anonymous_bytes: u64,
    pub active_file_bytes: u64,
    pub shared_bytes: u64,
    pub kernel_bytes: Option<u64>,
    pub limit_bytes: Option<u64>,
    pub headroom_bytes: Option<u64>,
}

impl Group {
    fn of(root: &Root, reading: &Reading) -> Option<Group> {
        let charged: Charged = sys::charged(root, reading.pid)?;
        Some(Group {
            directory: charged.directory.display().to_string(),
            usage_bytes: charged.usage,
            working_set_bytes: charged.working_set(),
            anonymous_bytes: charged.anonymous,
            active_file_bytes: charged.active_file,
            shared_bytes: charged.shared,
            kernel_bytes: charged.kernel,
            limit_bytes: reading.survey.limit.as_ref().map(|limit| limit.bytes),
            headroom_bytes: reading.survey.headroom,
        })
    }
}

/// A mapping.
#[derive(Serialize)]
pub struct Mapping<'a> {
    pub start: u64,
    pub length: u64,
    pub kind: Kind,
    pub name: &'a str,
    pub resident_bytes: u64,
    pub huge_bytes: u64,
    pub eligible_bytes: u64,
    pub swap_bytes: u64,
    /// `huge` or `never`: MADV_HUGEPAGE, MADV_NOHUGEPAGE.
    pub advice: Option<&'static str>,
    pub reasons: Vec<Because>,
    pub fix: Option<&'a str>,
    #[serde(skip)]
    pub entry: &'a Entry,
}

/// A reason of a mapping.
#[derive(Serialize)]
pub struct Because {
    pub reason: Reason,
    pub bytes: u64,
}

impl<'a> Mapping<'a> {
    fn new(entry: &'a Entry, fixes: &'a Fixes) -> Mapping<'a> {
        let because = |share: &Share| Because {
            reason: share.reason,
            bytes: share.bytes,
        };
        // What forbids huge pages besides has no memory of its own.
        let also = entry.also.iter().map(|reason| Because {
            reason: *reason,
            bytes: 0,
        });
        Mapping {
            start: entry.start,
            length: entry.end - entry.start,
            kind: entry.kind,
            name: &entry.name,
            resident_bytes: entry.resident,
            huge_bytes: entry.huge,
            eligible_bytes: entry.eligible,
            swap_bytes: entry.swap,
            advice: advice(entry.advice),
            reasons: entry.shares.iter().map(because).chain(also).collect(),
            fix: entry.reason().and_then(|reason| fixes.of(reason)),
            entry,
        }
    }
}

fn advice(advice: Advice) -> Option<&'static str> {
    match advice {
        Advice::None => None,
        Advice::Huge => Some("huge"),
        Advice::Never => Some("never"),
    }
}

impl<'a> Report<'a> {
    pub fn new(
        root: &Root,
        reading: &'a Reading,
        program: &'a Found,
        fixes: &'a Fixes,
    ) -> Report<'a> {
        let advised = |of: fn(&Entry) -> u64| {
            reading.sum(|entry| match entry.advice {
                Advice::Huge => of(entry),
                _ => 0,
            })
        };
        let resident_bytes = reading.resident();
        let huge_bytes = reading.sum(|entry| entry.huge);
        let status = reading.status.as_ref();
        let mappings = reading.entries.iter();
        Report {
            format: "tollfree-why",
            version: 1,
            pid: reading.pid,
            namespace_pid: reading.place.namespace_pid,
            cgroup_path: reading.place.cgroup.as_deref(),
            place: &reading.place,
            name: &reading.name,
            thp: thp(reading),
            resident_bytes,
            huge_bytes,
            small_bytes: resident_bytes - huge_bytes,
            eligible_bytes: reading.sum(|entry| entry.eligible),
            advised_bytes: advised(|entry| entry.resident),
            advised_huge_bytes: advised(|entry| entry.huge),
            swap_bytes: reading.sum(|entry| entry.swap),
            lazy_free_bytes: reading.sum(|entry| entry.lazy_free),
            page_table_bytes: status.and_then(|status| status.page_tables),
            bill: bill::lines(reading, fixes),
            unused: Unused::of(reading),
            folios: Sizes::of(reading),
            khugepaged: fixes.pace.as_ref(),
            cgroup: Group::of(root, reading),
            settings: &program.settings,
            missing: &reading.missing,
            mappings: mappings.map(|entry| Mapping::new(entry, fixes)).collect(),
        }
    }

    /// Settings with which the program advises its memory.
    pub fn advisers(&self) -> Vec<String> {
        let advising = self.settings.iter().filter(|setting| setting.advises);
        advising
            .map(|it| format!("{} ({}={})", it.of, it.name, it.value))
            .collect()
    }
}

fn thp(reading: &Reading) -> Thp<'_> {
    let thp = reading.survey.thp.as_ref();
    let status = reading.status.as_ref();
    Thp {
        enabled: thp.map(|thp| thp.region_mode().to_string()),
        defrag: thp.map(|thp| thp.defrag.as_str()),
        shmem_enabled: thp.and_then(|thp| thp.shmem_mode()),
        disabled: status.and_then(|status| status.thp_enabled).map(|on| !on),
    }
}
