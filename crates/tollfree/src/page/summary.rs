// SPDX-License-Identifier: MIT OR Apache-2.0
//! The top of the page: the verdict, key figures, and limitations.

use std::fmt::Write;

use toll_model::plan::Verdict;
use toll_model::profile::{Profile, Source};
use toll_model::{REGION, numbers};
use toll_observe::heat::{self, Strip};

use super::data::{PageData, Tone, VerdictBox};
use super::format::escape;

pub fn verdict(data: &PageData) -> String {
    let derived;
    let verdict = match (&data.verdict, data.before) {
        (Some(verdict), _) => verdict,
        (None, Some(profile)) => {
            derived = observed(profile, data.after);
            &derived
        }
        (None, None) => return String::new(),
    };
    let (class, tag) = match verdict.tone {
        Tone::Apply => ("apply", "✓ Apply"),
        Tone::DoNothing => ("do-nothing", "– Do nothing"),
        Tone::Unsure => ("unsure", "? Not decided"),
    };
    let tag = if data.verdict.is_some() {
        tag
    } else {
        "Observed"
    };
    let mut out = format!(
        "<section class=\"verdict {class}\" aria-label=\"Verdict\"><span class=\"tag\">{tag}</span><strong>{}</strong>",
        escape(&verdict.headline)
    );
    for detail in &verdict.details {
        let _ = write!(out, "<p>{}</p>", escape(detail));
    }
    out.push_str("</section>");
    out
}

/// The verdict box of a page with recordings but no decision.
fn observed(profile: &Profile, after: Option<&Profile>) -> VerdictBox {
    let (hot, used) = concentration(profile);
    let total = misses(profile);
    let mut details = vec![format!(
        "{} {} were counted in {} regions of 2 MiB.",
        numbers::count(total),
        noun(profile.source),
        numbers::count(used as f64)
    )];
    if let Some(after) = after {
        let left = misses(after);
        details.push(format!(
            "The second recording counted {}: {} fewer.",
            numbers::count(left),
            if total > 0.0 {
                numbers::percent(1.0 - left / total)
            } else {
                "-".to_owned()
            }
        ));
    }
    details.push("This page shows recordings; “tollfree plan” and “tollfree compare” tell whether huge pages pay.".to_owned());
    VerdictBox {
        tone: Tone::DoNothing,
        headline: format!(
            "90 % of what was counted lies in {} of {} regions",
            numbers::count(hot as f64),
            numbers::count(used as f64)
        ),
        details,
    }
}

/// The noun for the counts of a source.
pub fn noun(source: Source) -> &'static str {
    match source {
        Source::Perf => "TLB misses (samples times period)",
        Source::Sim => "modelled TLB misses",
        Source::Accessed => "page touches (an upper bound for misses)",
    }
}

fn misses(profile: &Profile) -> f64 {
    heat::totals(profile).iter().map(|t| t.misses).sum()
}

/// Number of regions with 90 % of the misses, and number of used regions.
fn concentration(profile: &Profile) -> (usize, usize) {
    let mut used = 0;
    let mut counts = Vec::new();
    for rows in &profile.sites {
        let strip = Strip::new(rows, 1 << 20);
        used += strip.used();
        counts.extend(strip.cells.iter().map(|c| c.misses).filter(|m| *m > 0.0));
    }
    counts.sort_by(|a, b| b.total_cmp(a));
    let goal = counts.iter().sum::<f64>() * 0.9;
    let mut sum = 0.0;
    let hot = counts.iter().take_while(|m| {
        let more = sum < goal;
        sum += **m;
        more
    });
    (hot.count(), used)
}

pub fn tiles(data: &PageData) -> String {
    let mut tiles: Vec<(String, String)> = Vec::new();
    if let Some(profile) = data.before {
        let total = misses(profile);
        let (hot, used) = concentration(profile);
        tiles.push((numbers::count(total), noun(profile.source).to_owned()));
        tiles.push((numbers::bytes(profile.footprint), "touched".to_owned()));
        tiles.push((
            format!(
                "{} of {}",
                numbers::count(hot as f64),
                numbers::count(used as f64)
            ),
            "regions hold 90 % of the misses".to_owned(),
        ));
        if let (Some(after), true) = (data.after, total > 0.0) {
            tiles.push((
                numbers::percent(1.0 - misses(after) / total),
                "of the misses avoided (second recording)".to_owned(),
            ));
        }
    }
    if let Some(plan) = data.plan {
        let huge = plan
            .regions
            .iter()
            .filter(|r| r.verdict == Verdict::Huge)
            .count();
        tiles.push((
            numbers::bytes(huge as u64 * REGION),
            format!("planned huge ({} regions)", numbers::count(huge as f64)),
        ));
        if plan.baseline_ns.is_some() || huge == 0 {
            tiles.push((
                format!("{:.2}", plan.predicted_speedup.median),
                format!(
                    "predicted speed-up ({:.2} to {:.2})",
                    plan.predicted_speedup.low, plan.predicted_speedup.high
                ),
            ));
        }
    }
    if tiles.is_empty() {
        return String::new();
    }
    let items: String = tiles
        .iter()
        .map(|(value, name)| format!("<li><b>{}</b>{}</li>", escape(value), escape(name)))
        .collect();
    format!("<ul class=\"tiles\" aria-label=\"Key figures\">{items}</ul>")
}

pub fn warnings(data: &PageData) -> String {
    let mut all: Vec<String> = data.warnings.clone();
    let mut add = |text: &str| {
        if !all.iter().any(|known| known == text) {
            all.push(text.to_owned());
        }
    };
    for (profile, which) in [(data.before, "first"), (data.after, "second")] {
        let Some(profile) = profile else { continue };
        if !profile.complete {
            add(&format!(
                "The {which} recording was cut short: its counts cover only part of the run."
            ));
        }
        profile.warnings.iter().for_each(|w| add(w));
    }
    if let Some(plan) = data.plan {
        plan.warnings.iter().for_each(|w| add(w));
    }
    if all.is_empty() {
        return String::new();
    }
    let items: String = all
        .iter()
        .map(|w| format!("<li>{}</li>", escape(w)))
        .collect();
    format!(
        "<section class=\"note\"><h2>Limitations of these results</h2><ul>{items}</ul></section>"
    )
}
