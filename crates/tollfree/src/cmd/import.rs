// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree import`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use toll_act::error::UserError;
use toll_act::{files, messages};
use toll_model::numbers;
use toll_model::units::parse_range;
use toll_observe::import::{self, Imported};

use crate::output;

/// Make a profile from perf.data, perf script text, or perf mem report text
///
/// The kind of file is detected from its content. A perf.data file is read through `perf script`,
/// so perf must be installed; the text formats need no tool.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  perf mem record -o perf.data -- ./program
  perf mem report -i perf.data --stdio > report.txt
  tollfree import report.txt -o profile.json --only 0x18780000000..0x187c0000000
  tollfree plan profile.json --top 8 --format largepages -o largepages.txt")]
pub struct Args {
    /// The file to read
    pub file: PathBuf,
    /// The profile to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Count only this address range, START..END (hexadecimal or decimal)
    #[arg(long, value_name = "RANGE")]
    pub only: Option<String>,
    /// Overwrite the profile if it exists
    #[arg(long)]
    pub force: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    profile: &'a Path,
    /// The command that made the text.
    kind: &'static str,
    samples: u64,
    samples_with_tlb: u64,
    /// Samples that needed a page walk and were counted.
    samples_counted: u64,
    /// Samples with a page walk outside `--only`.
    samples_outside: u64,
    /// Page walks: samples times period.
    misses: f64,
    sites: usize,
    warnings: &'a [String],
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let only = args.only.as_deref().map(range).transpose()?;
    files::check_writable(&args.output, args.force)?;
    let progress = messages::progress(&format!("reading {}", args.file.display()));
    let imported = import::read(&args.file, only)?;
    progress.finish_and_clear();
    let text = imported
        .profile
        .to_json()
        .map_err(|source| files::in_file(&args.file, source))?;
    files::write(&args.output, text.as_bytes())?;
    match json {
        true => output::json(&summary(&args.output, &imported))?,
        false => tell(&args.output, &imported)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn range(text: &str) -> Result<Range<u64>, UserError> {
    parse_range(text).map_err(|error| UserError::Usage(format!("--only: {error}")))
}

fn summary<'a>(path: &'a Path, imported: &'a Imported) -> Summary<'a> {
    let tally = &imported.tally;
    Summary {
        profile: path,
        kind: imported.kind.name(),
        samples: tally.samples,
        samples_with_tlb: tally.with_tlb,
        samples_counted: tally.misses,
        samples_outside: tally.outside,
        misses: imported.profile.misses(),
        sites: imported.profile.sites.len(),
        warnings: &imported.profile.warnings,
    }
}

fn tell(path: &Path, imported: &Imported) -> Result<()> {
    let tally = &imported.tally;
    let line = format!(
        "{}: {} misses in {}, from {} samples of {} ({} with a page walk, {} of them outside the range)\n",
        path.display(),
        numbers::count(imported.profile.misses()),
        numbers::of(imported.profile.sites.len(), "site"),
        numbers::count(tally.samples as f64),
        imported.kind.name(),
        numbers::count((tally.misses + tally.outside) as f64),
        numbers::count(tally.outside as f64),
    );
    output::text(&line)?;
    for warning in &imported.profile.warnings {
        messages::note(format_args!("note: {warning}"));
    }
    Ok(())
}
