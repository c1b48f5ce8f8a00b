// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab baseline`: runs every scenario on the stock kernel and writes the results as a
//! document.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args as ClapArgs;

use super::run::RunArgs;
use crate::error::LabError;
use crate::results::{MAIN, Results, bars, provenance, resolution, shares, table, tails};
use crate::run::{Request, run as run_all};
use crate::scenario::Scenario;
use crate::workspace::Workspace;
use crate::{files, output};

const EXAMPLE: &str = "\
Example:
  toll-lab baseline --output docs/results/baseline.md

Results of an earlier call with the same scenario, kernel and plugin are reused, so that an
interrupted call can be resumed; the document marks them.";

/// File name of the chart of unmapped pages.
const UNMAPPED: &str = "baseline-unmapped.svg";

/// Run every scenario on the stock kernel and write the counters as a document
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// Run only these scenarios
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    #[command(flatten)]
    how: RunArgs,
    /// File for the document; the charts are written beside it
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let scenarios = match args.scenarios.as_slice() {
        [] => Scenario::all(&workspace)?
            .into_iter()
            .filter(|scenario| scenario.listed)
            .collect(),
        named => named
            .iter()
            .map(|name| Scenario::find(&workspace, name))
            .collect::<Result<Vec<_>>>()?,
    };
    let preset = args.how.preset()?;
    let mut all = Vec::new();
    let mut failed = Vec::new();
    for scenario in scenarios {
        let request = Request {
            scenario: &scenario,
            size: args.how.size(),
            variants: &["vanilla".to_owned()],
            config: &[],
            policies: &[],
            rounds: args.how.rounds(),
            jobs: args.how.jobs(),
            preset: &preset,
            resumes: true,
        };
        output::note(format_args!("{}", scenario.name));
        match run_all(&workspace, &request) {
            Ok(results) => all.push((scenario, results)),
            Err(error) => failed.push((scenario.name.clone(), format!("{error:#}"))),
        }
    }
    let directory = args.output.parent().unwrap_or(Path::new("."));
    for (_, results) in &all {
        for (name, picture) in pictures(results) {
            files::write(&directory.join(name), picture.as_bytes())?;
        }
    }
    let shown = shares(
        "Unmapped pages, share that was read-only",
        ["read-only", "writable"],
        &unmapped(&all),
    );
    files::write(&directory.join(UNMAPPED), shown.as_bytes())?;
    files::write(&args.output, document(args, &all, &failed).as_bytes())?;
    println!("{}", args.output.display());
    let why = |(name, why): &(String, String)| format!("{name}: {why}");
    match failed.is_empty() {
        true => Ok(()),
        false => Err(LabError::Test(failed.iter().map(why).collect::<Vec<_>>().join("\n")).into()),
    }
}

/// Draws the charts of one scenario and returns their file names.
fn pictures(results: &Results) -> Vec<(String, String)> {
    const CAUSES: [&str; 9] = [
        "shootdown_irqs_eligible",
        "shootdown_irqs_mixed",
        "shootdown_irqs_unmap",
        "shootdown_irqs_compaction",
        "shootdown_irqs_compaction_eligible",
        "shootdown_irqs_mm",
        "shootdown_irqs_numa",
        "shootdown_irqs_kernel",
        "walks",
    ];
    let name = |kind: &str| format!("baseline-{}-{kind}.svg", results.scenario);
    match has_main(results) {
        true => vec![
            (name("causes"), bars(results, MAIN, &CAUSES)),
            (name("faults"), tails(results, MAIN)),
        ],
        false => Vec::new(),
    }
}

fn has_main(results: &Results) -> bool {
    results.results.iter().any(|entry| entry.section == MAIN)
}

fn document(args: &Args, all: &[(Scenario, Results)], failed: &[(String, String)]) -> String {
    let form = if args.how.short { "short" } else { "full" };
    let short = if args.how.short { " --short" } else { "" };
    let mut text = format!(
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n\
         # What the stock kernel pays: every scenario, {form} form\n\n\
         Made by `toll-lab baseline{short} --output {}`. The CPU is emulated: interrupts, faults, \
         walks and instructions are counts, `modelled_ns` is computed from them with the \
         preset's constants, and no figure is a time of real hardware. A value in brackets is \
         the range of the runs.\n",
        args.output.display()
    );
    text += &ratios(&unmapped(all));
    for (scenario, results) in all {
        let _ = write!(
            text,
            "\n## {}\n\n{}. Stands for: {} A failure would be: {}\n\n{}\n\n",
            scenario.name,
            scenario.description,
            scenario.stands_for,
            scenario.failure,
            provenance(results)
        );
        text += &table(results, false);
        if let Some(line) = resolution(results) {
            let _ = write!(text, "\n{line}\n");
        }
        for (name, _) in pictures(results) {
            let _ = write!(text, "\n![{}]({name})\n", name.trim_end_matches(".svg"));
        }
    }
    if !failed.is_empty() {
        text += "\n## Not measured\n\n";
    }
    for (name, why) in failed {
        let _ = writeln!(text, "- {name}: {}", why.lines().next().unwrap_or_default());
    }
    text
}

/// Counts the pages that reclaim and migration unmapped, by scenario, policy and section: read-only
/// and writable.
fn unmapped(all: &[(Scenario, Results)]) -> Vec<(String, [f64; 2])> {
    let mut rows = Vec::new();
    for (scenario, results) in all {
        for entry in &results.results {
            let count = |name: &str| entry.counters.get(name).map_or(0.0, |it| it.median);
            let mut name = scenario.name.clone();
            for (part, usual) in [(&entry.policy, "default"), (&entry.section, MAIN)] {
                if part != usual {
                    let _ = write!(name, ", {part}");
                }
            }
            let counts = ["unmapped_ro", "unmapped_rw"].map(count);
            if counts.iter().sum::<f64>() > 0.0 {
                rows.push((name, counts));
            }
        }
    }
    rows
}

fn ratios(rows: &[(String, [f64; 2])]) -> String {
    let mut text = format!(
        "\n## Read-only and writable among the unmapped\n\n\
         Pages that reclaim and migration unmapped, by whether their entry was \
         writable.\n\n![Read-only and writable]({UNMAPPED})\n\n\
         | scenario | read-only | writable | share read-only |\n|---|--:|--:|--:|\n"
    );
    for (name, [ro, rw]) in rows {
        let share = 100.0 * ro / (ro + rw);
        let _ = writeln!(text, "| {name} | {ro} | {rw} | {share:.1} % |");
    }
    text
}
