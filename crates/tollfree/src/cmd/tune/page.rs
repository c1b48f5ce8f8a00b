// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer as report.html.

use std::ffi::OsString;

use toll_linux::{Root, cpu, sys};
use toll_model::numbers;
use toll_model::plan::Estimate;
use toll_model::stats::{Interval, ratio_of_medians};
use toll_prove::compare::result::{Medians, VariantResult};
use toll_prove::compare::{Comparison, Resource, table};
use toll_prove::tune::findings::{Answer, Findings, Results};
use toll_prove::tune::text;

use crate::page::{self, PageData, Tone, VerdictBox};

/// Renders the whole page. `command` only if the user wants it shown.
pub fn render(results: &Results, command: Option<&[OsString]>) -> String {
    let found = &results.findings;
    let comparison = found.comparison.as_ref().or(found.upper_bound.as_ref());
    page::render(&PageData {
        program: found.program.clone(),
        verdict: Some(verdict(found)),
        before: results.profile.as_ref(),
        after: results.after.as_ref(),
        plan: results.plan.as_ref(),
        measured: comparison
            .filter(|c| c.pairs > 0)
            .map(|c| measured(c, found)),
        permanent: found.permanent.iter().map(permanent).collect(),
        environment: environment(),
        method: method(found),
        warnings: warnings(found),
        command: command.map(shown_command),
    })
}

fn verdict(found: &Findings) -> VerdictBox {
    let tone = match (found.complete, found.answer) {
        (false, _) | (true, Answer::Undecided) => Tone::Unsure,
        (true, Answer::Apply) => Tone::Apply,
        (true, Answer::DoNothing) => Tone::DoNothing,
    };
    VerdictBox {
        tone,
        headline: text::headline(found).to_owned(),
        details: vec![format!("{}.", found.reason)],
    }
}

fn measured(comparison: &Comparison, found: &Findings) -> page::Measured {
    let resource = comparison.resource;
    let unit = if resource == Resource::Elapsed || resource == Resource::Cpu {
        "s"
    } else {
        ""
    };
    let live = found.live.as_ref();
    page::Measured {
        metric: live.map_or_else(|| resource.name().to_owned(), |live| live.measure.clone()),
        unit: unit.to_owned(),
        larger_is_better: resource == Resource::MetricRate,
        confidence: comparison.confidence,
        pairs: comparison.pairs as usize,
        variants: comparison
            .variants
            .iter()
            .map(|variant| page_variant(variant, comparison, found))
            .collect(),
        smallest_visible: comparison.smallest_visible_effect,
        counters: counters(comparison),
    }
}

fn page_variant(
    variant: &VariantResult,
    comparison: &Comparison,
    found: &Findings,
) -> page::Variant {
    let value = |sample| comparison.resource.value_of(sample);
    // The first round is a warm-up.
    let counted = variant
        .runs
        .iter()
        .filter(|run| run.round > 0 || comparison.pairs < 2);
    let samples: Vec<f64> = counted
        .take(comparison.pairs as usize)
        .map(value)
        .filter(|v| v.is_finite())
        .collect();
    let against_one = ratio_of_medians(&samples, &vec![1.0; samples.len()], comparison.confidence);
    let center = toll_model::stats::median(&samples).unwrap_or(0.0);
    let interval = against_one
        .filter(|interval| interval.high.is_finite())
        .unwrap_or(Interval {
            median: center,
            low: center,
            high: center,
        });
    page::Variant {
        name: variant.name.clone(),
        meaning: variant.meaning.clone(),
        samples,
        median: interval.median,
        low: interval.low,
        high: interval.high,
        speedup: variant.speedup.as_ref().map(estimate),
        predicted: found.predicted_speedup.filter(|_| variant.name == "plan"),
    }
}

fn counters(comparison: &Comparison) -> Vec<page::Counter> {
    use page::CounterUnit::{Bytes, Count, Seconds};
    let counter = |name: &str, unit, of: fn(&Medians) -> f64| page::Counter {
        name: name.to_owned(),
        unit,
        values: comparison
            .variants
            .iter()
            .map(|variant| variant.median.as_ref().map(of))
            .collect(),
    };
    let mut huge = counter("huge-page-backed memory", Bytes, |m| m.huge_peak);
    for (value, variant) in huge.values.iter_mut().zip(&comparison.variants) {
        let sampled = variant.median.as_ref().is_some_and(|m| m.huge_samples > 0);
        *value = value.filter(|_| sampled);
    }
    vec![
        counter("page faults", Count, |m| m.minor_faults + m.major_faults),
        counter("user time", Seconds, |m| m.user),
        counter("system time", Seconds, |m| m.sys),
        huge,
        counter("resident memory", Bytes, |m| m.max_rss),
    ]
}

fn permanent(change: &toll_act::permanent::Permanent) -> page::Permanent {
    page::Permanent {
        title: change.change.clone(),
        paste: change.how.clone(),
        note: String::new(),
        speedup: change.measured.as_ref().map(estimate),
    }
}

fn estimate(interval: &Interval) -> Estimate {
    Estimate {
        median: interval.median,
        low: interval.low,
        high: interval.high,
    }
}

fn environment() -> Vec<(String, String)> {
    let root = Root::system();
    let thp = sys::Thp::read(&root).map(|thp| format!("{:?}", thp.mode).to_lowercase());
    let memory = sys::effective_memory(&root)
        .map(numbers::bytes)
        .unwrap_or_default();
    let tlb = cpu::tlb_geometry();
    let reach = format!("{} ({})", numbers::bytes(tlb.reach_4k()), tlb.name);
    [
        ("CPU", cpu::model(&root)),
        ("TLB reach with 4 KiB pages", reach),
        ("kernel", sys::kernel_release(&root)),
        ("memory", memory),
        (
            "transparent huge pages",
            thp.unwrap_or_else(|| "not available".to_owned()),
        ),
        ("tollfree", env!("CARGO_PKG_VERSION").to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn method(found: &Findings) -> Vec<String> {
    let mut method = vec![format!(
        "{:.0} of {:.0} seconds were used.",
        found.seconds, found.within_seconds
    )];
    if found.comparison.is_some() || found.upper_bound.is_some() {
        method.push(
            "The variants ran interleaved, in changing order; the first round is a warm-up and is not \
             counted; a speed-up is the pseudo-median of the rounds' ratios, its interval a bootstrap."
                .to_owned(),
        );
    }
    let compared = found.comparison.as_ref().or(found.upper_bound.as_ref());
    if let Some(warmed) = compared.and_then(table::warmed) {
        method.push(format!("Memory was warm: {warmed}."));
    }
    if let Some(warming) = found.warming.as_ref().filter(|it| !it.on) {
        method.push(format!("Memory was not warmed: {}.", warming.reason));
    }
    method
}

fn warnings(found: &Findings) -> Vec<String> {
    let compared = found.comparison.as_ref().or(found.upper_bound.as_ref());
    let mut warnings = found.notes.clone();
    warnings.extend(compared.into_iter().flat_map(|c| c.notes.clone()));
    if !found.complete {
        warnings.insert(
            0,
            "This run was interrupted; the page shows the results up to then.".to_owned(),
        );
    }
    warnings
}

fn shown_command(command: &[OsString]) -> page::Command {
    page::Command {
        arguments: command
            .iter()
            .map(|a| a.to_string_lossy().into_owned())
            .collect(),
        environment: std::env::vars_os()
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
            .collect(),
    }
}
