// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides the time limit. A step gets a share of the remaining time when it begins, so that the
//! time that early steps do not use is left for later ones.

use std::time::Duration;

/// The steps that take time, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Observation of the huge-page-backed memory and the working set.
    Look,
    /// The program as it is against everything huge.
    #[serde(alias = "ceiling")]
    UpperBound,
    /// Costs of this machine.
    Costs,
    Profile,
    Plan,
    /// The program as it is, plan, all, and the permanent changes.
    Compare,
    /// A second recording, under the plan.
    After,
}

impl Step {
    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Step::Look => "quick look",
            Step::UpperBound => "upper bound",
            Step::Costs => "costs of this machine",
            Step::Profile => "profile",
            Step::Plan => "plan",
            Step::Compare => "comparison",
            Step::After => "second profile",
        }
    }

    /// Maximum time of the step, with `left` remaining of `within`.
    pub(crate) fn allowance(self, left: Duration, within: Duration) -> Duration {
        match self {
            Step::Look => LONGEST_LOOK.min(within.mul_f64(0.1)).min(left),
            Step::UpperBound => left.mul_f64(0.3),
            // At most a quarter of the total.
            Step::Costs => LONGEST_COSTS.min(within / 4).min(left.mul_f64(0.4)),
            Step::Profile => left.mul_f64(0.4),
            Step::Plan => left,
            // The rest is for the report. A second profile gets the time that the pairs do not
            // need.
            Step::Compare => left.mul_f64(0.95),
            Step::After => left.mul_f64(0.95),
        }
    }
}

const LONGEST_LOOK: Duration = Duration::from_secs(30);
const LONGEST_COSTS: Duration = Duration::from_secs(60);

/// The time of a step.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Spent {
    pub step: Step,
    pub seconds: f64,
    /// The maximum when it began.
    pub allowed_seconds: f64,
}

/// The time spent, step by step.
#[derive(Debug, Default)]
pub(crate) struct Spending {
    done: Vec<Spent>,
    /// The current step, its start, and its maximum.
    open: Option<(Step, Duration, Duration)>,
}

impl Spending {
    /// Continues after the spending of an earlier tune.
    pub fn after(done: Vec<Spent>) -> Spending {
        Spending { done, open: None }
    }

    /// Begins a step and ends the previous one. `now` is by the clock of the whole tune.
    pub fn begin(&mut self, step: Step, allowance: Duration, now: Duration) {
        self.close(now);
        self.open = Some((step, now, allowance));
    }

    /// Returns the time of all steps; the last one ends now.
    pub fn end(mut self, now: Duration) -> Vec<Spent> {
        self.close(now);
        self.done
    }

    fn close(&mut self, now: Duration) {
        if let Some((step, begun, allowance)) = self.open.take() {
            self.done.push(Spent {
                step,
                seconds: now.saturating_sub(begun).as_secs_f64(),
                allowed_seconds: allowance.as_secs_f64(),
            });
        }
    }
}

/// `quick look 10 s, upper bound 1 min`; steps below a tenth of a second are omitted.
pub(crate) fn spent_words(spent: &[Spent]) -> String {
    let long = spent.iter().filter(|it| it.seconds >= 0.1);
    let part = |it: &Spent| {
        let time = words(Duration::from_secs_f64(it.seconds));
        format!("{} {time}", it.step.name())
    };
    long.map(part).collect::<Vec<_>>().join(", ")
}

/// The planned course of a tune.
#[derive(Debug, Clone, Copy)]
pub enum Course {
    /// All steps; whether this machine's costs are already known.
    Whole { costs_known: bool },
    /// The comparison of an earlier tune.
    Resumed,
    /// A running process: the longest first run of a workload, if there is one, and how long it is
    /// observed.
    Live {
        once: Option<Duration>,
        look: Duration,
    },
}

/// The shares, as announced before anything runs: `at most 10 min: quick look 30 s, upper bound 2
/// min 51 s, ...`.
pub fn announcement(within: Duration, course: Course) -> String {
    let mut left = within;
    let mut parts = Vec::new();
    let mut add = |name: &str, share: Duration| parts.push(format!("{name} {}", words(share)));
    match course {
        Course::Whole { costs_known } => {
            let costs = [Step::Costs].into_iter().filter(|_| !costs_known);
            let steps = [Step::Look, Step::UpperBound].into_iter().chain(costs);
            for step in steps.chain([Step::Profile, Step::Compare]) {
                let share = step.allowance(left, within);
                left -= share;
                add(step.name(), share);
            }
        }
        Course::Resumed => add(Step::Compare.name(), within),
        Course::Live { once, look } => {
            if let Some(once) = once {
                left = left.saturating_sub(once);
                add("workload once", once);
            }
            add(Step::Look.name(), look);
            add(Step::Compare.name(), left.saturating_sub(look));
        }
    }
    format!("at most {}: {}", words(within), parts.join(", "))
}

/// Maximum time of the first run of the workload on a live process.
pub(crate) fn once(within: Duration) -> Duration {
    within.mul_f64(0.2)
}

/// `45 s`, `2 min`, `2 min 30 s`.
pub(crate) fn words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 10.0 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    match (whole / 60, whole % 60) {
        (0, s) => format!("{s} s"),
        (m, 0) => format!("{m} min"),
        (m, s) => format!("{m} min {s} s"),
    }
}

#[cfg(test)]
mod tests;
