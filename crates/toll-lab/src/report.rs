// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports: the results of a subject's scenarios, compared with their goals.

mod document;
mod judge;
mod kinds;
mod select;

use serde::{Deserialize, Serialize};

use crate::results::{Entry, Results, is_shown};
use crate::scenario::{Metric, Name, Scenario, Subject, Verdict};
pub use document::{document, goals_text, pictures};
pub use judge::Judged;

const FORMAT: &str = "tollfree-lab-report";
const VERSION: u32 = 1;

/// A report on one subject.
#[derive(Debug)]
pub struct Report {
    pub subject: Subject,
    pub parts: Vec<Part>,
    pub missing: Vec<Missing>,
}

/// One scenario of a report.
#[derive(Debug)]
pub struct Part {
    pub scenario: Scenario,
    pub results: Results,
    pub goals: Vec<Judged>,
}

/// A scenario without results.
#[derive(Debug, Clone, Serialize)]
pub struct Missing {
    pub scenario: String,
    pub why: String,
}

/// A report's file: the verdicts, and what they and the tables are computed from.
#[derive(Debug, Serialize)]
pub struct File<'a> {
    format: &'static str,
    version: u32,
    subject: Subject,
    goals: Vec<JudgedOf<'a>>,
    not_measured: &'a [Missing],
    results: Vec<Results>,
}

#[derive(Debug, Serialize)]
struct JudgedOf<'a> {
    scenario: &'a str,
    #[serde(flatten)]
    judged: &'a Judged,
}

/// What `--from` reads of a report's file.
#[derive(Debug, Deserialize)]
pub struct Stored {
    format: String,
    version: u32,
    results: Vec<Results>,
}

impl Stored {
    /// Reads a report's file.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read(text: &str) -> Result<Stored, String> {
        let mut stored: Stored = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if stored.format != FORMAT || stored.version != VERSION {
            return Err(format!("expected a {FORMAT} of version {VERSION}"));
        }
        let results = stored.results.iter_mut();
        results
            .flat_map(|results| &mut results.results)
            .for_each(Entry::summarize);
        Ok(stored)
    }

    /// Returns the results of a scenario.
    pub fn of(&self, scenario: &str) -> Option<&Results> {
        let mut results = self.results.iter();
        results.find(|results| results.scenario == scenario)
    }
}

impl Part {
    /// Compares results with the scenario's goals.
    pub fn new(scenario: Scenario, results: Results) -> Part {
        let goals = scenario.goals(results.form);
        let goals = goals
            .flat_map(|goal| judge::judge(goal, &results))
            .collect();
        Part {
            scenario,
            results,
            goals,
        }
    }

    fn judged(&self) -> impl Iterator<Item = JudgedOf<'_>> {
        let scenario = self.scenario.name.as_str();
        let goals = self.goals.iter();
        goals.map(move |judged| JudgedOf { scenario, judged })
    }

    /// Returns the results with only the values that the report shows.
    fn raw(&self) -> Results {
        let names = self.names();
        let mut raw = self.results.clone();
        for entry in &mut raw.results {
            let is_used = |counter: &String| self.shows(&names, counter);
            // They follow from the runs.
            entry.counters.clear();
            for run in &mut entry.runs {
                run.retain(|counter, _| is_used(counter));
            }
            let is_used = |process: &String| names.iter().any(|name| name.is_of(process));
            entry.last.processes.retain(|process, _| is_used(process));
            entry.last.fault_tail.clear();
            entry.last.cpus.clear();
        }
        raw
    }

    /// Lists the values that goals and tables use.
    fn names(&self) -> Vec<&Name> {
        let goals = self.scenario.goals(self.results.form).map(|it| &it.metric);
        let columns = self.scenario.tables.iter().flat_map(|it| &it.columns);
        let metrics = goals.chain(columns.map(|it| &it.metric));
        metrics.flat_map(Metric::names).collect()
    }

    fn shows(&self, names: &[&Name], counter: &str) -> bool {
        let is_in_default_table = self.scenario.tables.is_empty() && is_shown(counter);
        let is = |name: &&Name| match name {
            Name::Counter(used) => used == counter,
            Name::Prefix(prefix) => counter.starts_with(prefix),
            Name::Process { .. } => false,
        };
        is_in_default_table || kinds::is_of_a_kind(counter) || names.iter().any(is)
    }
}

impl Report {
    pub fn new(subject: Subject) -> Report {
        Report {
            subject,
            parts: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Returns what its file contains.
    pub fn file(&self) -> File<'_> {
        File {
            format: FORMAT,
            version: VERSION,
            subject: self.subject,
            goals: self.parts.iter().flat_map(Part::judged).collect(),
            not_measured: &self.missing,
            results: self.parts.iter().map(Part::raw).collect(),
        }
    }

    /// Counts the goals with a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let goals = self.parts.iter().flat_map(|part| &part.goals);
        goals.filter(|goal| goal.verdict == verdict).count()
    }
}

#[cfg(test)]
pub(crate) mod tests;
