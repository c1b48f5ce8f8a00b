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
mod tests {
    use super::*;

    fn find(regex: &str, text: &str) -> (f64, Resource) {
        Metric::new(regex).unwrap().find(text).unwrap()
    }

    #[test]
    fn a_rate_is_better_when_larger() {
        let text = "SET: 81,234.50 requests per second\n";
        assert_eq!(
            find(r"([0-9.,]+) requests", text),
            (81234.5, Resource::MetricRate)
        );
    }

    #[test]
    fn a_unit_of_time_turns_the_direction() {
        assert_eq!(
            find(r"p99 ([0-9.]+)", "p99 12.5 ms"),
            (12.5, Resource::MetricTime)
        );
        assert_eq!(
            find(r"took ([0-9.]+)", "took 3s"),
            (3.0, Resource::MetricTime)
        );
        assert_eq!(
            find(r"took ([0-9.]+)", "took 3 steps"),
            (3.0, Resource::MetricRate)
        );
    }

    #[test]
    fn a_named_group_says_it_outright() {
        assert_eq!(
            find("lat=(?<time>[0-9]+)", "lat=7"),
            (7.0, Resource::MetricTime)
        );
        assert_eq!(
            find("x (?<rate>[0-9]+)", "x 7 s"),
            (7.0, Resource::MetricRate)
        );
    }

    #[test]
    fn the_last_match_counts() {
        assert_eq!(find("n ([0-9]+)", "n 1\nn 2\n").0, 2.0);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(matches!(Metric::new("("), Err(UserError::Usage(_))));
        assert!(matches!(Metric::new("abc"), Err(UserError::Usage(_))));
        let metric = Metric::new("n (.*)").unwrap();
        assert!(matches!(metric.find("nothing"), Err(UserError::Target(_))));
        assert!(matches!(metric.find("n zero"), Err(UserError::Target(_))));
        assert!(matches!(metric.find("n 0"), Err(UserError::Target(_))));
    }
}
