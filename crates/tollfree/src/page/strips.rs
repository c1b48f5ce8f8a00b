// SPDX-License-Identifier: MIT OR Apache-2.0
//! Heat strips: one drawing per site, a cell per region.

use std::fmt::Write;

use toll_model::REGION;
use toll_model::numbers;
use toll_model::plan::{Plan, Region, Verdict};
use toll_model::profile::{Profile, SiteRows};
use toll_model::site::{Site, SiteKind};
use toll_observe::heat::{self, Strip};

use super::charts::key;
use super::format::escape;

/// Maximum number of cells per strip: more than a screen shows; keeps the page small.
const CELLS: usize = 1024;
/// Rows of the table next to a strip.
const STRIP_TABLE: usize = 20;

/// The regions of one site, before and (with a second recording) after, on one scale. `hottest`:
/// the most misses of a region of any site, the end of the colour scale.
pub fn strip(
    rows: &SiteRows,
    after: Option<&Profile>,
    plan: Option<&Plan>,
    hottest: f64,
) -> String {
    let after_rows = after.and_then(|p| heat::find(p, &rows.site));
    let extent = heat::extent(rows).max(after_rows.map_or(0, heat::extent));
    let lead = rows.site.misalignment;
    let before = Strip::aligned(rows, lead, extent, CELLS);
    let after = after.map(|_| match after_rows {
        Some(rows) => Strip::aligned(rows, lead, extent, CELLS),
        None => Strip {
            cells: vec![Default::default(); before.cells.len()],
            ..before.clone()
        },
    });
    let peak = before.peak().max(after.as_ref().map_or(0.0, Strip::peak));
    let planned = plan.map(|plan| planned(&before, &rows.site, plan));

    // From top to bottom: bars, colours, plan, colours, bars.
    let mut names = vec![(50.0, "before"), (110.0, "before")];
    let mut shapes = bars(&before, peak, "f-before", 100.0, -100.0);
    shapes.push_str(&cells(&before, hottest, 102.0));
    let mut height = 118.0;
    if let Some(marks) = &planned {
        names.push((height + 7.0, "plan"));
        shapes.push_str(&runs(marks, height + 4.0, 6.0, "f-plan"));
        height += 14.0;
    }
    if let Some(after) = &after {
        names.push((height + 8.0, "after"));
        names.push((height + 68.0, "after"));
        shapes.push_str(&cells(after, hottest, height));
        shapes.push_str(&bars(after, peak, "f-after", height + 18.0, 100.0));
        height += 118.0;
    }
    let start = match rows.site.kind {
        SiteKind::Address { start } => start,
        _ => 0,
    };
    let mut out = format!(
        "<figure><h3>{}</h3><p class=\"axis\">{} of {}; the highest bar is {} misses</p><div class=\"strip\"><div class=\"names\" aria-hidden=\"true\">",
        escape(&rows.site.to_string()),
        numbers::of(before.cells.len(), "cell"),
        numbers::bytes(before.unit),
        numbers::count(peak)
    );
    for (at, name) in names {
        let _ = write!(out, "<span style=\"top:{at:.0}px\">{name}</span>");
    }
    let _ = write!(
        out,
        "</div><svg role=\"img\" aria-label=\"{}\" style=\"height:{height:.0}px\" viewBox=\"0 0 {} {height:.0}\" preserveAspectRatio=\"none\" data-start=\"{start}\" data-unit=\"{}\" data-lead=\"{}\" data-before=\"{}\"{}>{shapes}</svg></div>",
        escape(&describe(&rows.site, &before, after.as_ref())),
        before.cells.len(),
        before.unit,
        before.lead,
        list(&before),
        after
            .as_ref()
            .map_or_else(String::new, |a| format!(" data-after=\"{}\"", list(a))),
    );
    let position = |share: u64| {
        let at = before.offset((before.cells.len() as u64 * share / 4) as usize);
        match rows.site.kind {
            SiteKind::Address { .. } => format!("{:#x}", start.saturating_add(at)),
            _ => numbers::bytes(at),
        }
    };
    let _ = write!(
        out,
        "<div class=\"strip axis\"><span></span><div class=\"ends\"><span>{}</span><span>{}</span><span>{}</span></div></div><div class=\"hint\" aria-live=\"off\"></div>",
        position(0),
        position(2),
        position(4)
    );
    out.push_str(&strip_table(&before, after.as_ref(), start));
    out.push_str("</figure>");
    out
}

/// A text alternative of a strip, for screen readers.
fn describe(site: &Site, before: &Strip, after: Option<&Strip>) -> String {
    let sum = |strip: &Strip| strip.cells.iter().map(|c| c.misses).sum::<f64>();
    let mut out = format!(
        "Misses per region of {site}: {} in {} of {}",
        numbers::count(sum(before)),
        before.cells.iter().filter(|c| c.misses > 0.0).count(),
        numbers::of(before.cells.len(), "cell")
    );
    if let Some(after) = after {
        let _ = write!(out, "; {} after", numbers::count(sum(after)));
    }
    out
}

/// The regions with the most misses, as a table.
fn strip_table(before: &Strip, after: Option<&Strip>, start: u64) -> String {
    let mut order: Vec<usize> = (0..before.cells.len())
        .filter(|&i| before.cells[i].misses > 0.0 || after.is_some_and(|a| a.cells[i].misses > 0.0))
        .collect();
    let worst = |i: usize| {
        before.cells[i]
            .misses
            .max(after.map_or(0.0, |a| a.cells[i].misses))
    };
    order.sort_by(|&a, &b| worst(b).total_cmp(&worst(a)).then(a.cmp(&b)));
    let count = order.len();
    order.truncate(STRIP_TABLE);
    let mut out = format!(
        "<details><summary>Table: {}</summary><div class=\"scroll\"><table><thead><tr><th scope=\"col\">{}</th><th scope=\"col\" class=\"n\">Misses before</th>{}<th scope=\"col\" class=\"n\">Touched</th></tr></thead><tbody>",
        if count > STRIP_TABLE {
            format!("the {STRIP_TABLE} of {count} cells with the most misses")
        } else {
            format!("{} with misses", numbers::of(count, "cell"))
        },
        if start > 0 { "Address" } else { "Offset" },
        if after.is_some() {
            "<th scope=\"col\" class=\"n\">After</th>"
        } else {
            ""
        },
    );
    for i in order {
        let cell = &before.cells[i];
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{:#x}</th><td class=\"n\">{}</td>{}<td class=\"n\">{}</td></tr>",
            start.saturating_add(before.offset(i)),
            numbers::count(cell.misses),
            after.map_or_else(String::new, |a| format!(
                "<td class=\"n\">{}</td>",
                numbers::count(a.cells[i].misses)
            )),
            numbers::bytes((cell.touched.round() as u64).saturating_mul(toll_model::PAGE)),
        );
    }
    out.push_str("</tbody></table></div></details>");
    out
}

/// Which cells of a strip contain regions that the plan makes huge.
fn planned(strip: &Strip, site: &Site, plan: &Plan) -> Vec<bool> {
    let mut marks = vec![false; strip.cells.len()];
    let mine = |region: &&Region| {
        region.verdict == Verdict::Huge
            && plan
                .sites
                .iter()
                .any(|a| a.id == region.site && a.kind == site.kind)
    };
    for region in plan.regions.iter().filter(mine) {
        let begin = strip.lead.saturating_add(region.offset);
        let end = begin.saturating_add(region.length.clamp(1, REGION * 1024));
        for index in begin / strip.unit..=(end - 1) / strip.unit {
            if let Some(mark) = marks.get_mut(index as usize) {
                *mark = true;
            }
        }
    }
    marks
}

/// Bars from `base`, `full` high at the peak (negative: upwards), as one path.
fn bars(strip: &Strip, peak: f64, class: &str, base: f64, full: f64) -> String {
    let mut path = String::new();
    for (i, cell) in strip.cells.iter().enumerate() {
        if cell.misses > 0.0 && peak > 0.0 {
            let height = (cell.misses / peak).clamp(0.005, 1.0) * full;
            let _ = write!(path, "M{i} {base}v{height:.1}h1V{base}z");
        }
    }
    format!("<path class=\"{class}\" d=\"{path}\"/>")
}

/// A row of heat cells, 16 high, one path for each of the nine levels.
fn cells(strip: &Strip, hottest: f64, top: f64) -> String {
    let regions = (strip.unit / REGION) as f64;
    (0..=8)
        .map(|level| {
            let marks: Vec<bool> = strip
                .cells
                .iter()
                .map(|c| heat::level(c.misses / regions, hottest) == level)
                .collect();
            runs(&marks, top, 16.0, &format!("h{level}"))
        })
        .collect()
}

/// Runs of marked cells as one path of rectangles.
fn runs(marks: &[bool], top: f64, height: f64, class: &str) -> String {
    let mut path = String::new();
    let mut i = 0;
    while i < marks.len() {
        let length = marks[i..].iter().take_while(|m| **m).count();
        if length > 0 {
            let _ = write!(path, "M{i} {top}h{length}v{height}h-{length}z");
        }
        i += length.max(1);
    }
    if path.is_empty() {
        return path;
    }
    format!("<path class=\"{class}\" d=\"{path}\"/>")
}

/// The counts of a strip, for the pointer's tooltip.
fn list(strip: &Strip) -> String {
    let values: Vec<String> = strip
        .cells
        .iter()
        .map(|c| {
            if c.misses.fract() == 0.0 || c.misses >= 1000.0 {
                format!("{:.0}", c.misses)
            } else {
                format!("{:.1}", c.misses)
            }
        })
        .collect();
    values.join(",")
}

/// The colour scale of a heat strip with its labels.
pub fn ramp(after: bool, plan: bool) -> String {
    let steps: String = (0..=8)
        .map(|i| {
            format!(
                "<rect class=\"h{i}\" x=\"{}\" y=\"0\" width=\"12\" height=\"12\" stroke-width=\"0\"/>",
                i * 12
            )
        })
        .collect();
    let swatch = |class: &str| {
        key(&format!(
            "<rect class=\"{class}\" width=\"100%\" height=\"100%\" rx=\"2\"/>"
        ))
    };
    let mut out = format!(
        "<ul class=\"legend\"><li>{}misses before (bars: each strip on its own scale)</li>",
        swatch("f-before")
    );
    if after {
        let _ = write!(out, "<li>{}misses after</li>", swatch("f-after"));
    }
    let _ = write!(
        out,
        "<li><svg class=\"ramp\" viewBox=\"0 0 108 12\" aria-hidden=\"true\">{steps}</svg>none to most misses of a region (colours: one scale for all strips, square-root steps)</li>"
    );
    if plan {
        let _ = write!(out, "<li>{}huge under the plan</li>", swatch("f-plan"));
    }
    out.push_str("</ul>");
    out
}
