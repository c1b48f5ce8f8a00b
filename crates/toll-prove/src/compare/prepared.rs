// SPDX-License-Identifier: MIT OR Apache-2.0
//! The variants of one command, each prepared once for any number of runs.

use std::collections::BTreeMap;
use std::ffi::OsString;

use anyhow::Result;
use toll_act::actuate::{Acting, Actuator, Policy, Settings};
use toll_act::target::{Child, Launch, Sampling};

use super::variant::{Variant, Way};

/// A variant prepared for any number of runs.
#[derive(Debug)]
struct Ready {
    actuator: Actuator,
    command: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
}

/// The variants of one command.
#[derive(Debug)]
pub(crate) struct Variants {
    command: Vec<OsString>,
    ready: BTreeMap<String, Ready>,
    /// Notes of the actuators.
    notes: Vec<String>,
    /// Why the parent could not act in a run.
    failures: BTreeMap<String, String>,
    /// Whether huge-page-backed memory is sampled in the next runs.
    sampling: Sampling,
}

impl Variants {
    pub fn new(command: &[OsString]) -> Variants {
        Variants {
            command: command.to_vec(),
            ready: BTreeMap::new(),
            notes: Vec::new(),
            failures: BTreeMap::new(),
            sampling: Sampling::Off,
        }
    }

    /// Samples huge-page-backed memory in the runs of the first round only, which is not counted.
    pub fn begin_round(&mut self, round: u32) {
        self.sampling = match round {
            0 => Sampling::Ample,
            _ => Sampling::Off,
        };
    }

    /// Prepares the variant unless it is prepared. Slow the first time; not part of a run's time.
    pub fn prepare(&mut self, variant: &Variant) -> Result<()> {
        if !self.ready.contains_key(&variant.name) {
            let ready = make_ready(&self.command, variant)?;
            let lost = ready
                .actuator
                .lost()
                .iter()
                .map(|l| format!("not found in this program: {l}"));
            self.notes
                .extend(ready.actuator.notes().iter().cloned().chain(lost));
            self.ready.insert(variant.name.clone(), ready);
        }
        Ok(())
    }

    /// Starts a run of a prepared variant; `shape` completes the launch.
    pub fn launch(&self, variant: &Variant, shape: impl Fn(Launch) -> Launch) -> Result<Child> {
        self.ready.values().for_each(|it| it.actuator.restore());
        let ready = &self.ready[&variant.name];
        let mut launch = shape(Launch::new(&ready.command))
            .own_group()
            .sample_huge(self.sampling);
        for (name, value) in &ready.env {
            launch = launch.env(name, value);
        }
        ready.actuator.prepare(launch)?.spawn()
    }

    /// Starts to act on a child of [`Variants::launch`].
    pub fn act(&self, variant: &Variant, child: &Child) -> Acting {
        self.ready[&variant.name].actuator.act(child)
    }

    /// Stores why acting failed in this variant.
    pub fn note_failure(&mut self, variant: &Variant, failure: Option<String>) {
        if let Some(failure) = failure {
            self.failures.entry(variant.name.clone()).or_insert(failure);
        }
    }

    /// The notes on how the variants were acted on.
    pub fn notes(&self) -> Vec<String> {
        let failed = |(variant, why): (&String, &String)| {
            format!("variant {variant}: the parent could not act: {why}")
        };
        let mut notes = self.notes.clone();
        notes.dedup();
        notes
            .into_iter()
            .chain(self.failures.iter().map(failed))
            .collect()
    }
}

fn make_ready(command: &[OsString], variant: &Variant) -> Result<Ready> {
    let settings = Settings {
        only_advised: matches!(variant.way, Way::PlanOnly(_)),
        ..Settings::default()
    };
    let (command, env) = command_of(command, variant);
    let actuator = Actuator::new(&policy_of(variant)?, &command, settings)?;
    Ok(Ready {
        actuator,
        command,
        env,
    })
}

fn policy_of(variant: &Variant) -> Result<Policy> {
    Ok(match &variant.way {
        Way::None | Way::Change(_) | Way::First(_) | Way::Second(_) => Policy::None,
        Way::Never => Policy::Never,
        Way::All => Policy::All,
        Way::Plan(file) | Way::PlanOnly(file) | Way::Text(file) => Policy::read(file)?,
    })
}

/// The command line of a variant, and its variables; `command` is that of variants without one.
fn command_of(
    command: &[OsString],
    variant: &Variant,
) -> (Vec<OsString>, Vec<(OsString, OsString)>) {
    match &variant.way {
        Way::Change(change) => {
            let set = change.env.iter();
            let env = set.map(|(name, value)| (name.into(), value.into()));
            (change.command(command), env.collect())
        }
        Way::First(own) | Way::Second(own) => (own.command().to_vec(), own.env().to_vec()),
        _ => (command.to_vec(), Vec::new()),
    }
}
