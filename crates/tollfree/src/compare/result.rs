// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of all runs, with intervals and a verdict.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use toll_model::plan::{Estimate, Plan};
use toll_model::stats::{self, Interval, Verdict};

use super::outputs::{self, OutputCheck};
use super::sample::{Resource, Sample};
use super::schedule::{self, CONFIDENCE, Executor, Rules, Runs, Stopped};
use super::variant::{Variant, Way};
use super::warm::Warming;

/// The `format` field of a comparison.
pub const FORMAT: &str = "tollfree-comparison";
/// The version of the format that this build writes.
pub const VERSION: u32 = 1;

/// The result of interleaved runs, as `compare --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub format: String,
    pub version: u32,
    /// Path or name of the program, as given.
    pub program: String,
    /// The quantity of the verdict; all `speedup*` fields are ratios of it.
    pub resource: Resource,
    /// Confidence of every measured interval, 0..1.
    pub confidence: f64,
    /// For the plan; without one, for everything huge.
    pub verdict: Verdict,
    /// Counted rounds; each ran every variant once.
    pub pairs: u32,
    /// Time without / with the plan; absent without a plan, or with fewer than two pairs.
    pub speedup: Option<Interval>,
    /// The same for everything huge.
    pub speedup_all: Option<Interval>,
    /// The plan's prediction of this program's speed-up, with its 80 % interval.
    pub predicted_speedup: Option<Estimate>,
    /// The same ratio as for `verdict`, of user plus system time.
    pub cpu_speedup: Option<Interval>,
    /// The smallest |speedup - 1| that such runs detect with a probability of 80 %.
    pub smallest_visible_effect: Option<f64>,
    /// Total pairs that would settle a "cannot tell" with a probability of 80 %, if the noise and
    /// the median do not change.
    pub pairs_to_settle: Option<u32>,
    pub stopped: Stopped,
    /// The most memory touched before a run, bytes; 0 if none was.
    #[serde(default)]
    pub warmed_bytes: u64,
    /// Whether memory was warmed before runs, and why; in a comparison of `tune`, the findings have
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warming: Option<Warming>,
    /// False if the runs were interrupted.
    pub complete: bool,
    /// The common exit code of all runs; absent without a complete run.
    pub status: Option<i32>,
    pub output: OutputCheck,
    /// The others are compared with the first.
    #[serde(alias = "arms")]
    pub variants: Vec<VariantResult>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The allowed slow-down of the second variant against the first, percent; absent if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_slowdown_percent: Option<f64>,
    /// Whether a larger slow-down is proved; absent without a threshold or an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_slow: Option<bool>,
}

/// The results of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantResult {
    pub name: String,
    pub meaning: String,
    /// Time of the first variant / time of this one; absent for the first variant.
    pub speedup: Option<Interval>,
    /// The same for CPU time.
    pub cpu_speedup: Option<Interval>,
    /// Whether the gain holds although several variants were judged (Holm, 1979): all gains called
    /// proved are real with a confidence of 95 %. Absent for a variant that cannot be applied as it
    /// is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven: Option<bool>,
    /// Medians over the counted runs; absent without one.
    pub median: Option<Medians>,
    /// Resident memory minus that of the first variant, bytes.
    pub bloat: Option<i64>,
    /// Whether that is within the limit for a gain. Absent without a limit, or if the variant is
    /// not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affordable: Option<bool>,
    /// Every run, including the first round.
    pub runs: Vec<Sample>,
}

/// Medians of a variant's counted runs. Times are seconds, sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Medians {
    pub elapsed: f64,
    pub user: f64,
    pub sys: f64,
    pub cpu: f64,
    pub minor_faults: f64,
    pub major_faults: f64,
    /// Of the sampled runs, those of the first round; see `huge_samples`.
    pub huge_peak: f64,
    /// Samples of huge-page-backed memory; if it is 0, `huge_peak` is 0 and meaningless.
    #[serde(default)]
    pub huge_samples: u64,
    pub max_rss: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<f64>,
}

/// Runs the variants interleaved and judges them. `variants[1]` and each judged variant must be
/// resolved.
pub fn compare(
    executor: &mut dyn Executor,
    program: &str,
    variants: &[Variant],
    rules: &Rules,
    predicted: Option<Estimate>,
) -> Result<Comparison> {
    let none = vec![Vec::new(); variants.len()];
    go_on(executor, program, variants, rules, predicted, none)
}

/// As [`compare`], continuing the `stored` runs of an earlier session, a list per variant.
pub fn go_on(
    executor: &mut dyn Executor,
    program: &str,
    variants: &[Variant],
    rules: &Rules,
    predicted: Option<Estimate>,
    stored: Vec<Vec<Sample>>,
) -> Result<Comparison> {
    let runs = schedule::go_on(executor, variants, rules, stored)?;
    Ok(Comparison {
        warmed_bytes: executor.warmed(),
        ..judge(program, variants, &runs, predicted)
    })
}

/// Computes the result of all runs.
pub fn judge(
    program: &str,
    variants: &[Variant],
    runs: &Runs,
    predicted: Option<Estimate>,
) -> Comparison {
    let speedup = |variant: usize, resource| runs.speedup(variant, resource, CONFIDENCE);
    let of = |wanted: fn(&Way) -> bool| -> Option<Interval> {
        let variant = variants.iter().position(|variant| wanted(&variant.way))?;
        speedup(variant, runs.resource)
    };
    let main = (variants.len() > 1)
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
        cpu_speedup: (variants.len() > 1)
            .then(|| speedup(1, Resource::Cpu))
            .flatten(),
        smallest_visible_effect: main.map(|interval| interval.smallest_visible_effect(pairs)),
        pairs_to_settle: undecided.map(|i| i.pairs_to_settle(pairs)),
        stopped: runs.stopped,
        warmed_bytes: 0,
        warming: None,
        complete: runs.stopped != Stopped::Interrupted,
        status: runs
            .variants
            .iter()
            .flatten()
            .next()
            .map(|sample| sample.status),
        output: outputs::check(variants, runs),
        variants: (0..variants.len())
            .map(|i| variant_result(i, variants, runs))
            .collect(),
        notes: Vec::new(),
        allowed_slowdown_percent: None,
        too_slow: None,
    };
    for (result, proven) in result.variants.iter_mut().zip(proven(variants, runs)) {
        result.proven = proven;
    }
    result.notes = notes(&result, runs);
    result
}

/// The variants with a proved gain, with a confidence of [`CONFIDENCE`] that none is proved by
/// chance alone: Holm's procedure. While m variants are undecided, one is proved by the interval
/// that misses the truth with a probability of 1/m of the total error probability.
fn proven(variants: &[Variant], runs: &Runs) -> Vec<Option<bool>> {
    let mut proven: Vec<Option<bool>> = variants
        .iter()
        .map(|variant| variant.is_judged().then_some(false))
        .collect();
    loop {
        let undecided: Vec<usize> = (1..variants.len())
            .filter(|i| proven[*i] == Some(false))
            .collect();
        let confidence = 1.0 - (1.0 - CONFIDENCE) / undecided.len().max(1) as f64;
        let gains = |variant: &usize| {
            let interval = runs.speedup(*variant, runs.resource, confidence);
            interval.is_some_and(|interval| interval.is_gain())
        };
        let found: Vec<usize> = undecided.into_iter().filter(gains).collect();
        if found.is_empty() {
            return proven;
        }
        for variant in found {
            proven[variant] = Some(true);
        }
    }
}

impl VariantResult {
    /// Whether it can be advised: its gain is proved, and within the memory limit.
    pub fn gains(&self) -> bool {
        self.proven == Some(true) && self.affordable != Some(false)
    }
}

impl Comparison {
    /// The interval of the verdict.
    pub fn main(&self) -> Option<Interval> {
        self.variants.get(1)?.speedup
    }

    /// Time of the variant `before` / time of the variant `after`, over the counted rounds.
    pub fn between(&self, before: &str, after: &str) -> Option<Interval> {
        let times = |name: &str| -> Option<Vec<f64>> {
            let runs = self.variant(name)?.runs.iter();
            let counted = runs.filter(|run| run.round > 0).take(self.pairs as usize);
            Some(counted.map(|run| self.resource.time_of(run)).collect())
        };
        let (before, after) = (times(before)?, times(after)?);
        if before.len() < 2 {
            return None;
        }
        stats::ratio_of_rounds(&before, &after, self.confidence)
    }

    /// Applies a threshold: a slow-down is proved if the whole interval is beyond it.
    pub fn allow_slowdown(&mut self, percent: Option<f64>) {
        let slowest = percent.map(|percent| 1.0 / (1.0 + percent / 100.0));
        self.allowed_slowdown_percent = percent;
        self.too_slow = slowest
            .zip(self.main())
            .map(|(slowest, interval)| interval.high < slowest);
    }

    /// Resident memory of a variant above that of the first one, in percent of the first; absent if
    /// the first is unknown.
    pub fn growth_percent(&self, variant: &VariantResult) -> Option<f64> {
        let first = self.variants.first()?.median.as_ref()?.max_rss;
        let bloat = variant.bloat?;
        (first > 0.0).then(|| bloat as f64 / first * 100.0)
    }

    /// Marks the judged variants within the memory limit, in percent.
    pub fn allow_growth(&mut self, percent: f64) {
        let affordable = |variant: &VariantResult| {
            variant.proven?;
            Some(self.growth_percent(variant)? <= percent)
        };
        let marks: Vec<_> = self.variants.iter().map(affordable).collect();
        for (variant, mark) in self.variants.iter_mut().zip(marks) {
            variant.affordable = mark;
        }
    }

    /// The verdict on the CPU time of the main variant.
    pub fn cpu_verdict(&self) -> Verdict {
        self.cpu_speedup
            .map_or(Verdict::CannotTell, |interval| interval.verdict())
    }

    /// Whether the time limit ended the runs.
    pub fn ran_out_of_time(&self) -> bool {
        matches!(self.stopped, Stopped::Time | Stopped::TooLong)
    }

    pub fn variant(&self, name: &str) -> Option<&VariantResult> {
        self.variants.iter().find(|variant| variant.name == name)
    }
}

/// A plan's prediction for a program that was measured since. The plan saves CPU time: with `p`
/// busy CPUs, 1/p of it is elapsed time, so the larger of the two is the base.
pub fn predicted(plan: &Plan, comparison: &Comparison) -> Option<Estimate> {
    let median = comparison.variants.first()?.median.as_ref()?;
    let base = median.elapsed.max(median.cpu) * 1e9;
    // A predicted saving near or above the whole time is a model error: limit it.
    let faster = |saved: f64| base / (base - saved).max(base * 0.1);
    (base > 0.0).then(|| Estimate {
        median: faster(plan.saved_ns.median),
        low: faster(plan.saved_ns.low),
        high: faster(plan.saved_ns.high),
    })
}

fn variant_result(index: usize, variants: &[Variant], runs: &Runs) -> VariantResult {
    let speedup = |resource| {
        (index > 0)
            .then(|| runs.speedup(index, resource, CONFIDENCE))
            .flatten()
    };
    let medians = |variant: usize| medians(runs.counted(variant), &runs.variants[variant]);
    let median = medians(index);
    let rss = |median: &Medians| median.max_rss as i64;
    let first = medians(0);
    VariantResult {
        name: variants[index].name.clone(),
        meaning: variants[index].meaning().to_owned(),
        speedup: speedup(runs.resource),
        cpu_speedup: speedup(Resource::Cpu),
        proven: None,
        bloat: median
            .as_ref()
            .zip(first.as_ref())
            .map(|(own, none)| rss(own) - rss(none)),
        affordable: None,
        median,
        runs: runs.variants[index].clone(),
    }
}

/// Medians of the counted runs; `all` includes those with samples of huge-page-backed memory.
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

/// The notes on a result.
fn notes(result: &Comparison, runs: &Runs) -> Vec<String> {
    let mut notes = Vec::new();
    match result.stopped {
        Stopped::TooLong => notes.push(
            "one round of all variants takes longer than the time limit; raise it with --within"
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
        notes.push("only one round: it is not warmed up, and the noise is unknown".to_owned());
    }
    match &result.output {
        OutputCheck::Varies { variant, difference } => notes.push(format!(
            "the program's output varies between runs (variant {variant}: {difference}), so whether \
             huge pages change its output was not checked"
        )),
        OutputCheck::DiffersBetweenVariants { variant, difference } => notes.push(format!(
            "THE OUTPUT OF VARIANT {variant} DIFFERS FROM THAT OF VARIANT {}: {difference}",
            result.variants[0].name
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
                "it uses less CPU time ({}), but no gain in elapsed time is measurable",
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

    fn three() -> Vec<Variant> {
        vec![Variant::none(), Variant::plan("p.toml"), Variant::all()]
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
        assert_eq!(got.variants[0].speedup, None);
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
        mock.fill = |variant, _, sample| {
            sample.user = if variant.name == "none" { 2.0 } else { 1.9 };
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
    fn bloat_is_against_the_first_variant() {
        let mut mock = Mock::new(&[("none", &[3.0]), ("plan", &[3.0]), ("all", &[3.0])]);
        mock.fill = |variant, _, sample| {
            sample.max_rss = if variant.name == "all" { 300 } else { 100 };
        };
        let got = compare(&mut mock, "x", &three(), &rules(Some(2), 9999.0), None).unwrap();
        assert_eq!(got.variant("all").unwrap().bloat, Some(200));
        assert_eq!(got.variant("none").unwrap().bloat, Some(0));
    }

    #[test]
    fn memory_above_the_limit_makes_a_gain_unaffordable() {
        let mut mock = Mock::new(&[("none", &[3.0]), ("plan", &[2.0]), ("all", &[2.0])]);
        mock.fill = |variant, _, sample| {
            sample.max_rss = if variant.name == "none" { 400 } else { 500 };
        };
        let mut got = compare(&mut mock, "x", &three(), &rules(Some(8), 9999.0), None).unwrap();
        let affordable = |got: &Comparison| -> Vec<Option<bool>> {
            got.variants
                .iter()
                .map(|variant| variant.affordable)
                .collect()
        };
        assert_eq!(affordable(&got), [None; 3]);
        got.allow_growth(25.0);
        assert_eq!(affordable(&got), [None, Some(true), None]);
        assert!(got.variant("plan").unwrap().gains());
        got.allow_growth(24.9);
        assert_eq!(affordable(&got), [None, Some(false), None]);
        assert!(!got.variant("plan").unwrap().gains());
    }

    /// Times of a variant with a gain that has an interval just above 1.
    fn barely(variant: usize) -> Vec<f64> {
        let noise = [
            0.04, -0.035, 0.02, -0.03, 0.035, -0.01, 0.0, -0.02, 0.03, -0.03,
        ];
        let shifted = noise.iter().cycle().skip(variant).take(10);
        shifted.map(|noise| 3.0 / (1.0262 + noise)).collect()
    }

    fn change(name: &str) -> Variant {
        Variant::change(name, toll_act::permanent::Change::default())
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
        let proven = |variants: &[Variant]| -> Vec<Option<bool>> {
            // The first round is not counted.
            let got = compare(
                &mut Mock::new(&times),
                "x",
                variants,
                &rules(Some(10), 9999.0),
                None,
            );
            let got = got.unwrap();
            assert!(
                got.variants[1].speedup.unwrap().is_gain(),
                "{:?}",
                got.variants[1].speedup
            );
            got.variants.iter().map(|variant| variant.proven).collect()
        };
        let plan = || Variant::plan("p");
        assert_eq!(proven(&[Variant::none(), plan()]), [None, Some(true)]);
        let several = proven(&[Variant::none(), plan(), change("one"), change("two")]);
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
        let variants = [
            Variant::none(),
            Variant::plan("p"),
            change("one"),
            Variant::all(),
        ];
        let got = compare(
            &mut Mock::new(&times),
            "x",
            &variants,
            &rules(Some(10), 9999.0),
            None,
        );
        let proven: Vec<_> = got
            .unwrap()
            .variants
            .iter()
            .map(|variant| variant.proven)
            .collect();
        // Everything huge cannot be applied as it is: it is not judged.
        assert_eq!(proven, [None, Some(true), Some(true), None]);
    }

    #[test]
    fn huge_memory_is_that_of_the_sampled_runs() {
        let mut mock = Mock::new(&[("none", &[3.0]), ("plan", &[3.0]), ("all", &[3.0])]);
        mock.fill = |variant, run, sample| {
            if run == 0 && variant.name != "plan" {
                (sample.huge_peak, sample.huge_samples) = (400, 3);
            }
        };
        let got = compare(&mut mock, "x", &three(), &rules(Some(3), 9999.0), None).unwrap();
        let median = |name| got.variant(name).unwrap().median.clone().unwrap();
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
