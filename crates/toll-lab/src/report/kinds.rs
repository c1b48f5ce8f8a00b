// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page faults by kind, as the kernel measured them: counters `latency_KIND_NS`, the faults of a
//! kind that took at least this long by the guest's clock, which counts instructions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::results::{Entry, Results, markdown, number};

/// Latency and number of faults, the shortest first.
type Buckets = Vec<(u64, f64)>;

const COLOURS: [&str; 10] = [
    "#1b6ca8", "#c8553d", "#588157", "#7b2d8b", "#b8860b", "#2a9d8f", "#6c757d", "#e07a5f",
    "#3d405b", "#000000",
];
/// Size of a policy's panel, and of the margins of the picture.
const PANEL: f64 = 420.0;
const INNER: f64 = PANEL - 50.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 40.0;
const HEIGHT: f64 = 240.0;
/// Powers of ten on the axes: nanoseconds, and shares of the faults.
const FIRST_DECADE: i32 = 2;
const LAST_DECADE: i32 = 8;
const SHARE_DECADES: i32 = 6;
/// A bucket reaches to an eighth more than its name.
const WIDTH_OF_BUCKET: f64 = 1.125;
const KINDS_IN_A_LINE: usize = 5;

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
    let lines = names.len().div_ceil(KINDS_IN_A_LINE);
    let width = LEFT + PANEL * entries.len() as f64;
    let height = TOP + HEIGHT + 50.0 + 18.0 * lines as f64;
    let mut svg = format!(
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let colour = |kind: &str| {
        let place = names.iter().position(|name| *name == kind).unwrap_or(0);
        COLOURS[place % COLOURS.len()]
    };
    for (at, (policy, kinds)) in entries.iter().enumerate() {
        axes(&mut svg, LEFT + at as f64 * PANEL, policy);
        curves(&mut svg, LEFT + at as f64 * PANEL, kinds, &colour);
    }
    for (at, kind) in names.iter().enumerate() {
        let x = LEFT + (at % KINDS_IN_A_LINE) as f64 * 220.0;
        let y = TOP + HEIGHT + 52.0 + (at / KINDS_IN_A_LINE) as f64 * 18.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{}\" width=\"12\" height=\"4\" fill=\"{}\"/>\
             <text x=\"{}\" y=\"{y}\">{kind}</text>",
            y - 9.0,
            colour(kind),
            x + 18.0
        );
    }
    svg + "</svg>\n"
}

fn x_of(left: f64, ns: f64) -> f64 {
    let (first, last) = (f64::from(FIRST_DECADE), f64::from(LAST_DECADE));
    let decade = ns.max(1.0).log10().clamp(first, last);
    left + (decade - first) / (last - first) * INNER
}

fn y_of(share: f64) -> f64 {
    let most = f64::from(SHARE_DECADES);
    let depth = -share.max(10f64.powf(-most)).log10();
    TOP + depth.min(most) / most * HEIGHT
}

fn axes(svg: &mut String, left: f64, policy: &str) {
    let bottom = TOP + HEIGHT;
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{policy}</text>",
        TOP - 14.0
    );
    for decade in FIRST_DECADE..=LAST_DECADE {
        let x = x_of(left, 10f64.powi(decade));
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#dddddd\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">10^{decade}</text>",
            bottom + 16.0
        );
    }
    for decade in 0..=SHARE_DECADES {
        let y = y_of(10f64.powi(-decade));
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">1e-{decade}</text>",
            left + INNER,
            left - 6.0,
            y + 4.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">longer than, ns of the guest's clock</text>",
        left + INNER / 2.0,
        bottom + 34.0
    );
}

fn curves(
    svg: &mut String,
    left: f64,
    kinds: &BTreeMap<&str, Buckets>,
    colour: &dyn Fn(&str) -> &'static str,
) {
    let all: f64 = kinds.values().map(total).sum();
    for (kind, buckets) in kinds {
        let mut longer = total(buckets);
        let mut points = String::new();
        for (low, count) in buckets {
            let (x, y) = (x_of(left, *low as f64), y_of(longer / all));
            let _ = write!(points, "{x:.1},{y:.1} ");
            longer -= count;
        }
        let last = buckets.last().map_or(0.0, |(low, _)| *low as f64);
        let (x, y) = (x_of(left, last * WIDTH_OF_BUCKET), y_of(0.0));
        let _ = writeln!(
            svg,
            "<polyline points=\"{points}{x:.1},{y:.1}\" fill=\"none\" stroke=\"{}\" \
             stroke-width=\"1.5\"/>",
            colour(kind)
        );
    }
}

#[cfg(test)]
mod tests;
