// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number that `--metric REGEX` captures from the workload's output.
//!
//! The last match counts; its first group (or the group named `time` or `rate`) is the number.
//! Larger is better, unless the group is named `time` or a unit of time follows the number (`12.5
//! ms`, `3 s/op`, `40 seconds`).

use regex::Regex;
use toll_act::error::UserError;

use super::sample::Resource;

/// A compiled `--metric`.
#[derive(Debug, Clone)]
pub struct Metric {
    regex: Regex,
    group: usize,
    /// Known if the group has such a name; otherwise the unit decides.
    direction: Option<Resource>,
}

impl Metric {
    /// # Errors
    /// [`UserError::Usage`] if the text is not a regular expression or has no group.
    pub fn new(text: &str) -> Result<Metric, UserError> {
        let regex =
            Regex::new(text).map_err(|error| UserError::Usage(format!("--metric: {error}")))?;
        let named = |name: &str| regex.capture_names().position(|group| group == Some(name));
        let (group, direction) = match (named("time"), named("rate")) {
            (Some(group), _) => (group, Some(Resource::MetricTime)),
            (None, Some(group)) => (group, Some(Resource::MetricRate)),
            (None, None) => (1, None),
        };
        if regex.captures_len() < 2 {
            return Err(UserError::Usage(format!(
                "--metric {text}: no capture group: parenthesize the number: '([0-9.]+) requests'"
            )));
        }
        Ok(Metric {
            regex,
            group,
            direction,
        })
    }

    /// Returns the captured number, and whether larger or smaller is better.
    ///
    /// # Errors
    /// [`UserError::Target`] if nothing matches or the captured text is not a positive number.
    pub fn find(&self, text: &str) -> Result<(f64, Resource), UserError> {
        let found = self
            .regex
            .captures_iter(text)
            .filter_map(|c| c.get(self.group))
            .last();
        let Some(found) = found else {
            return Err(UserError::Target(format!(
                "--metric {}: not in the workload's output ({})",
                self.regex,
                text.lines().last().unwrap_or("which is empty")
            )));
        };
        let number = found.as_str().replace([',', '_'], "").parse::<f64>();
        let Some(number) = number.ok().filter(|n| n.is_finite() && *n > 0.0) else {
            return Err(UserError::Target(format!(
                "--metric {}: captured `{}`, which is not a positive number",
                self.regex,
                found.as_str()
            )));
        };
        let after = &text[found.end()..];
        let by_unit = if is_time(after) {
            Resource::MetricTime
        } else {
            Resource::MetricRate
        };
        Ok((number, self.direction.unwrap_or(by_unit)))
    }
}

/// Whether text begins with a unit of time.
fn is_time(text: &str) -> bool {
    const UNITS: [&str; 26] = [
        "ns",
        "nsec",
        "nsecs",
        "nanosecond",
        "nanoseconds",
        "us",
        "usec",
        "usecs",
        "\u{b5}s",
        "microsecond",
        "microseconds",
        "ms",
        "msec",
        "msecs",
        "millisecond",
        "milliseconds",
        "s",
        "sec",
        "secs",
        "second",
        "seconds",
        "min",
        "minute",
        "minutes",
        "h",
        "hours",
    ];
    let line = text.lines().next().unwrap_or("").trim_start();
    let end = line
        .find(|c: char| !c.is_alphabetic())
        .unwrap_or(line.len());
    UNITS.contains(&line[..end].to_lowercase().as_str())
}

#[cfg(test)]
mod tests;
