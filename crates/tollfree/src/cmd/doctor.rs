// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree doctor`.

mod acting;
mod machine;
mod sources;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use toll_act::error::UserError;
use toll_act::messages;
use toll_linux::Root;

use crate::output;

/// Report what this machine supports, and how to get what is missing
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tollfree doctor

Probes for one to two seconds, and changes nothing. A missing feature is not an error:
tollfree works with what the machine has, and each result names what was not used.")]
pub struct Args {
    /// Use this directory as / (for tests: only its files are read)
    #[arg(long, hide = true, value_name = "PATH")]
    pub root: Option<PathBuf>,
}

/// How far the machine supports something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Ok,
    Partial,
    Missing,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    detail: String,
    /// How to get it; null if nothing has to be done.
    fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Check {
        Check::new(name, State::Ok, detail, None)
    }

    fn partial(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Check {
        Check::new(name, State::Partial, detail, Some(fix.into()))
    }

    fn missing(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Check {
        Check::new(name, State::Missing, detail, Some(fix.into()))
    }

    fn new(
        name: &'static str,
        state: State,
        detail: impl Into<String>,
        fix: Option<String>,
    ) -> Check {
        Check {
            name,
            state,
            detail: detail.into(),
            fix,
        }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    checks: Vec<Check>,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let root = match args.root {
        None => Root::system(),
        Some(path) if path.is_dir() => Root::at(path),
        Some(path) => {
            return Err(UserError::Usage(format!("{}: is no directory", path.display())).into());
        }
    };
    let bar = messages::progress("probing");
    let report = Report {
        checks: checks(&root),
    };
    bar.finish_and_clear();
    if json {
        output::json(&report)?;
    } else {
        output::text(&text(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn checks(root: &Root) -> Vec<Check> {
    [
        machine::checks(root),
        acting::checks(root),
        sources::checks(root),
    ]
    .concat()
}

/// The report as text: a table, then how to get what is missing.
fn text(report: &Report) -> String {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["what", "state", "found"]);
    for check in &report.checks {
        let state = match check.state {
            State::Ok => "ok",
            State::Partial => "partial",
            State::Missing => "missing",
        };
        table.add_row([check.name, state, &check.detail]);
    }
    let mut text = format!("{}\n", table.trim_fmt());
    let fixes: Vec<_> = report
        .checks
        .iter()
        .filter_map(|c| Some((c.name, c.fix.as_ref()?)))
        .collect();
    if !fixes.is_empty() {
        text.push_str("\nHow to get more:\n");
    }
    for (name, fix) in fixes {
        text.push_str(&format!("  {name}: {fix}\n"));
    }
    text
}
