// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the comparisons say, and what is advised.

use anyhow::Result;
use toll_model::stats::{Interval, SMALLEST_EFFECT};

use super::words::{changes_measured, growth, no_gain, too_much_memory, unresolved, with_interval};
use super::{LONGEST_TAILS, Next, Run};
use crate::compare::Comparison;
use crate::compare::observe::Look;
use crate::compare::result::ArmResult;
use crate::permanent::{Candidate, Permanent, in_source};
use crate::tune::findings::Advice;
use crate::units;

impl Run<'_> {
    pub(super) fn learn(&mut self, comparison: &Comparison) {
        if let Some(today) = &mut self.results.findings.today {
            today.learn(comparison);
        }
    }

    /// Between the comparisons, so that no timed run shares the machine with it.
    pub(super) fn learn_tails(&mut self) {
        let left = self.within.saturating_sub(self.lab.executor().now());
        let tails = self.lab.fault_tails(LONGEST_TAILS.min(left));
        if let Some(today) = &mut self.results.findings.today {
            today.take_tails(tails);
        }
    }

    /// What the program has as it is, what that brings, and what would be elsewhere.
    pub(super) fn as_it_is(&self) -> String {
        let planned = self.results.findings.planned_bytes;
        self.today().map_or(String::new(), |today| {
            today.answer(planned, &self.lab.host())
        })
    }

    /// Goes on where the rest of the memory may gain, or where a plan alone can be measured.
    pub(super) fn judge_backed(&mut self, ceiling: &Comparison, look: &Look) -> Next {
        let gain = self.today().and_then(|today| today.gain);
        let matters =
            |interval: Option<Interval>| interval.is_none_or(|it| !it.inside(SMALLEST_EFFECT));
        let rest = ceiling.arm("all").and_then(|arm| arm.speedup);
        if gain.is_some() {
            self.learn_tails();
        } else {
            self.note("the program takes too long for this time limit to measure what is to gain; raise --within");
        }
        let elsewhere = self.is_plan_only(look) && matters(gain);
        if elsewhere || (matters(rest) && !self.lab.host().is_always()) {
            return Next::On;
        }
        let reason = self.as_it_is();
        self.end(reason)
    }

    pub(super) fn judge_ceiling(&mut self, ceiling: &Comparison, look: &Look) -> Result<Next> {
        if self.is_backed(look) && !self.is_switched_off() {
            return Ok(self.judge_backed(ceiling, look));
        }
        let Some(interval) = ceiling.main() else {
            self.note("the program takes too long for this time limit to measure what is to gain; raise --within");
            return Ok(Next::On);
        };
        // At `never` huge pages come by collapses alone, which says little about other settings.
        if interval.inside(SMALLEST_EFFECT) && !self.lab.host().is_never() {
            let reason = no_gain(ceiling, &interval);
            return Ok(self.end(reason));
        }
        if self.is_switched_off() {
            return Ok(self.judge_changes(ceiling, look));
        }
        Ok(Next::On)
    }

    /// Ends at `never` without a plan: nothing is left to compare.
    pub(super) fn end_at_never(&mut self) -> Next {
        let collapsed = self.results.findings.speedup_all.map_or(String::new(), |all| {
            format!(
                "; memory that is collapsed into huge pages, which works all the same, makes it {} \
                 times as fast",
                with_interval(&all)
            )
        });
        let (today, elsewhere) = self.today().map_or(Default::default(), |today| {
            (today.text(), today.elsewhere(None, &self.lab.host()))
        });
        self.end(format!("{today}{collapsed}{elsewhere}"))
    }

    /// Says what to do from the comparison's plan and changes.
    pub(super) fn judge_changes(&mut self, comparison: &Comparison, look: &Look) -> Next {
        let mut permanent = self.permanent(comparison, look);
        let planned = comparison.speedup;
        let best = permanent.iter().find(|p| p.measured.is_some());
        let plan_gains = comparison.arm("plan").is_some_and(ArmResult::gains);
        match (
            planned.filter(|_| plan_gains),
            best.and_then(|p| p.measured),
        ) {
            (Some(plan), _) => self.apply(format!(
                "the plan's {} make it {} times as fast in {}{}",
                units::bytes(self.results.findings.planned_bytes.unwrap_or(0)),
                with_interval(&plan),
                comparison.resource.name(),
                growth(comparison, comparison.arm("plan"))
            )),
            (None, Some(change)) => {
                let plan = match planned {
                    Some(plan) => format!("; the plan alone: {}", with_interval(&plan)),
                    None => self
                        .without_plan()
                        .map_or(String::new(), |why| format!("; {why}")),
                };
                // The arm is known by its number: permanent changes have no arm's name.
                let arm = comparison.arms.iter().find(|a| a.speedup == Some(change));
                self.apply(format!(
                    "the change below makes it {} times as fast in {}{}{plan}",
                    with_interval(&change),
                    comparison.resource.name(),
                    growth(comparison, arm)
                ))
            }
            (None, None) => {
                permanent.clear();
                let dear = too_much_memory(comparison, self.lab.allowed_growth());
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

    /// Says what the variants change that have only a short name in the table.
    pub(super) fn explain_changes(&mut self, comparison: &Comparison, look: &Look) {
        for (change, arm) in self.measurable(look) {
            if comparison.arm(&arm.name).is_some() {
                self.note(&format!("variant {}: {}", arm.name, change.change));
            }
        }
    }

    pub(super) fn apply(&mut self, reason: String) {
        self.results.findings.advice = Advice::Apply;
        self.results.findings.reason = reason;
    }

    /// What stays without tollfree: measured gains first, then what was not measured.
    pub(super) fn permanent(&self, comparison: &Comparison, look: &Look) -> Vec<Permanent> {
        let arm = |name: &str| comparison.arm(name);
        let measured = |name: &str| arm(name).and_then(|arm| arm.speedup);
        let refuted = |c: &Candidate| arm(c.name).is_some_and(|arm| !arm.gains());
        let mut all: Vec<Permanent> = self
            .lab
            .candidates(look)
            .iter()
            // A change that was measured, and is not proved to gain or takes too much memory, is no
            // change to make.
            .filter(|c| !refuted(c))
            .map(|c| c.with(measured(c.name)))
            .collect();
        if let Some(plan) = &self.results.plan {
            all.extend(in_source(plan).iter().map(|candidate| candidate.with(None)));
        }
        // The highest of several medians is too high, mostly by luck; the low ends bear it better.
        let gain = |p: &Permanent| p.measured.map_or(0.0, |interval| interval.low);
        all.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
        all
    }

    /// What everything huge gains, and why no plan takes part in that; `None` if there
    /// is a plan or no gain.
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
            None => "there is no profile to plan from".to_owned(),
        };
        Some(format!(
            "everything huge makes it {} times as fast, but {why}",
            with_interval(&gain)
        ))
    }

    /// Why nothing is advised after the last comparison.
    pub(super) fn not_proven(&self, comparison: &Comparison) -> String {
        match self.without_plan() {
            Some(why) => why + &changes_measured(comparison),
            None => unresolved(comparison),
        }
    }

    /// The program's own switches that no arm can measure, since they change the machine or are not on
    /// this command line. Where something is advised, they are listed with that.
    pub(super) fn note_unmeasurable(&mut self) {
        let found = &self.results.findings;
        let Some(look) = found
            .look
            .as_ref()
            .filter(|_| found.advice == Advice::DoNothing)
        else {
            return;
        };
        let known = self.lab.candidates(look).into_iter();
        for change in known.filter(|change| change.arm.is_none()) {
            self.note(&format!(
                "not measured: {}; tune cannot try that by itself",
                change.change
            ));
        }
    }

    /// A program that fails in each run was perhaps not given what it needs. Comparisons
    /// say it themselves.
    pub(super) fn note_status(&mut self) {
        let found = &mut self.results.findings;
        let compared = found.comparison.is_some() || found.ceiling.is_some();
        if let Some(status) = found.status.filter(|status| *status != 0 && !compared) {
            found
                .notes
                .push(format!("the program ends with status {status} in each run"));
        }
    }
}
