// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page faults and first touches by kind: counters `latency_KIND_NS`, the faults of a kind that took
//! at least this long as the kernel measured them, and `touches_KIND_NS`, the same of first touches
//! as the program measured them. The guest's clock counts instructions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::results::{Entry, MAIN, Results, markdown, number};
use crate::svg::{TailChart, document, escaped, key};

/// Latency and number of faults, the shortest first.
type Buckets = Vec<(u64, f64)>;

/// Distance of the policies' charts, and the space on the left of each for its labels.
const PANEL: f64 = 420.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 40.0;
const HEIGHT: f64 = 240.0;
/// Distance of the sections' charts.
const PANEL_LINE: f64 = HEIGHT + 80.0;
/// A bucket reaches to an eighth more than its name.
const WIDTH_OF_BUCKET: f64 = 1.125;
const KINDS_IN_A_LINE: usize = 5;
const LINE: f64 = 18.0;

/// Prefixes of the counters.
const LATENCY: &str = "latency_";
const TOUCHES: &str = "touches_";

/// Whether a counter is of a kind of page faults or touches.
pub fn is_of_a_kind(counter: &str) -> bool {
    [LATENCY, TOUCHES]
        .iter()
        .any(|prefix| bucket(counter, prefix).is_some())
}

/// The kind of a counter, and its latency.
fn bucket<'a>(counter: &'a str, prefix: &str) -> Option<(&'a str, u64)> {
    let (kind, low) = counter.strip_prefix(prefix)?.rsplit_once('_')?;
    Some((kind, low.parse().ok()?))
}

/// Whether results have page faults by kind.
pub fn is_measured(results: &Results) -> bool {
    has(&results.results.iter().collect::<Vec<_>>(), LATENCY)
}

fn has(entries: &[&Entry], prefix: &str) -> bool {
    entries.iter().any(|entry| !kinds(entry, prefix).is_empty())
}

fn kinds<'a>(entry: &'a Entry, prefix: &str) -> BTreeMap<&'a str, Buckets> {
    let mut found: BTreeMap<&str, Buckets> = BTreeMap::new();
    for (name, count) in &entry.counters {
        if let Some((kind, low)) = bucket(name, prefix).filter(|_| count.median > 0.0) {
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
        for (kind, buckets) in kinds(entry, LATENCY) {
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

/// Draws what was measured, and names each picture by the end of its file's name: page faults, and
/// for each kernel the first touches.
pub fn pictures(results: &Results) -> Vec<(String, String)> {
    let all: Vec<&Entry> = results.results.iter().collect();
    let mut pictures = Vec::new();
    if has(&all, LATENCY) {
        pictures.push((String::new(), picture(&all, LATENCY)));
    }
    let variants: BTreeSet<&str> = all.iter().map(|entry| entry.variant.as_str()).collect();
    for variant in variants {
        let own = all.iter().filter(|entry| entry.variant == variant);
        let own: Vec<&Entry> = own.copied().collect();
        if has(&own, TOUCHES) {
            pictures.push((format!("-{variant}"), picture(&own, TOUCHES)));
        }
    }
    pictures
}

/// Draws the share of all events that are of a kind and take longer: a chart for each policy, and a
/// line of charts for each section.
fn picture(entries: &[&Entry], prefix: &str) -> String {
    let names: BTreeSet<&str> = entries
        .iter()
        .flat_map(|entry| kinds(entry, prefix).into_keys())
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    let mut lines: Vec<Vec<&Entry>> = Vec::new();
    for entry in entries {
        match lines.iter_mut().find(|it| it[0].section == entry.section) {
            Some(line) => line.push(entry),
            None => lines.push(vec![entry]),
        }
    }
    let mut body = String::new();
    for (down, line) in lines.iter().enumerate() {
        for (across, entry) in line.iter().enumerate() {
            let chart = TailChart {
                left: LEFT + across as f64 * PANEL,
                top: TOP + down as f64 * PANEL_LINE,
                width: PANEL - 50.0,
                height: HEIGHT,
                // Nanoseconds.
                amounts: 2..=8,
                depth: 6,
            };
            draw_titles(&mut body, &chart, &title(entry));
            chart.draw_axes(&mut body);
            draw_curves(&mut body, &chart, &names, &kinds(entry, prefix));
        }
    }
    let below = TOP + (lines.len() - 1) as f64 * PANEL_LINE + HEIGHT + 42.0;
    for (place, kind) in names.iter().enumerate() {
        let x = LEFT + (place % KINDS_IN_A_LINE) as f64 * 220.0;
        let y = below + (place / KINDS_IN_A_LINE) as f64 * LINE;
        key(&mut body, (x, y), place, kind);
    }
    let longest = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = LEFT + PANEL * longest as f64;
    let height = below + 8.0 + LINE * names.len().div_ceil(KINDS_IN_A_LINE) as f64;
    document(&body, width, height)
}

fn title(entry: &Entry) -> String {
    match entry.section.as_str() {
        MAIN => entry.policy.clone(),
        section => format!("{}, {section}", entry.policy),
    }
}

/// A curve for each kind, at its place among the names.
fn draw_curves(
    body: &mut String,
    chart: &TailChart,
    names: &[&str],
    kinds: &BTreeMap<&str, Buckets>,
) {
    let all: f64 = kinds.values().map(total).sum();
    for (place, name) in names.iter().enumerate() {
        if let Some(buckets) = kinds.get(name) {
            chart.draw_curve(body, place, tail(buckets, all));
        }
    }
}

fn draw_titles(body: &mut String, chart: &TailChart, title: &str) {
    let _ = writeln!(
        body,
        "<text class=\"title\" x=\"{}\" y=\"{}\">{}</text>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">longer than, ns of the guest's clock</text>",
        chart.left,
        chart.top - 14.0,
        escaped(title),
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
