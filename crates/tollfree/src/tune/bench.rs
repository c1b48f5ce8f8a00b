// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine behind [`Lab`]: runs, records, prices and writes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use toll_linux::calibrate::{self, Tails};
use toll_linux::{Root, cpu, sys};
use toll_model::cost::CostTable;
use toll_model::plan::Plan;
use toll_model::price;
use toll_model::profile::Profile;

use super::budget::{Step, words};
use super::decide::{Lab, Under};
use super::findings::Results;
use super::folder::Folder;
use super::today::Host;
use super::{page, resume};
use crate::actuate::{Actuator, Policy, Settings};
use crate::compare::Arm;
use crate::compare::observe::{Look, Observer};
use crate::compare::program::Program;
use crate::compare::runner::Progress;
use crate::compare::schedule::{Executor, Ran};
use crate::compare::server::{Driven, Driver, Load, Server};
use crate::compare::warm::Warming;
use crate::permanent::{Candidate, candidates};
use crate::record::{RecordOptions, SourceChoice, record};
use crate::signals;

/// What is tuned.
#[derive(Debug)]
pub enum Subject {
    Program(Box<Program>),
    Server(Box<Server>),
}

impl Subject {
    fn executor(&mut self) -> &mut dyn Executor {
        match self {
            Subject::Program(program) => program.as_mut(),
            Subject::Server(server) => server.as_mut(),
        }
    }

    fn observer(&mut self) -> &mut Option<Observer> {
        match self {
            Subject::Program(program) => &mut program.observer,
            Subject::Server(server) => &mut server.observer,
        }
    }

    fn progress(&mut self) -> &mut Progress {
        match self {
            Subject::Program(program) => &mut program.progress,
            Subject::Server(server) => &mut server.progress,
        }
    }

    fn notes(&self) -> Vec<String> {
        match self {
            Subject::Program(program) => program.notes(),
            Subject::Server(server) => server.notes(),
        }
    }
}

/// The real thing.
#[derive(Debug)]
pub struct Bench {
    pub subject: Subject,
    pub command: Vec<OsString>,
    pub folder: Folder,
    /// How a server is loaded; `None` for a program that ends by itself.
    pub load: Option<Load>,
    pub any_output: bool,
    /// How much resident memory a gain may cost, percent.
    pub allowed_growth: f64,
    /// Whether memory is warmed up before each run.
    pub warming: Warming,
    /// Whether the user wants it not to be.
    pub cold: bool,
    pub show_command: bool,
    /// The fingerprint of what is run.
    pub subject_fingerprint: String,
    /// What a reader must know of the recordings.
    pub notes: Vec<String>,
}

impl Lab for Bench {
    fn executor(&mut self) -> &mut dyn Executor {
        self.subject.executor()
    }

    fn look(&mut self, until: Duration) -> Result<(Look, Option<i32>)> {
        *self.subject.observer() = Some(Observer::default());
        let ran = self.subject.executor().run(&Arm::none(), until)?;
        let observer = self.subject.observer().take().unwrap_or_default();
        let status = match ran {
            Ran::Done(sample) => Some(sample.status),
            Ran::Late | Ran::Interrupted => None,
        };
        Ok((observer.look(), status))
    }

    fn reach(&self) -> u64 {
        cpu::tlb_geometry().reach_4k()
    }

    fn candidates(&self, look: &Look) -> Vec<Candidate> {
        candidates(&look.traits, &self.command, &|name| {
            std::env::var(name).ok()
        })
    }

    fn costs(&mut self, within: Duration) -> Result<CostTable> {
        let progress = self.subject.progress();
        let costs = crate::cmd::calibrate::costs(None, within, &mut |step| progress.say(step))?;
        self.notes.extend(self.warming.note_of(self.cold, &costs));
        Ok(costs)
    }

    fn record(
        &mut self,
        limit: Duration,
        native: Option<f64>,
        under: Under<'_>,
    ) -> Result<Profile> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
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
        let stdin = match &self.subject {
            Subject::Program(program) => program.stdin(),
            Subject::Server(_) => "/dev/null".into(),
        };
        let options = RecordOptions {
            command: self.command.clone(),
            limit: Some(window.map_or(limit, |window| window.min(limit))),
            // A server runs as long as it is observed, however slow it is.
            native: native
                .filter(|_| self.load.is_none())
                .map(Duration::from_secs_f64),
            actuator,
            stdin: Some(stdin),
            capture: Some(folder.path().to_owned()),
            ..RecordOptions::default()
        };
        self.subject.progress().say("recording");
        let recorded = record(SourceChoice::Auto, &options)?;
        let driven = driver.map(Driver::finish);
        self.notes.extend(driven.and_then(without_load));
        let mut profile = recorded.profile;
        profile.native_ns = profile
            .native_ns
            .or(native.map(|seconds| (seconds * 1e9) as u64));
        Ok(profile)
    }

    fn plan_file(&mut self, plan: &Plan) -> Result<PathBuf> {
        self.folder.write("plan.toml", plan.to_toml()?.as_bytes())
    }

    fn price_options(&self) -> price::Options {
        price::Options {
            free_regions: sys::buddyinfo_free_regions(&Root::system()),
            thp_always: crate::compare::thp_is_always(),
            warm: self.warming.on,
            ..price::Options::default()
        }
    }

    fn host(&self) -> Host {
        Host::here()
    }

    fn announce(&mut self, step: Step, allowance: Duration) {
        let progress = self.subject.progress();
        progress.step = match step {
            Step::Plan => step.name().to_owned(),
            _ => format!("{}, at most {}", step.name(), words(allowance)),
        };
        progress.say("begins");
    }

    fn keep(&mut self, results: &Results) -> Result<()> {
        if let Some(profile) = &results.profile {
            self.folder
                .write("profile.json", profile.to_json()?.as_bytes())?;
        }
        if let Some(plan) = &results.plan {
            self.folder.write("plan.toml", plan.to_toml()?.as_bytes())?;
        }
        if let Some(after) = &results.after {
            self.folder
                .write("profile-after.json", after.to_json()?.as_bytes())?;
        }
        let found = &results.findings;
        for (name, comparison) in [
            ("ceiling.json", &found.ceiling),
            ("compare.json", &found.comparison),
        ] {
            if let Some(comparison) = comparison {
                self.folder
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
        self.subject.progress().say("page faults");
        calibrate::fault_tails(within, calibrate::available_memory() / 2)
    }
}

/// Why a recording is of a server without its load, if it is.
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
        "{why} while the server was recorded: the profile, and the plan, are of a server without its load"
    ))
}

/// A server is recorded for so long if --for does not say.
const DEFAULT_WINDOW: Duration = Duration::from_secs(30);

impl Bench {
    /// Writes the answer and the page, and names them in the answer.
    pub fn publish(&mut self, results: &mut Results) -> Result<()> {
        results.findings.notes.append(&mut self.notes);
        results.findings.notes.extend(self.subject.notes());
        let mut seen = std::collections::HashSet::new();
        let is_new = |note: &String| seen.insert(note.clone());
        results.findings.notes.retain(is_new);
        results.findings.folder = Some(self.folder.path().to_owned());
        results.findings.report = Some(self.folder.file("report.html"));
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
        self.folder
            .write("report.html", page::render(results, command).as_bytes())?;
        self.folder
            .write("tune.json", &serde_json::to_vec_pretty(&results.findings)?)?;
        Ok(())
    }

    /// The command that goes on from this folder for as long as it is expected to take, and a
    /// quarter more. The options of a server, and the program's command line, have to follow.
    fn resume_command(&self, seconds: f64) -> String {
        let minutes = (seconds * 1.25 / 60.0).ceil().max(1.0);
        let folder = self.folder.path().display();
        let cold = if self.cold { " --cold" } else { "" };
        let load = if self.load.is_some() { " ..." } else { "" };
        format!("tollfree tune --resume {folder} --within {minutes:.0}m{cold}{load}")
    }

    /// Takes the progress line away.
    pub fn finish(&mut self) {
        self.subject.progress().bar.finish_and_clear();
    }
}

/// Whether this machine's prices are known already.
pub fn costs_known() -> bool {
    calibrate::load(&calibrate::key(&Root::system())).is_some()
}
