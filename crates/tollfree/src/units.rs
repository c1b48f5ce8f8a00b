// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers as people read them. JSON never uses these.

pub use toll_model::units::{format_ns as duration, format_size as bytes};

/// A count: `4,257`, `1.23 M`, `45.6 G`.
pub fn count(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "-".to_owned(),
        v if v >= 1e9 => format!("{} G", significant(value / 1e9)),
        v if v >= 1e6 => format!("{} M", significant(value / 1e6)),
        v if v >= 100.0 || v.fract() == 0.0 => thousands(value.round()),
        _ => significant(value),
    }
}

/// A count with its noun: `1 region`, `2 regions`, `1,024 regions`.
pub fn of(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number as f64))
}

/// A share of 1: `12.3 %`.
pub fn percent(share: f64) -> String {
    match share {
        s if !s.is_finite() => "-".to_owned(),
        // Neither all nor nothing where some is left.
        s if (0.999..1.0).contains(&s) => ">99.9 %".to_owned(),
        s if s > 0.0 && s < 0.001 => "<0.1 %".to_owned(),
        s if s == 0.0 || s.abs() >= 1.0 => format!("{:.0} %", s * 100.0),
        s => format!("{:.1} %", s * 100.0),
    }
}

/// Three significant digits, no exponent.
fn significant(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A whole number with a comma between thousands.
fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::new();
    if value < 0.0 {
        out.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_keep_three_digits_and_group_thousands() {
        assert_eq!(count(0.0), "0");
        assert_eq!(count(0.25), "0.25");
        assert_eq!(count(4257.0), "4,257");
        assert_eq!(count(-999_999.0), "-999,999");
        assert_eq!(count(1_234_567.0), "1.23 M");
        assert_eq!(count(45.6e9), "45.6 G");
        assert_eq!(count(f64::NAN), "-");
        assert_eq!(of(1, "region"), "1 region");
        assert_eq!(of(1024, "region"), "1,024 regions");
    }

    #[test]
    fn shares_are_percent() {
        assert_eq!(percent(0.123), "12.3 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.9996), ">99.9 %");
        assert_eq!(percent(0.0004), "<0.1 %");
        assert_eq!(percent(-0.05), "-5.0 %");
    }
}
