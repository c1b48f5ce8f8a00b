// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const ALL: [Step; 7] = [
    Step::Look,
    Step::UpperBound,
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
fn costs_take_a_quarter_at_most() {
    let within = Duration::from_secs(100);
    assert!(Step::Costs.allowance(within, within) <= within / 4);
}

#[test]
fn the_limit_is_announced_step_by_step() {
    let said = |course| announcement(Duration::from_secs(600), course);
    let text = said(Course::Whole { costs_known: false });
    assert!(
        text.starts_with("at most 10 min: quick look 30 s, upper bound 2 min 51 s, costs"),
        "{text}"
    );
    let known = said(Course::Whole { costs_known: true });
    assert!(!known.contains("costs"), "{known}");
    assert_eq!(said(Course::Resumed), "at most 10 min: comparison 10 min");
    let live = |once| {
        said(Course::Live {
            once,
            look: Duration::from_secs(10),
        })
    };
    assert_eq!(
        live(Some(Duration::from_secs(120))),
        "at most 10 min: workload once 2 min, quick look 10 s, comparison 7 min 50 s"
    );
    assert_eq!(
        live(None),
        "at most 10 min: quick look 10 s, comparison 9 min 50 s"
    );
}

#[test]
fn what_was_spent_adds_up() {
    let at = Duration::from_secs;
    let mut spending = Spending::default();
    spending.begin(Step::Look, at(30), at(1));
    spending.begin(Step::UpperBound, at(100), at(11));
    let spent = spending.end(at(71));
    let seconds: Vec<f64> = spent.iter().map(|it| it.seconds).collect();
    assert_eq!(seconds, [10.0, 60.0]);
    assert_eq!(spent[1].allowed_seconds, 100.0);
    assert_eq!(spent_words(&spent), "quick look 10 s, upper bound 1 min");
    let mut more = Spending::after(spent);
    more.begin(Step::Compare, at(5), at(0));
    assert_eq!(more.end(at(0)).len(), 3);
}

#[test]
fn times_in_words() {
    assert_eq!(words(Duration::from_millis(2500)), "2.5 s");
    assert_eq!(words(Duration::from_secs(60)), "1 min");
    assert_eq!(words(Duration::from_secs(95)), "1 min 35 s");
}
