// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goals and tables of a scenario, which `toll-lab report` evaluates.

mod bound;

use serde::{Deserialize, Serialize};

pub use bound::{Bound, Quantity, Verdict};

use super::metric::Metric;

/// The variants that a goal compares unless it names others.
const OURS: &str = "tollfree";
const BASE: &str = "vanilla";

/// The mechanism that a scenario's goals are about; each has a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    Luf,
    Econ,
    Morsel,
}

impl Subject {
    pub fn name(self) -> &'static str {
        match self {
            Subject::Luf => "luf",
            Subject::Econ => "econ",
            Subject::Morsel => "morsel",
        }
    }
}

/// A `[[goal]]` table: a metric of one configuration, compared with a bound or with another one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// What is measured, in words.
    pub name: String,
    pub metric: Metric,
    pub bound: Bound,
    /// Sections to which it applies, with at most one `*` each.
    #[serde(default = "every_section")]
    pub sections: Vec<String>,
    /// How several sections are combined.
    #[serde(default)]
    pub over: Over,
    #[serde(default)]
    pub ours: Side,
    #[serde(default)]
    pub base: Side,
    /// The configuration that saves 100 % (`saved_share`).
    pub best: Option<Side>,
    /// Fewer rounds than this show nothing.
    #[serde(default = "one")]
    pub min_runs: usize,
    /// What others published for it.
    pub published: Option<String>,
}

/// How a goal combines several sections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Each section is judged by itself.
    #[default]
    Each,
    /// The section that is nearest to the wrong side of the bound, or farthest beyond it.
    Worst,
    GeometricMean,
}

/// One of the configurations that a goal compares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    variant: Option<String>,
    pub policy: Option<String>,
    /// In each section the policy with the lowest metric counts.
    #[serde(default)]
    pub best_of: Vec<String>,
    /// Sections, their values added, instead of the goal's section; `*` stands for the same
    /// characters as in the goal's.
    #[serde(default, deserialize_with = "one_or_several")]
    pub section: Vec<String>,
    /// How several policies are combined.
    #[serde(default)]
    pub policies: Policies,
}

/// How the runs of several policies are combined, where a goal names none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policies {
    /// Each is a round of its own.
    #[default]
    Rounds,
    Sum,
    Median,
    Max,
}

/// A `[[table]]` table: metrics of configurations, without a goal.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    pub title: String,
    /// The configurations, in this order.
    #[serde(default = "every_row", rename = "row")]
    pub rows: Vec<Row>,
    #[serde(rename = "column")]
    pub columns: Vec<Column>,
}

/// Rows of a table: all results with these properties.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub variant: Option<String>,
    pub policy: Option<String>,
    /// A section, with at most one `*`.
    pub section: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    pub name: String,
    pub metric: Metric,
}

fn one() -> usize {
    1
}

fn every_section() -> Vec<String> {
    vec!["*".to_owned()]
}

fn every_row() -> Vec<Row> {
    vec![Row::default()]
}

fn one_or_several<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Names {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Names::deserialize(from)? {
        Names::One(name) => vec![name],
        Names::Several(names) => names,
    })
}

impl Goal {
    pub fn our_variant(&self) -> &str {
        self.ours.variant.as_deref().unwrap_or(OURS)
    }

    /// Returns the variant of the other configurations.
    pub fn base_variant<'a>(&'a self, side: &'a Side) -> &'a str {
        side.variant.as_deref().unwrap_or(BASE)
    }

    /// Returns the policy of one of the other configurations: its own, or ours.
    pub fn base_policy<'a>(&'a self, side: &'a Side) -> Option<&'a str> {
        let inherited = self.ours.policy.as_ref();
        let policy = side.policy.as_ref();
        let policy = policy.or(inherited.filter(|_| side.best_of.is_empty()));
        policy.map(String::as_str)
    }

    /// Lists the variants that it needs runs of, the base first.
    pub(super) fn variants(&self) -> impl Iterator<Item = &str> {
        self.others()
            .map(|side| self.base_variant(side))
            .chain([self.our_variant()])
    }

    /// Lists the other configurations that it compares.
    pub fn others(&self) -> impl Iterator<Item = &Side> {
        let base = self.bound.is_relative().then_some(&self.base);
        base.into_iter().chain(&self.best)
    }

    /// Returns what is invalid about the goal by itself, if anything.
    pub(super) fn problem(&self) -> Option<String> {
        let sides = [Some(&self.ours), Some(&self.base), self.best.as_ref()];
        let named = sides.into_iter().flatten().flat_map(|side| &side.section);
        let is_captured = |names: &[String]| names.iter().all(|name| name.contains('*'));
        let uses_capture = named.clone().any(|name| name.contains('*'));
        let mut patterns = self.sections.iter().chain(named);
        if self.name.is_empty() || self.sections.is_empty() {
            return Some("name and sections must not be empty".to_owned());
        }
        if self.min_runs == 0 {
            return Some("min_runs must be at least 1".to_owned());
        }
        if let Some(bad) = patterns.find(|name| name.matches('*').count() > 1) {
            return Some(format!("section {bad}: has more than one *"));
        }
        if !self.bound.is_relative() && self.base != Side::default() {
            return Some("base is not used by a bound of a value".to_owned());
        }
        if uses_capture && !is_captured(&self.sections) {
            return Some("section: a * needs one in each of the goal's sections".to_owned());
        }
        let is_twofold = |side: &Side| side.policy.is_some() && !side.best_of.is_empty();
        if sides.into_iter().flatten().any(is_twofold) {
            return Some("policy and best_of exclude each other".to_owned());
        }
        match (self.bound.quantity, &self.best) {
            (Quantity::SavedShare, None) => Some("saved_share requires best".to_owned()),
            (Quantity::SavedShare, Some(_)) | (_, None) => None,
            (_, Some(_)) => Some("best is only for saved_share".to_owned()),
        }
    }
}

impl TableSpec {
    pub(super) fn variants(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().filter_map(|row| row.variant.as_deref())
    }
}

/// Matches a section with a pattern; returns what its `*` stands for.
pub fn captured<'a>(pattern: &str, section: &'a str) -> Option<&'a str> {
    match pattern.split_once('*') {
        None => (pattern == section).then_some(""),
        Some((before, after)) => section.strip_prefix(before)?.strip_suffix(after),
    }
}

#[cfg(test)]
mod tests;
