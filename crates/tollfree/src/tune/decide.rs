// SPDX-License-Identifier: MIT OR Apache-2.0
//! The five steps and their early ends. Everything that touches the machine is
//! behind [`Lab`], so that the tests decide what is measured.

use std::time::Duration;

use anyhow::Result;
use toll_model::cost::CostTable;
use toll_model::plan::{Estimate, Plan, Verdict as Choice};
use toll_model::price::{self, price};
use toll_model::profile::Profile;
use toll_model::stats::Interval;

use super::budget::Step;
use super::findings::{Advice, Results};
use crate::compare::observe::Look;
use crate::compare::outputs::OutputCheck;
use crate::compare::schedule::{Executor, FEWEST, Rules, SMALLEST_EFFECT, Stopped};
use crate::compare::{Arm, Comparison, compare, predicted};
use crate::error::UserError;
use crate::permanent::{Candidate, Permanent, in_source};
use crate::units;

/// An arm of the last comparison is left out if fewer rounds than this would fit with it.
const ROUNDS_WORTH_IT: u32 = FEWEST + 3;
/// From this share of huge memory on, the program counts as huge already.
const ALREADY_HUGE: f64 = 0.5;

/// Everything that tune does to the machine.
pub trait Lab {
    /// Runs arms; its clock is tune's.
    fn executor(&mut self) -> &mut dyn Executor;
    /// Runs the program once as it is and watches; says whether it ended within the time.
    fn look(&mut self, until: Duration) -> Result<(Look, bool)>;
    /// Bytes that this CPU's second-level TLB reaches with small pages.
    fn reach(&self) -> u64;
    /// Changes that fit the program.
    fn candidates(&self, look: &Look) -> Vec<Candidate>;
    /// This machine's prices, measured within the time if they are not known.
    fn costs(&mut self, within: Duration) -> Result<CostTable>;
    /// Records a profile; `native` is the time of a run without the recorder, in seconds.
    fn record(
        &mut self,
        limit: Duration,
        native: Option<f64>,
        under: Option<&Plan>,
    ) -> Result<Profile>;
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
}

/// Runs the steps until one of them ends it. The results are complete in any case but an error.
pub fn tune(lab: &mut dyn Lab, program: &str, within: Duration) -> Result<Results> {
    let mut run = Run {
        lab,
        within,
        results: Results::new(program, within.as_secs_f64()),
    };
    run.steps()?;
    if run.lab.interrupted() {
        let step = run.results.findings.step.name();
        run.results.findings.complete = false;
        run.end(format!(
            "interrupted in the step \"{step}\"; what was measured so far is kept"
        ));
    }
    run.results.findings.seconds = run.lab.executor().now().as_secs_f64();
    Ok(run.results)
}

struct Run<'a> {
    lab: &'a mut dyn Lab,
    within: Duration,
    results: Results,
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

    // 1. Quick look.
    fn look(&mut self) -> Result<Next> {
        let allowance = self.begin(Step::Look);
        let until = self.until(allowance);
        let (look, ended) = self.lab.look(until)?;
        self.results.findings.look = Some(look.clone());
        if let Next::End = self.kept()? {
            return Ok(Next::End);
        }
        let reach = self.lab.reach();
        if ended && look.windows > 0 && look.working_set < reach {
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
        let mut arms = vec![Arm::none(), Arm::all()];
        if look.switched_off {
            // Nobody can make it huge from outside; only its own switch can.
            match self.measurable(&look).into_iter().next() {
                Some((_, arm)) => arms[1] = arm,
                None => {
                    return Ok(self.end(
                        "the program switches huge pages off for itself (PR_SET_THP_DISABLE), or \
                         inherits that; it has to be changed there first"
                            .to_owned(),
                    ));
                }
            }
        }
        if is_huge(&look) || crate::compare::thp_is_always() {
            arms.push(Arm::never());
        }
        let allowance = self.begin(Step::Ceiling);
        let until = self.until(allowance);
        let ceiling = self.run_arms(&arms, until, None)?;
        self.results.ceiling(ceiling.clone());
        if let Next::End = self.kept()? {
            return Ok(Next::End);
        }
        self.judge_ceiling(&ceiling, &look)
    }

    fn judge_ceiling(&mut self, ceiling: &Comparison, look: &Look) -> Result<Next> {
        let Some(interval) = ceiling.main() else {
            self.note("the program takes too long for this time limit to measure what is to gain; raise --within");
            return Ok(Next::On);
        };
        if interval.inside(SMALLEST_EFFECT) {
            let reason = no_gain(ceiling, look, &interval);
            return Ok(self.end(reason));
        }
        if look.switched_off {
            return Ok(self.judge_changes(ceiling, look));
        }
        Ok(Next::On)
    }

    /// 3. and 4. Profile and plan. A program that cannot be recorded can still be measured.
    fn profile(&mut self) -> Result<Next> {
        let allowance = self.begin(Step::Costs);
        let costs = self.lab.costs(allowance)?;
        let allowance = self.begin(Step::Profile);
        match self.lab.record(allowance, self.native(), None) {
            Ok(profile) => self.results.profile = Some(profile),
            Err(error) if is_interrupt(&error) => return Ok(Next::End),
            Err(error) => self.note(&format!("no profile, and so no plan: {error:#}")),
        }
        if let Next::End = self.kept()? {
            return Ok(Next::End);
        }
        self.begin(Step::Plan);
        if let Some(profile) = &self.results.profile {
            let options = price::Options {
                baseline_ns: self.cpu_ns(),
                ceiling: self.ceiling_estimate(),
                ..self.lab.price_options()
            };
            let plan = price(profile, &costs, options);
            self.results.findings.planned_bytes = Some(plan.huge().map(|r| r.length).sum());
            self.results.findings.memory = memory(&plan);
            self.results.plan = Some(plan);
        }
        self.kept()
    }

    /// 5. The verdict comes from here.
    fn compare(&mut self) -> Result<Next> {
        let look = self.results.findings.look.clone().unwrap_or_default();
        let allowance = self.begin(Step::Compare);
        let arms = self.arms(&look, allowance)?;
        let until = self.until(allowance);
        let plan = self
            .results
            .plan
            .clone()
            .filter(|plan| !plan.does_nothing());
        let comparison = self.run_arms(&arms, until, plan.as_ref())?;
        self.results.compared(comparison.clone());
        let next = self.judge_changes(&comparison, &look);
        if let Next::End = self.kept()? {
            return Ok(Next::End);
        }
        Ok(match plan {
            Some(_) => Next::On,
            None => next,
        })
    }

    /// The arms of the last comparison, as many as the time allows; the plan first.
    fn arms(&mut self, look: &Look, allowance: Duration) -> Result<Vec<Arm>> {
        let mut arms = vec![Arm::none()];
        if let Some(plan) = self
            .results
            .plan
            .clone()
            .filter(|plan| !plan.does_nothing())
        {
            arms.push(Arm::plan(self.lab.plan_file(&plan)?));
        }
        let changes = self.measurable(look).into_iter().map(|(_, arm)| arm);
        let mut others: Vec<Arm> = std::iter::once(Arm::all()).chain(changes).collect();
        if is_huge(look) || crate::compare::thp_is_always() {
            others.push(Arm::never());
        }
        // Two arms at least; more while enough rounds of them fit.
        let run = self.native().unwrap_or(0.0);
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
        let best = permanent
            .iter()
            .filter_map(|p| p.measured)
            .find(|i| i.low > 1.0);
        match (planned.filter(|interval| interval.low > 1.0), best) {
            (Some(plan), _) => self.apply(format!(
                "the plan's {} make it {} times as fast in {}",
                units::bytes(self.results.findings.planned_bytes.unwrap_or(0)),
                with_interval(&plan),
                comparison.resource.name()
            )),
            (None, Some(change)) => {
                let plan = match planned {
                    Some(plan) => format!("; the plan alone: {}", with_interval(&plan)),
                    None => String::new(),
                };
                self.apply(format!(
                    "the change below makes it {} times as fast in {}{plan}",
                    with_interval(&change),
                    comparison.resource.name()
                ))
            }
            (None, None) => {
                permanent.clear();
                self.end(not_proven(comparison));
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
        let measured = |name: &str| comparison.arm(name).and_then(|arm| arm.speedup);
        let mut all: Vec<Permanent> = self
            .lab
            .candidates(look)
            .iter()
            .map(|c| c.with(measured(c.name)))
            .collect();
        // A change that was measured and does not gain is no change to make.
        all.retain(|p| p.measured.is_none_or(|interval| interval.low > 1.0));
        if let Some(plan) = &self.results.plan {
            all.extend(in_source(plan).iter().map(|candidate| candidate.with(None)));
        }
        let gain = |p: &Permanent| p.measured.map_or(0.0, |interval| interval.median);
        all.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
        all
    }

    /// The picture afterwards, if there is time for it.
    fn after(&mut self) -> Result<()> {
        let reason = self.results.findings.reason.clone();
        let allowance = self.begin(Step::After);
        let plan = self
            .results
            .plan
            .clone()
            .filter(|plan| !plan.does_nothing());
        let Some(plan) = plan.filter(|_| allowance >= SHORTEST_RECORDING) else {
            return Ok(());
        };
        match self.lab.record(allowance, self.native(), Some(&plan)) {
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
        let rules = Rules {
            pairs: None,
            deadline: until.min(self.within),
        };
        let program = self.results.findings.program.clone();
        let mut comparison = compare(self.lab.executor(), &program, arms, &rules, None)?;
        comparison.predicted_speedup = plan.and_then(|plan| predicted(plan, &comparison));
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

    /// Seconds of one run as it is.
    fn native(&self) -> Option<f64> {
        let ceiling = self.results.findings.ceiling.as_ref()?;
        ceiling.arms[0].median.as_ref().map(|median| median.elapsed)
    }

    fn cpu_ns(&self) -> Option<f64> {
        let ceiling = self.results.findings.ceiling.as_ref()?;
        ceiling.arms[0]
            .median
            .as_ref()
            .map(|median| median.cpu * 1e9)
            .filter(|ns| *ns > 0.0)
    }

    /// The ceiling as a second opinion for the model, which works with 80 % intervals.
    fn ceiling_estimate(&self) -> Option<Estimate> {
        let ceiling = self.results.findings.ceiling.as_ref()?;
        let all = ceiling
            .speedup_all
            .filter(|_| ceiling.stopped != Stopped::Interrupted)?;
        Some(super::narrowed(&all))
    }

    fn note(&mut self, text: &str) {
        self.results.findings.notes.push(text.to_owned());
    }
}

/// A recording shorter than this shows nothing.
const SHORTEST_RECORDING: Duration = Duration::from_secs(2);

/// Whether most of the program's anonymous memory is huge without us.
pub fn is_huge(look: &Look) -> bool {
    look.anonymous > 0 && look.huge as f64 >= ALREADY_HUGE * look.anonymous as f64
}

fn no_gain(ceiling: &Comparison, look: &Look, interval: &Interval) -> String {
    let never = ceiling.arm("never").and_then(|arm| arm.speedup);
    let mut reason = match (is_huge(look), never) {
        (true, Some(never)) => format!(
            "most of its memory is huge already ({} of {}; without, it would run {} times as fast), and \
             making the rest huge changes nothing: {}",
            units::bytes(look.huge),
            units::bytes(look.anonymous),
            with_interval(&never),
            with_interval(interval)
        ),
        _ => format!(
            "even with everything huge it runs {} times as fast: within +/- 2 %",
            with_interval(interval)
        ),
    };
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

/// Why nothing is advised after the last comparison.
fn not_proven(comparison: &Comparison) -> String {
    let Some(interval) = comparison.main() else {
        return "the time limit did not suffice to measure the plan; raise --within".to_owned();
    };
    let arm = &comparison.arms[1].name;
    if interval.high < 1.0 {
        return format!(
            "{arm} is slower: {} times as fast",
            with_interval(&interval)
        );
    }
    let settle = match comparison.pairs_to_settle {
        Some(pairs) if pairs > comparison.pairs => {
            format!(
                "; about {pairs} pairs instead of {} would settle it",
                comparison.pairs
            )
        }
        _ => String::new(),
    };
    format!(
        "it cannot be told whether {arm} gains: {} times as fast; an effect below {} is lost in the \
         noise of these runs{settle}",
        with_interval(&interval),
        units::percent(interval.smallest_visible_effect())
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
