// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics as text: the format of OpenMetrics 1.0, and the older one of Prometheus (0.0.4).

use std::collections::BTreeMap;
use std::fmt::Write;

/// What a scraper gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    OpenMetrics,
    Text,
}

impl Format {
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    /// Labels that describe something; its value is 1.
    Info,
}

/// Names and values.
pub type Labels<'a> = &'a [(&'static str, &'a str)];

#[derive(Debug)]
struct Family {
    kind: Kind,
    unit: Option<&'static str>,
    help: String,
    /// Values by labels, as they are printed: each set of labels once.
    samples: BTreeMap<String, f64>,
}

/// Metrics by name, without the suffix of their kind.
#[derive(Debug, Default)]
pub struct Families(BTreeMap<String, Family>);

impl Families {
    /// Adds a value. The unit is the end of the name.
    pub fn add(&mut self, kind: Kind, name: &str, help: &str, labels: Labels, value: f64) {
        let family = self.0.entry(name.to_owned()).or_insert_with(|| Family {
            kind,
            unit: ["seconds", "bytes"]
                .into_iter()
                .find(|unit| name.ends_with(&format!("_{unit}"))),
            help: help.to_owned(),
            samples: BTreeMap::new(),
        });
        family.samples.entry(encode_labels(labels)).or_insert(value);
    }

    pub fn encode(&self, format: Format) -> String {
        let mut text = String::new();
        for (name, family) in &self.0 {
            family.encode(name, format, &mut text);
        }
        if format == Format::OpenMetrics {
            text += "# EOF\n";
        }
        text
    }
}

impl Family {
    fn encode(&self, name: &str, format: Format, text: &mut String) {
        let (kind, suffix) = match (self.kind, format) {
            (Kind::Counter, _) => ("counter", "_total"),
            (Kind::Gauge, _) => ("gauge", ""),
            (Kind::Info, Format::OpenMetrics) => ("info", "_info"),
            (Kind::Info, Format::Text) => ("gauge", "_info"),
        };
        // The older format names the sample, the newer one the family.
        let named = match format {
            Format::OpenMetrics => name.to_owned(),
            Format::Text => format!("{name}{suffix}"),
        };
        let help = escape(&self.help);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# TYPE {named} {kind}");
        if let (Some(unit), Format::OpenMetrics) = (self.unit, format) {
            let _ = writeln!(text, "# UNIT {named} {unit}");
        }
        let _ = writeln!(text, "# HELP {named} {help}");
        for (labels, value) in &self.samples {
            let _ = writeln!(text, "{name}{suffix}{labels} {value}");
        }
    }
}

fn encode_labels(labels: Labels) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let pairs = labels.iter();
    let pairs: Vec<String> = pairs
        .map(|(name, value)| {
            format!(
                "{name}=\"{}\"",
                escape(&harmless(value)).replace('"', "\\\"")
            )
        })
        .collect();
    format!("{{{}}}", pairs.join(","))
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

/// Control characters as `\u{1b}`: the text may be shown on a terminal.
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families() -> Families {
        let mut families = Families::default();
        let labels = [("cgroup", "/a\"b\\c\u{1b}\n")];
        families.add(Kind::Counter, "x_seconds", "time\nlost", &labels, 1.5);
        families.add(Kind::Counter, "x_seconds", "time\nlost", &labels, 7.0);
        families.add(Kind::Counter, "x_seconds", "time\nlost", &[], 2.0);
        families.add(Kind::Gauge, "a_bytes", "memory", &[], 1e15);
        families.add(Kind::Info, "build", "versions", &[("version", "1")], 1.0);
        families
    }

    #[test]
    fn open_metrics_names_families() {
        let expected = "# TYPE a_bytes gauge\n# UNIT a_bytes bytes\n# HELP a_bytes memory\n\
            a_bytes 1000000000000000\n\
            # TYPE build info\n# HELP build versions\nbuild_info{version=\"1\"} 1\n\
            # TYPE x_seconds counter\n# UNIT x_seconds seconds\n# HELP x_seconds time\\nlost\n\
            x_seconds_total 2\n\
            x_seconds_total{cgroup=\"/a\\\"b\\\\c\\\\u{1b}\\\\u{a}\"} 1.5\n# EOF\n";
        assert_eq!(families().encode(Format::OpenMetrics), expected);
    }

    #[test]
    fn the_older_format_names_samples() {
        let text = families().encode(Format::Text);
        assert!(text.contains("# TYPE x_seconds_total counter\n"), "{text}");
        assert!(text.contains("# TYPE build_info gauge\n"), "{text}");
        assert!(!text.contains("EOF") && !text.contains("UNIT"), "{text}");
    }
}
