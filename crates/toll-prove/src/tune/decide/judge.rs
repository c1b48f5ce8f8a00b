// SPDX-License-Identifier: MIT OR Apache-2.0
//! The conclusions from the comparisons, and the advice.

use std::time::Duration;

use anyhow::Result;
use toll_act::permanent::{Candidate, Permanent, in_source};
use toll_model::numbers;
use toll_model::stats::{Interval, SMALLEST_EFFECT};
use toll_observe::observation::Observation;

use super::run::{Next, Run};
use super::variants::{PLAN_AND_TEXT, TEXT};
use super::words::{changes_measured, growth, no_gain, too_much_memory, unresolved};
use crate::compare::Comparison;
use crate::compare::result::VariantResult;
use crate::ratio::with_interval;
use crate::tune::findings::Advice;

/// Maximum time for measuring tails of page faults: a thousand faults of at most 4 ms take less.
const LONGEST_TAILS: Duration = Duration::from_secs(5);

impl Run<'_> {
    pub(super) fn learn(&mut self, comparison: &Comparison) {
        if let Some(today) = &mut self.results.findings.today {
            today.learn(comparison);
        }
    }

    /// Called between the comparisons, so that it does not disturb timed runs.
    pub(super) fn learn_tails(&mut self) {
        let left = self.within.saturating_sub(self.experiment.executor().now());
        let tails = self.experiment.fault_tails(LONGEST_TAILS.min(left));
        if let Some(today) = &mut self.results.findings.today {
            today.take_tails(tails);
        }
    }

    /// The state as it is, its effect, and the effect on other settings.
    pub(super) fn as_it_is(&self) -> String {
        let planned = self.results.findings.planned_bytes;
        self.today().map_or(String::new(), |today| {
            today.answer(planned, &self.experiment.host())
        })
    }

    /// Continues if the rest of the memory may gain, or if a plan alone can be measured.
    pub(super) fn judge_backed(&mut self, upper_bound: &Comparison, look: &Observation) -> Next {
        let gain = self.today().and_then(|today| today.gain);
        let matters =
            |interval: Option<Interval>| interval.is_none_or(|it| !it.inside(SMALLEST_EFFECT));
        let rest = upper_bound
            .variant("all")
            .and_then(|variant| variant.speedup);
        if gain.is_some() {
            self.learn_tails();
        } else {
            self.note("the time limit is too short to measure the possible gain; raise --within");
        }
        let elsewhere = self.is_plan_only(look) && matters(gain);
        if elsewhere
            || self.may_other_pages_pay()
            || (matters(rest) && !self.experiment.host().is_always())
        {
            return Next::On;
        }
        let reason = self.as_it_is();
        self.end(reason)
    }

    pub(super) fn judge_upper_bound(
        &mut self,
        upper_bound: &Comparison,
        look: &Observation,
    ) -> Result<Next> {
        if self.is_backed(look) && !self.is_switched_off() {
            return Ok(self.judge_backed(upper_bound, look));
        }
        let Some(interval) = upper_bound.main() else {
            self.note("the time limit is too short to measure the possible gain; raise --within");
            return Ok(Next::On);
        };
        if interval.inside(SMALLEST_EFFECT) && self.may_other_pages_pay() {
            return Ok(Next::On);
        }
        // At `never`, huge pages come only from collapses, which is not representative of other
        // settings.
        if interval.inside(SMALLEST_EFFECT) && !self.experiment.host().is_never() {
            let reason = no_gain(upper_bound, &interval);
            return Ok(self.end(reason));
        }
        if self.is_switched_off() {
            return Ok(self.judge_changes(upper_bound, look));
        }
        Ok(Next::On)
    }

    /// Whether only pages that are in no plan can gain: everything huge was measured not to.
    pub(super) fn is_plan_useless(&self) -> bool {
        let upper_bound = self.results.findings.upper_bound.as_ref();
        let all = upper_bound.and_then(|upper_bound| upper_bound.speedup_all);
        self.may_other_pages_pay() && all.is_some_and(|all| all.inside(SMALLEST_EFFECT))
    }

    /// Ends at `never` without a plan: nothing is left to compare.
    pub(super) fn end_at_never(&mut self) -> Next {
        let collapsed = self
            .results
            .findings
            .speedup_all
            .map_or(String::new(), |all| {
                format!(
                    "; collapsing memory into huge pages, which still works, makes it {} \
                 times as fast",
                    with_interval(&all)
                )
            });
        let (today, elsewhere) = self.today().map_or(Default::default(), |today| {
            (today.text(), today.elsewhere(None, &self.experiment.host()))
        });
        self.end(format!("{today}{collapsed}{elsewhere}"))
    }

    /// Sets the advice from the plan and the changes of the comparison.
    pub(super) fn judge_changes(&mut self, comparison: &Comparison, look: &Observation) -> Next {
        let mut permanent = self.permanent(comparison, look);
        let planned = comparison.speedup;
        let best = permanent.iter().find(|p| p.measured.is_some());
        let best_plan = best_plan(comparison);
        match (
            best_plan.and_then(|variant| Some((variant, variant.speedup?))),
            best.and_then(|p| p.measured),
        ) {
            (Some((variant, speedup)), _) => {
                self.results.findings.best = Some(variant.name.clone());
                self.apply(format!(
                    "{} {} times as fast in {}{}",
                    self.what_gains(&variant.name),
                    with_interval(&speedup),
                    comparison.resource.name(),
                    growth(comparison, Some(variant))
                ));
            }
            (None, Some(change)) => {
                let plan = match planned {
                    Some(plan) => format!("; the plan alone: {}", with_interval(&plan)),
                    None => self
                        .without_plan()
                        .map_or(String::new(), |why| format!("; {why}")),
                };
                // The name is looked up: permanent changes are not named after variants.
                let variant = comparison
                    .variants
                    .iter()
                    .find(|a| a.speedup == Some(change));
                self.apply(format!(
                    "the change below makes it {} times as fast in {}{}{plan}",
                    with_interval(&change),
                    comparison.resource.name(),
                    growth(comparison, variant)
                ))
            }
            (None, None) => {
                permanent.clear();
                let dear = too_much_memory(comparison, self.experiment.allowed_growth());
                let reason = match self.is_plan_only(look) {
                    true => self.as_it_is() + &changes_measured(comparison),
                    false => dear.unwrap_or_else(|| self.not_proven(comparison)),
                };
                self.end(reason);
            }
        }
        self.results.findings.permanent = permanent;
        Next::End
    }

    /// The subject of the sentence on a gain.
    fn what_gains(&self, variant: &str) -> String {
        let planned = numbers::bytes(self.results.findings.planned_bytes.unwrap_or(0));
        match variant {
            TEXT => "program text in huge pages makes it".to_owned(),
            PLAN_AND_TEXT => {
                format!("the plan's {planned} and program text in huge pages make it")
            }
            _ => format!("the plan's {planned} make it"),
        }
    }

    /// Adds notes that describe the variants with only a short name in the table.
    pub(super) fn explain_changes(&mut self, comparison: &Comparison, look: &Observation) {
        for (change, variant) in self.measurable(look) {
            if comparison.variant(&variant.name).is_some() {
                self.note(&format!("variant {}: {}", variant.name, change.change));
            }
        }
    }

    pub(super) fn apply(&mut self, reason: String) {
        self.results.findings.advice = Advice::Apply;
        self.results.findings.reason = reason;
    }

    /// Permanent changes: measured gains first, then unmeasured ones.
    pub(super) fn permanent(&self, comparison: &Comparison, look: &Observation) -> Vec<Permanent> {
        let variant = |name: &str| comparison.variant(name);
        let measured = |name: &str| variant(name).and_then(|variant| variant.speedup);
        let refuted = |c: &Candidate| variant(c.name).is_some_and(|variant| !variant.gains());
        let mut all: Vec<Permanent> = self
            .changes(look)
            .iter()
            // A measured change without a proved gain, or with too much memory, is omitted.
            .filter(|c| !refuted(c))
            .map(|c| c.with(measured(c.name)))
            .collect();
        if let Some(plan) = &self.results.plan {
            all.extend(in_source(plan).iter().map(|candidate| candidate.with(None)));
        }
        // The highest of several medians is usually too high by chance; the lower ends are more
        // robust.
        let gain = |p: &Permanent| p.measured.map_or(0.0, |interval| interval.low);
        all.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
        all
    }

    /// The gain of everything huge, and why there is no plan for it; `None` if there is a plan or
    /// no gain.
    pub(super) fn without_plan(&self) -> Option<String> {
        let gain = self.results.findings.speedup_all;
        let gain = gain.filter(|all| all.is_gain() && self.acting_plan().is_none())?;
        let why = match &self.results.plan {
            Some(plan) => {
                let reason = plan.reason.trim_start_matches("Do nothing: ");
                format!(
                    "the plan found nothing to act on: {}",
                    reason.trim_end_matches('.')
                )
            }
            None => "there is no profile for a plan".to_owned(),
        };
        Some(format!(
            "everything huge makes it {} times as fast, but {why}",
            with_interval(&gain)
        ))
    }

    /// Returns why nothing is advised after the last comparison.
    pub(super) fn not_proven(&self, comparison: &Comparison) -> String {
        match self.without_plan() {
            Some(why) => why + &changes_measured(comparison),
            None => unresolved(comparison),
        }
    }

    /// Adds the program's own settings that no variant can measure, because they change the machine
    /// or are not on this command line. If something is advised, they are listed there.
    pub(super) fn note_unmeasurable(&mut self) {
        let found = &self.results.findings;
        let Some(look) = found
            .look
            .as_ref()
            .filter(|_| found.advice == Advice::DoNothing)
        else {
            return;
        };
        let known = self.experiment.candidates(look).into_iter();
        for change in known.filter(|change| change.variant.is_none()) {
            self.note(&format!(
                "not measured: {}; tune cannot test this itself",
                change.change
            ));
        }
    }

    /// A program that fails in each run possibly lacks input. Comparisons report this themselves.
    pub(super) fn note_status(&mut self) {
        let found = &mut self.results.findings;
        let compared = found.comparison.is_some() || found.upper_bound.is_some();
        if let Some(status) = found.status.filter(|status| *status != 0 && !compared) {
            found
                .notes
                .push(format!("the program ends with status {status} in each run"));
        }
    }
}

/// The variant under a plan with the best proved gain. Where several gain, the lower ends of their
/// intervals decide.
fn best_plan(comparison: &Comparison) -> Option<&VariantResult> {
    let names = ["plan", PLAN_AND_TEXT, TEXT];
    let found = names.iter().filter_map(|name| comparison.variant(name));
    let low = |variant: &VariantResult| variant.speedup.map_or(0.0, |interval| interval.low);
    found
        .filter(|variant| variant.gains())
        .max_by(|a, b| low(a).total_cmp(&low(b)))
}
