// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree kernel explain`.

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use toll_act::error::UserError;
use toll_linux::Root;
use toll_linux::econ::{self, Account, DIRECTORY, Ledger, Row};
use toll_model::units::{format_ns, format_size};

use super::decisions::{cells, no_econ, what};
use crate::output;

/// Maximum number of rows of the profile; `--json` lists all.
const LINES: usize = 40;

/// Show what the kernel's estimator decided for a process, and why
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tollfree run --plan redis.mm_profile -- redis-server &
  tollfree kernel explain $(pidof redis-server)

Reads /proc/PID/mm_ledger and /proc/PID/mm_profile, which exist on kernels with tollfree's
patches, and changes nothing. The exit code is 4 on another kernel, and if the process has no
profile or belongs to another user.")]
pub struct Args {
    /// The process
    pub pid: u32,
}

/// `tollfree kernel explain --json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    format: &'static str,
    version: u32,
    pid: u32,
    /// The machine's mode; empty if it cannot be read.
    machine_mode: &'a str,
    mode: &'a str,
    decisions: &'a [Account],
    rows: Vec<ReportRow<'a>>,
}

#[derive(Debug, Serialize)]
struct ReportRow<'a> {
    site: &'a str,
    begin: u64,
    end: u64,
    benefit_ns: u64,
    touched_pages: u64,
    confidence_percent: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<u64>,
    regions_huge: u64,
    regions_small: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    regions_observed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    regions_used: Option<u64>,
}

pub fn run(args: Args, root: &Root, json: bool) -> Result<ExitCode> {
    let machine = root.read(format!("{DIRECTORY}/mode")).ok();
    let Some(ledger) = Ledger::read(root, args.pid) else {
        return Err(UserError::Missing(why_not(root, args.pid, machine.is_some())).into());
    };
    let machine = machine.unwrap_or_default();
    let rows = econ::rows(root, args.pid);
    if json {
        output::json(&Report {
            format: "tollfree-explain",
            version: 1,
            pid: args.pid,
            machine_mode: machine.trim(),
            mode: &ledger.mode,
            decisions: &ledger.accounts,
            rows: rows.iter().map(report_row).collect(),
        })?;
    } else {
        output::text(&text(machine.trim(), &ledger, &rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn why_not(root: &Root, pid: u32, has_econ: bool) -> String {
    if !has_econ {
        return format!(
            "{}; on any kernel, `tollfree tune --pid {pid}` shows how much of its memory is in huge pages",
            no_econ()
        );
    }
    match root.read(format!("/proc/{pid}/comm")) {
        Err(_) => format!("there is no process {pid}"),
        Ok(name) => format!(
            "process {pid} ({}) has no profile, or belongs to another user",
            name.trim()
        ),
    }
}

fn report_row(row: &Row) -> ReportRow<'_> {
    ReportRow {
        site: &row.site,
        begin: row.begin,
        end: row.end,
        benefit_ns: row.benefit_ns,
        touched_pages: row.touched,
        confidence_percent: row.confidence,
        address: row.address,
        regions_huge: row.huge,
        regions_small: row.small,
        regions_observed: row.observed.map(|it| it.regions),
        regions_used: row.observed.map(|it| it.used),
    }
}

/// Share of the observed huge regions that the program used; empty without observations.
fn in_use(row: &Row) -> String {
    match row.observed {
        Some(it) if it.regions > 0 => format!("{} of {}", it.used, it.regions),
        _ => String::new(),
    }
}

fn text(machine: &str, ledger: &Ledger, rows: &[Row]) -> String {
    let mode = match ledger.mode.as_str() {
        "default" => format!("{machine}, as the machine"),
        own => format!("{own}, its own"),
    };
    let mut text = format!("decisions: {mode}\n");
    let mut table = output::table(["decision", "asked", "done", "cost", "saves", "left"]);
    for account in ledger.accounts.iter().filter(|it| it.asked > 0) {
        table.add_row(cells(what(&account.model).to_owned(), account));
    }
    if table.row_count() > 0 {
        text += &format!("\n{table}\n");
    }
    let mut shown: Vec<&Row> = rows.iter().collect();
    shown.sort_by_key(|row| std::cmp::Reverse(row.benefit_ns));
    let more = shown.len().saturating_sub(LINES);
    shown.truncate(LINES);
    let mut table = output::table([
        "memory",
        "from",
        "size",
        "2 MiB save",
        "touched",
        "huge",
        "small",
        "in use",
    ]);
    for row in shown {
        table.add_row([
            row.site.clone(),
            format!("{:#x}", row.begin),
            format_size(row.end - row.begin),
            format_ns(row.benefit_ns as f64),
            row.touched.to_string(),
            row.huge.to_string(),
            row.small.to_string(),
            in_use(row),
        ]);
    }
    if table.row_count() > 0 {
        text += &format!("\n{table}\n");
    }
    if more > 0 {
        text += &format!("and {more} more rows that save less (--json has every one)\n");
    }
    text
}
