// SPDX-License-Identifier: MIT OR Apache-2.0
//! Format of a scenario file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::Size;
use super::condition::Condition;
use super::disk::DiskSpec;
use super::goal::{Goal, Subject, TableSpec};
use super::profile::ProfileSpec;
use crate::guest::Machine;
use crate::kernel::NAMES;

/// An experiment: programs, a machine, and the policies to compare.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// File name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// Text of the file.
    #[serde(skip)]
    pub text: String,
    /// One-line description.
    pub description: String,
    /// The real situation that the scenario stands for.
    pub stands_for: String,
    /// What would be a failure.
    pub failure: String,
    /// The report that evaluates its goals.
    pub subject: Option<Subject>,
    /// Whether `toll-lab list` and `baseline` include it by default.
    #[serde(default = "yes")]
    pub listed: bool,
    /// Conditions on the section `main` of every run; if one fails, the scenario did not exercise
    /// what it stands for.
    #[serde(default)]
    pub require: Vec<Condition>,
    /// Counters that changes are judged by.
    #[serde(default = "usual_judges")]
    pub judged_by: Vec<String>,
    /// First touch of memory: by which program, by reading or writing, on which node.
    pub first_touch: String,
    /// Programs of lab/guest.
    #[serde(default)]
    pub guest: Vec<String>,
    /// Host commands that are copied into the guest.
    #[serde(default)]
    pub commands: Vec<String>,
    /// Default variants of `toll-lab run`.
    #[serde(default = "stock")]
    pub variants: Vec<String>,
    /// Fragments for the kernels, relative to the checkout.
    #[serde(default)]
    pub config: Vec<PathBuf>,
    /// Also count the kernel's cache lines that several CPUs write.
    #[serde(default)]
    pub lines: bool,
    /// Sections that measure cost by size.
    pub sizes: Option<SizeSections>,
    /// The policy that sets the rank of the tail fault in a section, by its number of page faults.
    pub tail: Option<String>,
    /// Policies under which the workloads are compared.
    pub workloads: Option<Workloads>,
    /// Profiles of its programs.
    #[serde(default, rename = "profile")]
    pub profiles: Vec<ProfileSpec>,
    pub machine: Machine,
    #[serde(default, rename = "disk")]
    pub disks: Vec<DiskSpec>,
    /// At least one policy; the first is the default.
    #[serde(default = "only_policy", rename = "policy")]
    pub policies: Vec<Policy>,
    #[serde(default, rename = "goal")]
    pub goals: Vec<Goal>,
    #[serde(default, rename = "table")]
    pub tables: Vec<TableSpec>,
    pub short: Form,
    pub full: Form,
}

/// Sections `NAME-SIZE` that measure the cost of mapping SIZE, by what is mapped.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeSections {
    /// Reference kind.
    pub base: String,
    pub hugetlb: String,
    pub morsel: String,
    /// Memory that is pinned page by page.
    pub pinned: Option<String>,
}

/// Sections `STATE-NAME`, each a workload with memory in that state; `whole` is unfragmented.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workloads {
    /// The policy that is compared with the best of the others.
    pub ours: String,
    pub stock: Vec<String>,
}

/// A configuration of the guest's kernel, for comparison with others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub name: String,
    /// Variants that the policy applies to; empty: all.
    #[serde(default)]
    pub variants: Vec<String>,
    /// Whether programs run with their profiles.
    #[serde(default = "yes")]
    pub profiles: bool,
    /// Words for the kernel command line.
    #[serde(default)]
    pub kernel: Vec<String>,
    /// Files below /sys and /proc/sys, and the values written to them before anything runs.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

impl Policy {
    /// Whether the policy applies to a variant.
    pub fn is_for(&self, variant: &str) -> bool {
        self.variants.is_empty() || self.variants.iter().any(|it| it == variant)
    }
}

fn yes() -> bool {
    true
}

fn only_policy() -> Vec<Policy> {
    vec![Policy {
        name: "default".to_owned(),
        variants: Vec::new(),
        profiles: true,
        kernel: Vec::new(),
        set: BTreeMap::new(),
    }]
}

/// One form of the scenario: short or full.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// Time limit of a guest in seconds, booting included.
    pub within: u64,
    /// Default number of runs of each variant and policy.
    #[serde(default = "one")]
    pub runs: u32,
    /// Replaces the scenario's value.
    pub machine: Option<Machine>,
    /// Replaces the scenario's value.
    #[serde(default, rename = "disk")]
    pub disks: Vec<DiskSpec>,
    #[serde(rename = "job")]
    pub jobs: Vec<JobText>,
    /// Crashes of persistent memory, beside the guests.
    pub crashes: Option<Crashes>,
    /// Goals of this form only.
    #[serde(default, rename = "goal")]
    pub goals: Vec<Goal>,
}

/// What `toll-lab crash-states` and `toll-lab power-cuts` do, as sections of these names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crashes {
    /// The kernel of the guests. Without it in a run there are no crashes.
    pub variant: String,
    /// The least number of crash states.
    pub states: u64,
    /// Operations of the kernel that are recorded.
    pub operations: u32,
    pub power_cuts: u32,
}

fn stock() -> Vec<String> {
    vec!["vanilla".to_owned()]
}

fn usual_judges() -> Vec<String> {
    let names = ["walks", "page_faults", "instructions_kernel"];
    names.map(str::to_owned).to_vec()
}

fn one() -> u32 {
    1
}

/// A `[[job]]` table of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobText {
    pub name: String,
    /// Required file system: the job is left out on kernels without it.
    pub needs: Option<String>,
    /// Command line for the guest's shell.
    pub run: String,
}

impl JobText {
    /// Returns the command line for the guest's shell.
    pub fn line(&self) -> String {
        match &self.needs {
            Some(name) => format!("grep -qw {name} /proc/filesystems || exit 0; {}", self.run),
            None => self.run.clone(),
        }
    }
}

impl Scenario {
    pub fn form(&self, size: Size) -> &Form {
        match size {
            Size::Short => &self.short,
            Size::Full => &self.full,
        }
    }

    pub fn machine(&self, size: Size) -> Machine {
        self.form(size).machine.unwrap_or(self.machine)
    }

    pub fn disks(&self, size: Size) -> &[DiskSpec] {
        match self.form(size).disks.as_slice() {
            [] => &self.disks,
            own => own,
        }
    }

    /// Lists the goals of a form.
    pub fn goals(&self, size: Size) -> impl Iterator<Item = &Goal> {
        self.goals.iter().chain(&self.form(size).goals)
    }

    /// Lists the variants that the goals and tables of a form need; its own variants if
    /// they name none.
    pub fn compared_variants(&self, size: Size) -> Vec<String> {
        let goals = self.goals(size).flat_map(Goal::variants);
        let named = goals.chain(self.tables.iter().flat_map(TableSpec::variants));
        let mut found: Vec<&str> = named.collect();
        found.sort_by_key(|name| NAMES.iter().position(|known| known == name));
        found.dedup();
        match found.is_empty() {
            true => self.variants.clone(),
            false => found.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Returns the text without goals and tables, which do not affect the runs.
    pub fn text_of_runs(&self) -> String {
        let is_header = |line: &str| line.starts_with('[');
        let is_report = |line: &str| line.ends_with("goal]]") || line.ends_with("table]]");
        let mut is_kept = true;
        let lines = self.text.lines().filter(|line| {
            if is_header(line) {
                is_kept = !is_report(line);
            }
            is_kept
        });
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// Lists the profiles that the jobs of a form name, in the scenario's order.
    pub fn profiles(&self, size: Size) -> Vec<&ProfileSpec> {
        let named: Vec<&str> = self.named_profiles(size).collect();
        let is_named = |profile: &&ProfileSpec| named.contains(&profile.name.as_str());
        self.profiles.iter().filter(is_named).collect()
    }

    pub(super) fn named_profiles(&self, size: Size) -> impl Iterator<Item = &str> {
        self.form(size)
            .jobs
            .iter()
            .flat_map(|job| super::profile::named(&job.run))
    }

    /// Returns the first line of the file that contains these words.
    pub fn line_of(&self, words: &str) -> usize {
        let line = self.text.lines().position(|line| line.contains(words));
        line.map_or(0, |line| line + 1)
    }
}

#[cfg(test)]
mod tests;
