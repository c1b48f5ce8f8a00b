// SPDX-License-Identifier: MIT OR Apache-2.0
//! A strict reader of OpenMetrics 1.0: it fails at anything that the format forbids, as far as
//! counters, gauges and infos are concerned.

use std::collections::{BTreeMap, BTreeSet};

/// Labels in their order.
pub type Labels = Vec<(String, String)>;

#[derive(Debug, Default)]
struct Family {
    kind: String,
    unit: String,
    help: Option<String>,
}

/// Samples by name and labels.
#[derive(Debug, Default)]
pub struct Metrics {
    pub samples: BTreeMap<(String, Labels), f64>,
    families: BTreeMap<String, Family>,
}

impl Metrics {
    /// The sum of the samples of a name that have a label.
    pub fn value(&self, name: &str, label: Option<(&str, &str)>) -> Option<f64> {
        let has = |labels: &Labels| {
            label
                .is_none_or(|(key, value)| labels.iter().any(|it| (&*it.0, &*it.1) == (key, value)))
        };
        let mut found = self
            .samples
            .iter()
            .filter(|(it, _)| it.0 == name && has(&it.1))
            .peekable();
        found.peek()?;
        Some(found.map(|(_, value)| value).sum())
    }

    /// The values of a label.
    pub fn labels(&self, label: &str) -> BTreeSet<String> {
        let all = self.samples.keys().flat_map(|(_, labels)| labels);
        all.filter(|it| it.0 == label)
            .map(|it| it.1.clone())
            .collect()
    }

    pub fn names(&self) -> BTreeSet<String> {
        self.samples.keys().map(|(name, _)| name.clone()).collect()
    }
}

pub fn parse(text: &str) -> Metrics {
    let text = text.strip_suffix("# EOF\n").expect("an end");
    assert!(text.is_empty() || text.ends_with('\n'));
    let mut metrics = Metrics::default();
    let mut current = String::new();
    for line in text.lines() {
        match line.strip_prefix("# ") {
            Some(comment) => describe(&mut metrics, &mut current, comment),
            None => sample(&mut metrics, &current, line),
        }
    }
    metrics
}

fn describe(metrics: &mut Metrics, current: &mut String, comment: &str) {
    let mut words = comment.splitn(3, ' ');
    let (what, name, text) = (
        words.next().unwrap(),
        words.next().unwrap(),
        words.next().unwrap(),
    );
    assert_name(name);
    if what == "TYPE" {
        assert!(["counter", "gauge", "info"].contains(&text), "{comment}");
        assert!(
            !name.ends_with("_total") && !name.ends_with("_info"),
            "{comment}"
        );
        let family = Family {
            kind: text.to_owned(),
            ..Family::default()
        };
        let is_new = metrics.families.insert(name.to_owned(), family).is_none();
        assert!(is_new, "{name} is interrupted or doubled");
        *current = name.to_owned();
        return;
    }
    assert_eq!(name, current, "{comment}");
    let family = metrics.families.get_mut(name).unwrap();
    match what {
        "UNIT" => {
            assert!(name.ends_with(&format!("_{text}")), "{comment}");
            family.unit = text.to_owned();
        }
        "HELP" => assert!(family.help.replace(text.to_owned()).is_none(), "{comment}"),
        _ => panic!("{comment}"),
    }
}

fn sample(metrics: &mut Metrics, current: &str, line: &str) {
    let name_end = line.find(['{', ' ']).unwrap();
    let (name, rest) = line.split_at(name_end);
    let family = &metrics.families[current];
    assert!(family.help.is_some(), "{line}");
    let suffix = match family.kind.as_str() {
        "counter" => "_total",
        "info" => "_info",
        _ => "",
    };
    assert_eq!(name, format!("{current}{suffix}"));
    let (labels, rest) = labels(rest);
    let value: f64 = rest.strip_prefix(' ').unwrap().parse().unwrap();
    assert!(value.is_finite() && value >= 0.0, "{line}");
    assert!(family.kind != "info" || value == 1.0, "{line}");
    let is_new = metrics
        .samples
        .insert((name.to_owned(), labels), value)
        .is_none();
    assert!(is_new, "{line} is doubled");
}

/// The labels at the start, and the rest of the line.
fn labels(text: &str) -> (Labels, &str) {
    let Some(mut rest) = text.strip_prefix('{') else {
        return (Labels::new(), text);
    };
    let mut labels = Labels::new();
    loop {
        let (name, value) = rest.split_once("=\"").unwrap();
        assert_name(name);
        let (value, after) = quoted(value);
        assert!(labels.iter().all(|it| it.0 != name), "{text}");
        labels.push((name.to_owned(), value));
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (labels, after.strip_prefix('}').unwrap()),
        }
    }
}

/// A value up to its quote, without escapes, and the rest behind the quote.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => match chars.next().unwrap().1 {
                'n' => value.push('\n'),
                c @ ('\\' | '"') => value.push(c),
                c => panic!("escaped {c:?} in {text}"),
            },
            c => {
                assert!(!c.is_control(), "{text:?}");
                value.push(c);
            }
        }
    }
    panic!("no end: {text}");
}

fn assert_name(name: &str) {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    assert!(name.chars().all(is_valid), "{name:?}");
    assert!(
        name.starts_with(|c: char| c.is_ascii_lowercase()),
        "{name:?}"
    );
}
