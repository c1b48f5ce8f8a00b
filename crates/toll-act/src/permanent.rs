// SPDX-License-Identifier: MIT OR Apache-2.0
//! Permanent changes that a maintainer can deploy to keep the gain without tollfree.
//!
//! Candidates are derived from the program's allocator, runtime, name and their versions. Most can
//! be measured as a variant of their own; the others are reported as not measured.

mod allocators;
mod languages;
mod services;
mod sizes;

use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use toll_model::plan::{Plan, Verdict};
use toll_model::site::{Site, SiteKind};
use toll_model::stats::Interval;

use crate::machine::MachineSetting;

pub use allocators::{GLIBC, GLIBC_HUGETLB_1G, GLIBC_HUGETLB_2M, reserved};

pub use sizes::smaller_pages;

pub use crate::traits::{Traits, Version};

/// A change, before it is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Name of its variant.
    pub name: &'static str,
    /// Description of the change.
    pub change: String,
    /// What to paste, and where.
    pub how: String,
    /// How to measure it; `None` if that would change the machine (a reserved pool, a rebuild).
    pub variant: Option<Change>,
}

/// How a permanent change modifies the command, so that it can be measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Environment variables with their whole new value.
    pub env: Vec<(String, String)>,
    /// Arguments after the program's name.
    pub first_arguments: Vec<OsString>,
    /// Arguments at the end.
    pub last_arguments: Vec<OsString>,
    /// A setting of the machine, for as long as the program runs.
    pub machine: Option<MachineSetting>,
}

impl Change {
    /// Returns the command line with the change.
    pub fn command(&self, command: &[OsString]) -> Vec<OsString> {
        let (program, rest) = command.split_at(1.min(command.len()));
        [program, &self.first_arguments, rest, &self.last_arguments].concat()
    }
}

/// A change with its measured speed-up, as `tune --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Permanent {
    pub change: String,
    pub how: String,
    /// Speed-up of exactly this change; absent: not measured.
    pub measured: Option<Interval>,
    /// `measured` or `not measured`.
    pub state: String,
}

impl Candidate {
    /// Adds the speed-up of its variant, if it ran.
    pub fn with(&self, measured: Option<Interval>) -> Permanent {
        Permanent {
            change: self.change.clone(),
            how: self.how.clone(),
            measured,
            state: if measured.is_some() {
                "measured"
            } else {
                "not measured"
            }
            .to_owned(),
        }
    }
}

/// A program, as the rules look at it.
struct Subject<'a> {
    traits: &'a Traits,
    command: &'a [OsString],
    env: &'a dyn Fn(&str) -> Option<String>,
}

impl Subject<'_> {
    /// Whether it maps a library with this prefix.
    fn uses(&self, prefix: &str) -> bool {
        self.traits.uses(prefix)
    }

    /// Whether it is one of these programs.
    fn is(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.traits.is(name))
    }

    /// Whether the command line starts with one of these programs, so that options can be added.
    fn starts(&self, names: &[&str]) -> bool {
        let first = self.command.first().map(|program| base_name(program));
        first.is_some_and(|name| names.contains(&name.as_str()))
    }

    /// Whether a version is at least `oldest`, or unknown.
    fn may_be(&self, name: &str, oldest: Version) -> bool {
        self.version(name).is_none_or(|version| version >= oldest)
    }

    fn version(&self, name: &str) -> Option<Version> {
        self.traits.versions.get(name).copied()
    }

    fn env(&self, variable: &str) -> Option<String> {
        (self.env)(variable)
    }

    /// Appends a value to those that a variable already has.
    fn joined(&self, variable: &str, separator: char, value: &str) -> String {
        match self.env(variable).filter(|text| !text.is_empty()) {
            Some(before) => format!("{before}{separator}{value}"),
            None => value.to_owned(),
        }
    }
}

/// Returns the changes that fit a program, the most specific first. `env` looks up the program's
/// environment; `command` is its command line.
pub fn candidates(
    traits: &Traits,
    command: &[OsString],
    env: &dyn Fn(&str) -> Option<String>,
) -> Vec<Candidate> {
    let subject = Subject {
        traits,
        command,
        env,
    };
    let rules = [services::RULES, languages::RULES, allocators::RULES].concat();
    rules.iter().filter_map(|rule| rule(&subject)).collect()
}

/// Returns the change for a program that it fits.
type Rule = fn(&Subject) -> Option<Candidate>;

/// For each allocation that the plan makes huge: the call to add to the source.
pub fn in_source(plan: &Plan) -> Vec<Candidate> {
    let planned = |site: &&Site| {
        let huge = |r: &toll_model::plan::Region| r.site == site.id && r.verdict == Verdict::Huge;
        plan.regions.iter().any(huge)
    };
    plan.sites
        .iter()
        .filter(planned)
        .filter_map(madvise_at)
        .collect()
}

fn madvise_at(site: &Site) -> Option<Candidate> {
    let SiteKind::Alloc { frames, .. } = &site.kind else {
        return None;
    };
    let frame = frames
        .iter()
        .find(|f| f.symbol.is_some())
        .or(frames.first())?;
    let symbol = frame
        .symbol
        .clone()
        .unwrap_or_else(|| format!("offset {:#x}", frame.offset));
    let place = match &frame.source {
        Some(source) => format!("{symbol} ({source})"),
        None => format!("{symbol} of {}", frame.path),
    };
    Some(Candidate {
        name: "madvise",
        change: format!("madvise(MADV_HUGEPAGE) on the block allocated in {place}"),
        how: format!(
            "/* in {place}, after the allocation and before its first use; block, length: the allocation */\n\
             #include <sys/mman.h>\n\
             size_t huge = 2 << 20;\n\
             uintptr_t first = ((uintptr_t)block + huge - 1) & ~(huge - 1);\n\
             uintptr_t last = ((uintptr_t)block + length) & ~(huge - 1);\n\
             if (first < last)\n    madvise((void *)first, last - first, MADV_HUGEPAGE);"
        ),
        variant: None,
    })
}

/// A change by environment variables, which can be measured.
fn by_variables(name: &'static str, what: &str, variables: Vec<(String, String)>) -> Candidate {
    let assignments: Vec<String> = variables
        .iter()
        .map(|(variable, value)| format!("{variable}={value}"))
        .collect();
    Candidate {
        name,
        change: format!("{what}: {}", assignments.join(" ")),
        how: settings(&variables),
        variant: Some(Change {
            env: variables,
            ..Change::default()
        }),
    }
}

fn by_variable(name: &'static str, what: &str, variable: &str, value: String) -> Candidate {
    by_variables(name, what, vec![(variable.to_owned(), value)])
}

/// A change that `tune` cannot measure: it takes root, a rebuild, or another configuration.
fn unmeasured(name: &'static str, change: &str, how: &str) -> Candidate {
    Candidate {
        name,
        change: change.to_owned(),
        how: how.to_owned(),
        variant: None,
    }
}

/// Variables set for a shell, a systemd service, and a container.
fn settings(variables: &[(String, String)]) -> String {
    let lines = |line: &dyn Fn(&str, &str) -> String| -> String {
        variables
            .iter()
            .map(|(name, value)| line(name, value))
            .collect()
    };
    let shell = lines(&|name, value| format!("export {name}='{value}'\n"));
    let service = lines(&|name, value| format!("Environment=\"{name}={value}\"\n"));
    let options = lines(&|name, value| format!("-e {name}='{value}' "));
    let pod = lines(&|name, value| format!("\n  - name: {name}\n    value: \"{value}\""));
    format!(
        "# in a shell or start script:\n{shell}\n\
         # for a systemd service: systemctl edit NAME.service\n[Service]\n{service}\n\
         # for a container: docker run {options}..., or in its YAML:\nenv:{pod}"
    )
}

fn base_name(path: &std::ffi::OsStr) -> String {
    let name = std::path::Path::new(path).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
