// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers of all runs, with intervals and a verdict.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use toll_model::plan::{Estimate, Plan};
use toll_model::stats::{self, Interval, Verdict};

use super::arm::{Arm, Way};
use super::outputs::{self, OutputCheck};
use super::sample::{Resource, Sample};
use super::schedule::{self, CONFIDENCE, Executor, Rules, Runs, Stopped};
use super::warm::Warming;

/// What stands in the `format` field of a comparison.
pub const FORMAT: &str = "tollfree-comparison";
/// The version of the format that this build writes.
pub const VERSION: u32 = 1;

/// The result of interleaved runs; what `compare --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub format: String,
    pub version: u32,
    /// Path or name of the program, as it was given.
    pub program: String,
    /// What the verdict rests on; all of `speedup*` are ratios of this.
    pub resource: Resource,
    /// Confidence of every measured interval, 0..1.
    pub confidence: f64,
    /// On the plan; without one, on everything huge.
    pub verdict: Verdict,
    /// Counted rounds; each ran every arm once.
    pub pairs: u32,
    /// Time without / with the plan; absent without a plan, or with fewer than two pairs.
    pub speedup: Option<Interval>,
    /// The same for everything huge.
    pub speedup_all: Option<Interval>,
    /// What the plan predicted for this program's time, with its 80 % interval.
    pub predicted_speedup: Option<Estimate>,
    /// The same ratio as `verdict` is about, of user and system time together.
    pub cpu_speedup: Option<Interval>,
    /// The |speedup - 1| that such runs tell from nothing with a probability of 80 %.
    pub smallest_visible_effect: Option<f64>,
    /// Pairs in all that would settle a "cannot tell" with a probability of 80 %, if the noise
    /// and the median stay as they are.
    pub pairs_to_settle: Option<u32>,
    pub stopped: Stopped,
    /// The most memory that was touched before a run, bytes; 0 if none was.
    #[serde(default)]
    pub warmed_bytes: u64,
    /// Whether memory was warmed before runs, and why; in a comparison of `tune` the answer says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warming: Option<Warming>,
    /// False if the runs were interrupted.
    pub complete: bool,
    /// The exit code that all runs had; absent without a complete run.
    pub status: Option<i32>,
    pub output: OutputCheck,
    /// The first is what the others are compared with.
    pub arms: Vec<ArmResult>,
    /// Things that a reader must know.
    pub notes: Vec<String>,
    /// How much longer than the first arm the second may take, percent; absent if nothing was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_slowdown_percent: Option<f64>,
    /// Whether it is proved to take longer than that; absent without a threshold or an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_slow: Option<bool>,
}

/// One arm's numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmResult {
    pub name: String,
    pub meaning: String,
    /// Time of the first arm / time of this one; absent for the first arm.
    pub speedup: Option<Interval>,
    /// The same of CPU time.
    pub cpu_speedup: Option<Interval>,
    /// Whether the gain holds although several arms were judged (Holm, 1979): all gains that are
    /// called proved are real with 95 %. Absent for an arm that nobody can apply as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven: Option<bool>,
    /// Medians over the counted runs; absent without one.
    pub median: Option<Medians>,
    /// Resident memory above that of the first arm, bytes.
    pub bloat: Option<i64>,
    /// Whether that is as little as was allowed for a gain. Absent where nothing was said, or
    /// where the arm is not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affordable: Option<bool>,
    /// Every run, the first round's too.
    pub runs: Vec<Sample>,
}

/// Medians of an arm's counted runs. Times are seconds, sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Medians {
    pub elapsed: f64,
    pub user: f64,
    pub sys: f64,
    pub cpu: f64,
    pub minor_faults: f64,
    pub major_faults: f64,
    /// Of the runs that were sampled, which are those of the first round; see `huge_samples`.
    pub huge_peak: f64,
    /// Samples of huge memory; where there are none, `huge_peak` is 0 and says nothing.
    #[serde(default)]
    pub huge_samples: u64,
    pub max_rss: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<f64>,
}

/// Runs the arms interleaved and judges them. `arms[1]`, and each arm that is judged, must be resolved.
pub fn compare(
    executor: &mut dyn Executor,
    program: &str,
    arms: &[Arm],
    rules: &Rules,
    predicted: Option<Estimate>,
) -> Result<Comparison> {
    let none = vec![Vec::new(); arms.len()];
    go_on(executor, program, arms, rules, predicted, none)
}

/// The same after runs that an earlier session has `stored`, a list for each arm.
pub fn go_on(
    executor: &mut dyn Executor,
    program: &str,
    arms: &[Arm],
    rules: &Rules,
    predicted: Option<Estimate>,
    stored: Vec<Vec<Sample>>,
) -> Result<Comparison> {
    let runs = schedule::go_on(executor, arms, rules, stored)?;
    Ok(Comparison {
        warmed_bytes: executor.warmed(),
        ..judge(program, arms, &runs, predicted)
    })
}

/// Makes the result of all runs.
pub fn judge(program: &str, arms: &[Arm], runs: &Runs, predicted: Option<Estimate>) -> Comparison {
    let speedup = |arm: usize, resource| runs.speedup(arm, resource, CONFIDENCE);
    let of = |wanted: fn(&Way) -> bool| -> Option<Interval> {
        let arm = arms.iter().position(|arm| wanted(&arm.way))?;
        speedup(arm, runs.resource)
    };
    let main = (arms.len() > 1)
        .then(|| speedup(1, runs.resource))
        .flatten();
    let verdict = main.map_or(Verdict::CannotTell, |interval| interval.verdict());
    let pairs = if runs.rounds() == 0 {
        0
    } else {
        runs.counted(0).len() as u32
    };
    let undecided = main.filter(|_| verdict == Verdict::CannotTell);
    let mut result = Comparison {
        format: FORMAT.to_owned(),
        version: VERSION,
        program: program.to_owned(),
        resource: runs.resource,
        confidence: CONFIDENCE,
        verdict,
        pairs,
        speedup: of(|way| matches!(way, Way::Plan(_))),
        speedup_all: of(|way| *way == Way::All),
        predicted_speedup: predicted,
        cpu_speedup: (arms.len() > 1)
            .then(|| speedup(1, Resource::Cpu))
            .flatten(),
        smallest_visible_effect: main.map(|interval| interval.smallest_visible_effect(pairs)),
        pairs_to_settle: undecided.map(|i| i.pairs_to_settle(pairs)),
        stopped: runs.stopped,
        warmed_bytes: 0,
        warming: None,
        complete: runs.stopped != Stopped::Interrupted,
        status: runs
            .arms
            .iter()
            .flatten()
            .next()
            .map(|sample| sample.status),
        output: outputs::check(arms, runs),
        arms: (0..arms.len()).map(|i| arm_result(i, arms, runs)).collect(),
        notes: Vec::new(),
        allowed_slowdown_percent: None,
        too_slow: None,
    };
    for (result, proven) in result.arms.iter_mut().zip(proven(arms, runs)) {
        result.proven = proven;
    }
    result.notes = notes(&result, runs);
    result
}

/// Which arms gain, with a confidence of [`CONFIDENCE`] that none of them is called so by chance
/// alone: Holm's procedure. While m arms are undecided, one is proved by the interval that misses
/// the truth with a probability of 1/m of what may be missed in all.
fn proven(arms: &[Arm], runs: &Runs) -> Vec<Option<bool>> {
    let mut proven: Vec<Option<bool>> = arms
        .iter()
        .map(|arm| arm.is_judged().then_some(false))
        .collect();
    loop {
        let undecided: Vec<usize> = (1..arms.len())
            .filter(|i| proven[*i] == Some(false))
            .collect();
        let confidence = 1.0 - (1.0 - CONFIDENCE) / undecided.len().max(1) as f64;
        let gains = |arm: &usize| {
            let interval = runs.speedup(*arm, runs.resource, confidence);
            interval.is_some_and(|interval| interval.is_gain())
        };
        let found: Vec<usize> = undecided.into_iter().filter(gains).collect();
        if found.is_empty() {
            return proven;
        }
        for arm in found {
            proven[arm] = Some(true);
        }
    }
}

impl ArmResult {
    /// Whether it can be advised: its gain is proved, and does not cost too much memory.
    pub fn gains(&self) -> bool {
        self.proven == Some(true) && self.affordable != Some(false)
    }
}

impl Comparison {
    /// The interval that the verdict is about.
    pub fn main(&self) -> Option<Interval> {
        self.arms.get(1)?.speedup
    }

    /// Time of the arm `before` / time of the arm `after`, of the rounds that count.
    pub fn between(&self, before: &str, after: &str) -> Option<Interval> {
        let times = |name: &str| -> Option<Vec<f64>> {
            let runs = self.arm(name)?.runs.iter();
            let counted = runs.filter(|run| run.round > 0).take(self.pairs as usize);
            Some(counted.map(|run| self.resource.time_of(run)).collect())
        };
        let (before, after) = (times(before)?, times(after)?);
        if before.len() < 2 {
            return None;
        }
        stats::ratio_of_rounds(&before, &after, self.confidence)
    }

    /// Judges against a threshold: a slow-down is proved if the whole interval lies beyond it.
    pub fn allow_slowdown(&mut self, percent: Option<f64>) {
        let slowest = percent.map(|percent| 1.0 / (1.0 + percent / 100.0));
        self.allowed_slowdown_percent = percent;
        self.too_slow = slowest
            .zip(self.main())
            .map(|(slowest, interval)| interval.high < slowest);
    }

    /// Resident memory of an arm above that of the first one, percent of the latter's; absent where
    /// the first one's is not known.
    pub fn growth_percent(&self, arm: &ArmResult) -> Option<f64> {
        let first = self.arms.first()?.median.as_ref()?.max_rss;
        let bloat = arm.bloat?;
        (first > 0.0).then(|| bloat as f64 / first * 100.0)
    }

    /// Marks which of the judged arms take no more memory than is allowed, in percent.
    pub fn allow_growth(&mut self, percent: f64) {
        let affordable = |arm: &ArmResult| {
            arm.proven?;
            Some(self.growth_percent(arm)? <= percent)
        };
        let marks: Vec<_> = self.arms.iter().map(affordable).collect();
        for (arm, mark) in self.arms.iter_mut().zip(marks) {
            arm.affordable = mark;
        }
    }

    /// What the CPU time of the main arm says.
    pub fn cpu_verdict(&self) -> Verdict {
        self.cpu_speedup
            .map_or(Verdict::CannotTell, |interval| interval.verdict())
    }

    /// Whether the time limit ended the runs.
    pub fn ran_out_of_time(&self) -> bool {
        matches!(self.stopped, Stopped::Time | Stopped::TooLong)
    }

    pub fn arm(&self, name: &str) -> Option<&ArmResult> {
        self.arms.iter().find(|arm| arm.name == name)
    }
}

/// What a plan predicts for a program whose time was measured since. The plan saves CPU
/// time: of `p` busy CPUs a p-th of it is elapsed time, so the longer of both is the base.
pub fn predicted(plan: &Plan, comparison: &Comparison) -> Option<Estimate> {
    let median = comparison.arms.first()?.median.as_ref()?;
    let base = median.elapsed.max(median.cpu) * 1e9;
    // A saving near the whole time (or above it) is an error of the model, not a miracle.
    let faster = |saved: f64| base / (base - saved).max(base * 0.1);
    (base > 0.0).then(|| Estimate {
        median: faster(plan.saved_ns.median),
        low: faster(plan.saved_ns.low),
        high: faster(plan.saved_ns.high),
    })
}

fn arm_result(index: usize, arms: &[Arm], runs: &Runs) -> ArmResult {
    let speedup = |resource| {
        (index > 0)
            .then(|| runs.speedup(index, resource, CONFIDENCE))
            .flatten()
    };
    let medians = |arm: usize| medians(runs.counted(arm), &runs.arms[arm]);
    let median = medians(index);
    let rss = |median: &Medians| median.max_rss as i64;
    let first = medians(0);
    ArmResult {
        name: arms[index].name.clone(),
        meaning: arms[index].meaning().to_owned(),
        speedup: speedup(runs.resource),
        cpu_speedup: speedup(Resource::Cpu),
        proven: None,
        bloat: median
            .as_ref()
            .zip(first.as_ref())
            .map(|(own, none)| rss(own) - rss(none)),
        affordable: None,
        median,
        runs: runs.arms[index].clone(),
    }
}

/// Medians of the runs that count; `all` has those whose huge memory was sampled.
fn medians(samples: &[Sample], all: &[Sample]) -> Option<Medians> {
    let of =
        |value: fn(&Sample) -> f64| stats::median(&samples.iter().map(value).collect::<Vec<_>>());
    let sampled = all.iter().filter(|run| run.huge_samples > 0);
    let huge: Vec<f64> = sampled.map(|run| run.huge_peak as f64).collect();
    let metrics: Option<Vec<f64>> = samples.iter().map(|sample| sample.metric).collect();
    Some(Medians {
        elapsed: of(|s| s.elapsed)?,
        user: of(|s| s.user)?,
        sys: of(|s| s.sys)?,
        cpu: of(|s| s.user + s.sys)?,
        minor_faults: of(|s| s.minor_faults as f64)?,
        major_faults: of(|s| s.major_faults as f64)?,
        huge_peak: stats::median(&huge).unwrap_or(0.0),
        huge_samples: all.iter().map(|run| run.huge_samples).sum(),
        max_rss: of(|s| s.max_rss as f64)?,
        metric: metrics.and_then(|values| stats::median(&values)),
    })
}

/// What must be said beside the numbers.
fn notes(result: &Comparison, runs: &Runs) -> Vec<String> {
    let mut notes = Vec::new();
    match result.stopped {
        Stopped::TooLong => notes.push(
            "one round of all arms takes longer than the time limit; raise it with --within"
                .to_owned(),
        ),
        Stopped::Time if result.pairs < 2 => notes.push(format!(
            "the time limit sufficed for {} counted round(s); raise it with --within",
            result.pairs
        )),
        Stopped::Interrupted => notes.push("interrupted: the runs so far are kept".to_owned()),
        _ => {}
    }
    if runs.rounds() == 1 {
        notes.push(
            "only one round: it is not warmed up, and nothing can be said about noise".to_owned(),
        );
    }
    match &result.output {
        OutputCheck::Varies { arm, difference } => notes.push(format!(
            "the program does not print the same in every run (arm {arm}: {difference}), so whether \
             huge pages change its output was not checked"
        )),
        OutputCheck::DiffersBetweenArms { arm, difference } => notes.push(format!(
            "THE OUTPUT OF ARM {arm} DIFFERS FROM THAT OF ARM {}: {difference}",
            result.arms[0].name
        )),
        OutputCheck::Same | OutputCheck::NotChecked { .. } => {}
    }
    if let Some(status) = result.status.filter(|status| *status != 0) {
        notes.push(format!("the program ends with status {status} in each run"));
    }
    let unseen = matches!(result.verdict, Verdict::CannotTell | Verdict::NoDifference);
    if unseen && result.cpu_verdict() == Verdict::Faster {
        if let Some(cpu) = result
            .cpu_speedup
            .filter(|_| result.resource == Resource::Elapsed)
        {
            notes.push(format!(
                "it uses less CPU time ({}), but the gain cannot be seen in elapsed time",
                super::table::speedup(&cpu)
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::schedule::tests::{Mock, rules};
    use super::*;

    fn three() -> Vec<Arm> {
        vec![Arm::none(), Arm::plan("p.toml"), Arm::all()]
    }

    #[test]
    fn a_gain_is_called_faster() {
        let mut mock = Mock::new(&[
            ("none", &[3.0, 3.03, 2.97]),
            ("plan", &[2.0, 2.01, 1.99]),
            ("all", &[1.9, 1.91, 1.89]),
        ]);
        let got = compare(&mut mock, "x", &three(), &rules(None, 9999.0), None).unwrap();
        assert_eq!(got.verdict, Verdict::Faster);
        let speedup = got.speedup.unwrap();
        assert!(
            (speedup.median - 1.5).abs() < 0.02 && speedup.low > 1.4,
            "{speedup:?}"
        );
        assert!(got.speedup_all.unwrap().median > speedup.median);
        assert_eq!((got.pairs, got.pairs_to_settle), (8, None));
        assert_eq!(got.arms[0].speedup, None);
    }

    #[test]
    fn noise_is_called_cannot_tell_and_says_what_would_settle_it() {
        let mut mock = Mock::new(&[
            ("none", &[3.0, 3.3, 2.7, 3.1, 2.9]),
            ("plan", &[2.9, 3.2, 2.8, 3.2, 2.7]),
            ("all", &[3.0]),
        ]);
        let got = compare(&mut mock, "x", &three(), &rules(Some(6), 9999.0), None).unwrap();
        assert_eq!(got.verdict, Verdict::CannotTell);
        assert!(got.pairs_to_settle.unwrap() > 6);
        assert!(got.smallest_visible_effect.unwrap() > 0.02);
    }

    #[test]
    fn a_gain_in_cpu_time_alone_is_noted() {
        let mut mock = Mock::new(&[("none", &[3.0]), ("plan", &[3.0]), ("all", &[3.0])]);
        mock.fill = |arm, _, sample| {
            sample.user = if arm.name == "none" { 2.0 } else { 1.9 };
        };
        let got = compare(&mut mock, "x", &three(), &rules(None, 9999.0), None).unwrap();
        assert_eq!(got.verdict, Verdict::NoDifference);
        assert!(
            got.notes.iter().any(|note| note.contains("CPU time")),
            "{:?}",
            got.notes
        );
    }

    #[test]
    fn too_little_time_gives_no_interval_and_says_so() {
        let mut mock = Mock::new(&[("none", &[30.0]), ("plan", &[30.0]), ("all", &[30.0])]);
        let got = compare(&mut mock, "x", &three(), &rules(None, 100.0), None).unwrap();
        assert_eq!(
            (got.speedup, got.verdict, got.pairs),
            (None, Verdict::CannotTell, 1)
        );
        assert!(got.notes.iter().any(|note| note.contains("--within")));
    }

    #[test]
    fn bloat_is_against_the_first_arm() {
        let mut mock = Mock::new(&[("none", &[3.0]), ("plan", &[3.0]), ("all", &[3.0])]);
        mock.fill = |arm, _, sample| {
            sample.max_rss = if arm.name == "all" { 300 } else { 100 };
        };
        let got = compare(&mut mock, "x", &three(), &rules(Some(2), 9999.0), None).unwrap();
        assert_eq!(got.arm("all").unwrap().bloat, Some(200));
        assert_eq!(got.arm("none").unwrap().bloat, Some(0));
    }

    #[test]
    fn memory_above_the_limit_makes_a_gain_unaffordable() {
        let mut mock = Mock::new(&[("none", &[3.0]), ("plan", &[2.0]), ("all", &[2.0])]);
        mock.fill = |arm, _, sample| {
            sample.max_rss = if arm.name == "none" { 400 } else { 500 };
        };
        let mut got = compare(&mut mock, "x", &three(), &rules(Some(8), 9999.0), None).unwrap();
        let affordable = |got: &Comparison| -> Vec<Option<bool>> {
            got.arms.iter().map(|arm| arm.affordable).collect()
        };
        assert_eq!(affordable(&got), [None; 3]);
        got.allow_growth(25.0);
        assert_eq!(affordable(&got), [None, Some(true), None]);
        assert!(got.arm("plan").unwrap().gains());
        got.allow_growth(24.9);
        assert_eq!(affordable(&got), [None, Some(false), None]);
        assert!(!got.arm("plan").unwrap().gains());
    }

    /// Times of an arm whose gain has an interval that just excludes 1.
    fn barely(arm: usize) -> Vec<f64> {
        let noise = [
            0.04, -0.035, 0.02, -0.03, 0.035, -0.01, 0.0, -0.02, 0.03, -0.03,
        ];
        let shifted = noise.iter().cycle().skip(arm).take(10);
        shifted.map(|noise| 3.0 / (1.0262 + noise)).collect()
    }

    fn change(name: &str) -> Arm {
        Arm::change(name, super::super::Change::default())
    }

    #[test]
    fn several_candidates_must_each_prove_more() {
        let (plan, one, two) = (barely(0), barely(1), barely(2));
        let times: [(&str, &[f64]); 4] = [
            ("none", &[3.0]),
            ("plan", &plan),
            ("one", &one),
            ("two", &two),
        ];
        let proven = |arms: &[Arm]| -> Vec<Option<bool>> {
            // The first round is not counted.
            let got = compare(
                &mut Mock::new(&times),
                "x",
                arms,
                &rules(Some(10), 9999.0),
                None,
            );
            let got = got.unwrap();
            assert!(
                got.arms[1].speedup.unwrap().is_gain(),
                "{:?}",
                got.arms[1].speedup
            );
            got.arms.iter().map(|arm| arm.proven).collect()
        };
        let plan = || Arm::plan("p");
        assert_eq!(proven(&[Arm::none(), plan()]), [None, Some(true)]);
        let several = proven(&[Arm::none(), plan(), change("one"), change("two")]);
        assert_eq!(several, [None, Some(false), Some(false), Some(false)]);
    }

    #[test]
    fn what_is_proved_beyond_doubt_leaves_the_rest_for_the_others() {
        let barely = barely(0);
        let times: [(&str, &[f64]); 4] = [
            ("none", &[3.0]),
            ("plan", &[2.0]),
            ("one", &barely),
            ("all", &[2.0]),
        ];
        let arms = [Arm::none(), Arm::plan("p"), change("one"), Arm::all()];
        let got = compare(
            &mut Mock::new(&times),
            "x",
            &arms,
            &rules(Some(10), 9999.0),
            None,
        );
        let proven: Vec<_> = got.unwrap().arms.iter().map(|arm| arm.proven).collect();
        // Everything huge is never applied: it is not judged.
        assert_eq!(proven, [None, Some(true), Some(true), None]);
    }

    #[test]
    fn huge_memory_is_that_of_the_sampled_runs() {
        let mut mock = Mock::new(&[("none", &[3.0]), ("plan", &[3.0]), ("all", &[3.0])]);
        mock.fill = |arm, run, sample| {
            if run == 0 && arm.name != "plan" {
                (sample.huge_peak, sample.huge_samples) = (400, 3);
            }
        };
        let got = compare(&mut mock, "x", &three(), &rules(Some(3), 9999.0), None).unwrap();
        let median = |name| got.arm(name).unwrap().median.clone().unwrap();
        assert_eq!(
            (median("all").huge_peak, median("all").huge_samples),
            (400.0, 3)
        );
        assert_eq!(
            (median("plan").huge_peak, median("plan").huge_samples),
            (0.0, 0)
        );
    }

    #[test]
    fn a_comparison_survives_its_own_json() {
        let mut mock = Mock::new(&[("none", &[3.0, 3.1]), ("plan", &[2.0]), ("all", &[2.0])]);
        let got = compare(&mut mock, "x", &three(), &rules(Some(4), 9999.0), None).unwrap();
        let text = serde_json::to_string(&got).unwrap();
        assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap(), got);
    }
}
