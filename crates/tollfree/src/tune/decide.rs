// SPDX-License-Identifier: MIT OR Apache-2.0
//! The five steps and their early ends. Everything that touches the machine is
//! behind [`Lab`], so that the tests decide what is measured.

use std::time::Duration;

use anyhow::Result;
use toll_linux::calibrate::Tails;
use toll_model::cost::CostTable;
use toll_model::plan::{Estimate, Plan, Verdict as Choice};
use toll_model::price::{self, price};
use toll_model::profile::Profile;
use toll_model::stats::{Interval, MOST_PAIRS, SMALLEST_EFFECT, Verdict};
use toll_model::units::format_ns;

use super::budget::Step;
use super::findings::{Advice, Answer, Findings, Results, Settle};
use super::today::{Host, SwitchedOff, Today};
use crate::compare::observe::Look;
use crate::compare::outputs::OutputCheck;
use crate::compare::result::ArmResult;
use crate::compare::schedule::{Executor, FEWEST, Rules, Stopped};
use crate::compare::{Arm, Comparison, Sample, go_on};
use crate::error::UserError;
use crate::permanent::{Candidate, Permanent, in_source};
use crate::units;

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
        self.results.findings.seconds = self.lab.executor().now().as_secs_f64();
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

    /// An arm of an earlier comparison by its name; `None` if there is none like it now.
    fn arm_again(&mut self, name: &str, look: &Look) -> Result<Option<Arm>> {
        Ok(match name {
            "none" => Some(Arm::none()),
            "all" => Some(Arm::all()),
            "never" => Some(Arm::never()),
            "plan-only" => match self.acting_plan() {
                Some(plan) => Some(Arm::plan_only(self.lab.plan_file(&plan)?)),
                None => None,
            },
            "plan" => match self.acting_plan() {
                Some(plan) => Some(Arm::plan(self.lab.plan_file(&plan)?)),
                None => None,
            },
            change => self
                .measurable(look)
                .into_iter()
                .map(|(_, arm)| arm)
                .find(|arm| arm.name == change),
        })
    }

    fn begin(&mut self, step: Step) -> Duration {
        let left = self.within.saturating_sub(self.lab.executor().now());
        let allowance = step.allowance(left, self.within);
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
        if let Next::End = self.kept()? {
            return Ok(Next::End);
        }
        self.judge_ceiling(&ceiling, &look)
    }

    /// The arms of the ceiling; `None` where nobody can make the program huge from outside.
    fn ceiling_arms(&self, look: &Look) -> Option<Vec<Arm>> {
        if self.is_switched_off() {
            // Only its own switch can.
            let (_, own) = self.measurable(look).into_iter().next()?;
            return Some(vec![Arm::none(), own]);
        }
        Some(match self.is_backed(look) {
            true => vec![Arm::none(), Arm::never(), Arm::all()],
            false => vec![Arm::none(), Arm::all()],
        })
    }

    fn today(&self) -> Option<&Today> {
        self.results.findings.today.as_ref()
    }

    /// Whether the program itself denies itself huge pages.
    fn is_switched_off(&self) -> bool {
        let by = self.today().and_then(|today| today.switched_off);
        by == Some(SwitchedOff::Program)
    }

    /// Whether the program has huge pages as it is.
    fn is_backed(&self, look: &Look) -> bool {
        is_huge(look) || self.lab.host().is_always() && !look.switched_off
    }

    /// Whether the question is what a machine at `madvise` would do, and can be answered.
    fn is_plan_only(&self, look: &Look) -> bool {
        let host = self.lab.host();
        self.is_backed(look) && host.is_always() && host.can_limit
    }

    fn learn(&mut self, comparison: &Comparison) {
        if let Some(today) = &mut self.results.findings.today {
            today.learn(comparison);
        }
    }

    /// Between the comparisons, so that no timed run shares the machine with it.
    fn learn_tails(&mut self) {
        let left = self.within.saturating_sub(self.lab.executor().now());
        let tails = self.lab.fault_tails(LONGEST_TAILS.min(left));
        if let Some(today) = &mut self.results.findings.today {
            today.take_tails(tails);
        }
    }

    /// What the program has as it is, what that brings, and what would be elsewhere.
    fn as_it_is(&self) -> String {
        let planned = self.results.findings.planned_bytes;
        self.today().map_or(String::new(), |today| {
            today.answer(planned, &self.lab.host())
        })
    }

    /// Goes on where the rest of the memory may gain, or where a plan alone can be measured.
    fn judge_backed(&mut self, ceiling: &Comparison, look: &Look) -> Next {
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

    fn judge_ceiling(&mut self, ceiling: &Comparison, look: &Look) -> Result<Next> {
        if self.is_backed(look) && !self.is_switched_off() {
            return Ok(self.judge_backed(ceiling, look));
        }
        let Some(interval) = ceiling.main() else {
            self.note("the program takes too long for this time limit to measure what is to gain; raise --within");
            return Ok(Next::On);
        };
        if interval.inside(SMALLEST_EFFECT) {
            let reason = no_gain(ceiling, &interval);
            return Ok(self.end(reason));
        }
        if self.is_switched_off() {
            return Ok(self.judge_changes(ceiling, look));
        }
        Ok(Next::On)
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
        self.kept()
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
        let next = self.judge_changes(&comparison, &look);
        if let Next::End = self.kept()? {
            return Ok(Next::End);
        }
        Ok(match plan {
            Some(_) if !plan_only => Next::On,
            _ => next,
        })
    }

    /// The arms of the last comparison, as many as the time allows; the plan first.
    fn arms(&mut self, look: &Look, allowance: Duration) -> Result<Vec<Arm>> {
        let mut arms = vec![Arm::none()];
        let mut others: Vec<Arm> = self
            .measurable(look)
            .into_iter()
            .map(|(_, arm)| arm)
            .collect();
        match self.acting_plan() {
            Some(plan) if self.is_plan_only(look) => {
                // The plan is judged against no huge page at all: three arms at least.
                arms.push(Arm::plan_only(self.lab.plan_file(&plan)?));
                arms.push(Arm::never());
            }
            Some(plan) => {
                arms.push(Arm::plan(self.lab.plan_file(&plan)?));
                others.insert(0, Arm::all());
            }
            // The ceiling has told about everything huge; a change is what can be advised.
            None if self.is_plan_only(look) => arms.push(Arm::never()),
            None if self.results.findings.speedup_all.is_some() => others.push(Arm::all()),
            None => others.insert(0, Arm::all()),
        }
        if self.is_backed(look) && !arms.contains(&Arm::never()) {
            others.push(Arm::never());
        }
        // Two arms at least; more while enough rounds of them fit.
        let run = self.run_seconds.or(self.native()).unwrap_or(0.0);
        for arm in others {
            let rounds = allowance.as_secs_f64() / (run * (arms.len() + 1) as f64).max(1e-9);
            if arms.len() < 2 || rounds >= f64::from(ROUNDS_WORTH_IT) {
                arms.push(arm);
            }
        }
        Ok(arms)
    }

    /// Says what to do from the comparison's plan and changes.
    fn judge_changes(&mut self, comparison: &Comparison, look: &Look) -> Next {
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

    fn apply(&mut self, reason: String) {
        self.results.findings.advice = Advice::Apply;
        self.results.findings.reason = reason;
    }

    /// What stays without tollfree: measured gains first, then what was not measured.
    fn permanent(&self, comparison: &Comparison, look: &Look) -> Vec<Permanent> {
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

    /// The picture afterwards, if there is time for it.
    fn after(&mut self) -> Result<()> {
        let reason = self.results.findings.reason.clone();
        let allowance = self.begin(Step::After);
        let Some(plan) = self
            .acting_plan()
            .filter(|_| allowance >= SHORTEST_RECORDING)
        else {
            return Ok(());
        };
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

    fn measurable(&self, look: &Look) -> Vec<(Candidate, Arm)> {
        let arm = |c: Candidate| {
            c.arm
                .clone()
                .map(|change| (c.clone(), Arm::change(c.name, change)))
        };
        self.lab
            .candidates(look)
            .into_iter()
            .filter_map(arm)
            .collect()
    }

    /// The plan, if it does something.
    fn acting_plan(&self) -> Option<Plan> {
        let plan = self.results.plan.as_ref();
        plan.filter(|plan| !plan.does_nothing()).cloned()
    }

    /// What everything huge gains, and why no plan takes part in that; `None` if there
    /// is a plan or no gain.
    fn without_plan(&self) -> Option<String> {
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
    fn not_proven(&self, comparison: &Comparison) -> String {
        match self.without_plan() {
            Some(why) => why + &changes_measured(comparison),
            None => unresolved(comparison),
        }
    }

    /// The program's own switches that no arm can measure, since they change the machine or are not on
    /// this command line. Where something is advised, they are listed with that.
    fn note_unmeasurable(&mut self) {
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
    fn note_status(&mut self) {
        let found = &mut self.results.findings;
        let compared = found.comparison.is_some() || found.ceiling.is_some();
        if let Some(status) = found.status.filter(|status| *status != 0 && !compared) {
            found
                .notes
                .push(format!("the program ends with status {status} in each run"));
        }
    }

    /// The arm of the ceiling that a plan is to improve.
    fn base(&self) -> Option<&ArmResult> {
        let ceiling = self.results.findings.ceiling.as_ref()?;
        let look = self.results.findings.look.as_ref()?;
        match self.is_plan_only(look) {
            true => ceiling.arm("never"),
            false => ceiling.arms.first(),
        }
    }

    /// Seconds of one run without a plan.
    fn native(&self) -> Option<f64> {
        self.base()?.median.as_ref().map(|median| median.elapsed)
    }

    fn cpu_ns(&self) -> Option<f64> {
        self.base()?
            .median
            .as_ref()
            .map(|median| median.cpu * 1e9)
            .filter(|ns| *ns > 0.0)
    }

    /// The ceiling as a second opinion for the model, which works with 80 % intervals.
    fn ceiling_estimate(&self) -> Option<Estimate> {
        let ceiling = self.results.findings.ceiling.as_ref()?;
        let look = self.results.findings.look.as_ref()?;
        let all = match self.is_plan_only(look) {
            // As it is, everything is huge.
            true => ceiling.between("never", "none"),
            false => ceiling.speedup_all,
        };
        let all = all.filter(|_| ceiling.stopped != Stopped::Interrupted)?;
        super::narrowed(&all, ceiling.pairs)
    }

    fn note(&mut self, text: &str) {
        self.results.findings.notes.push(text.to_owned());
    }
}

/// Time for the tails of page faults at most: a thousand faults of at most 4 ms take less.
const LONGEST_TAILS: Duration = Duration::from_secs(5);
/// A recording shorter than this shows nothing.
const SHORTEST_RECORDING: Duration = Duration::from_secs(2);

/// Whether most of the program's anonymous memory is huge without us.
pub fn is_huge(look: &Look) -> bool {
    look.anonymous > 0 && look.huge as f64 >= ALREADY_HUGE * look.anonymous as f64
}

fn no_gain(ceiling: &Comparison, interval: &Interval) -> String {
    let mut reason = format!(
        "even with everything huge it runs {} times as fast: within +/- 2 %",
        with_interval(interval)
    );
    if let Some(cpu) = ceiling
        .cpu_speedup
        .filter(|cpu| cpu.low > 1.0 + SMALLEST_EFFECT)
    {
        reason += &format!(
            ". It would use less CPU time ({} times), but not end earlier",
            with_interval(&cpu)
        );
    }
    reason
}

/// What the permanent changes did that do not gain.
fn changes_measured(comparison: &Comparison) -> String {
    let own = ["none", "plan", "plan-only", "all", "never"];
    let measured = |arm: &ArmResult| {
        let interval = arm.speedup.filter(|_| !own.contains(&arm.name.as_str()))?;
        Some(format!("; {}: {}", arm.name, with_interval(&interval)))
    };
    comparison.arms.iter().filter_map(measured).collect()
}

/// What the plan's huge pages cost more where memory is not warm, if that is known and much.
fn dearer_when_cold(plan: &Plan, costs: &CostTable) -> Option<String> {
    let (warm, cold) = (costs.fault_2m_warm.median, costs.fault_2m_cold.median);
    let regions = plan.huge().count() as f64;
    (regions > 0.0 && costs.cold_is_dear()).then(|| {
        format!(
            "the measured gain is of warm memory: after a pause, when the host has taken free memory \
             back, the plan's {regions} huge pages may cost up to {} more ({} each instead of {})",
            format_ns(regions * (cold - warm)),
            format_ns(cold),
            format_ns(warm)
        )
    })
}

/// What an arm takes in memory, beside a gain of it.
fn growth(comparison: &Comparison, arm: Option<&ArmResult>) -> String {
    let known = arm.and_then(|arm| Some((arm.bloat?, comparison.growth_percent(arm)?)));
    match known {
        Some((bytes @ 1.., percent)) => format!(
            ", for {} ({percent:.0} %) more memory",
            units::bytes(bytes as u64)
        ),
        Some(_) => ", for no more memory".to_owned(),
        None => String::new(),
    }
}

/// The clearest gain that takes more memory than `allowed` percent, if there is one.
fn too_much_memory(comparison: &Comparison, allowed: f64) -> Option<String> {
    let dear = |arm: &&ArmResult| arm.proven == Some(true) && arm.affordable == Some(false);
    let low = |arm: &ArmResult| arm.speedup.map_or(0.0, |interval| interval.low);
    let arms = comparison.arms.iter().filter(dear);
    let arm = arms.max_by(|a, b| low(a).total_cmp(&low(b)))?;
    Some(format!(
        "{} makes it {} times as fast in {}{}: above {allowed} % that is called no gain, unless \
         --allow-growth says so",
        arm.name,
        with_interval(&arm.speedup?),
        comparison.resource.name(),
        growth(comparison, Some(arm))
    ))
}

/// Why a comparison proves no gain.
fn unresolved(comparison: &Comparison) -> String {
    let Some(interval) = comparison.main() else {
        return "the time limit did not suffice to measure the plan; raise --within".to_owned();
    };
    let arm = &comparison.arms[1].name;
    let measured = with_interval(&interval);
    match interval.verdict() {
        Verdict::Slower => return format!("{arm} is slower: {measured} times as fast"),
        Verdict::NoDifference => {
            return format!("{arm} makes no difference that matters: {measured} times as fast");
        }
        Verdict::Faster => {
            return format!(
                "{arm} gains by itself, {measured} times as fast, but not beyond doubt: several \
                 arms were judged, and one of them may look like that by chance; raise --within"
            );
        }
        Verdict::CannotTell => {}
    }
    let settle = match comparison.pairs_to_settle {
        Some(MOST_PAIRS) => "; it lies too near 2 % to be settled by more pairs".to_owned(),
        Some(pairs) if pairs > comparison.pairs => {
            format!(
                "; about {pairs} pairs instead of {} would settle it with a chance of 80 %",
                comparison.pairs
            )
        }
        _ => String::new(),
    };
    format!(
        "it cannot be told whether {arm} gains: {} times as fast; such runs show an effect \
         of {} four times in five{settle}",
        with_interval(&interval),
        units::percent(interval.smallest_visible_effect(comparison.pairs))
    )
}

/// `1.31 (1.29 to 1.33)`.
pub fn with_interval(interval: &Interval) -> String {
    format!(
        "{:.3} ({:.3} to {:.3})",
        interval.median, interval.low, interval.high
    )
}

/// The anchors that the plan makes huge, by benefit.
fn memory(plan: &Plan) -> Vec<String> {
    let everything: f64 = plan.huge().map(|region| region.benefit_ns).sum();
    let mut rows: Vec<(f64, String)> = plan
        .anchors
        .iter()
        .filter_map(|anchor| {
            let own = plan
                .regions
                .iter()
                .filter(|r| r.anchor == anchor.id && r.verdict == Choice::Huge);
            let (bytes, benefit) =
                own.fold((0, 0.0), |(b, ns), r| (b + r.length, ns + r.benefit_ns));
            let share = units::percent(benefit / everything.max(1e-9));
            (bytes > 0).then(|| {
                (
                    benefit,
                    format!("{anchor}: {}, {share} of the gain", units::bytes(bytes)),
                )
            })
        })
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    rows.into_iter().map(|(_, text)| text).collect()
}

fn is_interrupt(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(UserError::Interrupted))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use toll_linux::calibrate::Tail;
    use toll_linux::sys::Mode;
    use toll_model::anchor::{AnchorKind, Level};
    use toll_model::builder::{Counts, Meta, ProfileBuilder};
    use toll_model::profile::{Program, Source};

    use super::*;
    use crate::compare::schedule::tests::Mock;
    use crate::compare::{Change, Sample};

    const MIB: u64 = 1 << 20;

    /// A machine where everything takes the time that it is told.
    struct MockLab {
        mock: Mock,
        look: Look,
        /// The status of the first run, if it ended in time.
        ended: Option<i32>,
        candidates: Vec<Candidate>,
        profile: Option<Profile>,
        steps: Vec<Step>,
        kept: usize,
        warm: bool,
        costs: CostTable,
        /// Seconds that calibration and a recording take, if they may.
        slow: [f64; 2],
        /// The step in which the user presses Ctrl-C.
        interrupt: Option<Step>,
        under_plan: usize,
        under_never: usize,
        host: Host,
        allowed_growth: f64,
        /// How often the tails of faults were measured.
        tails: usize,
    }

    impl MockLab {
        fn new(times: &[(&str, &[f64])]) -> MockLab {
            MockLab {
                mock: Mock::new(times),
                look: Look {
                    windows: 3,
                    working_set: 256 * MIB,
                    anonymous: 256 * MIB,
                    ..Look::default()
                },
                ended: Some(0),
                candidates: Vec::new(),
                profile: Some(profile()),
                steps: Vec::new(),
                kept: 0,
                warm: false,
                slow: [f64::MAX; 2],
                costs: toll_linux::calibrate::default_costs(),
                interrupt: None,
                under_plan: 0,
                under_never: 0,
                host: Host {
                    mode: Some(Mode::Madvise),
                    inherits_off: false,
                    can_limit: true,
                },
                allowed_growth: 25.0,
                tails: 0,
            }
        }

        fn tune(&mut self, seconds: u64) -> Results {
            tune(self, "x", Duration::from_secs(seconds)).unwrap()
        }
    }

    impl Lab for MockLab {
        fn executor(&mut self) -> &mut dyn Executor {
            &mut self.mock
        }
        fn look(&mut self, _until: Duration) -> Result<(Look, Option<i32>)> {
            self.mock.clock += 1.0;
            Ok((self.look.clone(), self.ended))
        }
        fn reach(&self) -> u64 {
            12 * MIB
        }
        fn candidates(&self, _look: &Look) -> Vec<Candidate> {
            self.candidates.clone()
        }
        fn costs(&mut self, within: Duration) -> Result<CostTable> {
            self.mock.clock += within.as_secs_f64().min(self.slow[0]);
            Ok(self.costs.clone())
        }
        fn record(&mut self, limit: Duration, _: Option<f64>, under: Under<'_>) -> Result<Profile> {
            self.mock.clock += limit.as_secs_f64().min(self.slow[1]);
            self.under_plan += usize::from(matches!(under, Under::Plan(_)));
            self.under_never += usize::from(matches!(under, Under::Never));
            self.profile
                .clone()
                .ok_or_else(|| anyhow::anyhow!("no recorder"))
        }
        fn plan_file(&mut self, _plan: &Plan) -> Result<PathBuf> {
            Ok("plan.toml".into())
        }
        fn price_options(&self) -> price::Options {
            price::Options {
                warm: self.warm,
                ..price::Options::default()
            }
        }
        fn announce(&mut self, step: Step, _allowance: Duration) {
            self.steps.push(step);
            if self.interrupt == Some(step) {
                self.mock.interrupt_after = 0;
            }
        }
        fn keep(&mut self, _results: &Results) -> Result<()> {
            self.kept += 1;
            Ok(())
        }
        fn interrupted(&self) -> bool {
            self.interrupt
                .is_some_and(|step| self.steps.contains(&step))
        }
        fn host(&self) -> Host {
            self.host
        }
        fn any_output(&self) -> bool {
            false
        }
        fn allowed_growth(&self) -> f64 {
            self.allowed_growth
        }
        fn fault_tails(&mut self, _within: Duration) -> Tails {
            self.tails += 1;
            Tails {
                small: None,
                huge: Some(Tail {
                    faults: 512,
                    p99: 180_000.0,
                    longest: 4_000_000.0,
                }),
            }
        }
    }

    /// A chase over 256 MiB of one mapping.
    fn profile() -> Profile {
        let mut builder = ProfileBuilder::default();
        let anchor = builder.anchor(AnchorKind::Heap, 256 * MIB, 0, Level::Exact);
        let meta = Meta {
            source: Source::Sim,
            source_detail: "a test".to_owned(),
            program: Program::default(),
            command: Vec::new(),
            complete: true,
            sampled: 1.0,
            observations: 1_000_000,
            instructions: None,
            native_ns: None,
            footprint: None,
            warnings: Vec::new(),
        };
        for page in 0..256 * MIB / 4096 {
            let counts = Counts {
                accesses: 4000.0,
                misses: 3000.0,
                misses_huge: Some(30.0),
                l2_spared: 0.0,
                reuse_log2: Some(28.0),
                dependent: Some(1.0),
                huge: false,
            };
            builder.count(anchor, page * 4096, &counts);
        }
        builder.finish(meta)
    }

    fn candidate(name: &'static str) -> Candidate {
        Candidate {
            name,
            change: format!("set {name}"),
            how: "export A=1".to_owned(),
            arm: Some(Change {
                env: vec![("A".into(), "1".into())],
                ..Change::default()
            }),
        }
    }

    #[test]
    fn a_small_working_set_ends_it_at_once() {
        let mut lab = MockLab::new(&[]);
        lab.look.working_set = 4 * MIB;
        let got = lab.tune(600).findings;
        assert_eq!((got.advice, got.step), (Advice::DoNothing, Step::Look));
        assert!(got.reason.contains("TLB reaches"), "{}", got.reason);
        assert_eq!(lab.steps, [Step::Look]);
        assert_eq!((got.verdict, got.speedup, got.pairs), (None, None, None));
    }

    #[test]
    fn a_look_that_was_cut_short_proves_nothing() {
        let mut lab = MockLab::new(&[("none", &[1.0]), ("all", &[1.0])]);
        (lab.look.working_set, lab.ended) = (4 * MIB, None);
        lab.tune(600);
        assert!(lab.steps.contains(&Step::Ceiling));
    }

    #[test]
    fn a_ceiling_within_two_percent_ends_it() {
        let mut lab = MockLab::new(&[("none", &[2.0, 2.004]), ("all", &[1.99, 2.0])]);
        let got = lab.tune(600).findings;
        assert_eq!((got.advice, got.step), (Advice::DoNothing, Step::Ceiling));
        assert!(got.reason.contains("+/- 2 %"), "{}", got.reason);
        assert!(got.speedup_all.is_some() && got.speedup.is_none());
        assert!(got.permanent.is_empty());
    }

    #[test]
    fn what_is_huge_already_is_compared_with_never() {
        let times: &[(&str, &[f64])] = &[
            ("none", &[2.0, 2.01]),
            ("all", &[2.01, 2.0]),
            ("never", &[3.0, 3.01]),
        ];
        let mut lab = MockLab::new(times);
        lab.look.huge = 200 * MIB;
        let got = lab.tune(600).findings;
        for part in [
            "already huge-page-backed: 78 %",
            "Huge pages make it faster now: 1.",
            "times as fast as without any",
        ] {
            assert!(got.reason.contains(part), "{part}: {}", got.reason);
        }
        assert_eq!(
            (got.advice, got.answer),
            (Advice::DoNothing, Answer::DoNothing)
        );
        let never = got.ceiling.unwrap().arm("never").unwrap().speedup.unwrap();
        assert!((never.median - 0.666).abs() < 0.01);
        let gain = got.today.unwrap().gain.unwrap();
        assert!((gain.median - 1.5).abs() < 0.02, "{gain:?}");
    }

    /// A machine at `always`, on which the plan alone would do as well, in less memory.
    fn always() -> MockLab {
        let mut lab = MockLab::new(&[
            ("none", &[2.0, 2.01]),
            ("never", &[3.0, 3.01]),
            ("all", &[2.0, 2.01]),
            ("plan-only", &[2.1, 2.12]),
        ]);
        lab.host.mode = Some(Mode::Always);
        lab.look.huge = 255 * MIB;
        lab.mock.fill = |arm, _, sample| {
            sample.max_rss = match arm.name.as_str() {
                "never" => 256 * MIB,
                "plan-only" => 258 * MIB,
                _ => 300 * MIB,
            };
        };
        lab
    }

    #[test]
    fn on_a_machine_at_always_never_and_the_plan_alone_are_measured() {
        let mut lab = always();
        let got = lab.tune(600).findings;
        let arms = |comparison: &Option<Comparison>| -> Vec<String> {
            let arms = &comparison.as_ref().unwrap().arms;
            arms.iter().map(|arm| arm.name.clone()).collect()
        };
        assert_eq!(arms(&got.ceiling), ["none", "never", "all"]);
        assert_eq!(arms(&got.comparison), ["none", "plan-only", "never"]);
        assert_eq!((lab.under_never, lab.under_plan, lab.tails), (1, 0, 1));
        for part in [
            "already huge-page-backed: 99 % (255 MiB of 256 MiB; THP always)",
            "times as fast as without any, for 44 MiB more memory",
            "On a machine at madvise, the plan's",
            "alone would make it 1.4",
            "for 2 MiB more memory",
            "a huge page takes 180 us for 99 of 100 and 4 ms for the longest of 512",
        ] {
            assert!(got.reason.contains(part), "{part}: {}", got.reason);
        }
        assert_eq!(
            (got.advice, got.answer),
            (Advice::DoNothing, Answer::DoNothing)
        );
        let today = got.today.unwrap();
        assert!((today.gain.unwrap().median - 1.5).abs() < 0.02);
        assert!((today.plan_only.unwrap().median - 1.42).abs() < 0.03);
    }

    #[test]
    fn a_kernel_that_cannot_limit_to_what_is_advised_is_named() {
        let mut lab = always();
        lab.host.can_limit = false;
        let got = lab.tune(600).findings;
        assert!(got.reason.contains("Linux 6.18"), "{}", got.reason);
        assert_eq!((got.step, lab.under_never), (Step::Ceiling, 0));
    }

    #[test]
    fn what_only_the_parent_switched_off_is_given_back_and_measured() {
        let mut lab = MockLab::new(&[
            ("none", &[2.0, 2.01]),
            ("plan", &[1.5, 1.51]),
            ("all", &[1.5, 1.51]),
        ]);
        lab.look.switched_off = true;
        lab.host.inherits_off = true;
        let got = lab.tune(600).findings;
        assert_eq!(got.advice, Advice::Apply, "{}", got.reason);
        assert_eq!(got.today.unwrap().switched_off, Some(SwitchedOff::Parent));
    }

    #[test]
    fn a_gain_goes_through_all_steps_and_is_applied() {
        let times: &[(&str, &[f64])] = &[
            ("none", &[2.0, 2.01]),
            ("plan", &[1.5, 1.51]),
            ("all", &[1.5, 1.51]),
            ("tunable", &[1.45, 1.46]),
        ];
        let mut lab = MockLab::new(times);
        lab.candidates = vec![candidate("tunable")];
        let results = lab.tune(600);
        let got = &results.findings;
        assert_eq!(
            (got.advice, got.verdict),
            (Advice::Apply, Some(Verdict::Faster)),
            "{got:?}"
        );
        assert!((got.speedup.unwrap().median - 1.33).abs() < 0.02);
        assert!(
            got.planned_bytes
                .is_some_and(|bytes| bytes > 200 * MIB && bytes <= 256 * MIB)
        );
        assert!(got.predicted_speedup.is_some());
        assert_eq!(got.permanent[0].state, "measured");
        assert!(results.plan.is_some() && results.after.is_some());
        assert_eq!(lab.under_plan, 1);
        use Step::{After, Ceiling, Compare, Costs, Look, Plan, Profile};
        assert_eq!(
            lab.steps,
            [Look, Ceiling, Costs, Profile, Plan, Compare, After]
        );
        assert!(lab.mock.clock <= 600.0, "{}", lab.mock.clock);
    }

    #[test]
    fn an_undecided_answer_says_what_settles_it_and_is_gone_on_with() {
        let times: &[(&str, &[f64])] = &[
            ("none", &[2.0, 2.2, 1.9, 2.1, 2.05]),
            ("plan", &[1.95, 2.15, 1.75, 2.05, 1.85, 2.1, 1.95]),
            ("all", &[1.8, 1.7, 1.9, 2.0, 1.6]),
        ];
        let mut lab = MockLab::new(times);
        let first = lab.tune(200);
        let got = &first.findings;
        assert_eq!(
            (got.advice, got.answer),
            (Advice::DoNothing, Answer::Undecided),
            "{}",
            got.reason
        );
        assert!(
            super::super::text::render(got).contains("Undecided: "),
            "{got:?}"
        );
        let settle = got.settle.clone().unwrap();
        let before = got.comparison.clone().unwrap();
        assert!(settle.pairs > before.pairs, "{settle:?}");
        // Each of the missing rounds, and one that warms up, takes about two seconds an arm.
        let runs = f64::from(settle.pairs - before.pairs + 1) * before.arms.len() as f64;
        assert!((1.7..2.2).contains(&(settle.seconds / runs)), "{settle:?}");

        let mut lab = MockLab::new(times);
        let within = Duration::from_secs_f64(settle.seconds * 3.0);
        let second = resume(&mut lab, first.clone(), within).unwrap().findings;
        let after = second.comparison.clone().unwrap();
        assert!(
            after.pairs > before.pairs,
            "{} and {}",
            after.pairs,
            before.pairs
        );
        for (old, new) in before.arms.iter().zip(&after.arms) {
            let kept = before.pairs as usize + 1;
            assert_eq!(old.runs[..kept], new.runs[..kept]);
        }
        assert_eq!(
            (second.advice, second.answer),
            (Advice::Apply, Answer::Apply),
            "{}",
            second.reason
        );
        assert_eq!(second.settle, None);
        assert_eq!(lab.steps, [Step::Compare]);
    }

    #[test]
    fn there_must_be_something_to_go_on_with() {
        let mut lab = MockLab::new(&[]);
        lab.look.working_set = 4 * MIB;
        let results = lab.tune(600);
        assert_eq!(results.findings.answer, Answer::DoNothing);
        let error = resume(&mut lab, results, Duration::from_secs(60)).unwrap_err();
        assert!(error.to_string().contains("no comparison"), "{error}");
    }

    #[test]
    fn a_gain_that_is_lost_in_noise_is_not_advised() {
        let times: &[(&str, &[f64])] = &[
            ("none", &[2.0, 2.6, 1.8, 2.2]),
            ("plan", &[1.9, 2.5, 1.7, 2.4, 2.0]),
            ("all", &[1.9, 1.5, 2.6, 2.0, 2.1]),
        ];
        let got = MockLab::new(times).tune(200).findings;
        assert_eq!(got.advice, Advice::DoNothing);
        assert_eq!(got.verdict, Some(Verdict::CannotTell));
        assert!(got.reason.contains("cannot be told"), "{}", got.reason);
        assert!(got.seconds <= 200.0);
    }

    #[test]
    fn a_gain_that_takes_much_more_memory_is_advised_only_if_that_was_allowed() {
        let times: &[(&str, &[f64])] = &[
            ("none", &[2.0, 2.01]),
            ("plan", &[1.5, 1.51]),
            ("all", &[1.5, 1.51]),
            ("tunable", &[1.5, 1.51]),
        ];
        type Fill = fn(&Arm, usize, &mut Sample);
        let tuned = |allowed: f64, fill: Fill| {
            let mut lab = MockLab::new(times);
            lab.candidates = vec![candidate("tunable")];
            lab.allowed_growth = allowed;
            lab.mock.fill = fill;
            lab.tune(600).findings
        };
        let both: Fill = |arm, _, sample| {
            let dear = ["plan", "tunable"].contains(&arm.name.as_str());
            sample.max_rss = if dear { 400 * MIB } else { 300 * MIB };
        };
        let change: Fill = |arm, _, sample| {
            sample.max_rss = if arm.name == "tunable" {
                400 * MIB
            } else {
                300 * MIB
            };
        };
        let got = tuned(25.0, both);
        assert_eq!(
            (got.advice, got.answer),
            (Advice::DoNothing, Answer::DoNothing),
            "{}",
            got.reason
        );
        for part in ["1.3", "100 MiB (33 %) more memory", "--allow-growth"] {
            assert!(got.reason.contains(part), "{part}: {}", got.reason);
        }
        assert!(got.permanent.is_empty(), "{:?}", got.permanent);
        assert_eq!(got.allowed_growth_percent, Some(25.0));

        let got = tuned(50.0, both);
        assert_eq!(got.advice, Advice::Apply);
        assert!(
            got.reason.contains("100 MiB (33 %) more memory"),
            "{}",
            got.reason
        );
        assert_eq!(got.permanent.len(), 1);

        let got = tuned(25.0, change);
        assert_eq!(got.advice, Advice::Apply);
        assert!(got.reason.contains("for no more memory"), "{}", got.reason);
        assert!(got.permanent.is_empty(), "{:?}", got.permanent);
    }

    #[test]
    fn a_gain_below_the_floor_is_not_advised() {
        let times: &[(&str, &[f64])] = &[
            ("none", &[2.0, 2.001]),
            ("plan", &[1.975, 1.976]),
            ("all", &[1.5, 1.501]),
            ("tunable", &[1.98, 1.981]),
        ];
        let mut lab = MockLab::new(times);
        lab.candidates = vec![candidate("tunable")];
        let got = lab.tune(600).findings;
        let plan = got.speedup.unwrap();
        assert!(plan.low > 1.0 && plan.median < 1.02, "{plan:?}");
        assert_eq!(got.advice, Advice::DoNothing, "{}", got.reason);
        assert!(
            got.reason.contains("no difference that matters"),
            "{}",
            got.reason
        );
        assert!(got.permanent.is_empty(), "{:?}", got.permanent);
    }

    #[test]
    fn a_slower_plan_is_called_slower() {
        let times: &[(&str, &[f64])] = &[
            ("none", &[2.0, 2.01]),
            ("plan", &[2.4, 2.41]),
            ("all", &[2.4, 2.41]),
        ];
        let got = MockLab::new(times).tune(600).findings;
        assert_eq!(
            (got.advice, got.verdict),
            (Advice::DoNothing, Some(Verdict::Slower))
        );
        assert!(got.permanent.is_empty());
    }

    #[test]
    fn without_a_profile_the_changes_are_measured_all_the_same() {
        let times: &[(&str, &[f64])] = &[
            ("none", &[2.0, 2.01]),
            ("all", &[1.5, 1.51]),
            ("tunable", &[1.5, 1.51]),
        ];
        let mut lab = MockLab::new(times);
        (lab.profile, lab.candidates) = (None, vec![candidate("tunable")]);
        let got = lab.tune(600).findings;
        assert_eq!((got.advice, got.speedup), (Advice::Apply, None));
        assert!(got.permanent[0].measured.is_some());
        assert!(
            got.notes.iter().any(|note| note.contains("no recorder")),
            "{:?}",
            got.notes
        );
    }

    /// A profile of a program whose memory is a file's: no plan acts on that.
    fn not_acted_on() -> Profile {
        let mut profile = profile();
        for part in &mut profile.anchors {
            part.anchor.kind = AnchorKind::Stack;
        }
        profile
    }

    #[test]
    fn where_the_plan_does_nothing_and_everything_huge_gains_both_are_said() {
        let times: &[(&str, &[f64])] = &[("none", &[2.0, 2.01]), ("all", &[1.6, 1.61])];
        let mut lab = MockLab::new(times);
        lab.profile = Some(not_acted_on());
        let got = lab.tune(600).findings;
        assert_eq!((got.advice, got.speedup), (Advice::DoNothing, None));
        for part in [
            "everything huge makes it 1.2",
            "but the plan found nothing to act on: ",
        ] {
            assert!(got.reason.contains(part), "{}", got.reason);
        }
        assert!(!got.reason.contains("cannot be told"), "{}", got.reason);
    }

    #[test]
    fn where_the_plan_does_nothing_the_changes_are_what_is_measured() {
        for (seconds, gain) in [(2.0, false), (1.6, true)] {
            let none = [10.0, 10.05];
            let all = [8.0, 8.04];
            let change = [5.0 * seconds, 5.02 * seconds];
            let times: &[(&str, &[f64])] = &[("none", &none), ("all", &all), ("tunable", &change)];
            let mut lab = MockLab::new(times);
            lab.profile = Some(not_acted_on());
            lab.candidates = vec![candidate("tunable")];
            // Too short for more than two arms.
            let got = lab.tune(400).findings;
            let arms = &got.comparison.as_ref().unwrap().arms;
            assert_eq!(arms[1].name, "tunable");
            assert!(
                got.reason.contains("everything huge makes it 1.2"),
                "{}",
                got.reason
            );
            assert_eq!(got.advice == Advice::Apply, gain, "{}", got.reason);
            assert_eq!(got.permanent.iter().any(|p| p.measured.is_some()), gain);
            let own = if gain {
                "change below makes it 1.2"
            } else {
                "; tunable: 1.0"
            };
            assert!(got.reason.contains(own), "{}", got.reason);
        }
    }

    #[test]
    fn the_price_of_cold_memory_is_noted_where_it_is_known_and_paid() {
        let times: &[(&str, &[f64])] = &[
            ("none", &[2.0, 2.01]),
            ("plan", &[1.5, 1.51]),
            ("all", &[1.5, 1.51]),
        ];
        let noted = |warm, complete, cold| {
            let mut lab = MockLab::new(times);
            (lab.warm, lab.costs.complete) = (warm, complete);
            lab.costs.fault_2m_warm.median = 40_000.0;
            lab.costs.fault_2m_cold.median = cold;
            let notes = lab.tune(600).findings.notes;
            notes
                .into_iter()
                .find(|note| note.contains("after a pause"))
        };
        let note = noted(true, true, 4_000_000.0).unwrap();
        assert!(
            note.contains("up to 507 ms more (4 ms each instead of 40 us)"),
            "{note}"
        );
        assert_eq!(noted(true, true, 100_000.0), None);
        assert_eq!(noted(true, false, 4_000_000.0), None);
        assert_eq!(noted(false, true, 4_000_000.0), None);
    }

    #[test]
    fn the_time_limit_is_told_from_other_ends() {
        let clear: &[(&str, &[f64])] = &[
            ("none", &[2.0, 2.01]),
            ("plan", &[1.5, 1.51]),
            ("all", &[1.5, 1.51]),
        ];
        assert!(!MockLab::new(clear).tune(600).findings.time_limit_reached);
        let noise: &[(&str, &[f64])] = &[
            ("none", &[2.0, 2.6, 1.8, 2.2]),
            ("plan", &[1.9, 2.5, 1.7, 2.4, 2.0]),
            ("all", &[1.9, 1.5, 2.6, 2.0, 2.1]),
        ];
        assert!(MockLab::new(noise).tune(200).findings.time_limit_reached);
        let nothing: &[(&str, &[f64])] = &[("none", &[2.0, 2.004]), ("all", &[1.99, 2.0])];
        assert!(!MockLab::new(nothing).tune(600).findings.time_limit_reached);
        let long: &[(&str, &[f64])] = &[("none", &[900.0]), ("plan", &[900.0]), ("all", &[900.0])];
        assert!(MockLab::new(long).tune(60).findings.time_limit_reached);
    }

    #[test]
    fn a_program_that_fails_in_each_run_is_noted_once() {
        let failing = |lab: &mut MockLab| {
            lab.ended = Some(2);
            lab.mock.fill = |_, _, sample| sample.status = 2;
            lab.tune(600).findings
        };
        let said = |found: &Findings| {
            let text = super::super::text::render(found);
            text.matches("the program ends with status 2 in each run")
                .count()
        };
        let mut small = MockLab::new(&[]);
        small.look.working_set = 4 * MIB;
        let got = failing(&mut small);
        assert_eq!((got.status, said(&got)), (Some(2), 1));

        let got = failing(&mut MockLab::new(&[
            ("none", &[2.0, 2.004]),
            ("all", &[1.99, 2.0]),
        ]));
        assert_eq!((got.status, said(&got)), (Some(2), 1));
    }

    /// Pairs of the ceiling and of the last comparison within 4 minutes, and arms of the
    /// latter, for a program of 2.5 s whose times are scattered or not.
    fn rounds_of_seconds(slow: [f64; 2], scatter: f64) -> [usize; 3] {
        let times = |center: f64, order: [f64; 5]| order.map(|at| center * (1.0 + scatter * at));
        let (none, all) = (
            times(2.5, [0.0, 1.0, -0.7, 0.4, -0.3]),
            times(2.2, [0.3, -0.6, 1.0, -0.4, 0.0]),
        );
        let arms: Vec<(&str, &[f64])> =
            ["plan", "all", "tunable"].map(|arm| (arm, &all[..])).into();
        let mut lab = MockLab::new(&[&[("none", &none[..])], &arms[..]].concat());
        (lab.slow, lab.candidates) = (slow, vec![candidate("tunable")]);
        let got = lab.tune(240).findings;
        let (ceiling, last) = (got.ceiling.unwrap(), got.comparison.unwrap());
        [ceiling.pairs as usize, last.pairs as usize, last.arms.len()]
    }

    #[test]
    fn a_program_of_seconds_gets_rounds_enough_within_minutes() {
        const ALL: f64 = f64::MAX;
        // Prices that are known or not, a recording of 15 s or of all that it may take.
        for (slow, scatter, expected) in [
            ([0.0, 15.0], 0.01, [5, 5, 4]),
            ([ALL, ALL], 0.01, [5, 5, 3]),
            ([0.0, 15.0], 0.2, [12, 10, 3]),
            ([0.0, ALL], 0.2, [12, 7, 4]),
            ([ALL, 15.0], 0.2, [12, 8, 3]),
            ([ALL, ALL], 0.2, [12, 8, 2]),
        ] {
            let got = rounds_of_seconds(slow, scatter);
            let enough = got.iter().zip(expected).all(|(got, least)| *got >= least);
            assert!(enough, "{slow:?}, {scatter}: {got:?}");
        }
    }

    #[test]
    fn a_change_that_does_not_gain_is_not_printed() {
        let times: &[(&str, &[f64])] = &[
            ("none", &[2.0, 2.01]),
            ("plan", &[1.5, 1.51]),
            ("all", &[1.5, 1.51]),
            ("useless", &[2.0, 2.01]),
        ];
        let mut lab = MockLab::new(times);
        lab.candidates = vec![candidate("useless")];
        let got = lab.tune(600).findings;
        assert_eq!(got.advice, Advice::Apply);
        assert!(got.permanent.is_empty(), "{:?}", got.permanent);
    }

    #[test]
    fn a_program_that_switches_it_off_needs_its_own_switch() {
        let mut lab = MockLab::new(&[]);
        lab.look.switched_off = true;
        let got = lab.tune(600).findings;
        assert!(
            got.reason
                .contains("the program switches them off for itself"),
            "{}",
            got.reason
        );

        let times: &[(&str, &[f64])] = &[("none", &[2.0, 2.01]), ("own", &[1.5, 1.51])];
        let mut lab = MockLab::new(times);
        lab.look.switched_off = true;
        lab.candidates = vec![candidate("own")];
        let got = lab.tune(600).findings;
        assert_eq!((got.advice, got.step), (Advice::Apply, Step::Ceiling));
        assert!(got.permanent[0].measured.is_some());
    }

    #[test]
    fn few_arms_where_time_is_short() {
        let times: &[(&str, &[f64])] = &[
            ("none", &[10.0]),
            ("plan", &[8.0]),
            ("all", &[8.0]),
            ("tunable", &[8.0]),
        ];
        let mut lab = MockLab::new(times);
        lab.candidates = vec![candidate("tunable")];
        let got = lab.tune(600).findings;
        let names: Vec<&str> = got
            .comparison
            .as_ref()
            .unwrap()
            .arms
            .iter()
            .map(|arm| arm.name.as_str())
            .collect();
        assert_eq!(names, ["none", "plan"]);
        assert!(lab.mock.clock <= 600.0 + 10.0);
        let not = |p: &Permanent| p.measured.is_none() && p.state == "not measured";
        assert!(got.permanent.iter().all(not), "{:?}", got.permanent);
    }

    #[test]
    fn a_run_longer_than_the_limit_is_said_and_ends_in_time() {
        let times: &[(&str, &[f64])] = &[("none", &[900.0]), ("plan", &[900.0]), ("all", &[900.0])];
        let mut lab = MockLab::new(times);
        let got = lab.tune(60).findings;
        assert_eq!(got.advice, Advice::DoNothing);
        assert!(got.reason.contains("--within"), "{}", got.reason);
        assert!(lab.mock.clock <= 60.0, "{}", lab.mock.clock);
    }

    #[test]
    fn ctrl_c_in_each_step_keeps_what_was_there() {
        use Step::{After, Ceiling, Compare, Costs, Look, Plan, Profile};
        for step in [Look, Ceiling, Costs, Profile, Plan, Compare, After] {
            let times: &[(&str, &[f64])] = &[
                ("none", &[2.0, 2.01]),
                ("plan", &[1.5, 1.51]),
                ("all", &[1.5, 1.51]),
            ];
            let mut lab = MockLab::new(times);
            lab.interrupt = Some(step);
            let results = lab.tune(600);
            assert!(!results.findings.complete, "{step:?}");
            assert!(results.findings.reason.contains("interrupted"), "{step:?}");
            assert_eq!(
                lab.steps.last(),
                Some(&match step {
                    // Costs and profile are one step for the user.
                    Costs => Profile,
                    other => other,
                })
            );
            assert!(lab.kept > 0, "{step:?}");
            assert_eq!(
                results.profile.is_some(),
                ![Look, Ceiling].contains(&step),
                "{step:?}"
            );
        }
    }

    #[test]
    fn an_output_that_the_plan_changes_is_an_error() {
        let times: &[(&str, &[f64])] = &[("none", &[2.0]), ("all", &[1.5])];
        let mut lab = MockLab::new(times);
        lab.mock.fill = |arm: &Arm, _: usize, sample: &mut Sample| {
            sample.output = Some([arm.name.len() as u64, 0]);
        };
        let error = tune(&mut lab, "x", Duration::from_secs(600)).unwrap_err();
        assert!(
            error.to_string().contains("PRINTS SOMETHING ELSE"),
            "{error}"
        );
    }
}
