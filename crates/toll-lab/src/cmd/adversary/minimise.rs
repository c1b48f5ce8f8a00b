// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fewest operations of mmfuzz that still make the kernel fail in the same way.

mod search;

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::Args;
use super::findings::Report;
use super::plan::{Plan, Plant, Scenario};
use super::tested::Tester;
use crate::error::LabError;
use crate::output;
use search::{Search, list};

/// What is left.
#[derive(Debug, Serialize)]
pub struct Minimum {
    pub variant: String,
    pub scenario: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plant: Option<String>,
    pub seed: u64,
    /// The line of shell that repeats it in a guest.
    pub command: String,
    pub operations: usize,
    /// Guests that were booted.
    pub guests: u32,
    /// Whether no operation could be left out; false if the time was over before.
    pub is_minimal: bool,
    pub report: Report,
}

/// The search in guests.
struct Runs<'a> {
    tester: &'a Tester<'a>,
    args: &'a Args,
    scenario: &'a Scenario,
    plant: Option<&'a Plant>,
    until: Instant,
    guests: u32,
}

/// Checks what is asked for, before anything is built.
///
/// # Errors
/// [`LabError::Usage`] if not one scenario is named, or it has no operations.
pub fn check(plan: &Plan, args: &Args) -> Result<()> {
    chosen(plan, args).map(|_| ())
}

/// Searches for the fewest operations of the given scenario.
///
/// # Errors
/// As [`check`]; [`LabError::Test`] if the scenario gives no report.
pub fn run(tester: &Tester<'_>, plan: &Plan, args: &Args) -> Result<Minimum> {
    let plant = args.plant.first();
    let plant = plant.and_then(|name| plan.plants.iter().find(|it| it.name == *name));
    let (scenario, operations) = chosen(plan, args)?;
    let mut runs = Runs {
        tester,
        args,
        scenario,
        plant,
        until: Instant::now() + Duration::from_secs(args.seconds),
        guests: 0,
    };
    runs.minimum(operations)
}

/// The only scenario that is named, and the number of its operations.
fn chosen<'a>(plan: &'a Plan, args: &Args) -> Result<(&'a Scenario, u32)> {
    let [name] = &args.scenarios[..] else {
        return Err(LabError::Usage("--minimise needs one --scenario".to_owned()).into());
    };
    let scenario = plan.scenario(name).expect("the name was checked");
    let why = format!("{name}: cannot be minimised: it does not run mmfuzz");
    let operations = scenario.operations().ok_or(LabError::Usage(why))?;
    Ok((scenario, operations))
}

impl Runs<'_> {
    fn minimum(&mut self, operations: u32) -> Result<Minimum> {
        let all: Vec<u32> = (0..operations).collect();
        let Some(mut report) = self.report_of(&all, None)? else {
            let why = format!("{}: gives no report to minimise", self.scenario.name);
            return Err(LabError::Test(why).into());
        };
        let mut search = Search::new(all);
        let mut is_minimal = true;
        while let Some(fewer) = search.attempt() {
            if self.is_late() {
                is_minimal = false;
                break;
            }
            let found = self.attempt(&fewer, &report);
            self.show(&fewer, found.is_some());
            search.answer(found.is_some());
            report = found.unwrap_or(report);
        }
        Ok(self.sum(search.best(), is_minimal, report))
    }

    /// A guest that was not checked has no report: what it had is kept.
    fn attempt(&mut self, operations: &[u32], like: &Report) -> Option<Report> {
        let found = self.report_of(operations, Some(like));
        found.unwrap_or_else(|error| {
            output::note(error);
            None
        })
    }

    /// Whether a time was given, and is over.
    fn is_late(&self) -> bool {
        self.args.seconds > 0 && Instant::now() > self.until
    }

    fn show(&self, operations: &[u32], is_found: bool) {
        let found = if is_found { "found" } else { "not found" };
        output::note(format!("{} operations: {found}", operations.len()));
    }

    /// The first report of these operations that has the given cause.
    fn report_of(&mut self, operations: &[u32], like: Option<&Report>) -> Result<Option<Report>> {
        self.guests += 1;
        let only = self.scenario.with_only(&list(operations));
        let findings = self.tester.run_alone(&only, self.plant)?;
        let mut reports = findings.reports.into_iter();
        Ok(reports.find(|it| like.is_none_or(|like| like.has_cause_of(it))))
    }

    fn sum(&self, operations: &[u32], is_minimal: bool, report: Report) -> Minimum {
        let only = self.scenario.with_only(&list(operations));
        Minimum {
            variant: self.tester.variant().to_owned(),
            scenario: self.scenario.name.clone(),
            plant: self.plant.map(|it| it.name.clone()),
            seed: self.args.seed,
            command: only.line(self.args.seed),
            operations: operations.len(),
            guests: self.guests,
            is_minimal,
            report,
        }
    }
}

impl fmt::Display for Minimum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = match self.is_minimal {
            true => "none can be left out",
            false => "the time was over before all was tried",
        };
        writeln!(
            f,
            "{} operations after {} guests; {left}:",
            self.operations, self.guests
        )?;
        writeln!(f, "  {}", self.command)?;
        write!(f, "{}", self.report)
    }
}
