// SPDX-License-Identifier: MIT OR Apache-2.0
//! Human-readable numbers. JSON never uses these.

pub use toll_model::units::{format_count as count, format_ns as duration, format_size as bytes};

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
