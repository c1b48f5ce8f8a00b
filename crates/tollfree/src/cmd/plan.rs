// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree plan`.

mod verify;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use toll_linux::{Root, calibrate, symbols, sys};
use toll_model::anchor::{Anchor, AnchorKind, LEGEND};
use toll_model::cost::CostTable;
use toll_model::error::FormatError;
use toll_model::kernel::kernel_profile;
use toll_model::plan::{Plan, Region, Verdict};
use toll_model::price::{Options, price};
use toll_model::profile::Profile;
use toll_model::units::{format_ns, format_size, parse_duration, parse_size};
use toll_model::{REGION, largepages};

use crate::error::UserError;
use crate::{output, units};

/// Lines of the table at most; `--json` has every region.
const LINES: usize = 40;

/// Price a profile's regions and say which to make huge
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tollfree plan profile.json -o plan.toml
  tollfree plan profile.json --top 8 --format largepages -o largepages.txt
  tollfree plan profile.json --kernel --baseline 12s -o redis.mm_profile
  tollfree plan plan.toml --verify 3 -- ./app input")]
pub struct Args {
    /// The profile (--verify: the plan)
    pub file: PathBuf,
    /// The plan to write
    #[arg(short, long, value_name = "PLAN")]
    pub output: Option<PathBuf>,
    /// Take the N regions with the most misses, whatever they cost
    #[arg(long, value_name = "N", conflicts_with = "budget")]
    pub top: Option<u64>,
    /// Use at most this much memory for huge pages (512M, 2G)
    #[arg(long, value_name = "SIZE")]
    pub budget: Option<String>,
    /// Format of the plan
    #[arg(long, value_enum, default_value = "toml")]
    pub format: Format,
    /// Write a profile for the kernel's estimator (a kernel with econ), not a plan
    ///
    /// It has every region that the kernel can find again, whatever the verdict: the kernel
    /// decides by its own prices. Needs to know how long a run is (--baseline).
    #[arg(long, conflicts_with_all = ["format", "top", "budget"])]
    pub kernel: bool,
    /// CPU time of one run without the plan, if it is known (1.5s, 300ms)
    #[arg(long, value_name = "TIME")]
    pub baseline: Option<String>,
    /// Cost table (default: this machine's, calibrated or preset)
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// Overwrite the plan if it exists
    #[arg(long)]
    pub force: bool,
    /// Measure what the N most valuable lines of a plan save
    ///
    /// The program runs under the whole plan, and under the plan without each of the lines, in
    /// turn; a line saves what the program takes longer without it, in CPU time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "command",
        conflicts_with_all = ["output", "top", "budget", "format", "kernel", "baseline", "costs", "force"])]
    pub verify: Option<u32>,
    /// Rounds to run (--verify; default: until each line is told from nothing, or --within)
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "verify")]
    pub pairs: Option<u32>,
    /// Time limit (--verify)
    #[arg(long, default_value = "5m", value_name = "TIME", value_parser = parse_duration)]
    pub within: Duration,
    /// Go on if the output differs between the arms (--verify)
    #[arg(long, requires = "verify")]
    pub any_output: bool,
    /// Do not warm memory up before each run, where cold blocks are dear (--verify)
    #[arg(long, requires = "verify")]
    pub cold: bool,
    /// The program and its arguments (--verify)
    #[arg(last = true, requires = "verify")]
    pub command: Vec<std::ffi::OsString>,
}

/// How a plan is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Toml,
    /// Decimal base addresses, one a line: for mappings at fixed addresses
    Largepages,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    if let Some(lines) = args.verify {
        return verify::run(&args, lines as usize, json);
    }
    let options = options(&args)?;
    if let Some(path) = &args.output {
        output::check_writable(path, args.force)?;
    }
    let profile = read(&args.file, |bytes| Profile::from_json(bytes))?;
    let plan = price(&profile, &costs(args.costs.as_deref())?, options);
    if args.kernel {
        return kernel(&args, &profile, &plan, json);
    }
    let text = match args.format {
        Format::Toml => plan.to_toml()?,
        Format::Largepages => largepages::format(&addresses(&plan)?),
    };
    if let Some(path) = &args.output {
        output::write_file(path, text.as_bytes())?;
    }
    match (json, args.format, &args.output) {
        (true, ..) => output::json(&plan.view(&plan.names()))?,
        (false, Format::Largepages, None) => output::text(&text)?,
        (false, ..) => output::text(&shown(&plan))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What `--kernel --json` prints.
#[derive(Serialize)]
struct Carried<'a> {
    rows: usize,
    regions_carried: usize,
    regions_lost: usize,
    benefit_carried_ns: f64,
    benefit_lost_ns: f64,
    profile: &'a str,
}

/// Writes a profile for the kernel, and says what could not be carried over.
fn kernel(args: &Args, profile: &Profile, plan: &Plan, json: bool) -> Result<ExitCode> {
    let run_ns = plan
        .baseline_ns
        .or(profile.native_ns.map(|ns| ns as f64))
        .ok_or_else(|| {
            UserError::Usage(
                "--kernel: how long a run is was not recorded; say so by --baseline TIME"
                    .to_owned(),
            )
        })?;
    let path = &profile.program.path;
    let zeroed = symbols::zeroed_data(Path::new(path));
    let made = kernel_profile(profile, plan, zeroed.map(|at| (path.as_str(), at)), run_ns);
    if let Some(output) = &args.output {
        output::write_file(output, made.text.as_bytes())?;
    }
    let all = made.carried_ns + made.lost_ns;
    let share = if all > 0.0 {
        made.carried_ns / all
    } else {
        1.0
    };
    let said = format!(
        "{} rows for {} regions; {} regions could not be carried over, with {} of {} of benefit",
        made.rows,
        made.carried,
        made.lost,
        format_ns(made.lost_ns),
        format_ns(all),
    );
    match (json, &args.output) {
        (true, _) => output::json(&Carried {
            rows: made.rows,
            regions_carried: made.carried,
            regions_lost: made.lost,
            benefit_carried_ns: made.carried_ns,
            benefit_lost_ns: made.lost_ns,
            profile: &made.text,
        })?,
        (false, Some(_)) => output::text(&format!("{said}\n"))?,
        (false, None) => {
            output::text(&made.text)?;
            output::note(&said);
        }
    }
    if share < 0.5 && !json {
        output::note(
            "most of the benefit lies where the kernel cannot find it again: record with --source sim",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The cost table to price with: the one that is named, else this machine's, else defaults.
///
/// # Errors
/// [`UserError::Input`] if `path` is no cost table.
pub fn costs(path: Option<&Path>) -> Result<CostTable> {
    match path {
        Some(path) => read(path, |bytes| CostTable::from_json(bytes)),
        None => {
            let cached = calibrate::load(&calibrate::key(&Root::system()));
            Ok(cached.unwrap_or_else(calibrate::default_costs))
        }
    }
}

/// What the command line and this machine say.
fn options(args: &Args) -> Result<Options> {
    let usage = |error: toll_model::units::UnitError| UserError::Usage(error.to_string());
    let baseline = args
        .baseline
        .as_deref()
        .map(parse_duration)
        .transpose()
        .map_err(usage)?;
    if baseline.is_some_and(|time| time.is_zero()) {
        return Err(UserError::Usage("--baseline: a run takes some time".to_owned()).into());
    }
    let root = Root::system();
    let thp = sys::Thp::read(&root).map(|thp| thp.region_mode());
    Ok(Options {
        baseline_ns: baseline.map(|time| time.as_nanos() as f64),
        top: args.top,
        budget: args
            .budget
            .as_deref()
            .map(parse_size)
            .transpose()
            .map_err(usage)?,
        free_regions: sys::buddyinfo_free_regions(&root),
        thp_always: thp == Some(sys::Mode::Always),
        warm: false,
        ceiling: None,
        repeats: None,
        is_proved_next: false,
    })
}

fn read<T>(path: &Path, parse: impl Fn(&[u8]) -> Result<T, FormatError>) -> Result<T> {
    let bytes = fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    parse(&bytes).map_err(|source| {
        let path = path.to_owned();
        UserError::Input { path, source }.into()
    })
}

/// Base addresses of the regions to make huge.
fn addresses(plan: &Plan) -> Result<Vec<u64>> {
    let mut addresses = Vec::new();
    for region in plan.huge() {
        let anchor = plan
            .anchor(region.anchor)
            .context("a region without an anchor")?;
        let AnchorKind::Address { start } = anchor.kind else {
            let message = format!(
                "--format largepages needs fixed addresses, and {anchor} has another one in each run; write a plan instead (--format toml)"
            );
            return Err(UserError::Usage(message).into());
        };
        addresses.push(start + region.offset);
    }
    Ok(addresses)
}

/// What the columns mean.
const COLUMNS: &str = "\
from     offset in that memory; neighbours with the same verdict are one line
misses   TLB misses with small pages, of one run
benefit  CPU time that huge pages save in one run
cost     CPU time that they take in one run (page faults, memory)
level    how surely another run has the same memory there: exact, class, kind
";

/// What a line of neighbours means.
const NEIGHBOURS: &str = "\
neighbours: blocks too small for a 2 MiB region each, which fill regions together: made huge all or none
";

/// The plan for people.
fn shown(plan: &Plan) -> String {
    let mut text = format!("{}\n", plan.reason);
    for warning in &plan.warnings {
        text += &format!("note: {warning}\n");
    }
    let mut lines = lines(plan);
    let more = lines.len().saturating_sub(LINES);
    if more > 0 {
        lines.sort_by(|a, b| {
            (b.huge, b.misses)
                .partial_cmp(&(a.huge, a.misses))
                .expect("finite")
        });
        lines.truncate(LINES);
    }
    if lines.is_empty() {
        return text;
    }
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header([
        "memory", "from", "size", "misses", "benefit", "cost", "level", "verdict",
    ]);
    for line in &lines {
        table.add_row(line.cells());
    }
    for column in table.column_iter_mut().skip(1).take(5) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let neighbours = match lines.iter().any(|line| line.neighbours > 0) {
        true => NEIGHBOURS,
        false => "",
    };
    text += &format!("\n{COLUMNS}memory   {LEGEND}\n{neighbours}\n{table}\n");
    if more > 0 {
        text += &format!("and {more} more lines with fewer misses (--json has every region)\n");
    }
    text
}

/// Neighbouring regions of one anchor with the same fate, or all blocks of one call site that fill
/// regions with their neighbours.
struct Line<'a> {
    first: &'a Region,
    /// Blocks, where they are such neighbours.
    neighbours: u32,
    /// Which of the plan's regions.
    regions: Vec<usize>,
    name: String,
    huge: bool,
    length: u64,
    misses: f64,
    benefit: f64,
    cost: f64,
}

impl Line<'_> {
    fn cells(&self) -> [String; 8] {
        let verdict = if self.huge { "huge" } else { "leave" };
        let level = serde_json::to_value(self.first.level).unwrap_or_default();
        let name = match self.neighbours {
            0 => self.name.clone(),
            blocks => format!("{}, {blocks} neighbours", self.name),
        };
        [
            name,
            format!("{:#x}", self.first.offset),
            format_size(self.length),
            units::count(self.misses),
            format_ns(self.benefit),
            format_ns(self.cost),
            level.as_str().unwrap_or_default().to_owned(),
            format!("{verdict}: {}", self.first.why.words()),
        ]
    }
}

fn lines(plan: &Plan) -> Vec<Line<'_>> {
    let mut lines: Vec<Line> = Vec::new();
    for (index, region) in plan.regions.iter().enumerate() {
        let anchor = plan.anchor(region.anchor);
        let site = anchor
            .filter(|_| region.verdict == Verdict::Huge && region.length < REGION)
            .and_then(Anchor::site);
        let joins = |line: &Line| match &site {
            Some(site) => line.neighbours > 0 && line.name == *site,
            None => line.neighbours == 0 && follows(line, region),
        };
        // Neighbours of one site may have other memory between them in the list.
        let known = match &site {
            Some(_) => lines.iter().position(joins),
            None => lines
                .len()
                .checked_sub(1)
                .filter(|&last| joins(&lines[last])),
        };
        let at = known.unwrap_or_else(|| {
            let name = || anchor.map(ToString::to_string).unwrap_or_default();
            lines.push(Line {
                first: region,
                neighbours: 0,
                regions: Vec::new(),
                name: site.clone().unwrap_or_else(name),
                huge: region.verdict == Verdict::Huge,
                length: 0,
                misses: 0.0,
                benefit: 0.0,
                cost: 0.0,
            });
            lines.len() - 1
        });
        let line = &mut lines[at];
        let is_next = |&last: &usize| plan.regions[last].anchor != region.anchor;
        if site.is_some() && line.regions.last().is_none_or(is_next) {
            line.neighbours += 1;
        }
        line.regions.push(index);
        line.length += region.length.min(REGION);
        line.misses += region.misses;
        line.benefit += region.benefit_ns;
        line.cost += region.cost_ns;
    }
    lines
}

/// Whether a region goes on where a line of one anchor ends.
fn follows(line: &Line, region: &Region) -> bool {
    let first = line.first;
    first.anchor == region.anchor
        && first.why == region.why
        && first.offset + line.length == region.offset
}
