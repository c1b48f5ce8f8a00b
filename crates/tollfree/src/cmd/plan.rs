// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree plan`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table};
use toll_act::error::UserError;
use toll_act::files;
use toll_model::estimate::Options;
use toll_model::lines::{Line, lines};
use toll_model::plan::Plan;
use toll_model::site::{LEGEND, SiteKind};
use toll_model::units::{format_ns, format_size, parse_duration, parse_size};
use toll_model::{largepages, numbers};
use toll_prove::verify::{Request, verify};

use crate::cmd::options::EstimateArgs;
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
    #[command(flatten)]
    pub estimate: EstimateArgs,
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
        return verify_lines(&args, lines as usize, json);
    }
    let options = options(&args)?;
    if let Some(path) = &args.output {
        files::check_writable(path, args.force)?;
    }
    let (_, plan) = args.estimate.estimate(&args.file, options)?;
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

/// Measures what the most valuable lines of a plan save.
fn verify_lines(args: &Args, lines: usize, json: bool) -> Result<ExitCode> {
    let verification = verify(&Request {
        file: &args.file,
        command: &args.command,
        lines,
        pairs: args.pairs,
        within: args.within,
        cold: args.cold,
    })?;
    match json {
        true => output::json(&verification.report())?,
        false => output::text(&verification.text())?,
    }
    verification
        .comparison
        .check(args.any_output, args.within)?;
    Ok(ExitCode::SUCCESS)
}

/// Options from the command line and the machine.
fn options(args: &Args) -> Result<Options> {
    let budget = args.budget.as_deref().map(parse_size).transpose();
    Ok(Options {
        top: args.top,
        budget: budget.map_err(|error| UserError::Usage(error.to_string()))?,
        ..args.estimate.options()?
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
        table.add_row(cells(line));
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

/// The cells of a line of the table.
fn cells(line: &Line) -> [String; 8] {
    let verdict = if line.huge { "huge" } else { "leave" };
    let level = serde_json::to_value(line.first.level).unwrap_or_default();
    let name = match line.neighbours {
        0 => line.name.clone(),
        blocks => format!("{}, {blocks} neighbours", line.name),
    };
    [
        name,
        format!("{:#x}", line.first.offset),
        format_size(line.length),
        numbers::count(line.misses),
        format_ns(line.benefit),
        format_ns(line.cost),
        level.as_str().unwrap_or_default().to_owned(),
        format!("{verdict}: {}", line.first.why.words()),
    ]
}
