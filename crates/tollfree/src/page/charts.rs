// SPDX-License-Identifier: MIT OR Apache-2.0
//! The charts of the page: hand-written SVG, with text outside the SVG so that it does not scale.

use std::fmt::Write;

use toll_model::REGION;
use toll_model::numbers;
use toll_model::plan::{Estimate, Plan, Region, Verdict};
use toll_model::profile::{Profile, SiteRows};
use toll_model::site::{Site, SiteKind};
use toll_observe::heat::{self, Strip};

use super::{Counter, CounterUnit, Measured, Variant, escape, interval, number};

/// Maximum number of cells per strip: more than a screen shows; keeps the page small.
const CELLS: usize = 1024;
/// Rows of the table next to a strip.
const STRIP_TABLE: usize = 20;

/// A linear scale from values to per cent of a chart's width.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Covers all finite `values` with a margin.
    fn over(values: impl IntoIterator<Item = f64>) -> Scale {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.into_iter().filter(|v| v.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let margin = ((high - low) * 0.06).max(high.abs() * 0.002).max(1e-12);
        Scale {
            low: low - margin,
            high: high + margin,
        }
    }

    fn percent(&self, value: f64) -> String {
        let share = (value - self.low) / (self.high - self.low);
        format!("{:.2}%", share.clamp(0.0, 1.0) * 100.0)
    }
}

/// Speed-up of each variant with its interval, and the prediction below it.
pub fn speedups(measured: &Measured) -> String {
    let shown: Vec<&Variant> = measured
        .variants
        .iter()
        .filter(|a| a.speedup.is_some() || a.predicted.is_some())
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    let ends = |e: &Estimate| [e.low, e.median, e.high];
    let scale = Scale::over(
        shown
            .iter()
            .flat_map(|variant| {
                let all = [variant.speedup, variant.predicted];
                all.into_iter().flatten().flat_map(|e| ends(&e))
            })
            .chain([1.0]),
    );
    let mut out = String::from(
        "<figure><h3>Speed-up against “none” (time before / time after; right of the dashed line is faster)</h3>",
    );
    for variant in &shown {
        let mut svg = format!(
            "<line class=\"l-one\" x1=\"{0}\" x2=\"{0}\" y1=\"0\" y2=\"36\"/>",
            scale.percent(1.0)
        );
        if let Some(e) = &variant.speedup {
            let _ = write!(
                svg,
                "<line class=\"l-after\" x1=\"{}\" x2=\"{}\" y1=\"12\" y2=\"12\"/><circle class=\"f-after\" cx=\"{}\" cy=\"12\" r=\"5\"/>",
                scale.percent(e.low),
                scale.percent(e.high),
                scale.percent(e.median)
            );
        }
        if let Some(e) = &variant.predicted {
            let _ = write!(
                svg,
                "<line class=\"predicted\" x1=\"{}\" x2=\"{}\" y1=\"26\" y2=\"26\"/><circle class=\"predicted\" cx=\"{}\" cy=\"26\" r=\"4\"/>",
                scale.percent(e.low),
                scale.percent(e.high),
                scale.percent(e.median)
            );
        }
        let label = format!(
            "{}: measured {}, predicted {}",
            variant.name,
            text(variant.speedup.as_ref()),
            text(variant.predicted.as_ref())
        );
        let value = match (&variant.speedup, &variant.predicted) {
            (Some(e), Some(p)) => format!(
                "{}<br><span class=\"soft\">predicted {}</span>",
                interval(e),
                interval(p)
            ),
            (Some(e), None) => interval(e),
            (None, p) => format!("<span class=\"soft\">predicted {}</span>", text(p.as_ref())),
        };
        out.push_str(&row(&escape(&variant.name), &svg, 36, &label, &value));
    }
    let ends = format!(
        "<span>{:.2}</span><span>{:.2}</span>",
        scale.low, scale.high
    );
    out.push_str(&axis(&ends));
    let _ = write!(
        out,
        "<ul class=\"legend\"><li>{}measured, {:.0} % interval</li>{}</ul></figure>",
        key(
            "<line class=\"l-after\" x1=\"0\" x2=\"100%\" y1=\"50%\" y2=\"50%\"/><circle class=\"f-after\" cx=\"50%\" cy=\"50%\" r=\"5\"/>"
        ),
        measured.confidence * 100.0,
        if shown.iter().any(|a| a.predicted.is_some()) {
            format!(
                "<li>{}predicted, 80 % interval</li>",
                key(
                    "<line class=\"predicted\" x1=\"0\" x2=\"100%\" y1=\"50%\" y2=\"50%\"/><circle class=\"predicted\" cx=\"50%\" cy=\"50%\" r=\"4\"/>"
                )
            )
        } else {
            String::new()
        }
    );
    out
}

fn text(estimate: Option<&Estimate>) -> String {
    estimate.map_or_else(|| "not made".to_owned(), interval)
}

/// Every run of every variant, with the median and its interval.
pub fn samples(measured: &Measured) -> String {
    let values = |variant: &Variant| {
        let ends = [variant.low, variant.median, variant.high];
        variant
            .samples
            .iter()
            .copied()
            .chain(ends)
            .collect::<Vec<_>>()
    };
    let scale = Scale::over(measured.variants.iter().flat_map(values));
    let mut out = format!(
        "<figure><h3>Every run: {} ({} is better)</h3>",
        escape(&measured.metric),
        if measured.larger_is_better {
            "more"
        } else {
            "less"
        }
    );
    for variant in &measured.variants {
        let mut svg =
            String::from("<line class=\"l-grid\" x1=\"0\" x2=\"100%\" y1=\"14\" y2=\"14\"/>");
        for sample in variant.samples.iter().filter(|s| s.is_finite()) {
            let _ = write!(
                svg,
                "<circle class=\"sample\" cx=\"{}\" cy=\"14\" r=\"4\"/>",
                scale.percent(*sample)
            );
        }
        let _ = write!(
            svg,
            "<line class=\"l-ink\" x1=\"{}\" x2=\"{}\" y1=\"14\" y2=\"14\"/><line class=\"l-ink\" x1=\"{2}\" x2=\"{2}\" y1=\"5\" y2=\"23\"/>",
            scale.percent(variant.low),
            scale.percent(variant.high),
            scale.percent(variant.median)
        );
        let value = format!("{} {}", number(variant.median), escape(&measured.unit));
        let label = format!(
            "{}: median {} {}, interval {} to {}, {} runs",
            variant.name,
            number(variant.median),
            measured.unit,
            number(variant.low),
            number(variant.high),
            variant.samples.len()
        );
        let name = format!(
            "{}<br><span class=\"soft\">{}</span>",
            escape(&variant.name),
            escape(&variant.meaning)
        );
        out.push_str(&row(&name, &svg, 28, &label, &value));
    }
    let unit = escape(&measured.unit);
    let ends = format!(
        "<span>{} {unit}</span><span>{} {unit}</span>",
        number(scale.low),
        number(scale.high)
    );
    out.push_str(&axis(&ends));
    let _ = write!(
        out,
        "<ul class=\"legend\"><li>{}one run</li><li>{}median with its {:.0} % interval</li></ul></figure>",
        key("<circle class=\"sample\" cx=\"50%\" cy=\"50%\" r=\"4\"/>"),
        key(
            "<line class=\"l-ink\" x1=\"0\" x2=\"100%\" y1=\"50%\" y2=\"50%\"/><line class=\"l-ink\" x1=\"50%\" x2=\"50%\" y1=\"0\" y2=\"100%\"/>"
        ),
        measured.confidence * 100.0
    );
    out
}

/// One group of bars per counter, one bar per variant; each group has its own scale.
pub fn counters(measured: &Measured) -> String {
    let shown: Vec<&Counter> = measured
        .counters
        .iter()
        .filter(|c| c.values.iter().any(Option::is_some))
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<figure><h3>Counters of a run, before and after (each counter on its own scale)</h3>",
    );
    for counter in shown {
        let peak = counter.values.iter().flatten().copied().fold(0.0, f64::max);
        for (i, (variant, value)) in measured.variants.iter().zip(&counter.values).enumerate() {
            let class = ["f-before", "f-after", "f-all"][i.min(2)];
            let share = value.map_or(0.0, |v| if peak > 0.0 { v / peak } else { 0.0 });
            let svg = format!(
                "<rect class=\"{class}\" x=\"0\" y=\"2\" height=\"10\" width=\"{:.2}%\" rx=\"2\"/>",
                share.clamp(0.0, 1.0) * 100.0
            );
            let shown =
                value.map_or_else(|| "not measured".to_owned(), |v| counted(v, counter.unit));
            let label = format!("{}, {}: {shown}", counter.name, variant.name);
            let name = if i == 0 {
                escape(&counter.name)
            } else {
                String::new()
            };
            let value = format!(
                "{shown} <span class=\"soft\">{}</span>",
                escape(&variant.name)
            );
            let class = if i == 0 { "row rule" } else { "row inner" };
            out.push_str(&row_of(class, &name, &svg, 14, &label, &value));
        }
    }
    out.push_str("</figure>");
    out
}

/// A counter's value as text.
pub fn counted(value: f64, unit: CounterUnit) -> String {
    match unit {
        CounterUnit::Count => numbers::count(value),
        CounterUnit::Seconds => numbers::duration(value * 1e9),
        CounterUnit::Bytes => numbers::bytes(value.max(0.0) as u64),
    }
}

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

/// A labelled row of a chart: name, drawing, value.
fn row(name: &str, svg: &str, height: u32, label: &str, value: &str) -> String {
    row_of("row", name, svg, height, label, value)
}

fn row_of(class: &str, name: &str, svg: &str, height: u32, label: &str, value: &str) -> String {
    format!(
        "<div class=\"{class}\"><div>{name}</div><svg role=\"img\" aria-label=\"{}\" height=\"{height}\">{svg}</svg><div class=\"value\">{value}</div></div>",
        escape(label)
    )
}

/// The two ends of a chart's scale, below its drawings.
fn axis(ends: &str) -> String {
    format!(
        "<div class=\"row axis\" aria-hidden=\"true\"><span></span><div class=\"ends\">{ends}</div><span></span></div>"
    )
}

/// A small drawing of a legend.
fn key(svg: &str) -> String {
    format!("<svg aria-hidden=\"true\">{svg}</svg>")
}
