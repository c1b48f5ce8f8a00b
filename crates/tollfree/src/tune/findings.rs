// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tune found; what `tune --json` prints and `tune.json` holds.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toll_model::plan::{Estimate, Plan};
use toll_model::profile::Profile;
use toll_model::stats::{Interval, Verdict};

use super::budget::{Spent, Step};
use super::today::Today;
use crate::compare::observe::Look;
use crate::compare::result::ArmResult;
use crate::compare::warm::Warming;
use crate::compare::{Comparison, Resource};
use crate::permanent::Permanent;

/// What stands in the `format` field.
pub const FORMAT: &str = "tollfree-tune";
/// The version of the format that this build writes.
pub const VERSION: u32 = 1;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// A measured gain of at least 2 %, proved although several arms were judged.
    Apply,
    DoNothing,
}

/// What the measurements say. [`Advice`] has no word for the last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    Apply,
    /// It was measured that nothing is gained, or there is nothing to act on.
    DoNothing,
    /// What was measured proves neither. Nothing is advised until it is settled.
    #[default]
    Undecided,
}

/// What would decide an undecided answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settle {
    /// Pairs in all that settle it with a probability of 80 %.
    pub pairs: u32,
    /// Seconds that those take which are not there yet, at the speed of the others.
    pub seconds: f64,
    /// What goes on from the runs that are stored; the program's command line follows it.
    pub command: String,
}

/// The answer. Fields of steps that were not reached are absent (null in JSON).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    pub format: String,
    pub version: u32,
    pub program: String,
    /// `do-nothing` where the answer is undecided, too.
    pub advice: Advice,
    #[serde(default)]
    pub answer: Answer,
    /// For an undecided answer, if more pairs would settle it.
    #[serde(default)]
    pub settle: Option<Settle>,
    /// A fingerprint of the command line and of the options that a run depends on: `--resume`
    /// refuses others. Absent for `--pid`.
    #[serde(default)]
    pub subject: Option<String>,
    /// A fingerprint of the plan's text: rounds of another plan are not added to these.
    #[serde(default)]
    pub plan_fingerprint: Option<String>,
    /// Why, in a sentence or two.
    pub reason: String,
    /// Time without / with the plan.
    pub speedup: Option<Interval>,
    /// The same for everything huge: from the comparison, else from the ceiling.
    pub speedup_all: Option<Interval>,
    pub predicted_speedup: Option<Estimate>,
    /// On the plan, by the comparison.
    pub verdict: Option<Verdict>,
    /// Whether the time limit ended the comparison that the answer rests on: more time could change it.
    pub time_limit_reached: bool,
    /// The exit code of every run; absent if none ran to its end. A server's is not looked at (0).
    pub status: Option<i32>,
    /// The most memory that was touched before a run, bytes; 0 if none was.
    pub warmed_bytes: u64,
    /// Whether memory was warmed before runs, and why; absent with --pid.
    #[serde(default)]
    pub warming: Option<Warming>,
    /// Counted rounds of the comparison.
    pub pairs: Option<u32>,
    /// What all of these are ratios of.
    pub resource: Option<Resource>,
    pub confidence: Option<f64>,
    pub cpu_speedup: Option<Interval>,
    pub smallest_visible_effect: Option<f64>,
    /// How much resident memory a gain may cost, percent of the program's as it is; absent with --pid.
    #[serde(default)]
    pub allowed_growth_percent: Option<f64>,
    /// What stays without tollfree, the best first.
    pub permanent: Vec<Permanent>,
    /// The last step that was begun.
    pub step: Step,
    /// False if the user interrupted it.
    pub complete: bool,
    /// Seconds that were used, and allowed.
    pub seconds: f64,
    pub within_seconds: f64,
    /// What each step took, in their order.
    #[serde(default)]
    pub spent: Vec<Spent>,
    pub look: Option<Look>,
    /// Which huge pages the program has as it is run today, and what they bring.
    #[serde(default)]
    pub today: Option<Today>,
    /// Bytes that the plan makes huge.
    pub planned_bytes: Option<u64>,
    /// The plan's memory by name, the most useful first.
    pub memory: Vec<String>,
    /// Where profile, plan, numbers and report lie.
    pub folder: Option<PathBuf>,
    pub report: Option<PathBuf>,
    pub notes: Vec<String>,
    /// None against everything huge.
    pub ceiling: Option<Comparison>,
    /// None, plan, all, and the permanent changes.
    pub comparison: Option<Comparison>,
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
            folder: None,
            report: None,
            notes: Vec::new(),
            ceiling: None,
            comparison: None,
        };
        Results {
            findings,
            profile: None,
            plan: None,
            after: None,
        }
    }

    /// Takes in the comparison that the verdict comes from.
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

    /// Takes in the ceiling.
    pub fn ceiling(&mut self, ceiling: Comparison) {
        let found = &mut self.findings;
        found.speedup_all = ceiling.speedup_all;
        found.resource = Some(ceiling.resource);
        found.confidence = Some(ceiling.confidence);
        found.ran(&ceiling);
        found.ceiling = Some(ceiling);
    }
}

impl Findings {
    /// Sets the answer from the advice and from what was compared.
    pub fn conclude(&mut self) {
        self.answer = match self.advice {
            Advice::Apply => Answer::Apply,
            Advice::DoNothing if !self.complete || self.is_open() => Answer::Undecided,
            Advice::DoNothing => Answer::DoNothing,
        };
        if self.answer != Answer::Undecided {
            self.settle = None;
        }
    }

    /// The comparison that the advice rests on, if one was begun.
    pub fn decisive(&self) -> Option<&Comparison> {
        let ceiling = self.ceiling.as_ref().filter(|_| self.step == Step::Ceiling);
        self.comparison.as_ref().or(ceiling)
    }

    /// Whether the decisive comparison proves neither a gain nor that there is none.
    fn is_open(&self) -> bool {
        let Some(comparison) = self.decisive() else {
            return false;
        };
        let unproven = |arm: &ArmResult| {
            arm.proven == Some(false) && arm.speedup.is_some_and(|speedup| speedup.is_gain())
        };
        let verdict = match self.today.as_ref().and_then(|today| today.gain) {
            // Where the program has huge pages already, the question is what they bring.
            Some(gain) if comparison.arm("plan").is_none() => Some(gain.verdict()),
            _ => comparison.main().map(|_| comparison.verdict),
        };
        verdict.is_none_or(|verdict| verdict == Verdict::CannotTell)
            || comparison.arms.iter().any(unproven)
    }

    /// What a comparison tells about its runs as such; the last one stands.
    fn ran(&mut self, comparison: &Comparison) {
        self.time_limit_reached = comparison.ran_out_of_time();
        self.status = comparison.status.or(self.status);
        self.warmed_bytes = self.warmed_bytes.max(comparison.warmed_bytes);
    }
}
