// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the misses are, and the estimates by site and by region.

use std::fmt::Write;

use toll_model::numbers;
use toll_model::plan::{Plan, Region, Verdict};
use toll_model::site::{Level, Site, SiteKind};
use toll_observe::heat::{self, Strip, Total};

use super::data::PageData;
use super::format::{escape, saved};
use super::strips;
use super::summary::noun;

/// Maximum number of sites with a strip of their own.
const STRIPS: usize = 12;
/// Maximum number of rows of the table of sites, and of the table of regions.
const SITE_ROWS: usize = 100;
const REGION_ROWS: usize = 100;

pub fn strips(data: &PageData) -> String {
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
    out.push_str(&strips::ramp(data.after.is_some(), data.plan.is_some()));
    for total in &shown {
        out.push_str(&strips::strip(total.rows, data.after, data.plan, hottest));
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

pub fn estimated(data: &PageData) -> String {
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
        SiteKind::Shared { .. } => parts.push("memory that processes share".to_owned()),
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
