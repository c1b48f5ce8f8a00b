// SPDX-License-Identifier: MIT OR Apache-2.0
//! The costs of one machine, as `tollfree calibrate` measures them.

use serde::{Deserialize, Serialize};

use crate::error::FormatError;
use crate::format::{Format, first_impossible};

/// Value of the `format` field of a cost table.
pub const FORMAT: &str = "tollfree-costs";
/// The version of the format that this build writes and reads.
pub const VERSION: u32 = 1;

const COSTS: Format = Format {
    what: "cost table",
    name: FORMAT,
    version: VERSION,
};

/// A measured value with the range in which it was seen (10th to 90th percentile).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// Additional cost of a TLB-missing access with 4 KiB pages over 2 MiB pages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WalkCost {
    /// Bytes of memory over which accesses are evenly distributed.
    pub footprint: u64,
    /// Independent chains of dependent loads (1 = pointer chasing).
    pub chains: u32,
    /// Nanoseconds saved per access by 2 MiB pages.
    pub saved_ns: Measured,
}

/// One level of a TLB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlbLevel {
    pub entries: u32,
    pub ways: u32,
}

/// The data TLBs of a CPU. `None`: that level holds no such pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlbGeometry {
    /// Name of the preset, or `cpuid`.
    pub name: String,
    pub l1d_4k: TlbLevel,
    pub l1d_2m: TlbLevel,
    /// Second level for 4 KiB pages.
    pub l2_4k: TlbLevel,
    /// Second level for 2 MiB pages; `l2_shared` says whether it is the same array.
    pub l2_2m: Option<TlbLevel>,
    pub l2_shared: bool,
}

impl TlbGeometry {
    /// Names that [`TlbGeometry::preset`] accepts.
    pub const PRESETS: [&str; 4] = ["skylake", "icelake", "zen3", "zen4"];

    /// Returns the data TLBs of a well-known CPU; `None` for a name not in
    /// [`TlbGeometry::PRESETS`].
    ///
    /// | preset | L1 4 KiB | L1 2 MiB | L2 4 KiB | L2 2 MiB |
    /// |---|---|---|---|---|
    /// | `skylake` | 64, 4-way | 32, 4-way | 1536, 12-way | the same array |
    /// | `icelake` | 64, 4-way | 32, 4-way | 2048, 16-way | 1024 of them, 8-way |
    /// | `zen3` | 64, full | 64, full | 2048, 16-way | the same array |
    /// | `zen4` | 72, full | 72, full | 3072, 24-way | the same array |
    ///
    /// Sources: `skylake` and `icelake`: Intel 64 and IA-32 Architectures Optimization
    /// Reference Manual (248966), tables of TLB parameters of the two microarchitectures;
    /// Skylake client and server, Cascade Lake alike. Ice Lake reports its second level in
    /// CPUID leaf 0x18 as two arrays of 1024 entries, 8-way: one holds 4 KiB and
    /// 2 MiB pages, the other 4 KiB and 1 GiB pages. `zen3` and `zen4`: AMD Software
    /// Optimization Guide for the Zen 3 (56665) and Zen 4 (57647) microarchitectures, section
    /// on translation lookaside buffers; both hold 4 KiB and 2 MiB pages in one L1 array,
    /// here listed in full for each size. Separate L1 TLBs for stores (Ice Lake: 16) are left out.
    pub fn preset(name: &str) -> Option<TlbGeometry> {
        let (l1d_4k, l1d_2m, l2_4k, l2_2m) = match name {
            "skylake" => ((64, 4), (32, 4), (1536, 12), (1536, 12)),
            "icelake" => ((64, 4), (32, 4), (2048, 16), (1024, 8)),
            "zen3" => ((64, 64), (64, 64), (2048, 16), (2048, 16)),
            "zen4" => ((72, 72), (72, 72), (3072, 24), (3072, 24)),
            _ => return None,
        };
        let level = |(entries, ways)| TlbLevel { entries, ways };
        Some(TlbGeometry {
            name: name.to_owned(),
            l1d_4k: level(l1d_4k),
            l1d_2m: level(l1d_2m),
            l2_4k: level(l2_4k),
            l2_2m: Some(level(l2_2m)),
            l2_shared: true,
        })
    }

    /// Returns the geometry for QEMU's plugins (plugins/tlb-model/config.h), with the parts that
    /// all presets share: TLBs for 1 GiB pages, and paging-structure caches.
    pub fn plugin_words(&self) -> Vec<String> {
        /// Skylake's and Ice Lake's; only MAP_HUGETLB creates such pages.
        const L1_1G: (u32, u32) = (4, 4);
        const L2_1G: (u32, u32) = (16, 4);
        /// Fully associative. Vendors do not publish the sizes; these are a lower bound common to
        /// measurements of Intel and AMD cores since 2015. They do not affect miss counts.
        const PDE_CACHE: (u32, u32) = (32, 32);
        const PDPTE_CACHE: (u32, u32) = (4, 4);
        let of = |level: TlbLevel| (level.entries, level.ways);
        let shapes = [
            ("l1_4k", of(self.l1d_4k)),
            ("l1_2m", of(self.l1d_2m)),
            ("l1_1g", L1_1G),
            ("l2_4k", of(self.l2_4k)),
            ("l2_2m", self.l2_2m.map_or((0, 1), of)),
            ("l2_1g", L2_1G),
            ("pde", PDE_CACHE),
            ("pdpte", PDPTE_CACHE),
        ];
        let is_shared = self.l2_shared && self.l2_2m.is_some();
        shapes
            .iter()
            .map(|(name, (entries, ways))| format!("{name}={entries}x{ways}"))
            .chain([format!("l2_shared={}", u8::from(is_shared))])
            .collect()
    }

    /// Returns the reach of the second level with 4 KiB pages, bytes.
    pub fn reach_4k(&self) -> u64 {
        u64::from(self.l2_4k.entries) * crate::PAGE
    }

    /// Returns the reach of the TLB with 2 MiB pages, bytes.
    pub(crate) fn reach_2m(&self) -> u64 {
        u64::from(self.l2_2m.unwrap_or(self.l1d_2m).entries) * crate::REGION
    }

    fn check(&self) -> Result<(), String> {
        let levels = [
            Some(self.l1d_4k),
            Some(self.l1d_2m),
            Some(self.l2_4k),
            self.l2_2m,
        ];
        for TlbLevel { entries, ways } in levels.into_iter().flatten() {
            if ways == 0 || entries == 0 || entries % ways != 0 || entries > 1 << 20 {
                return Err(format!("tlb: {entries} entries in {ways} ways"));
            }
        }
        Ok(())
    }
}

/// The costs of one machine. All times are nanoseconds of CPU time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostTable {
    pub format: String,
    pub version: u32,
    /// `model name` of /proc/cpuinfo, kernel release and memory: the key of the table.
    pub cpu: String,
    pub kernel: String,
    pub memory: u64,
    /// False if calibration was cut short and defaults were filled in.
    pub complete: bool,
    pub tlb: TlbGeometry,
    /// Grid of [`WalkCost`] over footprint and chains. Points within the reach of the
    /// second-level TLB cost its hits, the others page walks.
    pub walk: Vec<WalkCost>,
    /// A first touch of 4 KiB and the release of the page.
    pub fault_4k: Measured,
    /// A first touch of 2 MiB on a recently used block, and its release.
    pub fault_2m_warm: Measured,
    /// A first touch of 2 MiB on a block that the host must provide (equal to warm if blocks do not
    /// get cold).
    pub fault_2m_cold: Measured,
    /// MADV_COLLAPSE of one populated 2 MiB region.
    pub collapse: Measured,
    /// Cost of a 4 KiB page that a huge page adds and the program never touches.
    pub bloat_page: f64,
    /// Costs of events that the plans do not depend on. Tables of earlier versions lack them.
    #[serde(default, skip_serializing_if = "MeasuredEvents::is_empty")]
    pub events: MeasuredEvents,
}

/// Costs of events that `stat` counts; absent if they were not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasuredEvents {
    /// A TLB shootdown, for the thread that changed the page table: the wait for one other CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shootdown_sent: Option<Measured>,
    /// A TLB shootdown, for the thread that it interrupts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shootdown_received: Option<Measured>,
    /// A fault that reads one page of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_major: Option<Measured>,
    /// Reclaim of one clean page of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_page: Option<Measured>,
}

impl MeasuredEvents {
    fn is_empty(&self) -> bool {
        *self == MeasuredEvents::default()
    }

    /// Names and costs, those that were measured.
    pub fn measured(&self) -> Vec<(&'static str, Measured)> {
        let all = [
            ("shootdown_sent", self.shootdown_sent),
            ("shootdown_received", self.shootdown_received),
            ("fault_major", self.fault_major),
            ("reclaim_page", self.reclaim_page),
        ];
        let measured = |(name, cost): (_, Option<Measured>)| Some((name, cost?));
        all.into_iter().filter_map(measured).collect()
    }
}

/// Footprints of the default grid's columns, bytes.
const DEFAULT_FOOTPRINTS: [u64; 6] = [2 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30, 4 << 30];
/// ns saved per access of one dependent chain: a hit in the second-level TLB costs 7 cycles more
/// than one in the first (manuals named at [`TlbGeometry::preset`]; 3 GHz), page walks with cached
/// page-table entries 2-4 ns a miss, with uncached ones 50-65 ns at 1 GiB and 125-190 ns at 4 GiB
/// (measured on a Zen 4 guest).
const DEFAULT_DEPENDENT_NS: [f64; 6] = [2.0, 3.0, 7.0, 22.0, 55.0, 140.0];
/// ns saved per access of eight independent chains: 9-13 ns a miss if uncached (same machine).
const DEFAULT_INDEPENDENT_NS: [f64; 6] = [0.3, 0.6, 2.5, 6.0, 9.0, 13.0];
/// Maximum number of points; above that of any calibration.
const MAX_WALK: usize = 1024;
/// A huge fault counts as cold from this multiple of the warm cost on: calibration treats blocks
/// below it as warm.
const COLD_IS_DEAR: f64 = 4.0;
/// A default cost may be wrong by this factor in either direction: other CPUs, other memory.
const DEFAULT_FACTOR: f64 = 2.0;

impl CostTable {
    /// Returns default costs for a machine that was not calibrated: correct in magnitude, with wide
    /// ranges, marked `complete: false`. `tollfree calibrate` replaces them.
    ///
    /// Sources: a two-CPU Zen 4 guest with Linux 6.18 on a host that reclaims idle memory: 4 KiB
    /// fault 1.3 us (p99 3.2), 2 MiB fault of a warm block 220 us (270), of a cold one 5.8 ms (10),
    /// MADV_COLLAPSE 5 to 6 ms (16). An untouched page costs the time to provide it: one fault.
    pub fn default_for(cpu: &str, kernel: &str, memory: u64, tlb: TlbGeometry) -> CostTable {
        let range = |median, low, high| Measured { median, low, high };
        CostTable {
            format: FORMAT.to_owned(),
            version: VERSION,
            cpu: cpu.to_owned(),
            kernel: kernel.to_owned(),
            memory,
            complete: false,
            tlb,
            walk: default_walk(),
            fault_4k: range(1_300.0, 500.0, 3_200.0),
            fault_2m_warm: range(220_000.0, 80_000.0, 270_000.0),
            fault_2m_cold: range(1_000_000.0, 80_000.0, 5_800_000.0),
            collapse: range(3_000_000.0, 400_000.0, 6_000_000.0),
            bloat_page: 1_300.0,
            events: MeasuredEvents::default(),
        }
    }

    /// Whether cold huge pages were measured here, at several times the cost of warm ones. Costs of
    /// an incomplete table may be defaults, which do not describe this machine.
    pub fn cold_is_dear(&self) -> bool {
        self.complete && self.fault_2m_cold.median > COLD_IS_DEAR * self.fault_2m_warm.median
    }

    /// Formats the table as an indented JSON document.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] for invalid values that a reader would reject.
    pub fn to_json(&self) -> Result<String, FormatError> {
        self.check()?;
        serde_json::to_string_pretty(self).map_err(|error| COSTS.invalid(error.to_string()))
    }

    /// Reads a cost table.
    /// # Errors
    /// [`FormatError`] names the problem and its location; no input panics.
    pub fn from_json(bytes: impl AsRef<[u8]>) -> Result<CostTable, FormatError> {
        let table: CostTable = COSTS.read_json(bytes.as_ref())?;
        table.check()?;
        Ok(table)
    }

    /// Checks the invariants that the types do not enforce.
    fn check(&self) -> Result<(), FormatError> {
        COSTS.check(&self.format, self.version)?;
        let invalid = |detail| COSTS.invalid(detail);
        self.tlb.check().map_err(invalid)?;
        let costs = [
            ("fault_4k", self.fault_4k),
            ("fault_2m_warm", self.fault_2m_warm),
            ("fault_2m_cold", self.fault_2m_cold),
            ("collapse", self.collapse),
        ];
        for (name, cost) in costs.into_iter().chain(self.events.measured()) {
            cost.check(0.0)
                .map_err(|detail| invalid(format!("{name}: {detail}")))?;
        }
        if let Some(detail) = first_impossible(&[("bloat_page", self.bloat_page)], 0.0) {
            return Err(invalid(detail));
        }
        if !(1..=MAX_WALK).contains(&self.walk.len()) {
            return Err(invalid(format!(
                "walk: a grid of {} points",
                self.walk.len()
            )));
        }
        self.check_walk().map_err(invalid)
    }

    fn check_walk(&self) -> Result<(), String> {
        for (number, point) in self.walk.iter().enumerate() {
            let wrong = |detail| format!("walk point {number}: {detail}");
            if point.footprint == 0 || !(1..=1024).contains(&point.chains) {
                let WalkCost {
                    footprint, chains, ..
                } = point;
                return Err(wrong(format!("footprint {footprint}, chains {chains}")));
            }
            // Noise may measure a small loss; a cost below -1 us is invalid.
            point.saved_ns.check(-1_000.0).map_err(wrong)?;
            let same = |other: &WalkCost| {
                (other.footprint, other.chains) == (point.footprint, point.chains)
            };
            if self.walk[..number].iter().any(same) {
                return Err(wrong("the grid has this point already".to_owned()));
            }
        }
        Ok(())
    }
}

impl Measured {
    fn check(&self, least: f64) -> Result<(), String> {
        let Measured { median, low, high } = *self;
        let fields = [("median", median), ("low", low), ("high", high)];
        if let Some(detail) = first_impossible(&fields, least) {
            return Err(detail);
        }
        match low <= median && median <= high {
            true => Ok(()),
            false => Err(format!(
                "low {low}, median {median}, high {high} are out of order"
            )),
        }
    }
}

/// Returns the default grid: measured end points, geometric means between them for 2 and 4 chains.
fn default_walk() -> Vec<WalkCost> {
    let mut walk = Vec::new();
    for (column, &footprint) in DEFAULT_FOOTPRINTS.iter().enumerate() {
        let (one, eight) = (DEFAULT_DEPENDENT_NS[column], DEFAULT_INDEPENDENT_NS[column]);
        for chains in [1u32, 2, 4, 8] {
            let part = f64::from(chains).log2() / 3.0;
            let median = one.powf(1.0 - part) * eight.powf(part);
            walk.push(WalkCost {
                footprint,
                chains,
                saved_ns: Measured {
                    median,
                    low: median / DEFAULT_FACTOR,
                    high: median * DEFAULT_FACTOR,
                },
            });
        }
    }
    walk
}
