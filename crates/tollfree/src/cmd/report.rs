// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree report`.

mod folded;
mod style;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;
use toll_act::error::UserError;
use toll_act::files;
use toll_model::numbers;
use toll_model::plan::Plan;
use toll_model::profile::{Profile, Source};
use toll_model::site::{LEGEND, Site, SiteKind};
use toll_observe::heat::{self, Strip, Total};

use crate::output;
use crate::page::{self, PageData};
use style::Style;

/// Number of sites shown with a strip; the others are summed.
const SHOWN: usize = 10;
/// Maximum number of regions per site in `--json`.
const REGIONS: usize = 1 << 20;

/// Show a profile as a table and a heat strip, a page, or stacks for a flame graph
///
/// Each strip shows one site from start to end; each character is one region of 2 MiB, or several
/// if the terminal is too narrow.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tollfree report before.json --after after.json --html report.html
  tollfree report --folded profile.json > misses.folded

--folded prints a line for each stack, outermost frame first, with its misses: the input
of flame graphs. Stacks of the code come from perf (`perf mem record -g`); a profile of
the simulator or of accessed bits has those of the allocations: which memory misses, and
not which code.")]
pub struct Args {
    /// The profile to show
    pub file: PathBuf,
    /// Write a self-contained HTML page to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// A second profile, recorded under the plan
    #[arg(long, value_name = "FILE")]
    pub after: Option<PathBuf>,
    /// Print folded stacks instead, for a flame graph
    #[arg(long, value_name = "STACKS", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "auto", conflicts_with_all = ["html", "after"])]
    pub folded: Option<folded::Of>,
    /// Overwrite the page if it exists
    #[arg(long)]
    pub force: bool,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    if let Some(page) = &args.html {
        files::check_writable(page, args.force)?;
    }
    let before = read(&args.file)?;
    if let Some(of) = args.folded {
        folded::print(&args.file, &before, of, json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let after = args.after.as_deref().map(read).transpose()?;
    if let Some(path) = &args.html {
        let data = PageData {
            program: program_name(&before),
            before: Some(&before),
            after: after.as_ref(),
            method: method(&before),
            ..PageData::default()
        };
        files::write(path, page::render(&data).as_bytes())?;
    }
    match json {
        true => output::json(&document(&before, after.as_ref()))?,
        false => output::text(&terminal(&before, after.as_ref(), Style::of_stdout()))?,
    }
    if let (Some(path), false) = (&args.html, json) {
        output::text(&format!("\nPage: {}\n", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Profile> {
    let bytes =
        std::fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    if Plan::from_toml(&bytes).is_ok() {
        return Err(UserError::UnfitFile(format!(
            "{}: is a plan; report takes the profile that it was made from",
            path.display()
        ))
        .into());
    }
    Profile::from_json(bytes).map_err(|source| files::in_file(path, source))
}

/// Returns the last component of the program's path.
fn program_name(profile: &Profile) -> String {
    let path = match profile.program.path.as_str() {
        "" => profile.command.first().map_or("", String::as_str),
        path => path,
    };
    match path.rsplit('/').next() {
        None | Some("") => "an unnamed program".to_owned(),
        Some(name) => name.to_owned(),
    }
}

/// How the counts of a profile were obtained, as text.
fn method(profile: &Profile) -> Vec<String> {
    let source = match profile.source {
        Source::Perf => {
            "Memory accesses were sampled by the CPU (perf); a count is samples times their period."
        }
        Source::Sim => {
            "The program ran in a simulator of the TLB; counts are modelled, not measured on this CPU."
        }
        Source::Accessed => {
            "Touches of pages were counted by the accessed bits of the page tables; they are an upper bound for misses."
        }
    };
    vec![
        source.to_owned(),
        format!("{}.", profile.source_detail.trim_end_matches('.')),
        format!(
            "The counts are based on {} observations.",
            numbers::count(profile.observations as f64)
        ),
    ]
}

/// The report for the terminal.
fn terminal(before: &Profile, after: Option<&Profile>, style: Style) -> String {
    let totals = heat::totals(before);
    let all: f64 = totals.iter().map(|t| t.misses).sum();
    let mut out = heading(before, all);
    if let Some(after) = after {
        let left: f64 = heat::totals(after).iter().map(|t| t.misses).sum();
        let averted = if all > 0.0 {
            numbers::percent(1.0 - left / all)
        } else {
            "-".to_owned()
        };
        let _ = writeln!(
            out,
            "after: {} misses, {averted} averted",
            numbers::count(left)
        );
    }
    let shown: Vec<&Total> = totals
        .iter()
        .filter(|t| t.misses > 0.0)
        .take(SHOWN)
        .collect();
    if !shown.is_empty() {
        out.push_str(&header(&shown));
    }
    for total in &shown {
        out.push('\n');
        out.push_str(&site(total, all, after, style));
    }
    let rest = totals.len() - shown.len();
    if rest > 0 {
        let left = all - shown.iter().map(|t| t.misses).sum::<f64>();
        let share = if all > 0.0 { left / all } else { 0.0 };
        let _ = writeln!(
            out,
            "\n{} more: {} of the misses",
            numbers::of(rest, "site"),
            numbers::percent(share)
        );
    }
    for warning in warnings(before, after) {
        let _ = writeln!(out, "note: {warning}");
    }
    out
}

/// The header of the list of memory.
fn header(shown: &[&Total]) -> String {
    let mut text =
        "\nmemory, most misses first; each strip shows a site from start to end\n".to_owned();
    let is_allocation = |total: &&Total| matches!(total.site().kind, SiteKind::Alloc { .. });
    if shown.iter().any(is_allocation) {
        let _ = writeln!(text, "{LEGEND}");
    }
    text
}

/// The warnings of both recordings, without duplicates.
fn warnings<'a>(before: &'a Profile, after: Option<&'a Profile>) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for warning in [Some(before), after]
        .into_iter()
        .flatten()
        .flat_map(|p| &p.warnings)
    {
        if !all.contains(&warning.as_str()) {
            all.push(warning);
        }
    }
    all
}

fn heading(profile: &Profile, misses: f64) -> String {
    let complete = if profile.complete {
        ""
    } else {
        " (recording cut short)"
    };
    format!(
        "{}: {} misses, {} touched{complete}\nsource: {}\n",
        program_name(profile),
        numbers::count(misses),
        numbers::bytes(profile.footprint),
        profile.source_detail
    )
}

/// One site: name, numbers, strip.
fn site(total: &Total, all: f64, after: Option<&Profile>, style: Style) -> String {
    let rows = total.rows;
    let after_rows = after.and_then(|p| heat::find(p, total.site()));
    let extent = heat::extent(rows).max(after_rows.map_or(0, heat::extent));
    let lead = rows.site.misalignment;
    let before_strip = Strip::aligned(rows, lead, extent, style.width - LABEL);
    let after_strip = after_rows.map(|r| Strip::aligned(r, lead, extent, style.width - LABEL));
    let peak = before_strip
        .peak()
        .max(after_strip.as_ref().map_or(0.0, Strip::peak));
    let share = if all > 0.0 { total.misses / all } else { 0.0 };
    let mut out = format!(
        "{}\n  {} misses ({}), {} touched in {}{}; each mark is {}\n",
        total.site(),
        numbers::count(total.misses),
        numbers::percent(share),
        numbers::bytes(total.touched),
        numbers::of(Strip::new(rows, REGIONS).used(), "region"),
        match total.huge {
            0 => String::new(),
            huge => format!(", {} huge already", numbers::bytes(huge)),
        },
        numbers::bytes(before_strip.unit),
    );
    match after {
        None => {
            let _ = writeln!(out, "  {}", style.strip(&before_strip, peak));
        }
        Some(_) => {
            let line = |strip: &Strip| style.strip(strip, peak);
            let after_line = after_strip.map_or_else(|| "nothing counted".to_owned(), |s| line(&s));
            let _ = writeln!(
                out,
                "  before {}\n  after  {after_line}",
                line(&before_strip)
            );
        }
    }
    out
}

/// Width of the label before a strip.
const LABEL: usize = 9;

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    program: &'a str,
    source: Source,
    source_detail: &'a str,
    complete: bool,
    misses: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    misses_after: Option<f64>,
    footprint: u64,
    sites: Vec<SiteDocument<'a>>,
    warnings: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
struct SiteDocument<'a> {
    site: String,
    #[serde(flatten)]
    kind: &'a SiteKind,
    length: u64,
    misses: f64,
    share: f64,
    touched: u64,
    huge: u64,
    /// Bytes of each region: 2 MiB, more only for sites of more than 2 TiB.
    region_bytes: u64,
    regions: Vec<RegionDocument>,
}

#[derive(Debug, Serialize)]
struct RegionDocument {
    /// Bytes from the start of the site.
    offset: u64,
    misses: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    misses_after: Option<f64>,
    touched_pages: u64,
}

fn document<'a>(before: &'a Profile, after: Option<&'a Profile>) -> Document<'a> {
    let totals = heat::totals(before);
    let all: f64 = totals.iter().map(|t| t.misses).sum();
    let sum = |p: &Profile| heat::totals(p).iter().map(|t| t.misses).sum();
    Document {
        program: &before.program.path,
        source: before.source,
        source_detail: &before.source_detail,
        complete: before.complete,
        misses: all,
        misses_after: after.map(sum),
        footprint: before.footprint,
        sites: totals
            .iter()
            .map(|t| site_document(t, all, after))
            .collect(),
        warnings: warnings(before, after),
    }
}

fn site_document<'a>(total: &Total<'a>, all: f64, after: Option<&Profile>) -> SiteDocument<'a> {
    let rows = total.rows;
    let site: &Site = total.site();
    let other = after.and_then(|p| heat::find(p, site));
    let extent = heat::extent(rows).max(other.map_or(0, heat::extent));
    let strip = Strip::aligned(rows, site.misalignment, extent, REGIONS);
    let second = other.map(|r| Strip::aligned(r, site.misalignment, extent, REGIONS));
    let after_of = |i: usize| second.as_ref().map_or(0.0, |s| s.cells[i].misses);
    let regions = strip.cells.iter().enumerate().filter_map(|(i, cell)| {
        let used = cell.misses > 0.0 || cell.touched > 0.0 || after_of(i) > 0.0;
        used.then(|| RegionDocument {
            offset: strip.offset(i),
            misses: cell.misses,
            misses_after: after.map(|_| after_of(i)),
            touched_pages: cell.touched.round() as u64,
        })
    });
    SiteDocument {
        site: site.to_string(),
        kind: &total.rows.site.kind,
        length: site.length,
        misses: total.misses,
        share: if all > 0.0 { total.misses / all } else { 0.0 },
        touched: total.touched,
        huge: total.huge,
        region_bytes: strip.unit,
        regions: regions.collect(),
    }
}
