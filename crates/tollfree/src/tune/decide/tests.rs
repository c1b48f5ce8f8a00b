// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps on a mock machine with given times.

use std::path::PathBuf;

use toll_act::permanent::Change;
use toll_act::permanent::Permanent;
use toll_linux::calibrate::Tail;
use toll_linux::sys::Mode;
use toll_model::builder::{Counts, Meta, ProfileBuilder};
use toll_model::profile::{Program, Source};
use toll_model::site::{Level, SiteKind};
use toll_model::stats::Verdict;

use super::super::today::SwitchedOff;
use super::*;
use crate::compare::schedule::tests::Mock;

const MIB: u64 = 1 << 20;

/// Seconds of the runs of each variant, by its name.
type Times<'a> = &'a [(&'a str, &'a [f64])];

/// A plan with a gain, and the same for everything huge.
const GAIN: Times<'static> = &[
    ("none", &[2.0, 2.01]),
    ("plan", &[1.5, 1.51]),
    ("all", &[1.5, 1.51]),
];

/// A mock machine with given times.
struct MockExperiment {
    mock: Mock,
    look: Observation,
    /// The status of the first run, if it ended in time.
    ended: Option<i32>,
    candidates: Vec<Candidate>,
    profile: Option<Profile>,
    steps: Vec<Step>,
    kept: usize,
    warm: bool,
    costs: CostTable,
    /// Seconds of calibration and of a recording, if there is time.
    slow: [f64; 2],
    /// The step at which Ctrl-C is simulated.
    interrupt: Option<Step>,
    under_plan: usize,
    under_never: usize,
    host: Host,
    allowed_growth: f64,
    /// How often the tails of faults were measured.
    tails: usize,
}

impl MockExperiment {
    fn new(times: Times) -> MockExperiment {
        MockExperiment {
            mock: Mock::new(times),
            look: Observation {
                windows: 3,
                working_set: 256 * MIB,
                anonymous: 256 * MIB,
                ..Observation::default()
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
    fn with_change(times: Times, name: &'static str) -> MockExperiment {
        MockExperiment {
            candidates: vec![candidate(name)],
            ..MockExperiment::new(times)
        }
    }

    fn tune(&mut self, seconds: u64) -> Results {
        tune(self, "x", Duration::from_secs(seconds)).unwrap()
    }
}

impl Experiment for MockExperiment {
    fn executor(&mut self) -> &mut dyn Executor {
        &mut self.mock
    }
    fn look(&mut self, _until: Duration) -> Result<(Observation, Option<i32>)> {
        self.mock.clock += 1.0;
        Ok((self.look.clone(), self.ended))
    }
    fn reach(&self) -> u64 {
        12 * MIB
    }
    fn candidates(&self, _look: &Observation) -> Vec<Candidate> {
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
    fn estimate_options(&self) -> estimate::Options {
        estimate::Options {
            warm: self.warm,
            ..estimate::Options::default()
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

/// Pointer chasing over 256 MiB of one mapping.
fn profile() -> Profile {
    let mut builder = ProfileBuilder::default();
    let site = builder.site(SiteKind::Heap, 256 * MIB, 0, Level::Exact);
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
        builder.count(site, page * 4096, &counts);
    }
    builder.finish(meta)
}

fn candidate(name: &'static str) -> Candidate {
    Candidate {
        name,
        change: format!("set {name}"),
        how: "export A=1".to_owned(),
        variant: Some(Change {
            env: vec![("A".into(), "1".into())],
            ..Change::default()
        }),
    }
}

#[test]
fn a_small_working_set_ends_it_at_once() {
    let mut experiment = MockExperiment::new(&[]);
    experiment.look.working_set = 4 * MIB;
    let got = experiment.tune(600).findings;
    assert_eq!((got.advice, got.step), (Advice::DoNothing, Step::Look));
    assert!(
        got.reason.contains("reach of this CPU's TLB"),
        "{}",
        got.reason
    );
    assert_eq!(experiment.steps, [Step::Look]);
    assert_eq!((got.verdict, got.speedup, got.pairs), (None, None, None));
}

#[test]
fn a_look_that_was_cut_short_proves_nothing() {
    let mut experiment = MockExperiment::new(&[("none", &[1.0]), ("all", &[1.0])]);
    (experiment.look.working_set, experiment.ended) = (4 * MIB, None);
    experiment.tune(600);
    assert!(experiment.steps.contains(&Step::UpperBound));
}

#[test]
fn a_upper_bound_within_two_percent_ends_it() {
    let mut experiment = MockExperiment::new(&[("none", &[2.0, 2.004]), ("all", &[1.99, 2.0])]);
    let got = experiment.tune(600).findings;
    assert_eq!(
        (got.advice, got.step),
        (Advice::DoNothing, Step::UpperBound)
    );
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
    let mut experiment = MockExperiment::new(times);
    experiment.look.huge = 200 * MIB;
    let got = experiment.tune(600).findings;
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
    let never = got
        .upper_bound
        .unwrap()
        .variant("never")
        .unwrap()
        .speedup
        .unwrap();
    assert!((never.median - 0.666).abs() < 0.01);
    let gain = got.today.unwrap().gain.unwrap();
    assert!((gain.median - 1.5).abs() < 0.02, "{gain:?}");
}

/// A machine at `always`, on which the plan alone gains as much, with less memory.
fn always() -> MockExperiment {
    let mut experiment = MockExperiment::new(&[
        ("none", &[2.0, 2.01]),
        ("never", &[3.0, 3.01]),
        ("all", &[2.0, 2.01]),
        ("plan-only", &[2.1, 2.12]),
    ]);
    experiment.host.mode = Some(Mode::Always);
    experiment.look.huge = 255 * MIB;
    experiment.mock.fill = |variant, _, sample| {
        sample.max_rss = match variant.name.as_str() {
            "never" => 256 * MIB,
            "plan-only" => 258 * MIB,
            _ => 300 * MIB,
        };
    };
    experiment
}

#[test]
fn on_a_machine_at_always_never_and_the_plan_alone_are_measured() {
    let mut experiment = always();
    let got = experiment.tune(600).findings;
    let variants = |comparison: &Option<Comparison>| -> Vec<String> {
        let variants = &comparison.as_ref().unwrap().variants;
        variants
            .iter()
            .map(|variant| variant.name.clone())
            .collect()
    };
    assert_eq!(variants(&got.upper_bound), ["none", "never", "all"]);
    assert_eq!(variants(&got.comparison), ["none", "plan-only", "never"]);
    assert_eq!(
        (
            experiment.under_never,
            experiment.under_plan,
            experiment.tails
        ),
        (1, 0, 1)
    );
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
    let mut experiment = MockExperiment::with_change(
        &[
            ("none", &[2.0, 2.01]),
            ("all", &[2.3, 2.31]),
            ("tunable", &[1.0, 1.01]),
        ],
        "tunable",
    );
    experiment.host = Host {
        mode: Some(Mode::Never),
        ..experiment.host
    };
    let got = experiment.tune(600).findings;
    assert_eq!(
        (got.advice, got.answer),
        (Advice::DoNothing, Answer::DoNothing)
    );
    // The change would request huge pages, which are disabled here.
    assert_eq!(got.comparison, None);
    let estimate = got.today.unwrap().at_madvise.unwrap();
    assert!(estimate.planned_bytes > 0 && estimate.speedup.median > 1.0);
    for part in [
        "they are disabled on this machine (THP never); collapsing memory into huge pages, which \
         still works, makes it 0.870",
        "With THP madvise (as root: `echo madvise >",
        "is estimated to make it",
        "not measured",
    ] {
        assert!(got.reason.contains(part), "{part}: {}", got.reason);
    }
}

#[test]
fn a_kernel_that_cannot_limit_to_what_is_advised_is_named() {
    let mut experiment = always();
    experiment.host.can_limit = false;
    let got = experiment.tune(600).findings;
    assert!(got.reason.contains("Linux 6.18"), "{}", got.reason);
    assert_eq!((got.step, experiment.under_never), (Step::UpperBound, 0));
}

#[test]
fn what_only_the_parent_switched_off_is_given_back_and_measured() {
    let mut experiment = MockExperiment::new(GAIN);
    experiment.look.switched_off = true;
    experiment.host.inherits_off = true;
    let got = experiment.tune(600).findings;
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
    let mut experiment = MockExperiment::with_change(times, "tunable");
    let results = experiment.tune(600);
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
    assert_eq!(experiment.under_plan, 1);
    use Step::{After, Compare, Costs, Look, Plan, Profile, UpperBound};
    assert_eq!(
        experiment.steps,
        [Look, UpperBound, Costs, Profile, Plan, Compare, After]
    );
    assert!(experiment.mock.clock <= 600.0, "{}", experiment.mock.clock);
}

#[test]
fn an_undecided_answer_says_what_settles_it_and_is_gone_on_with() {
    let times: Times = &[
        ("none", &[2.0, 2.2, 1.9, 2.1, 2.05]),
        ("plan", &[1.95, 2.15, 1.75, 2.05, 1.85, 2.1, 1.95]),
        ("all", &[1.8, 1.7, 1.9, 2.0, 1.6]),
    ];
    let mut experiment = MockExperiment::new(times);
    let first = experiment.tune(200);
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
    // Each missing round, and one warm-up round, takes about two seconds per variant.
    let runs = f64::from(settle.pairs - before.pairs + 1) * before.variants.len() as f64;
    assert!((1.7..2.2).contains(&(settle.seconds / runs)), "{settle:?}");

    let mut experiment = MockExperiment::new(times);
    let within = Duration::from_secs_f64(settle.seconds * 3.0);
    let second = resume(&mut experiment, first.clone(), within)
        .unwrap()
        .findings;
    let after = second.comparison.clone().unwrap();
    assert!(
        after.pairs > before.pairs,
        "{} and {}",
        after.pairs,
        before.pairs
    );
    for (old, new) in before.variants.iter().zip(&after.variants) {
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
    assert_eq!(experiment.steps, [Step::Compare]);
}

#[test]
fn there_must_be_something_to_go_on_with() {
    let mut experiment = MockExperiment::new(&[]);
    experiment.look.working_set = 4 * MIB;
    let results = experiment.tune(600);
    assert_eq!(results.findings.answer, Answer::DoNothing);
    let error = resume(&mut experiment, results, Duration::from_secs(60)).unwrap_err();
    assert!(error.to_string().contains("no comparison"), "{error}");
}

#[test]
fn a_gain_that_is_lost_in_noise_is_not_advised() {
    let times: Times = &[
        ("none", &[2.0, 2.6, 1.8, 2.2]),
        ("plan", &[1.9, 2.5, 1.7, 2.4, 2.0]),
        ("all", &[1.9, 1.5, 2.6, 2.0, 2.1]),
    ];
    let got = MockExperiment::new(times).tune(200).findings;
    assert_eq!(got.advice, Advice::DoNothing);
    assert_eq!(got.verdict, Some(Verdict::CannotTell));
    assert!(got.reason.contains("it is not clear"), "{}", got.reason);
    assert!(got.seconds <= 200.0);
}

#[test]
fn a_gain_that_takes_much_more_memory_is_advised_only_if_that_was_allowed() {
    let tunable: Times = &[("tunable", &[1.5, 1.51])];
    let times = [GAIN, tunable].concat();
    type Fill = fn(&Variant, usize, &mut Sample);
    let tuned = |allowed: f64, fill: Fill| {
        let mut experiment = MockExperiment::with_change(&times, "tunable");
        experiment.allowed_growth = allowed;
        experiment.mock.fill = fill;
        experiment.tune(600).findings
    };
    let both: Fill = |variant, _, sample| {
        let dear = ["plan", "tunable"].contains(&variant.name.as_str());
        sample.max_rss = if dear { 400 * MIB } else { 300 * MIB };
    };
    let change: Fill = |variant, _, sample| {
        sample.max_rss = if variant.name == "tunable" {
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
    let mut experiment = MockExperiment::with_change(times, "tunable");
    let got = experiment.tune(600).findings;
    let plan = got.speedup.unwrap();
    assert!(plan.low > 1.0 && plan.median < 1.02, "{plan:?}");
    assert_eq!(got.advice, Advice::DoNothing, "{}", got.reason);
    assert!(
        got.reason.contains("no difference of 2 % or more"),
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
    let got = MockExperiment::new(times).tune(600).findings;
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
    let mut experiment = MockExperiment::new(times);
    (experiment.profile, experiment.candidates) = (None, vec![candidate("tunable")]);
    let got = experiment.tune(600).findings;
    assert_eq!((got.advice, got.speedup), (Advice::Apply, None));
    assert!(got.permanent[0].measured.is_some());
    assert!(
        got.notes.iter().any(|note| note.contains("no recorder")),
        "{:?}",
        got.notes
    );
}

/// A profile with file-backed memory only, for which no plan acts.
fn not_acted_on() -> Profile {
    let mut profile = profile();
    for part in &mut profile.sites {
        part.site.kind = SiteKind::Stack;
    }
    profile
}

#[test]
fn where_the_plan_does_nothing_and_everything_huge_gains_both_are_said() {
    let times: Times = &[("none", &[2.0, 2.01]), ("all", &[1.6, 1.61])];
    let mut experiment = MockExperiment::new(times);
    experiment.profile = Some(not_acted_on());
    let got = experiment.tune(600).findings;
    assert_eq!((got.advice, got.speedup), (Advice::DoNothing, None));
    for part in [
        "everything huge makes it 1.2",
        "but the plan found nothing to act on: ",
    ] {
        assert!(got.reason.contains(part), "{}", got.reason);
    }
    assert!(!got.reason.contains("it is not clear"), "{}", got.reason);
}

#[test]
fn where_the_plan_does_nothing_the_changes_are_what_is_measured() {
    for (seconds, gain) in [(2.0, false), (1.6, true)] {
        let none = [10.0, 10.05];
        let all = [8.0, 8.04];
        let change = [5.0 * seconds, 5.02 * seconds];
        let times: Times = &[("none", &none), ("all", &all), ("tunable", &change)];
        let mut experiment = MockExperiment::new(times);
        experiment.profile = Some(not_acted_on());
        experiment.candidates = vec![candidate("tunable")];
        // Too short for more than two variants.
        let got = experiment.tune(400).findings;
        let variants = &got.comparison.as_ref().unwrap().variants;
        assert_eq!(variants[1].name, "tunable");
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
fn the_cost_of_cold_memory_is_noted_where_it_is_known_and_paid() {
    let noted = |warm, complete, cold| {
        let mut experiment = MockExperiment::new(GAIN);
        (experiment.warm, experiment.costs.complete) = (warm, complete);
        experiment.costs.fault_2m_warm.median = 40_000.0;
        experiment.costs.fault_2m_cold.median = cold;
        let notes = experiment.tune(600).findings.notes;
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

/// With so much noise that more pairs could always change the answer.
const NOISE: Times = &[
    ("none", &[2.0, 2.6, 1.8, 2.2]),
    ("plan", &[1.9, 2.5, 1.7, 2.4, 2.0]),
    ("all", &[1.9, 1.5, 2.6, 2.0, 2.1]),
];

#[test]
fn the_time_limit_is_told_from_other_ends() {
    let clear: Times = GAIN;
    assert!(
        !MockExperiment::new(clear)
            .tune(600)
            .findings
            .time_limit_reached
    );
    assert!(
        MockExperiment::new(NOISE)
            .tune(200)
            .findings
            .time_limit_reached
    );
    let nothing: Times = &[("none", &[2.0, 2.004]), ("all", &[1.99, 2.0])];
    assert!(
        !MockExperiment::new(nothing)
            .tune(600)
            .findings
            .time_limit_reached
    );
    let long: Times = &[("none", &[900.0]), ("plan", &[900.0]), ("all", &[900.0])];
    assert!(
        MockExperiment::new(long)
            .tune(60)
            .findings
            .time_limit_reached
    );
}

#[test]
fn pairs_come_before_a_second_profile() {
    let mut experiment = MockExperiment::new(NOISE);
    experiment.slow = [0.0, 20.0];
    let got = experiment.tune(200).findings;
    assert!(got.time_limit_reached);
    assert_eq!(experiment.under_plan, 0, "{:?}", got.spent);
    let of = |step: Step| got.spent.iter().find(|it| it.step == step);
    assert_eq!(of(Step::After), None);
    // Only a twentieth of the time left at the start of the step is reserved.
    let left = 200.0 - of(Step::Compare).map_or(0.0, |it| it.allowed_seconds);
    let before: f64 = got.spent.iter().map(|it| it.seconds).sum::<f64>()
        - of(Step::Compare).map_or(0.0, |it| it.seconds);
    assert!(left - before < 10.0, "{:?}", got.spent);
    let all: f64 = got.spent.iter().map(|it| it.seconds).sum();
    assert!((all - got.seconds).abs() < 1.0, "{:?}", got.spent);

    let mut experiment = MockExperiment::new(GAIN);
    experiment.slow = [0.0, 20.0];
    let got = experiment.tune(600).findings;
    assert_eq!(experiment.under_plan, 1);
    assert_eq!(got.spent.last().map(|it| it.step), Some(Step::After));
}

#[test]
fn a_program_that_fails_in_each_run_is_noted_once() {
    let failing = |experiment: &mut MockExperiment| {
        experiment.ended = Some(2);
        experiment.mock.fill = |_, _, sample| sample.status = 2;
        experiment.tune(600).findings
    };
    let said = |found: &Findings| {
        let text = super::super::text::render(found);
        text.matches("the program ends with status 2 in each run")
            .count()
    };
    let mut small = MockExperiment::new(&[]);
    small.look.working_set = 4 * MIB;
    let got = failing(&mut small);
    assert_eq!((got.status, said(&got)), (Some(2), 1));

    let got = failing(&mut MockExperiment::new(&[
        ("none", &[2.0, 2.004]),
        ("all", &[1.99, 2.0]),
    ]));
    assert_eq!((got.status, said(&got)), (Some(2), 1));
}

/// Pairs of the upper bound and of the last comparison within 4 minutes, and variants of the
/// latter, for a program of 2.5 s with noise `scatter`.
fn rounds_of_seconds(slow: [f64; 2], scatter: f64) -> [usize; 3] {
    let times = |center: f64, order: [f64; 5]| order.map(|at| center * (1.0 + scatter * at));
    let (none, all) = (
        times(2.5, [0.0, 1.0, -0.7, 0.4, -0.3]),
        times(2.2, [0.3, -0.6, 1.0, -0.4, 0.0]),
    );
    let variants: Vec<(&str, &[f64])> = ["plan", "all", "tunable"]
        .map(|variant| (variant, &all[..]))
        .into();
    let mut experiment = MockExperiment::new(&[&[("none", &none[..])], &variants[..]].concat());
    (experiment.slow, experiment.candidates) = (slow, vec![candidate("tunable")]);
    let got = experiment.tune(240).findings;
    let (upper_bound, last) = (got.upper_bound.unwrap(), got.comparison.unwrap());
    [
        upper_bound.pairs as usize,
        last.pairs as usize,
        last.variants.len(),
    ]
}

#[test]
fn a_program_of_seconds_gets_rounds_enough_within_minutes() {
    const ALL: f64 = f64::MAX;
    // Costs known or unknown; a recording of 15 s or of the maximum.
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
    let mut experiment = MockExperiment::with_change(times, "useless");
    let change = experiment.candidates[0].change.clone();
    let got = experiment.tune(600).findings;
    assert_eq!(got.advice, Advice::Apply);
    assert!(got.permanent.is_empty(), "{:?}", got.permanent);
    // The table still has its name.
    let note = format!("variant useless: {change}");
    assert!(got.notes.contains(&note), "{:?}", got.notes);
}

#[test]
fn a_program_that_switches_it_off_needs_its_own_switch() {
    let mut experiment = MockExperiment::new(&[]);
    experiment.look.switched_off = true;
    let got = experiment.tune(600).findings;
    assert!(
        got.reason.contains("the program disables them for itself"),
        "{}",
        got.reason
    );

    let times: Times = &[("none", &[2.0, 2.01]), ("own", &[1.5, 1.51])];
    let mut experiment = MockExperiment::new(times);
    experiment.look.switched_off = true;
    experiment.candidates = vec![candidate("own")];
    let got = experiment.tune(600).findings;
    assert_eq!((got.advice, got.step), (Advice::Apply, Step::UpperBound));
    assert!(got.permanent[0].measured.is_some());
}

#[test]
fn few_variants_where_time_is_short() {
    let times: Times = &[
        ("none", &[10.0]),
        ("plan", &[8.0]),
        ("all", &[8.0]),
        ("tunable", &[8.0]),
    ];
    let mut experiment = MockExperiment::with_change(times, "tunable");
    let got = experiment.tune(600).findings;
    let names: Vec<&str> = got
        .comparison
        .as_ref()
        .unwrap()
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    assert_eq!(names, ["none", "plan"]);
    assert!(experiment.mock.clock <= 600.0 + 10.0);
    let not = |p: &Permanent| p.measured.is_none() && p.state == "not measured";
    assert!(got.permanent.iter().all(not), "{:?}", got.permanent);
}

#[test]
fn a_run_longer_than_the_limit_is_said_and_ends_in_time() {
    let times: Times = &[("none", &[900.0]), ("plan", &[900.0]), ("all", &[900.0])];
    let mut experiment = MockExperiment::new(times);
    let got = experiment.tune(60).findings;
    assert_eq!(got.advice, Advice::DoNothing);
    assert!(got.reason.contains("--within"), "{}", got.reason);
    assert!(experiment.mock.clock <= 60.0, "{}", experiment.mock.clock);
}

#[test]
fn ctrl_c_in_each_step_keeps_what_was_there() {
    use Step::{After, Compare, Costs, Look, Plan, Profile, UpperBound};
    for step in [Look, UpperBound, Costs, Profile, Plan, Compare, After] {
        let mut experiment = MockExperiment::new(GAIN);
        experiment.interrupt = Some(step);
        let results = experiment.tune(600);
        assert!(!results.findings.complete, "{step:?}");
        assert!(results.findings.reason.contains("interrupted"), "{step:?}");
        assert_eq!(
            experiment.steps.last(),
            Some(&match step {
                // The user sees costs and profile as one step.
                Costs => Profile,
                other => other,
            })
        );
        assert!(experiment.kept > 0, "{step:?}");
        assert_eq!(
            results.profile.is_some(),
            ![Look, UpperBound].contains(&step),
            "{step:?}"
        );
    }
}

#[test]
fn an_output_that_the_plan_changes_is_an_error() {
    let times: Times = &[("none", &[2.0]), ("all", &[1.5])];
    let mut experiment = MockExperiment::new(times);
    experiment.mock.fill = |variant: &Variant, _: usize, sample: &mut Sample| {
        sample.output = Some([variant.name.len() as u64, 0]);
    };
    let error = tune(&mut experiment, "x", Duration::from_secs(600)).unwrap_err();
    assert!(error.to_string().contains("OUTPUT DIFFERS"), "{error}");
}
