// SPDX-License-Identifier: MIT OR Apache-2.0
//! The findings of tune, as `tune --json` prints them and `tune.json` contains them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toll_act::permanent::Permanent;
use toll_linux::proc::Placed;
use toll_model::plan::{Estimate, Plan};
use toll_model::profile::Profile;
use toll_model::stats::{Interval, Verdict};
use toll_observe::observation::Observation;

use super::budget::{Spent, Step};
use super::kinds::Kind;
use super::live::Alternated;
use super::today::Today;
use crate::compare::result::VariantResult;
use crate::compare::warm::Warming;
use crate::compare::{Comparison, Resource};

/// The `format` field.
pub const FORMAT: &str = "tollfree-tune";
/// The version of the format that this build writes.
pub const VERSION: u32 = 1;

/// The file with the plan, and the one of a variant with program text.
pub(super) const PLAN_FILE: &str = "plan.toml";

pub(super) fn text_file(variant: &str) -> &'static str {
    match variant {
        "text" => "text.toml",
        _ => "plan-text.toml",
    }
}

/// The recommendation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// A measured gain of at least 2 %, proved although several variants were judged.
    Apply,
    DoNothing,
}

/// The conclusion from the measurements. [`Advice`] has no value for the last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    Apply,
    /// No gain was measured, or there is nothing to act on.
    DoNothing,
    /// The measurements prove neither. Nothing is advised until it is settled.
    #[default]
    Undecided,
}

/// What would settle an undecided answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settle {
    /// Total pairs that settle it with a probability of 80 %.
    pub pairs: u32,
    /// Seconds for the missing pairs, at the speed of the others.
    pub seconds: f64,
    /// The command that continues from the stored runs; the program's command line must be
    /// appended.
    pub command: String,
}

/// The answer. Fields of steps that did not run are absent (null in JSON).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    pub format: String,
    pub version: u32,
    pub program: String,
    /// Also `do-nothing` if the answer is undecided.
    pub advice: Advice,
    #[serde(default)]
    pub answer: Answer,
    /// For an undecided answer that more pairs would settle.
    #[serde(default)]
    pub settle: Option<Settle>,
    /// A fingerprint of the command line and of the options that affect a run: `--resume` rejects
    /// others. Absent for `--pid`.
    #[serde(default)]
    pub subject: Option<String>,
    /// A fingerprint of the plan's text: rounds of another plan are not added to these.
    #[serde(default)]
    pub plan_fingerprint: Option<String>,
    /// The reason, in one or two sentences.
    pub reason: String,
    /// Time without / with the plan.
    pub speedup: Option<Interval>,
    /// The same for everything huge: from the comparison, else from the upper bound.
    pub speedup_all: Option<Interval>,
    pub predicted_speedup: Option<Estimate>,
    /// On the plan, by the comparison.
    pub verdict: Option<Verdict>,
    /// Whether the time limit ended the comparison behind the answer: more time could change it.
    pub time_limit_reached: bool,
    /// The exit code of every run; absent if none completed. A server's is not checked (0).
    pub status: Option<i32>,
    /// The most memory touched before a run, bytes; 0 if none was.
    pub warmed_bytes: u64,
    /// Whether memory was warmed before runs, and why; absent with --pid.
    #[serde(default)]
    pub warming: Option<Warming>,
    /// Counted rounds of the comparison.
    pub pairs: Option<u32>,
    /// The quantity of all these ratios.
    pub resource: Option<Resource>,
    pub confidence: Option<f64>,
    pub cpu_speedup: Option<Interval>,
    pub smallest_visible_effect: Option<f64>,
    /// Resident memory that a gain may cost, percent of the program's as it is; absent with --pid.
    #[serde(default)]
    pub allowed_growth_percent: Option<f64>,
    /// The variant to apply, of those that run under a plan; absent if none is advised.
    #[serde(default)]
    pub best: Option<String>,
    /// The kinds of large pages: which were tried, and why the others were not. Empty with --pid,
    /// or if nothing was compared.
    #[serde(default)]
    pub kinds: Vec<Kind>,
    /// Permanent changes that work without tollfree, the best first.
    pub permanent: Vec<Permanent>,
    /// The last step that began.
    pub step: Step,
    /// False if the user interrupted it.
    pub complete: bool,
    /// Seconds used, and allowed.
    pub seconds: f64,
    pub within_seconds: f64,
    /// The time of each step, in order.
    #[serde(default)]
    pub spent: Vec<Spent>,
    pub look: Option<Observation>,
    /// The huge pages of the program as it is run today, and their gain.
    #[serde(default)]
    pub today: Option<Today>,
    /// Bytes that the plan makes huge.
    pub planned_bytes: Option<u64>,
    /// The plan's memory by name, the largest benefit first.
    pub memory: Vec<String>,
    /// The directory of profile, plan, numbers and report.
    #[serde(alias = "folder")]
    pub directory: Option<PathBuf>,
    pub report: Option<PathBuf>,
    pub notes: Vec<String>,
    /// The program as it is against everything huge.
    #[serde(alias = "ceiling")]
    pub upper_bound: Option<Comparison>,
    /// The program as it is, plan, all, and the permanent changes.
    pub comparison: Option<Comparison>,
    /// The running process; only with --pid.
    #[serde(default)]
    pub process: Option<Placed>,
    /// How the memory of a running process alternated; only with --pid.
    #[serde(default)]
    pub live: Option<Alternated>,
}

/// The findings and the files that belong to them.
#[derive(Debug, Clone)]
pub struct Results {
    pub findings: Findings,
    pub profile: Option<Profile>,
    pub plan: Option<Plan>,
    /// Recorded under the plan.
    pub after: Option<Profile>,
}

impl Results {
    pub fn new(program: &str, within_seconds: f64) -> Results {
        let findings = Findings {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: program.to_owned(),
            advice: Advice::DoNothing,
            answer: Answer::Undecided,
            settle: None,
            subject: None,
            plan_fingerprint: None,
            reason: "nothing was measured yet".to_owned(),
            speedup: None,
            speedup_all: None,
            predicted_speedup: None,
            verdict: None,
            time_limit_reached: false,
            status: None,
            warmed_bytes: 0,
            warming: None,
            pairs: None,
            resource: None,
            confidence: None,
            cpu_speedup: None,
            smallest_visible_effect: None,
            allowed_growth_percent: None,
            best: None,
            kinds: Vec::new(),
            permanent: Vec::new(),
            step: Step::Look,
            complete: true,
            seconds: 0.0,
            within_seconds,
            spent: Vec::new(),
            look: None,
            today: None,
            planned_bytes: None,
            memory: Vec::new(),
            directory: None,
            report: None,
            notes: Vec::new(),
            upper_bound: None,
            comparison: None,
            process: None,
            live: None,
        };
        Results {
            findings,
            profile: None,
            plan: None,
            after: None,
        }
    }

    /// Adds the comparison that gives the verdict.
    pub fn compared(&mut self, comparison: Comparison) {
        let found = &mut self.findings;
        found.speedup = comparison.speedup;
        found.speedup_all = comparison.speedup_all.or(found.speedup_all);
        found.predicted_speedup = comparison.predicted_speedup;
        found.verdict = Some(comparison.verdict);
        found.pairs = Some(comparison.pairs);
        found.resource = Some(comparison.resource);
        found.confidence = Some(comparison.confidence);
        found.cpu_speedup = comparison.cpu_speedup;
        found.smallest_visible_effect = comparison.smallest_visible_effect;
        found.ran(&comparison);
        found.comparison = Some(comparison);
    }

    /// Adds the upper bound.
    pub fn upper_bound(&mut self, upper_bound: Comparison) {
        let found = &mut self.findings;
        found.speedup_all = upper_bound.speedup_all;
        found.resource = Some(upper_bound.resource);
        found.confidence = Some(upper_bound.confidence);
        found.ran(&upper_bound);
        found.upper_bound = Some(upper_bound);
    }
}

impl Findings {
    /// Sets the answer from the advice and the comparisons.
    pub(crate) fn conclude(&mut self) {
        self.answer = match self.advice {
            Advice::Apply => Answer::Apply,
            Advice::DoNothing if !self.complete || self.is_open() => Answer::Undecided,
            Advice::DoNothing => Answer::DoNothing,
        };
        if self.answer != Answer::Undecided {
            self.settle = None;
        }
    }

    /// The comparison behind the advice, if one began.
    pub(crate) fn decisive(&self) -> Option<&Comparison> {
        let upper_bound = self
            .upper_bound
            .as_ref()
            .filter(|_| self.step == Step::UpperBound);
        self.comparison.as_ref().or(upper_bound)
    }

    /// Whether the decisive comparison proves neither a gain nor its absence.
    fn is_open(&self) -> bool {
        let Some(comparison) = self.decisive() else {
            return false;
        };
        let unproven = |variant: &VariantResult| {
            variant.proven == Some(false)
                && variant.speedup.is_some_and(|speedup| speedup.is_gain())
        };
        let verdict = match self.today.as_ref().and_then(|today| today.gain) {
            // If the program already has huge pages, the question is what they gain.
            Some(gain) if comparison.variant("plan").is_none() => Some(gain.verdict()),
            _ => comparison.main().map(|_| comparison.verdict),
        };
        verdict.is_none_or(|verdict| verdict == Verdict::CannotTell)
            || comparison.variants.iter().any(unproven)
    }

    /// Copies the fields about the runs as such; the last comparison overwrites them.
    fn ran(&mut self, comparison: &Comparison) {
        self.time_limit_reached = comparison.ran_out_of_time();
        self.status = comparison.status.or(self.status);
        self.warmed_bytes = self.warmed_bytes.max(comparison.warmed_bytes);
    }
}
