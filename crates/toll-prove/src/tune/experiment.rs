// SPDX-License-Identifier: MIT OR Apache-2.0
//! All access of the steps to the machine, so that the tests control all measurements.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use toll_act::permanent::Candidate;
use toll_linux::calibrate::Tails;
use toll_model::cost::CostTable;
use toll_model::estimate;
use toll_model::plan::Plan;
use toll_model::profile::Profile;
use toll_observe::observation::Observation;

use super::budget::Step;
use super::findings::Results;
use super::kinds::Machine;
use super::today::Host;
use crate::compare::schedule::Executor;

/// All operations of tune on the machine.
pub trait Experiment {
    /// Runs variants; its clock is tune's.
    fn executor(&mut self) -> &mut dyn Executor;
    /// Runs the program once as it is and observes it. Returns its status if it ended in time.
    fn look(&mut self, until: Duration) -> Result<(Observation, Option<i32>)>;
    /// Memory in bytes that this CPU's second-level TLB covers with 4 KiB pages.
    fn reach(&self) -> u64;
    /// The changes that fit the program.
    fn candidates(&self, look: &Observation) -> Vec<Candidate>;
    /// This machine's costs, measured within the time if they are not known.
    fn costs(&mut self, within: Duration) -> Result<CostTable>;
    /// Records a profile; `native` is the time of a run without the recorder, in seconds.
    fn record(&mut self, limit: Duration, native: Option<f64>, under: Under<'_>)
    -> Result<Profile>;
    /// The huge-page settings of the machine and this process.
    fn host(&self) -> Host;
    /// What the machine offers in large pages.
    fn pages(&self) -> Machine;
    /// Writes a plan to a file of this name for the variants.
    fn plan_file(&mut self, name: &str, plan: &Plan) -> Result<PathBuf>;
    /// The machine's properties, for the estimates.
    fn estimate_options(&self) -> estimate::Options;
    /// Called at the beginning of each step.
    fn announce(&mut self, step: Step, allowance: Duration);
    /// Writes the results so far, so that a later crash or Ctrl-C does not lose them.
    fn keep(&mut self, results: &Results) -> Result<()>;
    fn interrupted(&self) -> bool;
    /// Whether an output that differs between the variants is accepted.
    fn any_output(&self) -> bool;
    /// Resident memory that a gain may cost, percent of the program's as it is.
    fn allowed_growth(&self) -> f64;
    /// The times of this machine's slowest page faults, measured within the time.
    fn fault_tails(&mut self, within: Duration) -> Tails;
}

/// How a program is recorded.
#[derive(Debug, Clone, Copy)]
pub enum Under<'a> {
    /// As it is.
    Nothing,
    /// With huge pages disabled.
    Never,
    Plan(&'a Plan),
}
