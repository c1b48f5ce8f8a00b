// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab report`: runs the scenarios of a subject and compares the results with their goals.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;

use super::crashes;
use super::run::RunArgs;
use crate::error::LabError;
use crate::report::{self, Missing, Part, Report, Stored};
use crate::run::{Request, run as run_all};
use crate::scenario::{Scenario, Subject, Verdict};
use crate::workspace::Workspace;
use crate::{files, output};

const EXAMPLE: &str = "\
Examples:
  toll-lab report luf --short
  toll-lab report econ fault-tail fault-kinds
  toll-lab report morsel --markdown --output docs/results/morsel-lab.md
  toll-lab report luf --from docs/results/luf.json

Results of an earlier call with the same scenario, kernels and plugin are reused, so that an
interrupted call can be resumed.

Status: 0 all goals are met; 1 a goal is not met, or its interval includes the bound, or an error of
the system; 2 invalid command line; 3 something could not be measured.";

/// Compare the results of a subject's scenarios with their goals
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    subject: Subject,
    /// Only these scenarios of the subject
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    #[command(flatten)]
    how: RunArgs,
    /// Run nothing: take the results from the JSON file of an earlier report; may be repeated, the
    /// first file with a scenario counts
    #[arg(long, value_name = "FILE", conflicts_with_all = ["short", "runs", "change", "jobs"])]
    from: Vec<PathBuf>,
    /// Write the whole report as Markdown, with its tables and pictures
    #[arg(long)]
    markdown: bool,
    /// Write the verdicts and the raw data as JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Write to this file; with --markdown, raw data (JSON) and pictures are written beside it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let scenarios = scenarios(&workspace, args)?;
    let report = match args.from.is_empty() {
        true => measured(&workspace, args, scenarios)?,
        false => stored(args, scenarios)?,
    };
    write(args, &report)?;
    conclude(&report)
}

/// Returns the scenarios with goals or tables of the subject.
fn scenarios(workspace: &Workspace, args: &Args) -> Result<Vec<Scenario>> {
    let mut all = Scenario::all(workspace)?;
    all.retain(|scenario| scenario.subject == Some(args.subject));
    let known = |name: &String| all.iter().any(|scenario| scenario.name == *name);
    if let Some(name) = args.scenarios.iter().find(|name| !known(name)) {
        let names: Vec<&str> = all.iter().map(|scenario| scenario.name.as_str()).collect();
        let (subject, names) = (args.subject.name(), names.join(", "));
        let why = format!("{name}: no scenario of {subject} (expected {names})");
        return Err(LabError::Usage(why).into());
    }
    let is_named =
        |scenario: &Scenario| args.scenarios.is_empty() || args.scenarios.contains(&scenario.name);
    all.retain(is_named);
    Ok(all)
}

/// Runs the scenarios, or reuses cached runs.
fn measured(workspace: &Workspace, args: &Args, scenarios: Vec<Scenario>) -> Result<Report> {
    let preset = args.how.preset()?;
    let mut report = Report::new(args.subject);
    let total = scenarios.len();
    for (place, scenario) in scenarios.into_iter().enumerate() {
        if io::stderr().is_terminal() {
            output::note(format_args!("{} ({} of {total})", scenario.name, place + 1));
        }
        let size = args.how.size();
        let request = Request {
            scenario: &scenario,
            size,
            variants: &scenario.compared_variants(size),
            config: &[],
            policies: &[],
            rounds: args.how.rounds(),
            jobs: args.how.jobs(),
            preset: &preset,
            resumes: true,
        };
        match run_all(workspace, &request) {
            Ok(mut results) => {
                if let Err(error) = crashes::add(workspace, &request, &mut results) {
                    output::note(format_args!("{}: {error:#}", scenario.name));
                }
                report.parts.push(Part::new(scenario, results));
            }
            Err(error) => {
                output::note(format_args!("{}: {error:#}", scenario.name));
                report.missing.push(Missing {
                    scenario: scenario.name,
                    why: format!("{error:#}"),
                });
            }
        }
    }
    Ok(report)
}

/// Takes the results from files of reports.
fn stored(args: &Args, scenarios: Vec<Scenario>) -> Result<Report> {
    let read = |path: &PathBuf| {
        let text = files::read_text(path)?;
        let why = |why| LabError::Input(format!("{}: {why}", path.display()));
        Stored::read(&text).map_err(|error| why(error).into())
    };
    let files: Vec<Stored> = args.from.iter().map(read).collect::<Result<_>>()?;
    let names: Vec<String> = args
        .from
        .iter()
        .map(|it| it.display().to_string())
        .collect();
    let mut report = Report::new(args.subject);
    for scenario in scenarios {
        match files.iter().find_map(|file| file.of(&scenario.name)) {
            Some(results) => report.parts.push(Part::new(scenario, results.clone())),
            None => report.missing.push(Missing {
                why: format!("not in {}", names.join(", ")),
                scenario: scenario.name,
            }),
        }
    }
    Ok(report)
}

fn write(args: &Args, report: &Report) -> Result<()> {
    let text = match (args.markdown, args.json) {
        (true, _) => report::document(report, &command()),
        (_, true) => json(report)?,
        _ => report::goals_text(report),
    };
    let Some(path) = &args.output else {
        print!("{text}");
        return Ok(());
    };
    files::write(path, text.as_bytes())?;
    if args.markdown {
        files::write(&path.with_extension("json"), json(report)?.as_bytes())?;
        for (name, picture) in report::pictures(report) {
            files::write(&path.with_file_name(name), picture.as_bytes())?;
        }
    }
    writeln!(io::stdout(), "{}", path.display()).context("stdout")
}

fn json(report: &Report) -> Result<String> {
    Ok(serde_json::to_string_pretty(&report.file())? + "\n")
}

/// The command line of this call.
fn command() -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    format!("toll-lab {}", words.join(" "))
}

fn conclude(report: &Report) -> Result<()> {
    let count = |verdict| report.count(verdict);
    let open = count(Verdict::NotMet) + count(Verdict::NotShown);
    if open > 0 {
        let why = format!("{open} goals are not met or not shown to be met");
        return Err(LabError::Goal(why).into());
    }
    let mut missing: Vec<&str> = report
        .missing
        .iter()
        .map(|it| it.scenario.as_str())
        .collect();
    let is_unmeasured = |part: &&Part| {
        let mut goals = part.goals.iter();
        goals.any(|goal| goal.verdict == Verdict::NotMeasured)
    };
    let parts = report.parts.iter().filter(is_unmeasured);
    missing.extend(parts.map(|part| part.scenario.name.as_str()));
    match missing.is_empty() {
        true => Ok(()),
        false => Err(LabError::NotMeasured(format!("not measured: {}", missing.join(", "))).into()),
    }
}
