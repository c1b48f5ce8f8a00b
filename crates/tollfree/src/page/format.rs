// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text and numbers in HTML.

use toll_model::numbers;
use toll_model::plan::Estimate;

/// Escapes text for HTML content and attributes; makes control characters visible.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A ratio with its interval: `1.31 (1.25 to 1.38)`.
pub fn interval(estimate: &Estimate) -> String {
    format!(
        "{:.2} ({:.2} to {:.2})",
        estimate.median, estimate.low, estimate.high
    )
}

/// A number in the unit of the samples.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => numbers::count(value),
        v if v >= 10.0 => format!("{value:.2}"),
        v if v >= 0.01 || v == 0.0 => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}

/// An estimated time saving in ns.
pub fn saved(estimate: &Estimate) -> String {
    format!(
        "{} ({} to {})",
        numbers::duration(estimate.median),
        numbers::duration(estimate.low),
        numbers::duration(estimate.high)
    )
}

/// The text with a capital first letter.
pub fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
