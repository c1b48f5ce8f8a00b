// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses and formats sizes, times and address ranges.

use std::ops::Range;
use std::time::Duration;

use thiserror::Error;

/// Text that is not a valid size, time or range.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not a {expected}")]
pub struct UnitError {
    text: String,
    expected: &'static str,
}

impl UnitError {
    fn new(text: &str, expected: &'static str) -> UnitError {
        UnitError {
            text: text.to_owned(),
            expected,
        }
    }
}

const SIZE: &str = "size (bytes, or a number with K, M, G or T: 512M, 1.5G)";
const DURATION: &str = "time (a number with ns, us, ms, s, m or h: 300ms, 1.5s, 4m)";
const RANGE: &str = "range (START..END, each decimal or 0x hexadecimal, START below END)";

/// Parses bytes from `4096`, `64K`, `512M`, `1.5G`, `2T`, each also as `KiB` or `KB`; all powers of
/// 1024.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let wrong = || UnitError::new(text, SIZE);
    let (number, unit) = split_unit(text.trim());
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(wrong()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(1 << shift).ok_or_else(wrong);
    }
    let bytes = parse_decimal(number).ok_or_else(wrong)? * (1u64 << shift) as f64;
    if bytes >= u64::MAX as f64 {
        return Err(wrong());
    }
    Ok(bytes.round() as u64)
}

/// Parses a time from `300ms`, `1.5s`, `60s`, `4m`, `1h`, `20us` or `5ns`; a bare number is
/// seconds.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let wrong = || UnitError::new(text, DURATION);
    let (number, unit) = split_unit(text.trim());
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let value = parse_decimal(number).ok_or_else(wrong)? * seconds;
    Duration::try_from_secs_f64(value).map_err(|_| wrong())
}

/// Parses addresses from `START..END`, each decimal or `0x` hexadecimal; `START` is below `END`.
pub fn parse_range(text: &str) -> Result<Range<u64>, UnitError> {
    let wrong = || UnitError::new(text, RANGE);
    let (start, end) = text.trim().split_once("..").ok_or_else(wrong)?;
    let start = parse_address(start).ok_or_else(wrong)?;
    let end = parse_address(end).ok_or_else(wrong)?;
    if start >= end {
        return Err(wrong());
    }
    Ok(start..end)
}

/// Formats bytes as `1.5 GiB`, `512 MiB`, `64 KiB`, `12 B`.
pub fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", short(value), UNITS[unit])
}

/// Formats nanoseconds as `1.5 s`, `300 ms`, `20 us` or `5 ns`, with a sign if negative.
pub fn format_ns(ns: f64) -> String {
    let size = ns.abs();
    let (divisor, unit) = match size {
        _ if size >= 1e9 => (1e9, "s"),
        _ if size >= 1e6 => (1e6, "ms"),
        _ if size >= 1e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    format!("{} {unit}", short(ns / divisor))
}

/// Formats about three digits, without trailing zeros.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Splits `1.5G` into `1.5` and `G`.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// Parses a finite number of digits with at most one point: no sign, no exponent.
fn parse_decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let value = text.parse::<f64>().ok().filter(|_| plain)?;
    value.is_finite().then_some(value)
}

fn parse_address(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) if !hex.starts_with('+') => u64::from_str_radix(hex, 16).ok(),
        Some(_) => None,
        None if text.starts_with('+') => None,
        None => text.parse().ok(),
    }
}

/// Formats a count: `4,257`, `1.23 M`, `45.6 G`.
pub fn format_count(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "-".to_owned(),
        v if v >= 1e9 => format!("{} G", significant(value / 1e9)),
        v if v >= 1e6 => format!("{} M", significant(value / 1e6)),
        v if v >= 100.0 || v.fract() == 0.0 => thousands(value.round()),
        _ => significant(value),
    }
}

/// Formats three significant digits without exponent.
fn significant(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a whole number with a comma between thousands.
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
mod tests;
