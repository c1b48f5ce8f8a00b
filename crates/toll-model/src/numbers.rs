// SPDX-License-Identifier: MIT OR Apache-2.0
//! Human-readable numbers. JSON never uses these.

pub use crate::units::{format_count as count, format_ns as duration, format_size as bytes};

/// A count with its noun: `1 region`, `2 regions`, `1,024 regions`.
pub fn of(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number as f64))
}

/// A fraction as a percentage: `12.3 %`.
pub fn percent(share: f64) -> String {
    match share {
        s if !s.is_finite() => "-".to_owned(),
        // Do not round a partial share to 0 % or 100 %.
        s if (0.999..1.0).contains(&s) => ">99.9 %".to_owned(),
        s if s > 0.0 && s < 0.001 => "<0.1 %".to_owned(),
        s if s == 0.0 || s.abs() >= 1.0 => format!("{:.0} %", s * 100.0),
        s => format!("{:.1} %", s * 100.0),
    }
}

#[cfg(test)]
mod tests;
