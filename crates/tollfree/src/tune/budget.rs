// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the time limit is shared out. A step gets a share of what is left when
//! it begins, so that what an early step does not use goes to the later ones.

use std::time::Duration;

/// The steps that take time, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// What is huge already, and how much memory is touched.
    Look,
    /// None against everything huge.
    Ceiling,
    /// Prices of this machine.
    Costs,
    Profile,
    Plan,
    /// None, plan, all, and the permanent changes.
    Compare,
    /// A second recording, under the plan.
    After,
}

impl Step {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Step::Look => "quick look",
            Step::Ceiling => "ceiling",
            Step::Costs => "prices of this machine",
            Step::Profile => "profile",
            Step::Plan => "plan",
            Step::Compare => "comparison",
            Step::After => "second profile",
        }
    }

    /// What the step may take at most of the time that is `left` of `within`.
    pub fn allowance(self, left: Duration, within: Duration) -> Duration {
        match self {
            Step::Look => LONGEST_LOOK.min(within.mul_f64(0.1)).min(left),
            Step::Ceiling => left.mul_f64(0.3),
            // A quarter of the whole at most, as the design has it.
            Step::Costs => LONGEST_COSTS.min(within / 4).min(left.mul_f64(0.4)),
            Step::Profile => left.mul_f64(0.4),
            Step::Plan => left,
            // The rest is for the second profile and the report.
            Step::Compare => left.mul_f64(0.75),
            Step::After => left.mul_f64(0.95),
        }
    }
}

const LONGEST_LOOK: Duration = Duration::from_secs(30);
const LONGEST_COSTS: Duration = Duration::from_secs(60);

/// The shares as they are announced before anything runs: `quick look 30 s, ceiling 2 min 51 s, ...`.
pub fn announcement(within: Duration, costs_known: bool) -> String {
    let mut left = within;
    let mut parts = Vec::new();
    for step in [
        Step::Look,
        Step::Ceiling,
        Step::Costs,
        Step::Profile,
        Step::Compare,
    ] {
        if step == Step::Costs && costs_known {
            continue;
        }
        let share = step.allowance(left, within);
        left -= share;
        parts.push(format!("{} {}", step.name(), words(share)));
    }
    parts.join(", ")
}

/// `45 s`, `2 min`, `2 min 30 s`.
pub fn words(time: Duration) -> String {
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
mod tests {
    use super::*;

    const ALL: [Step; 7] = [
        Step::Look,
        Step::Ceiling,
        Step::Costs,
        Step::Profile,
        Step::Plan,
        Step::Compare,
        Step::After,
    ];

    #[test]
    fn the_shares_never_add_up_to_more_than_the_whole() {
        for seconds in [1, 20, 240, 600, 7200] {
            let within = Duration::from_secs(seconds);
            let mut left = within;
            for step in ALL.into_iter().filter(|step| *step != Step::Plan) {
                let share = step.allowance(left, within);
                assert!(share <= left, "{step:?} of {left:?}");
                left -= share;
            }
        }
    }

    #[test]
    fn prices_take_a_quarter_at_most() {
        let within = Duration::from_secs(100);
        assert!(Step::Costs.allowance(within, within) <= within / 4);
    }

    #[test]
    fn the_limit_is_announced_step_by_step() {
        let text = announcement(Duration::from_secs(600), false);
        assert!(
            text.starts_with("quick look 30 s, ceiling 2 min 51 s, prices"),
            "{text}"
        );
        let known = announcement(Duration::from_secs(600), true);
        assert!(!known.contains("prices"), "{known}");
    }

    #[test]
    fn times_in_words() {
        assert_eq!(words(Duration::from_millis(2500)), "2.5 s");
        assert_eq!(words(Duration::from_secs(60)), "1 min");
        assert_eq!(words(Duration::from_secs(95)), "1 min 35 s");
    }
}
