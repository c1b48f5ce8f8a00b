// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine behind [`Experiment`]: runs, records, estimates and writes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use toll_act::actuate::{Actuator, Policy, Settings};
use toll_act::error::NO_DIRECTORY;
use toll_act::executable::Executable;
use toll_act::permanent::{Candidate, candidates};
use toll_act::signals;
use toll_linux::calibrate::{self, Tails};
use toll_linux::cpu;
use toll_model::cost::CostTable;
use toll_model::estimate;
use toll_model::plan::Plan;
use toll_model::profile::Profile;
use toll_observe::machine;
use toll_observe::observation::Observation;
use toll_observe::observer::Observer;
use toll_observe::record::{RecordOptions, SourceChoice, record};

use super::budget::{Step, words};
use super::directory::Directory;
use super::experiment::{Experiment, Under};
use super::findings::Results;
use super::kinds::Machine;
use super::resume;
use super::today::Host;
use crate::compare::Variant;
use crate::compare::driver::{Driven, Driver};
use crate::compare::load::Load;
use crate::compare::schedule::{Executor, Ran};
use crate::compare::subject::Subject;
use crate::compare::warm::Warming;

/// Renders the results and the command line, if it is to be shown.
pub type Page = fn(&Results, Option<&[OsString]>) -> String;

/// The real thing.
#[derive(Debug)]
pub struct MachineExperiment {
    pub subject: Subject,
    pub command: Vec<OsString>,
    pub directory: Directory,
    /// The load of a server; `None` for a program that ends by itself.
    pub load: Option<Load>,
    pub any_output: bool,
    /// Resident memory that a gain may cost, percent.
    pub allowed_growth: f64,
    /// The size of pages below 2 MiB that may be tried, which sets the machine for those runs.
    pub mthp: Option<u64>,
    /// Whether memory is warmed up before each run.
    pub warming: Warming,
    /// Whether the user disabled warming.
    pub cold: bool,
    pub show_command: bool,
    /// The fingerprint of the tuned command.
    pub subject_fingerprint: String,
    /// Renders report.html; the command line only if the user wants it shown.
    pub page: Page,
    /// Notes on the recordings.
    pub notes: Vec<String>,
}

impl Experiment for MachineExperiment {
    fn executor(&mut self) -> &mut dyn Executor {
        &mut self.subject
    }

    fn look(&mut self, until: Duration) -> Result<(Observation, Option<i32>)> {
        self.subject.runner.observer = Some(Observer::default());
        let ran = self.subject.run(&Variant::none(), until)?;
        let observer = self.subject.runner.observer.take().unwrap_or_default();
        let status = match ran {
            Ran::Done(sample) => Some(sample.status),
            Ran::Late | Ran::Interrupted => None,
        };
        Ok((observer.look(), status))
    }

    fn reach(&self) -> u64 {
        cpu::tlb_geometry().reach_4k()
    }

    fn candidates(&self, look: &Observation) -> Vec<Candidate> {
        candidates(&look.traits, &self.command, &|name| {
            std::env::var(name).ok()
        })
    }

    fn costs(&mut self, within: Duration) -> Result<CostTable> {
        let progress = &self.subject.runner.progress;
        let costs = machine::measured_costs(within, &mut |step| progress.say(step))?;
        self.notes.extend(self.warming.note_of(self.cold, &costs));
        Ok(costs)
    }

    fn record(
        &mut self,
        limit: Duration,
        native: Option<f64>,
        under: Under<'_>,
    ) -> Result<Profile> {
        let directory = tempfile::tempdir().context(NO_DIRECTORY)?;
        let policy = match under {
            Under::Nothing => None,
            Under::Never => Some(Policy::Never),
            Under::Plan(plan) => Some(Policy::Plan(Box::new(plan.clone()))),
        };
        let actuator = match policy {
            None => None,
            Some(policy) => Some(Actuator::new(&policy, &self.command, Settings::default())?),
        };
        let window = self
            .load
            .as_ref()
            .map(|load| load.window.unwrap_or(DEFAULT_WINDOW));
        let driver = self.load.clone().map(Driver::start);
        let options = RecordOptions {
            command: self.command.clone(),
            limit: Some(window.map_or(limit, |window| window.min(limit))),
            // A server runs as long as it is observed, however slow it is.
            native: native
                .filter(|_| self.load.is_none())
                .map(Duration::from_secs_f64),
            actuator,
            stdin: Some(self.subject.stdin()),
            capture: Some(directory.path().to_owned()),
            ..RecordOptions::default()
        };
        self.subject.runner.progress.say("recording");
        let recorded = record(SourceChoice::Auto, &options)?;
        let driven = driver.map(Driver::finish);
        self.notes.extend(driven.and_then(without_load));
        let mut profile = recorded.profile;
        profile.native_ns = profile
            .native_ns
            .or(native.map(|seconds| (seconds * 1e9) as u64));
        Ok(profile)
    }

    fn pages(&self) -> Machine {
        let program = Executable::of(&self.command).ok();
        let obstacle = program.and_then(|program| program.obstacle);
        Machine::here(obstacle.map(|why| why.to_string()), self.mthp)
    }

    fn plan_file(&mut self, name: &str, plan: &Plan) -> Result<PathBuf> {
        self.directory.write(name, plan.to_toml()?.as_bytes())
    }

    fn estimate_options(&self) -> estimate::Options {
        estimate::Options {
            warm: self.warming.on,
            ..machine::estimate_options()
        }
    }

    fn host(&self) -> Host {
        Host::here()
    }

    fn announce(&mut self, step: Step, allowance: Duration) {
        let progress = &mut self.subject.runner.progress;
        progress.step = match step {
            Step::Plan => step.name().to_owned(),
            _ => format!("{}, at most {}", step.name(), words(allowance)),
        };
        progress.say("begins");
    }

    fn keep(&mut self, results: &Results) -> Result<()> {
        if let Some(profile) = &results.profile {
            self.directory
                .write("profile.json", profile.to_json()?.as_bytes())?;
        }
        if let Some(plan) = &results.plan {
            self.directory
                .write("plan.toml", plan.to_toml()?.as_bytes())?;
        }
        if let Some(after) = &results.after {
            self.directory
                .write("profile-after.json", after.to_json()?.as_bytes())?;
        }
        let found = &results.findings;
        for (name, comparison) in [
            ("upper-bound.json", &found.upper_bound),
            ("compare.json", &found.comparison),
        ] {
            if let Some(comparison) = comparison {
                self.directory
                    .write(name, &serde_json::to_vec_pretty(comparison)?)?;
            }
        }
        Ok(())
    }

    fn interrupted(&self) -> bool {
        signals::interrupted().is_some()
    }

    fn any_output(&self) -> bool {
        self.any_output
    }

    fn allowed_growth(&self) -> f64 {
        self.allowed_growth
    }

    fn fault_tails(&mut self, within: Duration) -> Tails {
        self.subject.runner.progress.say("page faults");
        calibrate::fault_tails(within, calibrate::available_memory() / 2)
    }
}

/// Returns why a recording is of a server without its load, if so.
fn without_load(driven: Driven) -> Option<String> {
    let why = match driven {
        Driven { ready: false, .. } => "the server was not ready".to_owned(),
        Driven {
            succeeded: 0,
            failed: failed @ 1..,
            ..
        } => format!("the workload failed in each of {failed} runs"),
        _ => return None,
    };
    Some(format!(
        "{why} during the recording: the profile and the plan are for a server without load"
    ))
}

/// Default length of a server's recording without --for.
const DEFAULT_WINDOW: Duration = Duration::from_secs(30);

impl MachineExperiment {
    /// Writes the answer and the page, and names them in the answer.
    pub fn publish(&mut self, results: &mut Results) -> Result<()> {
        results.findings.notes.append(&mut self.notes);
        results.findings.notes.extend(self.subject.notes());
        let mut seen = std::collections::HashSet::new();
        let is_new = |note: &String| seen.insert(note.clone());
        results.findings.notes.retain(is_new);
        results.findings.directory = Some(self.directory.path().to_owned());
        results.findings.report = Some(self.directory.file("report.html"));
        results.findings.warming = Some(self.warming.clone());
        results.findings.subject = Some(self.subject_fingerprint.clone());
        results.findings.plan_fingerprint = match &results.plan {
            Some(plan) => Some(resume::text_fingerprint(plan.to_toml()?.as_bytes())),
            None => None,
        };
        if let Some(settle) = &mut results.findings.settle {
            settle.command = self.resume_command(settle.seconds);
        }
        self.keep(results)?;
        let command = self.show_command.then_some(self.command.as_slice());
        self.directory
            .write("report.html", (self.page)(results, command).as_bytes())?;
        self.directory
            .write("tune.json", &serde_json::to_vec_pretty(&results.findings)?)?;
        Ok(())
    }

    /// The command that continues from this directory, with the expected time plus a quarter. The
    /// options of a server and the program's command line must be appended.
    fn resume_command(&self, seconds: f64) -> String {
        let minutes = (seconds * 1.25 / 60.0).ceil().max(1.0);
        let directory = self.directory.path().display();
        let cold = if self.cold { " --cold" } else { "" };
        let load = if self.load.is_some() { " ..." } else { "" };
        format!("tollfree tune --resume {directory} --within {minutes:.0}m{cold}{load}")
    }

    /// Removes the progress line.
    pub fn finish(&mut self) {
        self.subject.runner.progress.end();
    }
}
