// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans: regions with benefit, cost and verdict.
//!
//! A plan is stored as TOML (docs/guide/formats.md); `plan --json` prints the same content.

mod view;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::REGION;
use crate::error::FormatError;
use crate::format::{Format, first_impossible};
use crate::profile::{Program, Source};
use crate::site::{Level, Site};

pub use self::view::{Names, View};

/// Value of the `format` field of a plan.
pub const FORMAT: &str = "tollfree-plan";
/// The version of the format that this build writes and reads.
pub const VERSION: u32 = 1;

const PLAN: Format = Format {
    what: "plan",
    name: FORMAT,
    version: VERSION,
};

/// Header of a plan's last table.
const END: &str = "[end]\n";

/// The last table of a plan: the counts of the tables before it.
#[derive(Deserialize)]
struct End {
    #[serde(alias = "anchors")]
    sites: usize,
    regions: usize,
}

/// Verdict for a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Huge,
    Leave,
}

/// Reason for a region's verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Among the fewest regions that keep most of the gain.
    Pays,
    /// Among the regions with the most misses, as requested.
    Asked,
    /// It would pay, but the planned set keeps most of the gain without it.
    Spare,
    /// It would pay, but exceeds the requested memory limit.
    Budget,
    /// Its cost is not below its benefit.
    CostsMore,
    /// Its benefit is not distinguishable from zero.
    #[default]
    Unclear,
    /// The program as a whole has too little to gain.
    Nothing,
    /// It is already huge.
    AlreadyHuge,
    /// Less than 2 MiB at an end of its site.
    Partial,
    /// Text, files and stacks are not advised.
    NotActedOn,
    /// The machine's settings forbid huge pages in shared memory.
    Forbidden,
    /// Its site cannot be identified in another run.
    NotFound,
}

impl Why {
    /// Whether it is a reason to make a region huge.
    pub(crate) fn is_for_huge(self) -> bool {
        matches!(self, Why::Pays | Why::Asked)
    }

    /// Returns a short text for tables.
    pub fn words(self) -> &'static str {
        match self {
            Why::Pays => "pays",
            Why::Asked => "asked for",
            Why::Spare => "not needed",
            Why::Budget => "over budget",
            Why::CostsMore => "costs more than it saves",
            Why::Unclear => "cannot be told from zero",
            Why::Nothing => "too little to gain",
            Why::AlreadyHuge => "huge already",
            Why::Partial => "less than 2 MiB",
            Why::NotActedOn => "not acted on: text, file or stack",
            Why::Forbidden => "shmem_enabled is deny",
            Why::NotFound => "cannot be found again",
        }
    }
}

/// An estimate with its 80 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// An estimated region of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Region {
    /// Id of the site (JSON output also carries the site's name).
    #[serde(alias = "anchor")]
    pub site: u32,
    /// First byte, from the site's start.
    pub offset: u64,
    /// Bytes; 2 MiB, less at a site's ends.
    pub length: u64,
    pub level: Level,
    pub misses: f64,
    /// CPU time that huge pages save here in one run, given the whole set, ns.
    pub benefit_ns: f64,
    /// CPU time to make it huge, including bloat and risk, ns.
    pub cost_ns: f64,
    pub verdict: Verdict,
    #[serde(default)]
    pub why: Why,
    /// 4 KiB pages of the region that the program touched.
    pub touched_pages: u32,
}

/// Advice for one program, with estimates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub format: String,
    pub version: u32,
    pub program: Program,
    pub source: Source,
    /// Key of the cost table used.
    pub cpu: String,
    /// Time that the planned set saves in one run, ns.
    pub saved_ns: Estimate,
    /// Time that making everything huge saves in one run, ns.
    pub saved_all_ns: Estimate,
    /// Time of one run without the plan, ns, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_ns: Option<f64>,
    /// Time without / with the plan; above 1 is faster.
    pub predicted_speedup: Estimate,
    /// Reason for the plan, in one sentence.
    pub reason: String,
    #[serde(default)]
    pub warnings: Vec<String>,
    /// True if THP is `always`: everything is huge without a plan, and the plan removes huge pages
    /// from regions that lose by them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thp_always: bool,
    /// True if it is better to make the whole heap huge at its first touch, by the allocator's own
    /// switch, than to collapse single regions after it has grown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole_heap: bool,
    /// Files with program text to hold in huge pages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text: Vec<Text>,
    #[serde(alias = "anchors")]
    pub sites: Vec<Site>,
    pub regions: Vec<Region>,
}

/// A file with program text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    pub path: String,
    /// GNU build-id in hex; empty if it has none: the file is then identified by its name.
    #[serde(default)]
    pub build_id: String,
    /// Bytes of it that were touched within a second.
    pub touched_bytes: u64,
}

impl Text {
    /// Returns the name of its module, as in frames.
    pub(crate) fn module(&self) -> String {
        match self.build_id.is_empty() {
            true => format!("path:{}", self.path.rsplit('/').next().unwrap_or("")),
            false => self.build_id.clone(),
        }
    }
}

impl Estimate {
    /// Returns an estimate without error.
    pub const fn exact(value: f64) -> Estimate {
        Estimate {
            median: value,
            low: value,
            high: value,
        }
    }

    fn check(&self, name: &str) -> Result<(), String> {
        let finite = [self.low, self.median, self.high]
            .iter()
            .all(|v| v.is_finite());
        if finite && self.low <= self.median && self.median <= self.high {
            return Ok(());
        }
        let Estimate { median, low, high } = self;
        Err(format!(
            "{name} is no estimate: low {low}, median {median}, high {high}"
        ))
    }
}

impl Region {
    /// Returns the end of the region, from the site's start.
    pub fn end(&self) -> u64 {
        self.offset + self.length
    }

    fn check(&self) -> Result<(), String> {
        let counts = [("misses", self.misses), ("benefit_ns", self.benefit_ns)];
        if let Some(detail) = first_impossible(&counts, 0.0) {
            return Err(detail);
        }
        if !self.cost_ns.is_finite() {
            return Err(format!("cost_ns is {}", self.cost_ns));
        }
        if self.length == 0 || self.length > REGION {
            return Err(format!("length {:#x} is not within 2 MiB", self.length));
        }
        if self.offset.checked_add(self.length).is_none() {
            return Err("offset + length overflows".to_owned());
        }
        if u64::from(self.touched_pages) > REGION / crate::PAGE {
            return Err(format!(
                "touched_pages is {}, above 512",
                self.touched_pages
            ));
        }
        Ok(())
    }
}

impl Plan {
    /// Formats the plan as TOML. Its last table, `[end]`, distinguishes a complete file from a
    /// truncated one.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] for invalid values that a reader would reject.
    pub fn to_toml(&self) -> Result<String, FormatError> {
        self.check()?;
        let mut text = toml::to_string(self).map_err(|error| PLAN.invalid(error.to_string()))?;
        let (sites, regions) = (self.sites.len(), self.regions.len());
        text += &format!("\n{END}sites = {sites}\nregions = {regions}\n");
        Ok(text)
    }

    /// Parses a plan.
    ///
    /// # Errors
    /// [`FormatError`] names the problem and its location; no input panics.
    pub fn from_toml(text: impl AsRef<[u8]>) -> Result<Plan, FormatError> {
        let text = PLAN.utf8(text.as_ref())?;
        let plan: Plan = PLAN.read_toml(text)?;
        plan.check()?;
        plan.check_end(text)?;
        Ok(plan)
    }

    /// TOML that was cut between two tables still parses: check for its last table.
    fn check_end(&self, text: &str) -> Result<(), FormatError> {
        let tail = text.rfind(END).map(|at| &text[at + END.len()..]);
        let end = tail.and_then(|tail| toml::from_str::<End>(tail).ok());
        let damaged = |detail| Err(PLAN.damaged(detail));
        match end {
            None => damaged("the table [end] at its end is missing".to_owned()),
            Some(end) if (end.sites, end.regions) != (self.sites.len(), self.regions.len()) => {
                damaged(format!(
                    "it says {} sites and {} regions and holds {} and {}",
                    end.sites,
                    end.regions,
                    self.sites.len(),
                    self.regions.len()
                ))
            }
            Some(_) => Ok(()),
        }
    }

    /// Returns a plan for program text alone, whatever program maps it.
    pub fn of_text(text: Vec<Text>) -> Plan {
        let unknown = Estimate::exact(1.0);
        Plan {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: Program::default(),
            source: Source::Accessed,
            cpu: String::new(),
            saved_ns: Estimate::exact(0.0),
            saved_all_ns: Estimate::exact(0.0),
            baseline_ns: None,
            predicted_speedup: unknown,
            reason: "Hold program text in huge pages: no estimate says what it gains.".to_owned(),
            warnings: Vec::new(),
            thp_always: false,
            whole_heap: false,
            text,
            sites: Vec::new(),
            regions: Vec::new(),
        }
    }

    /// Returns the regions that the plan makes huge.
    pub fn huge(&self) -> impl Iterator<Item = &Region> {
        self.regions
            .iter()
            .filter(|region| region.verdict == Verdict::Huge)
    }

    /// Whether the advice is to do nothing.
    pub fn does_nothing(&self) -> bool {
        if !self.text.is_empty() {
            return false;
        }
        match self.thp_always {
            false => self.huge().next().is_none(),
            true => !self
                .regions
                .iter()
                .any(|region| region.why == Why::CostsMore),
        }
    }

    /// Returns the site of a region.
    pub fn site(&self, id: u32) -> Option<&Site> {
        self.sites.iter().find(|site| site.id == id)
    }

    /// Checks the invariants that the types do not enforce.
    fn check(&self) -> Result<(), FormatError> {
        PLAN.check(&self.format, self.version)?;
        let estimates = [
            ("saved_ns", self.saved_ns),
            ("saved_all_ns", self.saved_all_ns),
            ("predicted_speedup", self.predicted_speedup),
        ];
        for (name, estimate) in estimates {
            estimate
                .check(name)
                .map_err(|detail| PLAN.invalid(detail))?;
        }
        if self.predicted_speedup.low <= 0.0 {
            return Err(PLAN.invalid("predicted_speedup is not above 0".to_owned()));
        }
        if let Some(baseline) = self.baseline_ns.filter(|ns| !(ns.is_finite() && *ns > 0.0)) {
            return Err(PLAN.invalid(format!("baseline_ns is {baseline}")));
        }
        self.check_regions()
    }

    fn check_regions(&self) -> Result<(), FormatError> {
        let mut sites = HashMap::with_capacity(self.sites.len());
        for site in &self.sites {
            let wrong = |detail| PLAN.invalid(format!("site {}: {detail}", site.id));
            site.check().map_err(wrong)?;
            if sites.insert(site.id, (site.length, 0)).is_some() {
                return Err(wrong("its id is taken by an earlier site".to_owned()));
            }
        }
        for (number, region) in self.regions.iter().enumerate() {
            let at = region.offset;
            let wrong = |detail| {
                let site = region.site;
                PLAN.invalid(format!(
                    "region {number} (site {site}, offset {at:#x}): {detail}"
                ))
            };
            region.check().map_err(wrong)?;
            let Some((length, end)) = sites.get_mut(&region.site) else {
                return Err(wrong("there is no such site".to_owned()));
            };
            if at < *end {
                return Err(wrong(format!(
                    "it begins before {end:#x}, the end of the region before it"
                )));
            }
            *end = region.end();
            if *end > length.saturating_add(crate::PAGE - 1) {
                return Err(wrong(format!(
                    "it ends behind its site's length {length:#x}"
                )));
            }
        }
        Ok(())
    }
}
