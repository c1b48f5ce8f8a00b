// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree plan`.

mod verify;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table};
use toll_act::error::UserError;
use toll_act::files;
use toll_linux::{Root, calibrate, sys};
use toll_model::cost::CostTable;
use toll_model::error::FormatError;
use toll_model::estimate::{Options, estimate};
use toll_model::numbers;
use toll_model::plan::{Plan, Region, Verdict};
use toll_model::profile::Profile;
use toll_model::site::{LEGEND, Site, SiteKind};
use toll_model::units::{format_ns, format_size, parse_duration, parse_size};
use toll_model::{REGION, largepages};

use crate::output;

/// Maximum number of table lines; `--json` lists every region.
const LINES: usize = 40;

/// Estimate the regions of a profile and select those to make huge
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tollfree plan profile.json -o plan.toml
  tollfree plan profile.json --top 8 --format largepages -o largepages.txt
  tollfree plan plan.toml --verify 3 -- ./app input")]
pub struct Args {
    /// The profile (--verify: the plan)
    pub file: PathBuf,
    /// The plan to write
    #[arg(short, long, value_name = "PLAN")]
    pub output: Option<PathBuf>,
    /// Select the N regions with the most misses, regardless of their cost
    #[arg(long, value_name = "N", conflicts_with = "budget")]
    pub top: Option<u64>,
    /// Use at most this much memory for huge pages (512M, 2G)
    #[arg(long, value_name = "SIZE")]
    pub budget: Option<String>,
    /// Format of the plan
    #[arg(long, value_enum, default_value = "toml")]
    pub format: Format,
    /// CPU time of one run without the plan, if known (1.5s, 300ms)
    #[arg(long, value_name = "TIME")]
    pub baseline: Option<String>,
    /// Cost table (default: this machine's, calibrated or preset)
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// Overwrite the plan if it exists
    #[arg(long)]
    pub force: bool,
    /// Measure how much time the N most valuable lines of a plan save
    ///
    /// The program runs, interleaved, under the whole plan and under the plan without each of these
    /// lines. The saving of a line is the additional CPU time of the program without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "command",
        conflicts_with_all = ["output", "top", "budget", "format", "baseline", "costs", "force"])]
    pub verify: Option<u32>,
    /// Rounds to run (--verify; default: until each line has a finding, or --within)
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "verify")]
    pub pairs: Option<u32>,
    /// Time limit (--verify)
    #[arg(long, default_value = "5m", value_name = "TIME", value_parser = parse_duration)]
    pub within: Duration,
    /// Continue if the output differs between the variants (--verify)
    #[arg(long, requires = "verify")]
    pub any_output: bool,
    /// Do not warm up memory before each run, where cold blocks are expensive (--verify)
    #[arg(long, requires = "verify")]
    pub cold: bool,
    /// The program and its arguments (--verify)
    #[arg(last = true, requires = "verify")]
    pub command: Vec<std::ffi::OsString>,
}

/// The format of a plan file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Toml,
    /// Decimal base addresses, one per line: for mappings at fixed addresses
    Largepages,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    if let Some(lines) = args.verify {
        return verify::run(&args, lines as usize, json);
    }
    let options = options(&args)?;
    if let Some(path) = &args.output {
        files::check_writable(path, args.force)?;
    }
    let profile = read(&args.file, |bytes| Profile::from_json(bytes))?;
    let plan = estimate(&profile, &costs(args.costs.as_deref())?, options);
    let text = match args.format {
        Format::Toml => plan.to_toml()?,
        Format::Largepages => largepages::format(&addresses(&plan)?),
    };
    if let Some(path) = &args.output {
        files::write(path, text.as_bytes())?;
    }
    match (json, args.format, &args.output) {
        (true, ..) => output::json(&plan.view(&plan.names()))?,
        (false, Format::Largepages, None) => output::text(&text)?,
        (false, ..) => output::text(&shown(&plan))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the cost table to estimate with: the named file, else this machine's, else defaults.
///
/// # Errors
/// [`UserError::Input`] if `path` is not a cost table.
pub fn costs(path: Option<&Path>) -> Result<CostTable> {
    match path {
        Some(path) => read(path, |bytes| CostTable::from_json(bytes)),
        None => {
            let cached = calibrate::load(&calibrate::key(&Root::system()));
            Ok(cached.unwrap_or_else(calibrate::default_costs))
        }
    }
}

/// Options from the command line and the machine.
fn options(args: &Args) -> Result<Options> {
    let budget = args.budget.as_deref().map(parse_size).transpose();
    Ok(Options {
        top: args.top,
        budget: budget.map_err(|error| UserError::Usage(error.to_string()))?,
        ..machine_options(args.baseline.as_deref())?
    })
}

/// Options from the machine; `baseline` is the CPU time of a run without a plan.
///
/// # Errors
/// [`UserError::Usage`] if `baseline` is not a time above 0.
pub fn machine_options(baseline: Option<&str>) -> Result<Options> {
    let baseline = baseline.map(parse_duration).transpose();
    let baseline = baseline.map_err(|error| UserError::Usage(error.to_string()))?;
    if baseline.is_some_and(|time| time.is_zero()) {
        return Err(UserError::Usage("--baseline: must be above 0".to_owned()).into());
    }
    let root = Root::system();
    let thp = sys::Thp::read(&root).map(|thp| thp.region_mode());
    Ok(Options {
        baseline_ns: baseline.map(|time| time.as_nanos() as f64),
        free_regions: sys::buddyinfo_free_regions(&root),
        thp_always: thp == Some(sys::Mode::Always),
        ..Options::default()
    })
}

/// Reads a file in one of tollfree's formats.
///
/// # Errors
/// [`UserError::Input`] if it is in another one.
pub fn read<T>(path: &Path, parse: impl Fn(&[u8]) -> Result<T, FormatError>) -> Result<T> {
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
        let site = plan.site(region.site).context("a region without a site")?;
        let SiteKind::Address { start } = site.kind else {
            let message = format!(
                "--format largepages needs fixed addresses, but {site} moves in each run; write a plan instead (--format toml)"
            );
            return Err(UserError::Usage(message).into());
        };
        addresses.push(start + region.offset);
    }
    Ok(addresses)
}

/// The legend of the columns.
const COLUMNS: &str = "\
from     offset in that memory; adjacent regions with the same verdict share a line
misses   TLB misses with 4 KiB pages, of one run
benefit  CPU time that huge pages save in one run
cost     CPU time that they cost in one run (page faults, memory)
level    how reliably another run has the same memory there: exact, class, kind
";

/// The legend of the lines with neighbours.
const NEIGHBOURS: &str = "\
neighbours: blocks too small for a 2 MiB region each, which share regions: made huge all or none
";

/// The plan as text.
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

/// Adjacent regions of one site with the same verdict, or all blocks of one call site that share
/// regions with their neighbours.
struct Line<'a> {
    first: &'a Region,
    /// Number of blocks, if the line stands for such neighbours.
    neighbours: u32,
    /// Indices of the plan's regions.
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
            numbers::count(self.misses),
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
        let site = plan.site(region.site);
        let call_site = site
            .filter(|_| region.verdict == Verdict::Huge && region.length < REGION)
            .and_then(Site::call_site);
        let joins = |line: &Line| match &call_site {
            Some(call_site) => line.neighbours > 0 && line.name == *call_site,
            None => line.neighbours == 0 && follows(line, region),
        };
        // Other memory may lie between the neighbours of one site in the list.
        let known = match &call_site {
            Some(_) => lines.iter().position(joins),
            None => lines
                .len()
                .checked_sub(1)
                .filter(|&last| joins(&lines[last])),
        };
        let at = known.unwrap_or_else(|| {
            let name = || site.map(ToString::to_string).unwrap_or_default();
            lines.push(Line {
                first: region,
                neighbours: 0,
                regions: Vec::new(),
                name: call_site.clone().unwrap_or_else(name),
                huge: region.verdict == Verdict::Huge,
                length: 0,
                misses: 0.0,
                benefit: 0.0,
                cost: 0.0,
            });
            lines.len() - 1
        });
        let line = &mut lines[at];
        let is_next = |&last: &usize| plan.regions[last].site != region.site;
        if call_site.is_some() && line.regions.last().is_none_or(is_next) {
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

/// Whether a region continues a line of the same site.
fn follows(line: &Line, region: &Region) -> bool {
    let first = line.first;
    first.site == region.site
        && first.why == region.why
        && first.offset + line.length == region.offset
}
