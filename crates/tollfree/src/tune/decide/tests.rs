// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps on a machine where everything takes the time that it is told.

use std::path::PathBuf;

use toll_linux::calibrate::Tail;
use toll_linux::sys::Mode;
use toll_model::anchor::{AnchorKind, Level};
use toll_model::builder::{Counts, Meta, ProfileBuilder};
use toll_model::profile::{Program, Source};
use toll_model::stats::Verdict;

use super::super::today::SwitchedOff;
use super::*;
use crate::compare::Change;
use crate::compare::schedule::tests::Mock;
use crate::permanent::Permanent;

const MIB: u64 = 1 << 20;

/// Seconds of the runs of each arm, by its name.
type Times<'a> = &'a [(&'a str, &'a [f64])];

/// A plan that gains, and everything huge as well.
const GAIN: Times<'static> = &[
    ("none", &[2.0, 2.01]),
    ("plan", &[1.5, 1.51]),
    ("all", &[1.5, 1.51]),
];

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
    fn new(times: Times) -> MockLab {
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

    /// With a permanent change that can be measured.
    fn with_change(times: Times, name: &'static str) -> MockLab {
        MockLab {
            candidates: vec![candidate(name)],
            ..MockLab::new(times)
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
    let times: Times = &[
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
fn on_a_machine_at_never_another_setting_is_estimated() {
    // Collapsing costs more than it gains.
    let mut lab = MockLab::with_change(
        &[
            ("none", &[2.0, 2.01]),
            ("all", &[2.3, 2.31]),
            ("tunable", &[1.0, 1.01]),
        ],
        "tunable",
    );
    lab.host = Host {
        mode: Some(Mode::Never),
        ..lab.host
    };
    let got = lab.tune(600).findings;
    assert_eq!(
        (got.advice, got.answer),
        (Advice::DoNothing, Answer::DoNothing)
    );
    // The change would ask for huge pages that nobody gets here.
    assert_eq!(got.comparison, None);
    let estimate = got.today.unwrap().at_madvise.unwrap();
    assert!(estimate.planned_bytes > 0 && estimate.speedup.median > 1.0);
    for part in [
        "this machine has them off (THP never); memory that is collapsed into huge pages, which \
         works all the same, makes it 0.870",
        "With THP madvise (as root: `echo madvise >",
        "is estimated to make it",
        "not measured",
    ] {
        assert!(got.reason.contains(part), "{part}: {}", got.reason);
    }
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
    let mut lab = MockLab::new(GAIN);
    lab.look.switched_off = true;
    lab.host.inherits_off = true;
    let got = lab.tune(600).findings;
    assert_eq!(got.advice, Advice::Apply, "{}", got.reason);
    assert_eq!(got.today.unwrap().switched_off, Some(SwitchedOff::Parent));
}

#[test]
fn a_gain_goes_through_all_steps_and_is_applied() {
    let times: Times = &[
        ("none", &[2.0, 2.01]),
        ("plan", &[1.5, 1.51]),
        ("all", &[1.5, 1.51]),
        ("tunable", &[1.45, 1.46]),
    ];
    let mut lab = MockLab::with_change(times, "tunable");
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
    let times: Times = &[
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
    let times: Times = &[
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
    let tunable: Times = &[("tunable", &[1.5, 1.51])];
    let times = [GAIN, tunable].concat();
    type Fill = fn(&Arm, usize, &mut Sample);
    let tuned = |allowed: f64, fill: Fill| {
        let mut lab = MockLab::with_change(&times, "tunable");
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
    let times: Times = &[
        ("none", &[2.0, 2.001]),
        ("plan", &[1.975, 1.976]),
        ("all", &[1.5, 1.501]),
        ("tunable", &[1.98, 1.981]),
    ];
    let mut lab = MockLab::with_change(times, "tunable");
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
    let times: Times = &[
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
    let times: Times = &[
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
    let times: Times = &[("none", &[2.0, 2.01]), ("all", &[1.6, 1.61])];
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
        let times: Times = &[("none", &none), ("all", &all), ("tunable", &change)];
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
    let noted = |warm, complete, cold| {
        let mut lab = MockLab::new(GAIN);
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

/// So scattered that more pairs could always change the answer.
const NOISE: Times = &[
    ("none", &[2.0, 2.6, 1.8, 2.2]),
    ("plan", &[1.9, 2.5, 1.7, 2.4, 2.0]),
    ("all", &[1.9, 1.5, 2.6, 2.0, 2.1]),
];

#[test]
fn the_time_limit_is_told_from_other_ends() {
    let clear: Times = GAIN;
    assert!(!MockLab::new(clear).tune(600).findings.time_limit_reached);
    assert!(MockLab::new(NOISE).tune(200).findings.time_limit_reached);
    let nothing: Times = &[("none", &[2.0, 2.004]), ("all", &[1.99, 2.0])];
    assert!(!MockLab::new(nothing).tune(600).findings.time_limit_reached);
    let long: Times = &[("none", &[900.0]), ("plan", &[900.0]), ("all", &[900.0])];
    assert!(MockLab::new(long).tune(60).findings.time_limit_reached);
}

#[test]
fn pairs_come_before_a_second_profile() {
    let mut lab = MockLab::new(NOISE);
    lab.slow = [0.0, 20.0];
    let got = lab.tune(200).findings;
    assert!(got.time_limit_reached);
    assert_eq!(lab.under_plan, 0, "{:?}", got.spent);
    let of = |step: Step| got.spent.iter().find(|it| it.step == step);
    assert_eq!(of(Step::After), None);
    // Only a twentieth of what is left when it begins is kept back.
    let left = 200.0 - of(Step::Compare).map_or(0.0, |it| it.allowed_seconds);
    let before: f64 = got.spent.iter().map(|it| it.seconds).sum::<f64>()
        - of(Step::Compare).map_or(0.0, |it| it.seconds);
    assert!(left - before < 10.0, "{:?}", got.spent);
    let all: f64 = got.spent.iter().map(|it| it.seconds).sum();
    assert!((all - got.seconds).abs() < 1.0, "{:?}", got.spent);

    let mut lab = MockLab::new(GAIN);
    lab.slow = [0.0, 20.0];
    let got = lab.tune(600).findings;
    assert_eq!(lab.under_plan, 1);
    assert_eq!(got.spent.last().map(|it| it.step), Some(Step::After));
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
    let arms: Vec<(&str, &[f64])> = ["plan", "all", "tunable"].map(|arm| (arm, &all[..])).into();
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
        ([ALL, ALL], 0.2, [12, 7, 3]),
    ] {
        let got = rounds_of_seconds(slow, scatter);
        let enough = got.iter().zip(expected).all(|(got, least)| *got >= least);
        assert!(enough, "{slow:?}, {scatter}: {got:?}");
    }
}

#[test]
fn a_change_that_does_not_gain_is_not_printed() {
    let times: Times = &[
        ("none", &[2.0, 2.01]),
        ("plan", &[1.5, 1.51]),
        ("all", &[1.5, 1.51]),
        ("useless", &[2.0, 2.01]),
    ];
    let mut lab = MockLab::with_change(times, "useless");
    let change = lab.candidates[0].change.clone();
    let got = lab.tune(600).findings;
    assert_eq!(got.advice, Advice::Apply);
    assert!(got.permanent.is_empty(), "{:?}", got.permanent);
    // The table has its name all the same.
    let note = format!("variant useless: {change}");
    assert!(got.notes.contains(&note), "{:?}", got.notes);
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

    let times: Times = &[("none", &[2.0, 2.01]), ("own", &[1.5, 1.51])];
    let mut lab = MockLab::new(times);
    lab.look.switched_off = true;
    lab.candidates = vec![candidate("own")];
    let got = lab.tune(600).findings;
    assert_eq!((got.advice, got.step), (Advice::Apply, Step::Ceiling));
    assert!(got.permanent[0].measured.is_some());
}

#[test]
fn few_arms_where_time_is_short() {
    let times: Times = &[
        ("none", &[10.0]),
        ("plan", &[8.0]),
        ("all", &[8.0]),
        ("tunable", &[8.0]),
    ];
    let mut lab = MockLab::with_change(times, "tunable");
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
    let times: Times = &[("none", &[900.0]), ("plan", &[900.0]), ("all", &[900.0])];
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
        let mut lab = MockLab::new(GAIN);
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
    let times: Times = &[("none", &[2.0]), ("all", &[1.5])];
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
