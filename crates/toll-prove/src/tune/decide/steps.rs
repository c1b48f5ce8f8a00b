// SPDX-License-Identifier: MIT OR Apache-2.0
//! The five steps.

use std::time::Duration;

use anyhow::Result;
use toll_act::error::UserError;
use toll_model::cost::CostTable;
use toll_model::estimate::{self, estimate};
use toll_model::numbers;
use toll_model::plan::Estimate;

use super::run::{Next, ROUNDS_WORTH_IT, Run};
use super::words::{dearer_when_cold, memory};
use crate::tune::budget::Step;
use crate::tune::experiment::Under;
use crate::tune::kinds::hot_text;
use crate::tune::today::{AtMadvise, Today};

/// Shorter recordings are not useful.
const SHORTEST_RECORDING: Duration = Duration::from_secs(2);

impl Run<'_> {
    /// Runs the steps until one of them ends the tune.
    pub(super) fn steps(&mut self) -> Result<()> {
        if let Next::End = self.look()? {
            return Ok(());
        }
        if let Next::End = self.upper_bound()? {
            return Ok(());
        }
        if let Next::End = self.profile()? {
            return Ok(());
        }
        if let Next::End = self.compare()? {
            return Ok(());
        }
        self.after()
    }

    /// 1. Quick look.
    fn look(&mut self) -> Result<Next> {
        let allowance = self.begin(Step::Look);
        let until = self.until(allowance);
        let (look, status) = self.experiment.look(until)?;
        self.results.findings.look = Some(look.clone());
        self.results.findings.today = Some(Today::new(&look, &self.experiment.host()));
        self.results.findings.status = status;
        self.results.findings.notes.extend(look.hints.text(false));
        if let Next::End = self.kept()? {
            return Ok(Next::End);
        }
        let reach = self.experiment.reach();
        let is_small = look.windows > 0 && look.working_set < reach;
        // The first level of the instruction TLB is much smaller.
        let is_hot = hot_text(&look, &self.experiment.pages()).is_ok();
        if status.is_some() && is_small && !is_hot {
            return Ok(self.end(format!(
                "the program touches at most {} within a second, within the reach of this CPU's TLB \
                 with 4 KiB pages ({}): no translation overhead to save",
                numbers::bytes(look.working_set),
                numbers::bytes(reach)
            )));
        }
        Ok(Next::On)
    }

    /// 2. Upper bound: the maximum gain.
    fn upper_bound(&mut self) -> Result<Next> {
        let look = self.results.findings.look.clone().unwrap_or_default();
        let Some(variants) = self.upper_bound_variants(&look)? else {
            let today = self.today().map_or(String::new(), Today::text);
            return Ok(self.end(format!("{today}; change that first")));
        };
        let allowance = self.begin(Step::UpperBound);
        let until = self.until(allowance);
        let upper_bound = self.run_variants(&variants, until, None)?;
        self.results.upper_bound(upper_bound.clone());
        self.learn(&upper_bound);
        self.explain_changes(&upper_bound, &look);
        if let Next::End = self.kept()? {
            return Ok(Next::End);
        }
        self.judge_upper_bound(&upper_bound, &look)
    }

    /// 3. and 4. Profile and plan. A program that cannot be recorded can still be measured.
    fn profile(&mut self) -> Result<Next> {
        if self.is_plan_useless() {
            return Ok(Next::On);
        }
        let allowance = self.begin(Step::Costs);
        let costs = match self.experiment.costs(allowance) {
            Err(error) if is_interrupt(&error) => return Ok(Next::End),
            costs => costs?,
        };
        self.fault_share = self.native_fault_share(&costs);
        let allowance = self.begin(Step::Profile);
        let look = self.results.findings.look.clone().unwrap_or_default();
        let plan_only = self.is_plan_only(&look);
        let under = match plan_only {
            true => Under::Never,
            false => Under::Nothing,
        };
        match self.experiment.record(allowance, self.native(), under) {
            Ok(mut profile) => {
                let measured = self.cpu_ns().map(|ns| ns as u64);
                profile.native_cpu_ns = profile.native_cpu_ns.or(measured);
                self.results.profile = Some(profile);
            }
            Err(error) if is_interrupt(&error) => return Ok(Next::End),
            Err(error) => self.note(&format!("no profile, therefore no plan: {error:#}")),
        }
        if let Next::End = self.kept()? {
            return Ok(Next::End);
        }
        self.begin(Step::Plan);
        let upper_bound = self.upper_bound_estimate();
        let repeats = upper_bound.map(|it| self.repeats(it));
        if let Some(profile) = &self.results.profile {
            let options = estimate::Options {
                baseline_ns: self.cpu_ns(),
                upper_bound,
                repeats,
                is_proved_next: true,
                thp_always: self.experiment.host().is_always() && !plan_only,
                ..self.experiment.estimate_options()
            };
            let plan = estimate(profile, &costs, options);
            if let Some(note) = dearer_when_cold(&plan, &costs).filter(|_| options.warm) {
                self.results.findings.notes.push(note);
            }
            self.results.findings.planned_bytes = Some(plan.huge().map(|r| r.length).sum());
            self.results.findings.memory = memory(&plan);
            self.results.plan = Some(plan);
        }
        self.estimate_at_madvise(&costs);
        self.kept()
    }

    /// At `never`: estimates the gain of a plan on a machine at `madvise`. The upper bound does not
    /// apply to that: it is for collapsed memory.
    fn estimate_at_madvise(&mut self, costs: &CostTable) {
        let (Some(profile), true) = (&self.results.profile, self.experiment.host().is_never())
        else {
            return;
        };
        let options = estimate::Options {
            baseline_ns: self.cpu_ns(),
            is_proved_next: true,
            ..self.experiment.estimate_options()
        };
        let plan = estimate(profile, costs, options);
        let at_madvise = (!plan.does_nothing()).then(|| AtMadvise {
            planned_bytes: plan.huge().map(|r| r.length).sum(),
            speedup: plan.predicted_speedup,
        });
        if let Some(today) = &mut self.results.findings.today {
            today.at_madvise = at_madvise;
        }
    }

    /// Half of the 80 % interval that the comparison will have, on a logarithmic scale: that of the
    /// upper bound, for the number of rounds that fit.
    fn repeats(&mut self, upper_bound: Estimate) -> f64 {
        let half = (upper_bound.high / upper_bound.low).ln() / 2.0;
        let pairs = self
            .results
            .findings
            .upper_bound
            .as_ref()
            .map_or(0, |it| it.pairs);
        let run = self.run_seconds.or(self.native()).unwrap_or(0.0);
        let left = self.within.saturating_sub(self.experiment.executor().now());
        let seconds = Step::Compare.allowance(left, self.within).as_secs_f64();
        let rounds = |variants: f64| seconds / (run * variants).max(1e-9);
        // As in [`Run::variants`]: more variants while enough rounds of them fit.
        let most = [4.0, 3.0].into_iter().map(rounds);
        let fitting = most
            .into_iter()
            .find(|it| *it >= f64::from(ROUNDS_WORTH_IT));
        let rounds = fitting.unwrap_or_else(|| rounds(2.0)).max(1.0);
        half * (f64::from(pairs) / rounds).sqrt()
    }

    /// 5. The comparison that gives the verdict.
    fn compare(&mut self) -> Result<Next> {
        let nothing = self.acting_plan().is_none() && !self.may_other_pages_pay();
        if self.experiment.host().is_never() && nothing {
            return Ok(self.end_at_never());
        }
        let look = self.results.findings.look.clone().unwrap_or_default();
        let allowance = self.begin(Step::Compare);
        let variants = self.variants(&look, allowance)?;
        let until = self.until(allowance);
        let plan = self.acting_plan();
        // The prediction is for a program without huge pages.
        let plan_only = self.is_plan_only(&look);
        let predicting = plan.as_ref().filter(|_| !plan_only);
        let comparison = self.run_variants(&variants, until, predicting)?;
        self.results.compared(comparison.clone());
        self.learn(&comparison);
        self.explain_changes(&comparison, &look);
        let next = self.judge_changes(&comparison, &look);
        if let Next::End = self.kept()? {
            return Ok(Next::End);
        }
        Ok(match plan {
            Some(_) if !plan_only => Next::On,
            _ => next,
        })
    }

    /// The second profile, if the pairs have left time for it. While more pairs could change the
    /// answer, they take precedence.
    fn after(&mut self) -> Result<()> {
        let reason = self.results.findings.reason.clone();
        let now = self.experiment.executor().now();
        let left = Step::After.allowance(self.within.saturating_sub(now), self.within);
        let fits = !self.results.findings.time_limit_reached && left >= SHORTEST_RECORDING;
        let Some(plan) = self.acting_plan().filter(|_| fits) else {
            return Ok(());
        };
        let allowance = self.begin(Step::After);
        match self
            .experiment
            .record(allowance, self.native(), Under::Plan(&plan))
        {
            Ok(profile) => self.results.after = Some(profile),
            Err(error) if is_interrupt(&error) => {}
            Err(error) => self.note(&format!("no second profile: {error:#}")),
        }
        self.results.findings.reason = reason;
        self.experiment.keep(&self.results)
    }
}

fn is_interrupt(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(UserError::Interrupted))
}
