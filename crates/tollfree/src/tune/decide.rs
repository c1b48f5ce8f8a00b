// SPDX-License-Identifier: MIT OR Apache-2.0
//! The five steps and their early ends. Access to the machine is behind [`Experiment`], so that the tests
//! control all measurements.
//!
//! | file | holds |
//! |---|---|
//! | this one | the steps, and their use of time |
//! | [`variants`] | the variants to run, and their references |
//! | [`judge`] | the conclusions from the comparisons, and the advice |
//! | [`words`] | numbers and reasons as text |

mod judge;
#[cfg(test)]
mod tests;
mod variants;
mod words;

use std::time::Duration;

use anyhow::Result;
use toll_act::error::UserError;
use toll_act::permanent::Candidate;
use toll_linux::calibrate::Tails;
use toll_model::cost::CostTable;
use toll_model::estimate::{self, estimate};
use toll_model::numbers;
use toll_model::plan::{Estimate, Plan};
use toll_model::profile::Profile;
use toll_model::stats::MOST_PAIRS;
use toll_observe::observation::Observation;

use super::budget::{Spending, Step};
use super::findings::{Advice, Answer, Findings, Results, Settle};
use super::today::{AtMadvise, Host, Today};
use crate::compare::outputs::OutputCheck;
use crate::compare::schedule::{Executor, FEWEST, Rules};
use crate::compare::{Comparison, Sample, Variant, go_on};
pub use words::with_interval;
use words::{dearer_when_cold, memory};

/// Maximum time for measuring tails of page faults: a thousand faults of at most 4 ms take less.
const LONGEST_TAILS: Duration = Duration::from_secs(5);
/// Shorter recordings are not useful.
const SHORTEST_RECORDING: Duration = Duration::from_secs(2);
/// A variant of the last comparison is omitted if it leaves time for fewer rounds than this.
const ROUNDS_WORTH_IT: u32 = FEWEST;

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
    /// Writes the plan to a file for the variants.
    fn plan_file(&mut self, plan: &Plan) -> Result<std::path::PathBuf>;
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

/// Runs the steps until one of them ends the tune. The results are complete except after an error.
pub fn tune(experiment: &mut dyn Experiment, program: &str, within: Duration) -> Result<Results> {
    let mut run = Run {
        experiment,
        within,
        results: Results::new(program, within.as_secs_f64()),
        spending: Spending::default(),
        run_seconds: None,
    };
    run.steps()?;
    Ok(run.finish())
}

/// Continues the last comparison of an earlier tune. Its `results` are complete except for what
/// more runs of the same variants can show.
///
/// # Errors
/// [`UserError::UnfitFile`] if there is no such comparison, or if one of its variants can no longer
/// be run.
pub fn resume(
    experiment: &mut dyn Experiment,
    results: Results,
    within: Duration,
) -> Result<Results> {
    let earlier = results.findings.seconds;
    let allowed = results.findings.within_seconds;
    let mut run = Run {
        experiment,
        within,
        spending: Spending::after(results.findings.spent.clone()),
        results,
        run_seconds: None,
    };
    run.go_on()?;
    let mut results = run.finish();
    results.findings.seconds += earlier;
    results.findings.within_seconds = allowed + within.as_secs_f64();
    Ok(results)
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

struct Run<'a> {
    experiment: &'a mut dyn Experiment,
    within: Duration,
    results: Results,
    spending: Spending,
    /// Seconds of one run in the last comparison, including the time before and after it.
    run_seconds: Option<f64>,
}

/// Whether to continue after a step.
enum Next {
    On,
    End,
}

impl Run<'_> {
    fn steps(&mut self) -> Result<()> {
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

    /// Completes the results at the end, whichever step that was.
    fn finish(mut self) -> Results {
        self.note_status();
        self.note_unmeasurable();
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

    /// What would settle an undecided comparison; the lab knows its command.
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

    /// Continues the last comparison after its stored runs.
    fn go_on(&mut self) -> Result<()> {
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

    fn begin(&mut self, step: Step) -> Duration {
        let now = self.experiment.executor().now();
        let allowance = step.allowance(self.within.saturating_sub(now), self.within);
        self.spending.begin(step, allowance, now);
        self.results.findings.step = step;
        self.experiment.announce(step, allowance);
        allowance
    }

    /// Sets the reason; the advice stays "do nothing" unless [`Run::apply`] changes it.
    fn end(&mut self, reason: String) -> Next {
        self.results.findings.reason = reason;
        Next::End
    }

    /// Writes the results so far, and ends on an interrupt.
    fn kept(&mut self) -> Result<Next> {
        self.experiment.keep(&self.results)?;
        Ok(if self.experiment.interrupted() {
            Next::End
        } else {
            Next::On
        })
    }

    fn until(&mut self, allowance: Duration) -> Duration {
        self.experiment.executor().now() + allowance
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
        if status.is_some() && look.windows > 0 && look.working_set < reach {
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
        let Some(variants) = self.upper_bound_variants(&look) else {
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

    fn today(&self) -> Option<&Today> {
        self.results.findings.today.as_ref()
    }

    /// 3. and 4. Profile and plan. A program that cannot be recorded can still be measured.
    fn profile(&mut self) -> Result<Next> {
        let allowance = self.begin(Step::Costs);
        let costs = match self.experiment.costs(allowance) {
            Err(error) if is_interrupt(&error) => return Ok(Next::End),
            costs => costs?,
        };
        let allowance = self.begin(Step::Profile);
        let look = self.results.findings.look.clone().unwrap_or_default();
        let plan_only = self.is_plan_only(&look);
        let under = match plan_only {
            true => Under::Never,
            false => Under::Nothing,
        };
        match self.experiment.record(allowance, self.native(), under) {
            Ok(profile) => self.results.profile = Some(profile),
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
        if self.experiment.host().is_never() && self.acting_plan().is_none() {
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

    fn run_variants(
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
        crate::cmd::compare::check_output(comparison, self.experiment.any_output())
    }

    fn note(&mut self, text: &str) {
        self.results.findings.notes.push(text.to_owned());
    }
}

fn is_interrupt(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(UserError::Interrupted))
}
