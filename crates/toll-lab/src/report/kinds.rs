// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page faults by kind, as the kernel measured them: counters `latency_KIND_NS`, the faults of a
//! kind that took at least this long by the guest's clock, which counts instructions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::results::{Entry, Results, markdown, number};
use crate::svg::{TailChart, document, escaped, key};

/// Latency and number of faults, the shortest first.
type Buckets = Vec<(u64, f64)>;

/// Distance of the policies' charts, and the space on the left of each for its labels.
const PANEL: f64 = 420.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 40.0;
const HEIGHT: f64 = 240.0;
/// A bucket reaches to an eighth more than its name.
const WIDTH_OF_BUCKET: f64 = 1.125;
const KINDS_IN_A_LINE: usize = 5;
const LINE: f64 = 18.0;

/// Prefix of the counters.
const LATENCY: &str = "latency_";

/// Whether a counter is of a kind of page faults.
pub fn is_of_a_kind(counter: &str) -> bool {
    counter.starts_with(LATENCY)
}

/// Whether results have faults by kind.
pub fn is_measured(results: &Results) -> bool {
    results.results.iter().any(|entry| !kinds(entry).is_empty())
}

fn kinds(entry: &Entry) -> BTreeMap<&str, Buckets> {
    let mut found: BTreeMap<&str, Buckets> = BTreeMap::new();
    for (name, count) in &entry.counters {
        let bucket = name
            .strip_prefix(LATENCY)
            .and_then(|rest| rest.rsplit_once('_'));
        let Some((kind, low)) = bucket.filter(|_| count.median > 0.0) else {
            continue;
        };
        if let Ok(low) = low.parse() {
            found.entry(kind).or_default().push((low, count.median));
        }
    }
    found
        .values_mut()
        .for_each(|buckets| buckets.sort_unstable_by_key(|(low, _)| *low));
    found
}

/// Formats the kinds of each policy as a table.
pub fn table(results: &Results) -> String {
    let head = ["policy", "kind", "faults", "median ns", "longest ns"].map(str::to_owned);
    let mut rows = Vec::new();
    for entry in &results.results {
        for (kind, buckets) in kinds(entry) {
            let longest = buckets.last().map_or(0, |(low, _)| *low);
            let mut row = vec![entry.policy.clone(), kind.to_owned()];
            row.extend([total(&buckets), median(&buckets) as f64, longest as f64].map(number));
            rows.push(row);
        }
    }
    markdown(&head, &rows)
}

fn total(buckets: &Buckets) -> f64 {
    buckets.iter().map(|(_, count)| count).sum()
}

fn median(buckets: &Buckets) -> u64 {
    let half = total(buckets) / 2.0;
    let mut so_far = 0.0;
    let is_half = |(_, count): &&(u64, f64)| {
        so_far += count;
        so_far >= half
    };
    buckets.iter().find(is_half).map_or(0, |(low, _)| *low)
}

/// Draws, for each policy, the share of all its faults that are of a kind and take longer.
pub fn picture(results: &Results) -> String {
    let entries: Vec<(&str, BTreeMap<&str, Buckets>)> = results
        .results
        .iter()
        .map(|entry| (entry.policy.as_str(), kinds(entry)))
        .collect();
    let names: BTreeSet<&str> = entries
        .iter()
        .flat_map(|(_, it)| it.keys().copied())
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    let mut body = String::new();
    for (at, (policy, kinds)) in entries.iter().enumerate() {
        let chart = TailChart {
            left: LEFT + at as f64 * PANEL,
            top: TOP,
            width: PANEL - 50.0,
            height: HEIGHT,
            // Nanoseconds.
            amounts: 2..=8,
            depth: 6,
        };
        draw_titles(&mut body, &chart, policy);
        chart.draw_axes(&mut body);
        let all: f64 = kinds.values().map(total).sum();
        for (place, name) in names.iter().enumerate() {
            if let Some(buckets) = kinds.get(name) {
                chart.draw_curve(&mut body, place, tail(buckets, all));
            }
        }
    }
    let below = TOP + HEIGHT + 42.0;
    for (place, kind) in names.iter().enumerate() {
        let x = LEFT + (place % KINDS_IN_A_LINE) as f64 * 220.0;
        let y = below + (place / KINDS_IN_A_LINE) as f64 * LINE;
        key(&mut body, (x, y), place, kind);
    }
    let width = LEFT + PANEL * entries.len() as f64;
    let lines = names.len().div_ceil(KINDS_IN_A_LINE);
    document(&body, width, below + 8.0 + LINE * lines as f64)
}

fn draw_titles(body: &mut String, chart: &TailChart, policy: &str) {
    let _ = writeln!(
        body,
        "<text class=\"title\" x=\"{}\" y=\"{}\">{}</text>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">longer than, ns of the guest's clock</text>",
        chart.left,
        chart.top - 14.0,
        escaped(policy),
        chart.left + chart.width / 2.0,
        chart.top + chart.height + 34.0
    );
}

/// For each latency, the share of `all` faults that are of this kind and take longer.
fn tail(buckets: &Buckets, all: f64) -> Vec<(f64, f64)> {
    let mut longer = total(buckets);
    let mut points = Vec::new();
    for (low, count) in buckets {
        points.push((*low as f64, longer / all));
        longer -= count;
    }
    let last = buckets.last().map_or(0.0, |(low, _)| *low as f64);
    points.push((last * WIDTH_OF_BUCKET, 0.0));
    points
}

#[cfg(test)]
mod tests;
