// SPDX-License-Identifier: MIT OR Apache-2.0
//! The five steps and their early ends. Everything that touches the machine is
//! behind [`Lab`], so that the tests decide what is measured.
//!
//! | file | holds |
//! |---|---|
//! | this one | the steps, and what they do with the time |
//! | [`arms`] | which arms are run, and what they are compared with |
//! | [`judge`] | what the comparisons say, and what is advised |
//! | [`words`] | numbers and reasons in words |

mod arms;
mod judge;
#[cfg(test)]
mod tests;
mod words;

use std::time::Duration;

use anyhow::Result;
use toll_linux::calibrate::Tails;
use toll_model::cost::CostTable;
use toll_model::plan::{Estimate, Plan};
use toll_model::price::{self, price};
use toll_model::profile::Profile;
use toll_model::stats::MOST_PAIRS;

use super::budget::{Spending, Step};
use super::findings::{Advice, Answer, Findings, Results, Settle};
use super::today::{AtMadvise, Host, Today};
use crate::compare::observe::Look;
use crate::compare::outputs::OutputCheck;
use crate::compare::schedule::{Executor, FEWEST, Rules};
use crate::compare::{Arm, Comparison, Sample, go_on};
use crate::error::UserError;
use crate::permanent::Candidate;
use crate::units;
pub use words::with_interval;
use words::{dearer_when_cold, memory};

/// Time for the tails of page faults at most: a thousand faults of at most 4 ms take less.
const LONGEST_TAILS: Duration = Duration::from_secs(5);
/// A recording shorter than this shows nothing.
const SHORTEST_RECORDING: Duration = Duration::from_secs(2);
/// An arm of the last comparison is left out if fewer rounds than this would fit with it.
const ROUNDS_WORTH_IT: u32 = FEWEST;
/// From this share of huge memory on, the program counts as huge already.
const ALREADY_HUGE: f64 = 0.5;

/// Everything that tune does to the machine.
pub trait Lab {
    /// Runs arms; its clock is tune's.
    fn executor(&mut self) -> &mut dyn Executor;
    /// Runs the program once as it is and watches; with its status if it ended within the time.
    fn look(&mut self, until: Duration) -> Result<(Look, Option<i32>)>;
    /// Bytes that this CPU's second-level TLB reaches with small pages.
    fn reach(&self) -> u64;
    /// Changes that fit the program.
    fn candidates(&self, look: &Look) -> Vec<Candidate>;
    /// This machine's prices, measured within the time if they are not known.
    fn costs(&mut self, within: Duration) -> Result<CostTable>;
    /// Records a profile; `native` is the time of a run without the recorder, in seconds.
    fn record(&mut self, limit: Duration, native: Option<f64>, under: Under<'_>)
    -> Result<Profile>;
    /// What the machine allows a program.
    fn host(&self) -> Host;
    /// Writes the plan where arms find it.
    fn plan_file(&mut self, plan: &Plan) -> Result<std::path::PathBuf>;
    /// What the machine is like, for the prices.
    fn price_options(&self) -> price::Options;
    /// Told at the beginning of each step.
    fn announce(&mut self, step: Step, allowance: Duration);
    /// Writes what is there so far; a crash or Ctrl-C later loses nothing of it.
    fn keep(&mut self, results: &Results) -> Result<()>;
    fn interrupted(&self) -> bool;
    /// Whether an output that differs between the arms is accepted.
    fn any_output(&self) -> bool;
    /// How much resident memory a gain may cost, percent of the program's as it is.
    fn allowed_growth(&self) -> f64;
    /// How long this machine's slowest page faults take, measured within the time.
    fn fault_tails(&mut self, within: Duration) -> Tails;
}

/// How a program is recorded.
#[derive(Debug, Clone, Copy)]
pub enum Under<'a> {
    /// As it is.
    Nothing,
    /// Without any huge page.
    Never,
    Plan(&'a Plan),
}

/// Runs the steps until one of them ends it. The results are complete in any case but an error.
pub fn tune(lab: &mut dyn Lab, program: &str, within: Duration) -> Result<Results> {
    let mut run = Run {
        lab,
        within,
        results: Results::new(program, within.as_secs_f64()),
        spending: Spending::default(),
        run_seconds: None,
    };
    run.steps()?;
    Ok(run.finish())
}

/// Goes on with the last comparison of an earlier tune, whose `results` are complete but for what
/// more runs of the same arms can tell.
///
/// # Errors
/// [`UserError::UnfitFile`] if there is no such comparison, or if an arm of it cannot be run any more.
pub fn resume(lab: &mut dyn Lab, results: Results, within: Duration) -> Result<Results> {
    let earlier = results.findings.seconds;
    let allowed = results.findings.within_seconds;
    let mut run = Run {
        lab,
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

/// An interrupted comparison decides nothing; after it, the verdict stands.
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
    lab: &'a mut dyn Lab,
    within: Duration,
    results: Results,
    spending: Spending,
    /// Seconds of one run in the last comparison, with all that goes before and after it.
    run_seconds: Option<f64>,
}

/// Whether to go on after a step.
enum Next {
    On,
    End,
}

impl Run<'_> {
    fn steps(&mut self) -> Result<()> {
        if let Next::End = self.look()? {
            return Ok(());
        }
        if let Next::End = self.ceiling()? {
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

    /// What is said at the end, whichever step that was.
    fn finish(mut self) -> Results {
        self.note_status();
        self.note_unmeasurable();
        if self.lab.interrupted() {
            mark_interrupted(&mut self.results.findings);
        }
        let now = self.lab.executor().now();
        self.results.findings.seconds = now.as_secs_f64();
        self.results.findings.spent = std::mem::take(&mut self.spending).end(now);
        self.results.findings.conclude();
        self.results.findings.settle = self.settle();
        self.results
    }

    /// What would settle an undecided comparison; its command is known to the lab.
    fn settle(&self) -> Option<Settle> {
        let found = &self.results.findings;
        let comparison = found.comparison.as_ref()?;
        if found.answer != Answer::Undecided {
            return None;
        }
        let pairs = match comparison.pairs_to_settle {
            Some(MOST_PAIRS) => return None,
            // A gain that is not proved against the others yet: the next look.
            None => FEWEST.max(comparison.pairs + comparison.pairs.div_ceil(4)),
            Some(pairs) => pairs,
        };
        // One more round warms up.
        let runs =
            f64::from(pairs.saturating_sub(comparison.pairs) + 1) * comparison.arms.len() as f64;
        Some(Settle {
            pairs,
            seconds: runs * self.run_seconds?,
            command: String::new(),
        })
    }

    /// The last comparison again, after the runs that it has.
    fn go_on(&mut self) -> Result<()> {
        let unfit = |why: String| UserError::UnfitFile(format!("--resume: {why}"));
        let Some(stored) = self.results.findings.comparison.clone() else {
            return Err(unfit("there is no comparison to go on with".to_owned()).into());
        };
        let look = self.results.findings.look.clone().unwrap_or_default();
        let mut arms = Vec::new();
        for arm in &stored.arms {
            let again = self.arm_again(&arm.name, &look)?;
            arms.push(
                again
                    .ok_or_else(|| unfit(format!("the arm {} cannot be run any more", arm.name)))?,
            );
        }
        let within = self.within;
        let found = &mut self.results.findings;
        (found.step, found.complete, found.advice) = (Step::Compare, true, Advice::DoNothing);
        self.spending
            .begin(Step::Compare, within, self.lab.executor().now());
        self.lab.announce(Step::Compare, within);
        let runs = stored.arms.into_iter().map(|arm| arm.runs).collect();
        let mut comparison =
            self.run_arms_after(&arms, within, self.acting_plan().as_ref(), runs)?;
        comparison.warmed_bytes = comparison.warmed_bytes.max(stored.warmed_bytes);
        self.results.compared(comparison.clone());
        self.learn(&comparison);
        self.judge_changes(&comparison, &look);
        self.lab.keep(&self.results)
    }

    fn begin(&mut self, step: Step) -> Duration {
        let now = self.lab.executor().now();
        let allowance = step.allowance(self.within.saturating_sub(now), self.within);
        self.spending.begin(step, allowance, now);
        self.results.findings.step = step;
        self.lab.announce(step, allowance);
        allowance
    }

    /// Sets the reason; the advice stays "do nothing" unless [`Run::apply`] says otherwise.
    fn end(&mut self, reason: String) -> Next {
        self.results.findings.reason = reason;
        Next::End
    }

    /// Writes what is there, and ends if the user wants that.
    fn kept(&mut self) -> Result<Next> {
        self.lab.keep(&self.results)?;
        Ok(if self.lab.interrupted() {
            Next::End
        } else {
            Next::On
        })
    }

    fn until(&mut self, allowance: Duration) -> Duration {
        self.lab.executor().now() + allowance
    }

    /// 1. Quick look.
    fn look(&mut self) -> Result<Next> {
        let allowance = self.begin(Step::Look);
        let until = self.until(allowance);
        let (look, status) = self.lab.look(until)?;
        self.results.findings.look = Some(look.clone());
        self.results.findings.today = Some(Today::new(&look, &self.lab.host()));
        self.results.findings.status = status;
        self.results.findings.notes.extend(look.hints.text(false));
        if let Next::End = self.kept()? {
            return Ok(Next::End);
        }
        let reach = self.lab.reach();
        if status.is_some() && look.windows > 0 && look.working_set < reach {
            return Ok(self.end(format!(
                "the program touches at most {} within a second, which this CPU's TLB reaches ({}) \
                 with small pages: there is no toll to save",
                units::bytes(look.working_set),
                units::bytes(reach)
            )));
        }
        Ok(Next::On)
    }

    /// 2. Ceiling: what is there to gain at all?
    fn ceiling(&mut self) -> Result<Next> {
        let look = self.results.findings.look.clone().unwrap_or_default();
        let Some(arms) = self.ceiling_arms(&look) else {
            let today = self.today().map_or(String::new(), Today::text);
            return Ok(self.end(format!("{today}; that has to be changed there first")));
        };
        let allowance = self.begin(Step::Ceiling);
        let until = self.until(allowance);
        let ceiling = self.run_arms(&arms, until, None)?;
        self.results.ceiling(ceiling.clone());
        self.learn(&ceiling);
        self.explain_changes(&ceiling, &look);
        if let Next::End = self.kept()? {
            return Ok(Next::End);
        }
        self.judge_ceiling(&ceiling, &look)
    }

    fn today(&self) -> Option<&Today> {
        self.results.findings.today.as_ref()
    }

    /// 3. and 4. Profile and plan. A program that cannot be recorded can still be measured.
    fn profile(&mut self) -> Result<Next> {
        let allowance = self.begin(Step::Costs);
        let costs = match self.lab.costs(allowance) {
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
        match self.lab.record(allowance, self.native(), under) {
            Ok(profile) => self.results.profile = Some(profile),
            Err(error) if is_interrupt(&error) => return Ok(Next::End),
            Err(error) => self.note(&format!("no profile, and so no plan: {error:#}")),
        }
        if let Next::End = self.kept()? {
            return Ok(Next::End);
        }
        self.begin(Step::Plan);
        let ceiling = self.ceiling_estimate();
        let repeats = ceiling.map(|it| self.repeats(it));
        if let Some(profile) = &self.results.profile {
            let options = price::Options {
                baseline_ns: self.cpu_ns(),
                ceiling,
                repeats,
                is_proved_next: true,
                thp_always: self.lab.host().is_always() && !plan_only,
                ..self.lab.price_options()
            };
            let plan = price(profile, &costs, options);
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

    /// At `never`: what a plan would gain on a machine at `madvise`. The ceiling does not count
    /// for that: it is of memory that was collapsed.
    fn estimate_at_madvise(&mut self, costs: &CostTable) {
        let (Some(profile), true) = (&self.results.profile, self.lab.host().is_never()) else {
            return;
        };
        let options = price::Options {
            baseline_ns: self.cpu_ns(),
            is_proved_next: true,
            ..self.lab.price_options()
        };
        let plan = price(profile, costs, options);
        let at_madvise = (!plan.does_nothing()).then(|| AtMadvise {
            planned_bytes: plan.huge().map(|r| r.length).sum(),
            speedup: plan.predicted_speedup,
        });
        if let Some(today) = &mut self.results.findings.today {
            today.at_madvise = at_madvise;
        }
    }

    /// Half of the 80 % interval that the comparison will have, on the scale of logarithms: that
    /// of the ceiling, for as many rounds as will fit.
    fn repeats(&mut self, ceiling: Estimate) -> f64 {
        let half = (ceiling.high / ceiling.low).ln() / 2.0;
        let pairs = self
            .results
            .findings
            .ceiling
            .as_ref()
            .map_or(0, |it| it.pairs);
        let run = self.run_seconds.or(self.native()).unwrap_or(0.0);
        let left = self.within.saturating_sub(self.lab.executor().now());
        let seconds = Step::Compare.allowance(left, self.within).as_secs_f64();
        let rounds = |arms: f64| seconds / (run * arms).max(1e-9);
        // As in [`Run::arms`]: more arms while enough rounds of them fit.
        let most = [4.0, 3.0].into_iter().map(rounds);
        let fitting = most
            .into_iter()
            .find(|it| *it >= f64::from(ROUNDS_WORTH_IT));
        let rounds = fitting.unwrap_or_else(|| rounds(2.0)).max(1.0);
        half * (f64::from(pairs) / rounds).sqrt()
    }

    /// 5. The verdict comes from here.
    fn compare(&mut self) -> Result<Next> {
        if self.lab.host().is_never() && self.acting_plan().is_none() {
            return Ok(self.end_at_never());
        }
        let look = self.results.findings.look.clone().unwrap_or_default();
        let allowance = self.begin(Step::Compare);
        let arms = self.arms(&look, allowance)?;
        let until = self.until(allowance);
        let plan = self.acting_plan();
        // The prediction is of a program without huge pages.
        let plan_only = self.is_plan_only(&look);
        let predicting = plan.as_ref().filter(|_| !plan_only);
        let comparison = self.run_arms(&arms, until, predicting)?;
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

    /// The picture afterwards, if pairs have left time for it. While more pairs could change the
    /// answer they are worth more.
    fn after(&mut self) -> Result<()> {
        let reason = self.results.findings.reason.clone();
        let now = self.lab.executor().now();
        let left = Step::After.allowance(self.within.saturating_sub(now), self.within);
        let fits = !self.results.findings.time_limit_reached && left >= SHORTEST_RECORDING;
        let Some(plan) = self.acting_plan().filter(|_| fits) else {
            return Ok(());
        };
        let allowance = self.begin(Step::After);
        match self
            .lab
            .record(allowance, self.native(), Under::Plan(&plan))
        {
            Ok(profile) => self.results.after = Some(profile),
            Err(error) if is_interrupt(&error) => {}
            Err(error) => self.note(&format!("no second profile: {error:#}")),
        }
        self.results.findings.reason = reason;
        self.lab.keep(&self.results)
    }

    fn run_arms(
        &mut self,
        arms: &[Arm],
        until: Duration,
        plan: Option<&Plan>,
    ) -> Result<Comparison> {
        self.run_arms_after(arms, until, plan, vec![Vec::new(); arms.len()])
    }

    /// Runs arms; `stored` has the runs that an earlier tune made of them.
    fn run_arms_after(
        &mut self,
        arms: &[Arm],
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
        let begun = self.lab.executor().now();
        let before: usize = stored.iter().map(Vec::len).sum();
        let executor = self.lab.executor();
        let mut comparison = go_on(executor, &program, arms, &rules, None, stored)?;
        let spent = self.lab.executor().now().saturating_sub(begun);
        let after: usize = comparison.arms.iter().map(|arm| arm.runs.len()).sum();
        let runs = after.saturating_sub(before);
        self.run_seconds = Some(spent.as_secs_f64() / runs.max(1) as f64);
        comparison.predicted_speedup = plan.map(|plan| plan.predicted_speedup);
        let allowed = self.lab.allowed_growth();
        comparison.allow_growth(allowed);
        self.results.findings.allowed_growth_percent = Some(allowed);
        self.check_output(&comparison)?;
        Ok(comparison)
    }

    fn check_output(&mut self, comparison: &Comparison) -> Result<()> {
        if !self.lab.any_output() {
            if let OutputCheck::DiffersBetweenArms { .. } = comparison.output {
                self.lab.keep(&self.results)?;
            }
        }
        crate::cmd::compare::check_output(comparison, self.lab.any_output())
    }

    fn note(&mut self, text: &str) {
        self.results.findings.notes.push(text.to_owned());
    }
}

/// Whether most of the program's anonymous memory is huge without us.
pub fn is_huge(look: &Look) -> bool {
    look.anonymous > 0 && look.huge as f64 >= ALREADY_HUGE * look.anonymous as f64
}

fn is_interrupt(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(UserError::Interrupted))
}
