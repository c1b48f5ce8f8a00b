// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a tune, its use of time, and its end.

use std::time::Duration;

use anyhow::Result;
use toll_act::permanent::{Candidate, GLIBC};
use toll_model::stats::MOST_PAIRS;

use crate::compare::schedule::FEWEST;
use crate::tune::budget::{Spending, Step};
use crate::tune::experiment::Experiment;
use crate::tune::findings::{Advice, Answer, Findings, Results, Settle};
use crate::tune::kinds::{Evidence, Kind};
use crate::tune::today::Today;

/// A variant of the last comparison is omitted if it leaves time for fewer rounds than this.
pub(super) const ROUNDS_WORTH_IT: u32 = FEWEST;

/// A tune in progress.
pub(super) struct Run<'a> {
    pub(super) experiment: &'a mut dyn Experiment,
    pub(super) within: Duration,
    pub(super) results: Results,
    pub(super) spending: Spending,
    /// Seconds of one run in the last comparison, including the time before and after it.
    pub(super) run_seconds: Option<f64>,
    /// The share of the CPU time that page faults take.
    pub(super) fault_share: Option<f64>,
}

/// Whether to continue after a step.
pub(super) enum Next {
    On,
    End,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        experiment: &'a mut dyn Experiment,
        within: Duration,
        results: Results,
        spending: Spending,
    ) -> Run<'a> {
        Run {
            experiment,
            within,
            results,
            spending,
            run_seconds: None,
            fault_share: None,
        }
    }
}

impl Run<'_> {
    /// Completes the results at the end, whichever step that was.
    pub(super) fn finish(mut self) -> Results {
        self.note_status();
        self.note_unmeasurable();
        self.results.findings.kinds = self.kinds();
        if self.experiment.interrupted() {
            mark_interrupted(&mut self.results.findings);
        }
        let now = self.experiment.executor().now();
        self.results.findings.seconds = now.as_secs_f64();
        self.results.findings.spent = std::mem::take(&mut self.spending).end(now);
        self.results.findings.conclude();
        self.results.findings.settle = self.settle();
        self.results
    }

    /// The kinds of large pages, by what was measured and observed.
    fn kinds(&self) -> Vec<Kind> {
        let found = &self.results.findings;
        let ran = found.upper_bound.is_some() || found.comparison.is_some();
        let Some(look) = found.look.as_ref().filter(|_| ran) else {
            return Vec::new();
        };
        let comparisons = [&found.upper_bound, &found.comparison];
        let variants = comparisons
            .into_iter()
            .flatten()
            .flat_map(|it| &it.variants);
        let is_glibc = |change: &Candidate| change.name == GLIBC;
        Evidence {
            look,
            machine: &self.experiment.pages(),
            profile: self.results.profile.as_ref(),
            plan: self.results.plan.as_ref(),
            ran: variants.flat_map(|it| it.pages.clone()).collect(),
            fault_share: self.fault_share,
            has_glibc: self.experiment.candidates(look).iter().any(is_glibc),
        }
        .kinds()
    }

    /// What would settle an undecided comparison; the experiment adds the command.
    fn settle(&self) -> Option<Settle> {
        let found = &self.results.findings;
        let comparison = found.comparison.as_ref()?;
        if found.answer != Answer::Undecided {
            return None;
        }
        let pairs = match comparison.pairs_to_settle {
            Some(MOST_PAIRS) => return None,
            // A gain that is not yet proved against the others: until the next check.
            None => FEWEST.max(comparison.pairs + comparison.pairs.div_ceil(4)),
            Some(pairs) => pairs,
        };
        // One more round for warm-up.
        let runs = f64::from(pairs.saturating_sub(comparison.pairs) + 1)
            * comparison.variants.len() as f64;
        Some(Settle {
            pairs,
            seconds: runs * self.run_seconds?,
            command: String::new(),
        })
    }

    pub(super) fn begin(&mut self, step: Step) -> Duration {
        let now = self.experiment.executor().now();
        let allowance = step.allowance(self.within.saturating_sub(now), self.within);
        self.spending.begin(step, allowance, now);
        self.results.findings.step = step;
        self.experiment.announce(step, allowance);
        allowance
    }

    /// Sets the reason; the advice stays "do nothing" unless [`Run::apply`] changes it.
    pub(super) fn end(&mut self, reason: String) -> Next {
        self.results.findings.reason = reason;
        Next::End
    }

    /// Writes the results so far, and ends on an interrupt.
    pub(super) fn kept(&mut self) -> Result<Next> {
        self.experiment.keep(&self.results)?;
        Ok(if self.experiment.interrupted() {
            Next::End
        } else {
            Next::On
        })
    }

    pub(super) fn until(&mut self, allowance: Duration) -> Duration {
        self.experiment.executor().now() + allowance
    }

    pub(super) fn today(&self) -> Option<&Today> {
        self.results.findings.today.as_ref()
    }

    pub(super) fn note(&mut self, text: &str) {
        self.results.findings.notes.push(text.to_owned());
    }
}

/// An interrupted comparison decides nothing. Interrupted later, the verdict is kept.
fn mark_interrupted(found: &mut Findings) {
    found.complete = false;
    let step = found.step.name();
    if found.step == Step::After {
        found.reason += &format!(" (interrupted in the step \"{step}\")");
        return;
    }
    found.advice = Advice::DoNothing;
    found.permanent.clear();
    found.reason = format!("interrupted in the step \"{step}\"; what was measured so far is kept");
}
