// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers and reasons in words.

use toll_model::cost::CostTable;
use toll_model::plan::{Plan, Verdict as Choice};
use toll_model::stats::{Interval, MOST_PAIRS, SMALLEST_EFFECT, Verdict};
use toll_model::units::format_ns;

use crate::compare::Comparison;
use crate::compare::result::ArmResult;
use crate::units;

pub(super) fn no_gain(ceiling: &Comparison, interval: &Interval) -> String {
    let mut reason = format!(
        "even with everything huge it runs {} times as fast: within +/- 2 %",
        with_interval(interval)
    );
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

/// What the permanent changes did that do not gain.
pub(super) fn changes_measured(comparison: &Comparison) -> String {
    let own = ["none", "plan", "plan-only", "all", "never"];
    let measured = |arm: &ArmResult| {
        let interval = arm.speedup.filter(|_| !own.contains(&arm.name.as_str()))?;
        Some(format!("; {}: {}", arm.name, with_interval(&interval)))
    };
    comparison.arms.iter().filter_map(measured).collect()
}

/// What the plan's huge pages cost more where memory is not warm, if that is known and much.
pub(super) fn dearer_when_cold(plan: &Plan, costs: &CostTable) -> Option<String> {
    let (warm, cold) = (costs.fault_2m_warm.median, costs.fault_2m_cold.median);
    let regions = plan.huge().count() as f64;
    (regions > 0.0 && costs.cold_is_dear()).then(|| {
        format!(
            "the measured gain is of warm memory: after a pause, when the host has taken free memory \
             back, the plan's {regions} huge pages may cost up to {} more ({} each instead of {})",
            format_ns(regions * (cold - warm)),
            format_ns(cold),
            format_ns(warm)
        )
    })
}

/// What an arm takes in memory, beside a gain of it.
pub(super) fn growth(comparison: &Comparison, arm: Option<&ArmResult>) -> String {
    let known = arm.and_then(|arm| Some((arm.bloat?, comparison.growth_percent(arm)?)));
    match known {
        Some((bytes @ 1.., percent)) => format!(
            ", for {} ({percent:.0} %) more memory",
            units::bytes(bytes as u64)
        ),
        Some(_) => ", for no more memory".to_owned(),
        None => String::new(),
    }
}

/// The clearest gain that takes more memory than `allowed` percent, if there is one.
pub(super) fn too_much_memory(comparison: &Comparison, allowed: f64) -> Option<String> {
    let dear = |arm: &&ArmResult| arm.proven == Some(true) && arm.affordable == Some(false);
    let low = |arm: &ArmResult| arm.speedup.map_or(0.0, |interval| interval.low);
    let arms = comparison.arms.iter().filter(dear);
    let arm = arms.max_by(|a, b| low(a).total_cmp(&low(b)))?;
    Some(format!(
        "{} makes it {} times as fast in {}{}: above {allowed} % that is called no gain, unless \
         --allow-growth says so",
        arm.name,
        with_interval(&arm.speedup?),
        comparison.resource.name(),
        growth(comparison, Some(arm))
    ))
}

/// Why a comparison proves no gain.
pub(super) fn unresolved(comparison: &Comparison) -> String {
    let Some(interval) = comparison.main() else {
        return "the time limit did not suffice to measure the plan; raise --within".to_owned();
    };
    let arm = &comparison.arms[1].name;
    let measured = with_interval(&interval);
    match interval.verdict() {
        Verdict::Slower => return format!("{arm} is slower: {measured} times as fast"),
        Verdict::NoDifference => {
            return format!("{arm} makes no difference that matters: {measured} times as fast");
        }
        Verdict::Faster => {
            return format!(
                "{arm} gains by itself, {measured} times as fast, but not beyond doubt: several \
                 arms were judged, and one of them may look like that by chance; raise --within"
            );
        }
        Verdict::CannotTell => {}
    }
    let settle = match comparison.pairs_to_settle {
        Some(MOST_PAIRS) => "; it lies too near 2 % to be settled by more pairs".to_owned(),
        Some(pairs) if pairs > comparison.pairs => {
            format!(
                "; about {pairs} pairs instead of {} would settle it with a chance of 80 %",
                comparison.pairs
            )
        }
        _ => String::new(),
    };
    format!(
        "it cannot be told whether {arm} gains: {} times as fast; such runs show an effect \
         of {} four times in five{settle}",
        with_interval(&interval),
        units::percent(interval.smallest_visible_effect(comparison.pairs))
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
pub(super) fn memory(plan: &Plan) -> Vec<String> {
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
