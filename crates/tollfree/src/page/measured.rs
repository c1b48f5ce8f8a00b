// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interleaved runs.

use std::fmt::Write;

use toll_model::numbers;
use toll_model::plan::Estimate;

use super::charts;
use super::data::{Measured, PageData};
use super::format::{capitalised, escape, interval, number};

/// The measured and the predicted speed-ups, and every run.
pub fn runs(data: &PageData) -> String {
    let Some(measured) = &data.measured else {
        return String::new();
    };
    let mut out = format!(
        "<section><h2>Measured by interleaved runs</h2><p class=\"soft\">{}, {} interleaved runs of each variant; intervals are {:.0} %.{}</p>",
        escape(&capitalised(&measured.metric)),
        measured.pairs,
        measured.confidence * 100.0,
        measured
            .smallest_visible
            .map_or_else(String::new, |effect| format!(
                " Such runs detect an effect of {} with a probability of 80 %.",
                numbers::percent(effect)
            ))
    );
    out.push_str(&charts::speedups(measured));
    out.push_str(&charts::samples(measured));
    out.push_str(&variants_table(measured));
    out.push_str("</section>");
    out
}

fn variants_table(measured: &Measured) -> String {
    let estimate = |e: &Option<Estimate>| e.as_ref().map_or("–".to_owned(), interval);
    let mut out = format!(
        "<div class=\"scroll\"><table><caption>Measured and predicted</caption><thead><tr><th scope=\"col\">Variant</th><th scope=\"col\" class=\"n\">Median {}</th><th scope=\"col\" class=\"n\">Interval</th><th scope=\"col\" class=\"n\">Speed-up, measured</th><th scope=\"col\" class=\"n\">Speed-up, predicted</th><th scope=\"col\" class=\"n\">Runs</th></tr></thead><tbody>",
        escape(&measured.metric)
    );
    for variant in &measured.variants {
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}<small>{}</small></th><td class=\"n\">{} {}</td><td class=\"n\">{} to {}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            escape(&variant.name),
            escape(&variant.meaning),
            number(variant.median),
            escape(&measured.unit),
            number(variant.low),
            number(variant.high),
            estimate(&variant.speedup),
            estimate(&variant.predicted),
            variant.samples.len()
        );
    }
    out.push_str("</tbody></table></div>");
    out
}

/// A chart of counters such as page faults.
pub fn counters(data: &PageData) -> String {
    let chart = data
        .measured
        .as_ref()
        .map_or_else(String::new, charts::counters);
    if chart.is_empty() {
        return chart;
    }
    format!("<section><h2>Counters before and after</h2>{chart}</section>")
}
