// SPDX-License-Identifier: MIT OR Apache-2.0
//! The alternation of a running process, as text.

use toll_model::numbers;

use crate::compare::{Comparison, Resource};
use crate::ratio::with_interval;
use crate::tune::findings::{Advice, Findings};
use crate::tune::live::{Alternated, SMALL_BEFORE};

/// The compared quantity with both page sizes, and what the changes took.
pub(super) fn render(found: &Findings, live: &Alternated) -> String {
    let mut text = String::new();
    if let Some(comparison) = found.upper_bound.as_ref().filter(|it| it.pairs > 0) {
        text += &measured(comparison, live);
    }
    text += &format!(
        "  switched   {} ({}): {} collapses, {} splits\n",
        numbers::of(live.regions as usize, "region"),
        numbers::bytes(live.regions * toll_model::REGION),
        numbers::count(live.collapses as f64),
        numbers::count(live.splits as f64)
    );
    text += &pauses(live);
    text += match (live.kept, live.unrestored_regions) {
        (true, _) => "  restored   no (--keep)\n",
        (false, 0) => "  restored   yes\n",
        (false, _) => "  restored   NOT ALL\n",
    };
    text
}

fn measured(comparison: &Comparison, live: &Alternated) -> String {
    let pairs = numbers::of(comparison.pairs as usize, "pair");
    let windows = match live.window_seconds {
        Some(seconds) => format!("{pairs} of windows of {}", numbers::duration(seconds * 1e9)),
        None => format!("{pairs} of runs"),
    };
    let mut text = format!("{}, {windows}:\n", live.measure);
    for (variant, name) in [("never", "4 KiB"), ("all", "huge")] {
        let value = median(comparison, variant).unwrap_or_else(|| "-".to_owned());
        text += &format!("  {name:<10} {value}\n");
    }
    if let Some(ratio) = comparison.main() {
        text += &format!("  speed-up   {}\n", with_interval(&ratio));
    }
    text += &as_it_was(live);
    if let Some(rate) = &live.rate_speedup {
        text += &format!("  units/s    {} times as many\n", with_interval(rate));
    }
    text
}

/// The speed-up over the pages before the first change.
fn as_it_was(live: &Alternated) -> String {
    let text = |ratio| format!("  as it was  {ratio} from the pages before; not interleaved\n");
    let ratio = live.speedup_from_before.as_ref().map(with_interval);
    ratio.map(text).unwrap_or_default()
}

/// The median of a variant, with its unit.
fn median(comparison: &Comparison, variant: &str) -> Option<String> {
    let median = comparison.variant(variant)?.median.as_ref()?;
    Some(match comparison.resource {
        Resource::Elapsed => numbers::duration(median.elapsed * 1e9),
        Resource::Cpu => numbers::duration(median.cpu * 1e9),
        Resource::MetricTime | Resource::MetricRate => format!("{:.4}", median.metric?),
    })
}

fn pauses(live: &Alternated) -> String {
    let stopped = match live.stops {
        true => "a thread stopped",
        false => "faults may have waited",
    };
    let mut text = format!(
        "  pauses     {stopped} for {} at most, {} in all, {} of the time\n",
        numbers::duration(live.longest_pause_ns as f64),
        numbers::duration(live.pauses_ns as f64),
        numbers::percent(live.pauses_share)
    );
    if let Some(rate) = live.rate_while_changing {
        text += &format!(
            "  meanwhile  {} of the progress per second of the windows\n",
            numbers::percent(rate)
        );
    }
    text
}

/// The command that makes a gain lasting for this process.
pub(super) fn now(found: &Findings, live: &Alternated) -> String {
    match &found.directory {
        Some(directory) if found.advice == Advice::Apply && !live.kept => format!(
            "  right now  tollfree apply --plan {} --pid {}\n",
            directory.join(SMALL_BEFORE).display(),
            live.pid
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
