// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs variants, and judges them by all runs.

use anyhow::Result;
use toll_model::plan::{Estimate, Plan};
use toll_model::stats::{self, Interval, Verdict};

use super::notes::notes;
use super::outputs;
use super::result::{Command, Comparison, FORMAT, Medians, VERSION, VariantResult};
use super::sample::{Resource, Sample};
use super::schedule::{self, CONFIDENCE, Executor, Rules, Runs, Stopped};
use super::variant::{Variant, Way};

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
fn judge(
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
        speedup: of(|way| matches!(way, Way::Plan(_) | Way::Second(_))),
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
        meaning: variants[index].meaning(),
        pages: variants[index].pages.clone(),
        command: variants[index].invocation().map(Command::of),
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

#[cfg(test)]
mod tests;
