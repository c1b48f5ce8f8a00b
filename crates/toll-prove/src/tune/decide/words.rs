// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers and reasons as text.

use toll_model::cost::CostTable;
use toll_model::numbers;
use toll_model::plan::{Plan, Verdict as Choice};
use toll_model::stats::{Interval, MOST_PAIRS, SMALLEST_EFFECT, Verdict};
use toll_model::units::format_ns;

use crate::compare::Comparison;
use crate::compare::result::VariantResult;
use crate::ratio::with_interval;

pub(super) fn no_gain(upper_bound: &Comparison, interval: &Interval) -> String {
    let mut reason = format!(
        "even with everything huge it runs {} times as fast: within +/- 2 %",
        with_interval(interval)
    );
    if let Some(cpu) = upper_bound
        .cpu_speedup
        .filter(|cpu| cpu.low > 1.0 + SMALLEST_EFFECT)
    {
        reason += &format!(
            ". It would use less CPU time ({} times), but not less elapsed time",
            with_interval(&cpu)
        );
    }
    reason
}

/// The measured changes without a gain.
pub(super) fn changes_measured(comparison: &Comparison) -> String {
    let own = ["none", "plan", "plan-only", "all", "never"];
    let measured = |variant: &VariantResult| {
        let interval = variant
            .speedup
            .filter(|_| !own.contains(&variant.name.as_str()))?;
        Some(format!("; {}: {}", variant.name, with_interval(&interval)))
    };
    comparison.variants.iter().filter_map(measured).collect()
}

/// The additional cost of the plan's huge pages in cold memory, if known and large.
pub(super) fn dearer_when_cold(plan: &Plan, costs: &CostTable) -> Option<String> {
    let (warm, cold) = (costs.fault_2m_warm.median, costs.fault_2m_cold.median);
    let regions = plan.huge().count() as f64;
    (regions > 0.0 && costs.cold_is_dear()).then(|| {
        format!(
            "the measured gain is for warm memory: after a pause, when the host has reclaimed free \
             memory, the plan's {regions} huge pages may cost up to {} more ({} each instead of {})",
            format_ns(regions * (cold - warm)),
            format_ns(cold),
            format_ns(warm)
        )
    })
}

/// The memory cost of a variant, as an addition to its gain.
pub(super) fn growth(comparison: &Comparison, variant: Option<&VariantResult>) -> String {
    let known =
        variant.and_then(|variant| Some((variant.bloat?, comparison.growth_percent(variant)?)));
    match known {
        Some((bytes @ 1.., percent)) => format!(
            ", for {} ({percent:.0} %) more memory",
            numbers::bytes(bytes as u64)
        ),
        Some(_) => ", for no more memory".to_owned(),
        None => String::new(),
    }
}

/// The clearest gain with more memory than `allowed` percent, if there is one.
pub(super) fn too_much_memory(comparison: &Comparison, allowed: f64) -> Option<String> {
    let dear = |variant: &&VariantResult| {
        variant.proven == Some(true) && variant.affordable == Some(false)
    };
    let low = |variant: &VariantResult| variant.speedup.map_or(0.0, |interval| interval.low);
    let variants = comparison.variants.iter().filter(dear);
    let variant = variants.max_by(|a, b| low(a).total_cmp(&low(b)))?;
    Some(format!(
        "{} makes it {} times as fast in {}{}: above {allowed} % this does not count as a gain, \
         unless --allow-growth allows it",
        variant.name,
        with_interval(&variant.speedup?),
        comparison.resource.name(),
        growth(comparison, Some(variant))
    ))
}

/// Returns why a comparison proves no gain.
pub(super) fn unresolved(comparison: &Comparison) -> String {
    let Some(interval) = comparison.main() else {
        return "the time limit did not suffice to measure the plan; raise --within".to_owned();
    };
    let variant = &comparison.variants[1].name;
    let measured = with_interval(&interval);
    match interval.verdict() {
        Verdict::Slower => return format!("{variant} is slower: {measured} times as fast"),
        Verdict::NoDifference => {
            return format!(
                "{variant} makes no difference of 2 % or more: {measured} times as fast"
            );
        }
        Verdict::Faster => {
            return format!(
                "{variant} gains by itself, {measured} times as fast, but this is not proved: \
                 several variants were judged, and one may appear to gain by chance; raise --within"
            );
        }
        Verdict::CannotTell => {}
    }
    let settle = match comparison.pairs_to_settle {
        Some(MOST_PAIRS) => "; it is too close to 2 % to be settled by more pairs".to_owned(),
        Some(pairs) if pairs > comparison.pairs => {
            format!(
                "; about {pairs} pairs instead of {} would settle it with a probability of 80 %",
                comparison.pairs
            )
        }
        _ => String::new(),
    };
    format!(
        "it is not clear whether {variant} gains: {} times as fast; such runs detect an effect \
         of {} with a probability of 80 %{settle}",
        with_interval(&interval),
        numbers::percent(interval.smallest_visible_effect(comparison.pairs))
    )
}

/// The sites that the plan makes huge, by benefit.
pub(super) fn memory(plan: &Plan) -> Vec<String> {
    let everything: f64 = plan.huge().map(|region| region.benefit_ns).sum();
    let mut rows: Vec<(f64, String)> = plan
        .sites
        .iter()
        .filter_map(|site| {
            let own = plan
                .regions
                .iter()
                .filter(|r| r.site == site.id && r.verdict == Choice::Huge);
            let (bytes, benefit) =
                own.fold((0, 0.0), |(b, ns), r| (b + r.length, ns + r.benefit_ns));
            let share = numbers::percent(benefit / everything.max(1e-9));
            (bytes > 0).then(|| {
                (
                    benefit,
                    format!("{site}: {}, {share} of the gain", numbers::bytes(bytes)),
                )
            })
        })
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    rows.into_iter().map(|(_, text)| text).collect()
}
