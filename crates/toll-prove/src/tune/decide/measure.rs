// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs variants, and continues the runs of an earlier tune.

use std::time::Duration;

use anyhow::Result;
use toll_act::error::UserError;
use toll_model::plan::Plan;

use super::run::Run;
use crate::compare::outputs::OutputCheck;
use crate::compare::schedule::Rules;
use crate::compare::{Comparison, Sample, Variant, go_on};
use crate::tune::budget::Step;
use crate::tune::findings::Advice;

impl Run<'_> {
    /// Continues the last comparison after its stored runs.
    pub(super) fn go_on(&mut self) -> Result<()> {
        let unfit = |why: String| UserError::UnfitFile(format!("--resume: {why}"));
        let Some(stored) = self.results.findings.comparison.clone() else {
            return Err(unfit("there is no comparison to continue".to_owned()).into());
        };
        let look = self.results.findings.look.clone().unwrap_or_default();
        let mut variants = Vec::new();
        for variant in &stored.variants {
            let again = self.variant_again(&variant.name, &look)?;
            variants.push(again.ok_or_else(|| {
                unfit(format!("the variant {} can no longer be run", variant.name))
            })?);
        }
        let within = self.within;
        let found = &mut self.results.findings;
        (found.step, found.complete, found.advice) = (Step::Compare, true, Advice::DoNothing);
        self.spending
            .begin(Step::Compare, within, self.experiment.executor().now());
        self.experiment.announce(Step::Compare, within);
        let runs = stored
            .variants
            .into_iter()
            .map(|variant| variant.runs)
            .collect();
        let mut comparison =
            self.run_variants_after(&variants, within, self.acting_plan().as_ref(), runs)?;
        comparison.warmed_bytes = comparison.warmed_bytes.max(stored.warmed_bytes);
        self.results.compared(comparison.clone());
        self.learn(&comparison);
        self.judge_changes(&comparison, &look);
        self.experiment.keep(&self.results)
    }

    pub(super) fn run_variants(
        &mut self,
        variants: &[Variant],
        until: Duration,
        plan: Option<&Plan>,
    ) -> Result<Comparison> {
        self.run_variants_after(variants, until, plan, vec![Vec::new(); variants.len()])
    }

    /// Runs variants; `stored` has their runs of an earlier tune.
    fn run_variants_after(
        &mut self,
        variants: &[Variant],
        until: Duration,
        plan: Option<&Plan>,
        stored: Vec<Vec<Sample>>,
    ) -> Result<Comparison> {
        let rules = Rules {
            pairs: None,
            deadline: until.min(self.within),
            each: false,
        };
        let program = self.results.findings.program.clone();
        let begun = self.experiment.executor().now();
        let before: usize = stored.iter().map(Vec::len).sum();
        let executor = self.experiment.executor();
        let mut comparison = go_on(executor, &program, variants, &rules, None, stored)?;
        let spent = self.experiment.executor().now().saturating_sub(begun);
        let after: usize = comparison
            .variants
            .iter()
            .map(|variant| variant.runs.len())
            .sum();
        let runs = after.saturating_sub(before);
        self.run_seconds = Some(spent.as_secs_f64() / runs.max(1) as f64);
        comparison.predicted_speedup = plan.map(|plan| plan.predicted_speedup);
        let allowed = self.experiment.allowed_growth();
        comparison.allow_growth(allowed);
        self.results.findings.allowed_growth_percent = Some(allowed);
        self.check_output(&comparison)?;
        Ok(comparison)
    }

    fn check_output(&mut self, comparison: &Comparison) -> Result<()> {
        if !self.experiment.any_output() {
            if let OutputCheck::DiffersBetweenVariants { .. } = comparison.output {
                self.experiment.keep(&self.results)?;
            }
        }
        comparison.check_output(self.experiment.any_output())
    }
}
