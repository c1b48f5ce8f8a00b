// SPDX-License-Identifier: MIT OR Apache-2.0
//! The charts of the page: hand-written SVG, with text outside the SVG so that it does not scale.

use std::fmt::Write;

use toll_model::numbers;
use toll_model::plan::Estimate;

use super::data::{Counter, CounterUnit, Measured, Variant};
use super::format::{escape, interval, number};

/// A linear scale from values to per cent of a chart's width.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Covers all finite `values` with a margin.
    fn over(values: impl IntoIterator<Item = f64>) -> Scale {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.into_iter().filter(|v| v.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let margin = ((high - low) * 0.06).max(high.abs() * 0.002).max(1e-12);
        Scale {
            low: low - margin,
            high: high + margin,
        }
    }

    fn percent(&self, value: f64) -> String {
        let share = (value - self.low) / (self.high - self.low);
        format!("{:.2}%", share.clamp(0.0, 1.0) * 100.0)
    }
}

/// Speed-up of each variant with its interval, and the prediction below it.
pub fn speedups(measured: &Measured) -> String {
    let shown: Vec<&Variant> = measured
        .variants
        .iter()
        .filter(|a| a.speedup.is_some() || a.predicted.is_some())
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    let ends = |e: &Estimate| [e.low, e.median, e.high];
    let scale = Scale::over(
        shown
            .iter()
            .flat_map(|variant| {
                let all = [variant.speedup, variant.predicted];
                all.into_iter().flatten().flat_map(|e| ends(&e))
            })
            .chain([1.0]),
    );
    let mut out = String::from(
        "<figure><h3>Speed-up against “none” (time before / time after; right of the dashed line is faster)</h3>",
    );
    for variant in &shown {
        let mut svg = format!(
            "<line class=\"l-one\" x1=\"{0}\" x2=\"{0}\" y1=\"0\" y2=\"36\"/>",
            scale.percent(1.0)
        );
        let lines = [
            (&variant.speedup, "l-after", "f-after", 12, 5),
            (&variant.predicted, "predicted", "predicted", 26, 4),
        ];
        for (estimate, line, circle, y, radius) in lines {
            let Some(e) = estimate else { continue };
            let _ = write!(
                svg,
                "<line class=\"{line}\" x1=\"{}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/><circle class=\"{circle}\" cx=\"{}\" cy=\"{y}\" r=\"{radius}\"/>",
                scale.percent(e.low),
                scale.percent(e.high),
                scale.percent(e.median)
            );
        }
        let label = format!(
            "{}: measured {}, predicted {}",
            variant.name,
            text(variant.speedup.as_ref()),
            text(variant.predicted.as_ref())
        );
        let value = match (&variant.speedup, &variant.predicted) {
            (Some(e), Some(p)) => format!(
                "{}<br><span class=\"soft\">predicted {}</span>",
                interval(e),
                interval(p)
            ),
            (Some(e), None) => interval(e),
            (None, p) => format!("<span class=\"soft\">predicted {}</span>", text(p.as_ref())),
        };
        out.push_str(&row(&escape(&variant.name), &svg, 36, &label, &value));
    }
    let ends = format!(
        "<span>{:.2}</span><span>{:.2}</span>",
        scale.low, scale.high
    );
    out.push_str(&axis(&ends));
    let _ = write!(
        out,
        "<ul class=\"legend\"><li>{}measured, {:.0} % interval</li>{}</ul></figure>",
        key(
            "<line class=\"l-after\" x1=\"0\" x2=\"100%\" y1=\"50%\" y2=\"50%\"/><circle class=\"f-after\" cx=\"50%\" cy=\"50%\" r=\"5\"/>"
        ),
        measured.confidence * 100.0,
        if shown.iter().any(|a| a.predicted.is_some()) {
            format!(
                "<li>{}predicted, 80 % interval</li>",
                key(
                    "<line class=\"predicted\" x1=\"0\" x2=\"100%\" y1=\"50%\" y2=\"50%\"/><circle class=\"predicted\" cx=\"50%\" cy=\"50%\" r=\"4\"/>"
                )
            )
        } else {
            String::new()
        }
    );
    out
}

fn text(estimate: Option<&Estimate>) -> String {
    estimate.map_or_else(|| "not made".to_owned(), interval)
}

/// Every run of every variant, with the median and its interval.
pub fn samples(measured: &Measured) -> String {
    let values = |variant: &Variant| {
        let ends = [variant.low, variant.median, variant.high];
        variant
            .samples
            .iter()
            .copied()
            .chain(ends)
            .collect::<Vec<_>>()
    };
    let scale = Scale::over(measured.variants.iter().flat_map(values));
    let mut out = format!(
        "<figure><h3>Every run: {} ({} is better)</h3>",
        escape(&measured.metric),
        if measured.larger_is_better {
            "more"
        } else {
            "less"
        }
    );
    for variant in &measured.variants {
        let mut svg =
            String::from("<line class=\"l-grid\" x1=\"0\" x2=\"100%\" y1=\"14\" y2=\"14\"/>");
        for sample in variant.samples.iter().filter(|s| s.is_finite()) {
            let _ = write!(
                svg,
                "<circle class=\"sample\" cx=\"{}\" cy=\"14\" r=\"4\"/>",
                scale.percent(*sample)
            );
        }
        let _ = write!(
            svg,
            "<line class=\"l-ink\" x1=\"{}\" x2=\"{}\" y1=\"14\" y2=\"14\"/><line class=\"l-ink\" x1=\"{2}\" x2=\"{2}\" y1=\"5\" y2=\"23\"/>",
            scale.percent(variant.low),
            scale.percent(variant.high),
            scale.percent(variant.median)
        );
        let value = format!("{} {}", number(variant.median), escape(&measured.unit));
        let label = format!(
            "{}: median {} {}, interval {} to {}, {} runs",
            variant.name,
            number(variant.median),
            measured.unit,
            number(variant.low),
            number(variant.high),
            variant.samples.len()
        );
        let name = format!(
            "{}<br><span class=\"soft\">{}</span>",
            escape(&variant.name),
            escape(&variant.meaning)
        );
        out.push_str(&row(&name, &svg, 28, &label, &value));
    }
    let unit = escape(&measured.unit);
    let ends = format!(
        "<span>{} {unit}</span><span>{} {unit}</span>",
        number(scale.low),
        number(scale.high)
    );
    out.push_str(&axis(&ends));
    let _ = write!(
        out,
        "<ul class=\"legend\"><li>{}one run</li><li>{}median with its {:.0} % interval</li></ul></figure>",
        key("<circle class=\"sample\" cx=\"50%\" cy=\"50%\" r=\"4\"/>"),
        key(
            "<line class=\"l-ink\" x1=\"0\" x2=\"100%\" y1=\"50%\" y2=\"50%\"/><line class=\"l-ink\" x1=\"50%\" x2=\"50%\" y1=\"0\" y2=\"100%\"/>"
        ),
        measured.confidence * 100.0
    );
    out
}

/// One group of bars per counter, one bar per variant; each group has its own scale.
pub fn counters(measured: &Measured) -> String {
    let shown: Vec<&Counter> = measured
        .counters
        .iter()
        .filter(|c| c.values.iter().any(Option::is_some))
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<figure><h3>Counters of a run, before and after (each counter on its own scale)</h3>",
    );
    for counter in shown {
        let peak = counter.values.iter().flatten().copied().fold(0.0, f64::max);
        for (i, (variant, value)) in measured.variants.iter().zip(&counter.values).enumerate() {
            let class = ["f-before", "f-after", "f-all"][i.min(2)];
            let share = value.map_or(0.0, |v| if peak > 0.0 { v / peak } else { 0.0 });
            let svg = format!(
                "<rect class=\"{class}\" x=\"0\" y=\"2\" height=\"10\" width=\"{:.2}%\" rx=\"2\"/>",
                share.clamp(0.0, 1.0) * 100.0
            );
            let shown =
                value.map_or_else(|| "not measured".to_owned(), |v| counted(v, counter.unit));
            let label = format!("{}, {}: {shown}", counter.name, variant.name);
            let name = if i == 0 {
                escape(&counter.name)
            } else {
                String::new()
            };
            let value = format!(
                "{shown} <span class=\"soft\">{}</span>",
                escape(&variant.name)
            );
            let class = if i == 0 { "row rule" } else { "row inner" };
            out.push_str(&row_of(class, &name, &svg, 14, &label, &value));
        }
    }
    out.push_str("</figure>");
    out
}

/// A counter's value as text.
pub fn counted(value: f64, unit: CounterUnit) -> String {
    match unit {
        CounterUnit::Count => numbers::count(value),
        CounterUnit::Seconds => numbers::duration(value * 1e9),
        CounterUnit::Bytes => numbers::bytes(value.max(0.0) as u64),
    }
}

/// A labelled row of a chart: name, drawing, value.
fn row(name: &str, svg: &str, height: u32, label: &str, value: &str) -> String {
    row_of("row", name, svg, height, label, value)
}

fn row_of(class: &str, name: &str, svg: &str, height: u32, label: &str, value: &str) -> String {
    format!(
        "<div class=\"{class}\"><div>{name}</div><svg role=\"img\" aria-label=\"{}\" height=\"{height}\">{svg}</svg><div class=\"value\">{value}</div></div>",
        escape(label)
    )
}

/// The two ends of a chart's scale, below its drawings.
fn axis(ends: &str) -> String {
    format!(
        "<div class=\"row axis\" aria-hidden=\"true\"><span></span><div class=\"ends\">{ends}</div><span></span></div>"
    )
}

/// A small drawing of a legend.
pub fn key(svg: &str) -> String {
    format!("<svg aria-hidden=\"true\">{svg}</svg>")
}
