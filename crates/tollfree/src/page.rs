// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report page: one HTML file that needs no network and no script.
//!
//! [`render`] depends on [`PageData`] only: equal data give an equal page.

mod charts;

use std::fmt::Write;

use toll_model::REGION;
use toll_model::numbers;
use toll_model::plan::{Estimate, Plan, Region, Verdict};
use toll_model::profile::{Profile, Source};
use toll_model::site::{Level, Site, SiteKind};
use toll_observe::heat::{self, Strip, Total};

/// Maximum number of sites with a strip of their own.
const STRIPS: usize = 12;
/// Maximum number of rows of the table of sites, and of the table of regions.
const SITE_ROWS: usize = 100;
const REGION_ROWS: usize = 100;

/// Everything that a page can show. Absent parts are omitted.
#[derive(Debug, Default)]
pub struct PageData<'a> {
    /// Display name of the program.
    pub program: String,
    /// The box at the top. `None`: derived from the profiles alone.
    pub verdict: Option<VerdictBox>,
    /// The profile without the plan; absent if tuning ended before recording one.
    pub before: Option<&'a Profile>,
    /// A second recording, under the plan.
    pub after: Option<&'a Profile>,
    pub plan: Option<&'a Plan>,
    pub measured: Option<Measured>,
    pub permanent: Vec<Permanent>,
    /// Kernel, CPU, memory, THP mode...: name and value.
    pub environment: Vec<(String, String)>,
    /// How it was measured, one sentence per item.
    pub method: Vec<String>,
    /// Warnings for the reader; [`render`] adds those of the profiles and the plan.
    pub warnings: Vec<String>,
    /// Command line and environment variables; `None` unless the user asked for them.
    pub command: Option<Command>,
}

/// The command that was run.
#[derive(Debug, Clone)]
pub struct Command {
    pub arguments: Vec<String>,
    /// One `NAME=value` per item.
    pub environment: Vec<String>,
}

/// The recommendation in plain words.
#[derive(Debug, Clone)]
pub struct VerdictBox {
    pub tone: Tone,
    /// One line: "Apply the plan: 1.31 times as fast".
    pub headline: String,
    /// Sentences below it.
    pub details: Vec<String>,
}

/// The category of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Worth doing.
    Apply,
    /// Nothing to gain.
    DoNothing,
    /// Undecided, or the run is incomplete.
    Unsure,
}

/// The result of the interleaved runs.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What was compared: "elapsed time", "CPU time", "requests per second".
    pub metric: String,
    /// Unit of the samples: "s".
    pub unit: String,
    /// True where a larger number is better (a `--metric`).
    pub larger_is_better: bool,
    /// Confidence of every interval, 0..1.
    pub confidence: f64,
    /// Rounds in which each variant ran once.
    pub pairs: usize,
    /// In display order; the others are compared with the first.
    pub variants: Vec<Variant>,
    /// Smallest relative effect that such runs detect with a probability of 80 % (0.01 is 1 %).
    pub smallest_visible: Option<f64>,
    /// Counters per variant, for the chart of counters.
    pub counters: Vec<Counter>,
}

/// One way of running the program.
#[derive(Debug, Clone)]
pub struct Variant {
    /// "none", "plan", "all", "never", or the name of a permanent change.
    pub name: String,
    /// Display text: "as it is run today".
    pub meaning: String,
    /// One value per run, in [`Measured::unit`].
    pub samples: Vec<f64>,
    pub median: f64,
    /// Interval of the median.
    pub low: f64,
    pub high: f64,
    /// Time of the first variant / time of this one, with its interval; `None` for the first variant.
    pub speedup: Option<Estimate>,
    /// The plan's prediction for this variant, with its 80 % interval.
    pub predicted: Option<Estimate>,
}

/// A counter with one value per variant, such as page faults.
#[derive(Debug, Clone)]
pub struct Counter {
    pub name: String,
    /// The unit of the values.
    pub unit: CounterUnit,
    /// Median per variant, in the order of [`Measured::variants`]; `None` if not measured.
    pub values: Vec<Option<f64>>,
}

/// The unit of a [`Counter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterUnit {
    Count,
    Seconds,
    Bytes,
}

/// A change that makes the result permanent without tollfree.
#[derive(Debug, Clone)]
pub struct Permanent {
    /// "glibc: huge pages for malloc".
    pub title: String,
    /// The text to paste.
    pub paste: String,
    /// Where to apply it, and its other effects.
    pub note: String,
    /// Measured speed-up of exactly this change; `None`: not measured, as the page then shows.
    pub speedup: Option<Estimate>,
}

/// Renders the whole page.
pub fn render(data: &PageData) -> String {
    let mut out = String::with_capacity(64 << 10);
    let program = escape(&data.program);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>tollfree: {program}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n<header><h1>{program}</h1><p class=\"soft\">What address translation costs this program, and what huge pages change</p></header>\n",
        include_str!("page/style.css")
    );
    for section in [
        verdict(data),
        tiles(data),
        warnings(data),
        measured(data),
        strips(data),
        counters(data),
        estimated(data),
        permanent(data),
        method(data),
        environment(data),
        command(data),
        WORDS.to_owned(),
    ] {
        if !section.is_empty() {
            out.push_str(&section);
            out.push('\n');
        }
    }
    let _ = write!(
        out,
        "<footer class=\"soft\"><p>Made by tollfree {}. This file is self-contained: it loads no other files.</p></footer>\n</main>\n<script>\n{}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        include_str!("page/hover.js")
    );
    out
}

/// Escapes text for HTML content and attributes; makes control characters visible.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A ratio with its interval: `1.31 (1.25 to 1.38)`.
fn interval(estimate: &Estimate) -> String {
    format!(
        "{:.2} ({:.2} to {:.2})",
        estimate.median, estimate.low, estimate.high
    )
}

/// A number in the unit of the samples.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => numbers::count(value),
        v if v >= 10.0 => format!("{value:.2}"),
        v if v >= 0.01 || v == 0.0 => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}

/// An estimated time saving in ns.
fn saved(estimate: &Estimate) -> String {
    format!(
        "{} ({} to {})",
        numbers::duration(estimate.median),
        numbers::duration(estimate.low),
        numbers::duration(estimate.high)
    )
}

fn verdict(data: &PageData) -> String {
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
fn noun(source: Source) -> &'static str {
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

fn tiles(data: &PageData) -> String {
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

fn warnings(data: &PageData) -> String {
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

fn measured(data: &PageData) -> String {
    let Some(measured) = &data.measured else {
        return String::new();
    };
    let mut out = format!(
        "<section><h2>Measured by interleaved runs</h2><p class=\"soft\">{}, {} interleaved runs of each variant; intervals are {:.0} %.{}</p>",
        escape(&capitalised(&measured.metric)),
        measured.pairs,
        measured.confidence * 100.0,
        measured
            .smallest_visible
            .map_or_else(String::new, |effect| format!(
                " Such runs detect an effect of {} with a probability of 80 %.",
                numbers::percent(effect)
            ))
    );
    out.push_str(&charts::speedups(measured));
    out.push_str(&charts::samples(measured));
    out.push_str(&variants_table(measured));
    out.push_str("</section>");
    out
}

fn variants_table(measured: &Measured) -> String {
    let estimate = |e: &Option<Estimate>| e.as_ref().map_or("–".to_owned(), interval);
    let mut out = format!(
        "<div class=\"scroll\"><table><caption>Measured and predicted</caption><thead><tr><th scope=\"col\">Variant</th><th scope=\"col\" class=\"n\">Median {}</th><th scope=\"col\" class=\"n\">Interval</th><th scope=\"col\" class=\"n\">Speed-up, measured</th><th scope=\"col\" class=\"n\">Speed-up, predicted</th><th scope=\"col\" class=\"n\">Runs</th></tr></thead><tbody>",
        escape(&measured.metric)
    );
    for variant in &measured.variants {
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}<small>{}</small></th><td class=\"n\">{} {}</td><td class=\"n\">{} to {}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            escape(&variant.name),
            escape(&variant.meaning),
            number(variant.median),
            escape(&measured.unit),
            number(variant.low),
            number(variant.high),
            estimate(&variant.speedup),
            estimate(&variant.predicted),
            variant.samples.len()
        );
    }
    out.push_str("</tbody></table></div>");
    out
}

fn strips(data: &PageData) -> String {
    let Some(before) = data.before else {
        return String::new();
    };
    let totals = heat::totals(before);
    let all: f64 = totals.iter().map(|t| t.misses).sum();
    let shown: Vec<&Total> = totals
        .iter()
        .filter(|t| t.misses > 0.0 && t.misses >= all * 0.001)
        .take(STRIPS)
        .collect();
    let mut out = format!(
        "<section><h2>Where the misses are{}</h2><p class=\"soft\">Source: {}. Counts are {}; each strip is one site, from its start to its end.</p>",
        if data.after.is_some() {
            ", before and after"
        } else {
            ""
        },
        escape(&before.source_detail),
        noun(before.source)
    );
    if shown.is_empty() {
        out.push_str("<p>No miss was counted.</p></section>");
        return out;
    }
    let peak = |rows| Strip::new(rows, 1 << 20).peak();
    let hottest = shown.iter().map(|t| peak(t.rows)).fold(0.0, f64::max);
    out.push_str(&charts::ramp(data.after.is_some(), data.plan.is_some()));
    for total in &shown {
        out.push_str(&charts::strip(total.rows, data.after, data.plan, hottest));
    }
    let rest = totals.len() - shown.len();
    if rest > 0 {
        let left = all - shown.iter().map(|t| t.misses).sum::<f64>();
        let _ = write!(
            out,
            "<p class=\"soft\">Not drawn: {rest} more sites with {} of the misses.</p>",
            numbers::percent(if all > 0.0 { left / all } else { 0.0 })
        );
    }
    out.push_str("</section>");
    out
}

fn counters(data: &PageData) -> String {
    let chart = data
        .measured
        .as_ref()
        .map_or_else(String::new, charts::counters);
    if chart.is_empty() {
        return chart;
    }
    format!("<section><h2>Counters before and after</h2>{chart}</section>")
}

/// The estimates for one site.
struct Estimated<'a> {
    site: &'a Site,
    regions: usize,
    huge: usize,
    misses: f64,
    benefit: f64,
    cost: f64,
}

/// The sites of a plan, the largest benefit first.
fn estimated_sites(plan: &Plan) -> Vec<Estimated<'_>> {
    let mut all: Vec<Estimated> = plan
        .sites
        .iter()
        .map(|site| {
            let mut sum = Estimated {
                site,
                regions: 0,
                huge: 0,
                misses: 0.0,
                benefit: 0.0,
                cost: 0.0,
            };
            for region in plan.regions.iter().filter(|r| r.site == site.id) {
                sum.regions += 1;
                sum.huge += usize::from(region.verdict == Verdict::Huge);
                sum.misses += region.misses;
                sum.benefit += region.benefit_ns;
                sum.cost += region.cost_ns;
            }
            sum
        })
        .collect();
    all.sort_by(|a, b| b.benefit.total_cmp(&a.benefit));
    all
}

fn estimated(data: &PageData) -> String {
    let Some(plan) = data.plan else {
        return String::new();
    };
    let mut out = format!(
        "<section><h2>Benefit and cost by part</h2><p>{}</p><p class=\"soft\">The planned set saves {} of CPU time a run; everything huge would save {}. Costs: {}.</p>",
        escape(&plan.reason),
        saved(&plan.saved_ns),
        saved(&plan.saved_all_ns),
        escape(&plan.cpu)
    );
    let sites = estimated_sites(plan);
    out.push_str("<div class=\"scroll\"><table><caption>By site: where the memory was allocated, what huge pages save there over a run, what they cost</caption><thead><tr><th scope=\"col\">Allocated at</th><th scope=\"col\" class=\"n\">Regions huge</th><th scope=\"col\" class=\"n\">Misses</th><th scope=\"col\" class=\"n\">Benefit</th><th scope=\"col\" class=\"n\">Cost</th><th scope=\"col\">Verdict</th></tr></thead><tbody>");
    for row in sites.iter().take(SITE_ROWS) {
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}<small>{}</small></th><td class=\"n\">{} of {}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            escape(&row.site.to_string()),
            escape(&origin(row.site)),
            numbers::count(row.huge as f64),
            numbers::count(row.regions as f64),
            numbers::count(row.misses),
            numbers::duration(row.benefit),
            numbers::duration(row.cost),
            match row.huge {
                0 => "<span class=\"no\">leave</span>",
                n if n == row.regions => "<span class=\"yes\">✓ huge</span>",
                _ => "<span class=\"yes\">✓ huge in part</span>",
            }
        );
    }
    out.push_str("</tbody></table></div>");
    if sites.len() > SITE_ROWS {
        let _ = write!(
            out,
            "<p class=\"soft\">{} more sites are in the plan.</p>",
            sites.len() - SITE_ROWS
        );
    }
    out.push_str(&region_table(plan));
    out.push_str("</section>");
    out
}

/// The origin of a site: its further frames, its module, and its match level.
fn origin(site: &Site) -> String {
    let mut parts = Vec::new();
    match &site.kind {
        SiteKind::Alloc { frames, .. } => {
            for frame in frames.iter().skip(1) {
                let name = frame
                    .symbol
                    .clone()
                    .unwrap_or_else(|| format!("{:#x}", frame.offset));
                let source = frame
                    .source
                    .as_ref()
                    .map_or_else(String::new, |s| format!(" ({s})"));
                parts.push(format!("called by {name}{source}"));
            }
            if let Some(frame) = frames.first().filter(|f| !f.path.is_empty()) {
                parts.push(format!("in {}", frame.path));
            }
        }
        SiteKind::File { .. } => parts.push("file mappings are shown, not acted on".to_owned()),
        _ => {}
    }
    parts.push(numbers::bytes(site.length));
    parts.push(match site.level {
        Level::Exact => "found again exactly".to_owned(),
        Level::Class => "found again by site and length class".to_owned(),
        Level::Kind => "found again as this kind of memory".to_owned(),
        Level::NotFound => "not found again: never advised".to_owned(),
    });
    parts.join(", ")
}

fn region_table(plan: &Plan) -> String {
    let mut regions: Vec<&Region> = plan.regions.iter().collect();
    regions.sort_by(|a, b| b.benefit_ns.total_cmp(&a.benefit_ns));
    let count = regions.len();
    if count == 0 {
        return String::new();
    }
    regions.truncate(REGION_ROWS);
    let mut out = format!(
        "<details><summary>{}</summary><div class=\"scroll\"><table><thead><tr><th scope=\"col\">Site</th><th scope=\"col\" class=\"n\">Offset</th><th scope=\"col\" class=\"n\">Length</th><th scope=\"col\" class=\"n\">Misses</th><th scope=\"col\" class=\"n\">Benefit</th><th scope=\"col\" class=\"n\">Cost</th><th scope=\"col\">Verdict</th></tr></thead><tbody>",
        if count > REGION_ROWS {
            format!(
                "The {REGION_ROWS} regions with the largest benefit, of {} (all are in the plan)",
                numbers::count(count as f64)
            )
        } else {
            format!("All {count} regions")
        }
    );
    for region in regions {
        let site = plan
            .sites
            .iter()
            .find(|a| a.id == region.site)
            .map_or_else(String::new, Site::to_string);
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{:#x}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}<small>{}</small></td></tr>",
            escape(&site),
            region.offset,
            numbers::bytes(region.length),
            numbers::count(region.misses),
            numbers::duration(region.benefit_ns),
            numbers::duration(region.cost_ns),
            match region.verdict {
                Verdict::Huge => "<span class=\"yes\">✓ huge</span>",
                Verdict::Leave => "<span class=\"no\">leave</span>",
            },
            region.why.words()
        );
    }
    out.push_str("</tbody></table></div></details>");
    out
}

fn permanent(data: &PageData) -> String {
    if data.permanent.is_empty() {
        return String::new();
    }
    let mut out = String::from("<section><h2>Make it permanent, without tollfree</h2>");
    for change in &data.permanent {
        let number = change.speedup.as_ref().map_or_else(
            || "not measured".to_owned(),
            |e| format!("measured speed-up {}", interval(e)),
        );
        let _ = write!(
            out,
            "<div class=\"card\"><h3>{}</h3><p><b>{number}</b></p><pre>{}</pre><p class=\"soft\">{}</p></div>",
            escape(&change.title),
            escape(&change.paste),
            escape(&change.note)
        );
    }
    out.push_str("</section>");
    out
}

fn method(data: &PageData) -> String {
    if data.method.is_empty() {
        return String::new();
    }
    let items: String = data
        .method
        .iter()
        .map(|m| format!("<li>{}</li>", escape(m)))
        .collect();
    format!("<section><h2>How it was measured</h2><ul>{items}</ul></section>")
}

fn environment(data: &PageData) -> String {
    if data.environment.is_empty() {
        return String::new();
    }
    let items: String = data
        .environment
        .iter()
        .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(value)))
        .collect();
    format!("<section><h2>Machine</h2><dl>{items}</dl></section>")
}

fn command(data: &PageData) -> String {
    let Some(command) = &data.command else {
        return String::new();
    };
    format!(
        "<section><h2>Command</h2><pre>{}</pre><details><summary>Environment of the program</summary><pre>{}</pre></details></section>",
        escape(&command.arguments.join(" ")),
        escape(&command.environment.join("\n"))
    )
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

const WORDS: &str = "<section><h2>Glossary</h2><dl>\
<dt>Translation overhead</dt><dd>The time that a program spends on address translation: page walks.</dd>\
<dt>TLB miss</dt><dd>An access that finds no translation in any TLB level, so that the CPU walks the page table.</dd>\
<dt>Huge page</dt><dd>A page of 2 MiB instead of 4 KiB: one TLB entry covers 512 times as much memory.</dd>\
<dt>Region</dt><dd>A range of 2 MiB that one huge page can hold.</dd>\
<dt>Site</dt><dd>Identifies memory in every run, whatever its address: the place in the program that allocated or mapped it.</dd>\
<dt>Plan</dt><dd>The regions with their benefit, cost and verdict.</dd>\
<dt>Speed-up</dt><dd>Time before divided by time after: above 1 is faster.</dd>\
<dt>Interval</dt><dd>The range of the true value, with the stated confidence. If it contains 1, the runs do not show whether there is an effect.</dd>\
</dl></section>";

#[cfg(test)]
mod tests;
