// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree calibrate`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use toll_act::error::UserError;
use toll_act::{files, messages, signals};
use toll_linux::{Root, calibrate};
use toll_model::cost::{CostTable, Measured, WalkCost};
use toll_model::units::{format_ns, format_size, parse_duration};
use toll_observe::machine;

use crate::output;

/// Measure the costs of address translation and huge pages on this machine
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tollfree calibrate --within 30s

Without -o the table goes to ${XDG_CACHE_HOME:-~/.cache}/tollfree, where the other
commands find it. If it is interrupted or out of time, costs that were not measured get
default values, and the table is marked as incomplete.")]
pub struct Args {
    /// Time limit
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = parse_duration)]
    pub within: Duration,
    /// Write the table to this file (default: the cache)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let path = match &args.output {
        Some(path) => Some(path.clone()),
        None => calibrate::cache_path(&calibrate::key(&Root::system())),
    };
    if let Some(path) = &args.output {
        files::check_writable(path, true)?;
    }
    let guard = signals::watch().context("no pipe for signals")?;
    let bar = messages::progress("measuring");
    let table = machine::measure_costs(args.within, &mut |step| {
        bar.set_message(format!("measuring: {step}"))
    });
    bar.finish_and_clear();
    let interrupted = signals::interrupted().is_some();
    drop(guard);
    let written = match &path {
        // An incomplete table must not replace a complete one in the cache.
        Some(path) if !interrupted || args.output.is_some() => keep(&table, path)?,
        _ => None,
    };
    if json {
        output::json(&table)?;
    } else {
        output::text(&text(&table))?;
        if let Some(path) = written {
            output::text(&format!("\nwritten to {}\n", path.display()))?;
        }
    }
    match interrupted {
        true => Err(UserError::Interrupted.into()),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Writes the table. Returns its path.
fn keep<'a>(table: &CostTable, path: &'a Path) -> Result<Option<&'a Path>> {
    calibrate::store(path, table)
        .with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok(Some(path))
}

/// The table as text.
fn text(table: &CostTable) -> String {
    let mut text = format!(
        "{}, Linux {}, {}\nTLB ({}): {} 4 KiB pages, reach {}\n",
        table.cpu,
        table.kernel,
        format_size(table.memory),
        table.tlb.name,
        table.tlb.l2_4k.entries,
        format_size(table.tlb.reach_4k()),
    );
    if !table.complete {
        text.push_str("INCOMPLETE: costs that were not measured have default values\n");
    }
    text.push_str("\nns saved per access by huge pages (median, 10th to 90th percentile);\nwithin the TLB's reach: per hit of its second level\n");
    text.push_str(&grid(&table.walk));
    text.push('\n');
    let costs = [
        ("fault, 4 KiB", table.fault_4k),
        ("fault, 2 MiB, warm block", table.fault_2m_warm),
        ("fault, 2 MiB, cold block", table.fault_2m_cold),
        ("collapse of 2 MiB", table.collapse),
    ];
    let events = table.events.measured().into_iter();
    let events = events.map(|(name, cost)| (event(name), cost));
    for (name, cost) in costs.into_iter().chain(events) {
        let Measured { median, low, high } = cost;
        let [median, low, high] = [median, low, high].map(format_ns);
        text.push_str(&format!("{name:<26} {median:>10}  ({low} to {high})\n"));
    }
    text
}

/// The name of an event's cost for people.
fn event(name: &str) -> &str {
    match name {
        "shootdown_sent" => "TLB shootdown, sender",
        "shootdown_received" => "TLB shootdown, receiver",
        "fault_major" => "fault, page of a file",
        "reclaim_page" => "reclaim of a file's page",
        other => other,
    }
}

/// One line per footprint, one column per number of chains.
fn grid(walk: &[WalkCost]) -> String {
    let mut chains: Vec<u32> = walk.iter().map(|cell| cell.chains).collect();
    chains.sort_unstable();
    chains.dedup();
    let mut footprints: Vec<u64> = walk.iter().map(|cell| cell.footprint).collect();
    footprints.sort_unstable();
    footprints.dedup();
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    let heads = chains.iter().map(|chains| match chains {
        1 => "1 chain".to_owned(),
        many => format!("{many} chains"),
    });
    table.set_header(std::iter::once("footprint".to_owned()).chain(heads));
    for footprint in footprints {
        let cells = chains.iter().map(|chains| {
            walk.iter()
                .find(|cell| (cell.footprint, cell.chains) == (footprint, *chains))
                .map_or(String::new(), |cell| {
                    let Measured { median, low, high } = cell.saved_ns;
                    format!("{median:.1} ({low:.1}-{high:.1})")
                })
        });
        table.add_row(std::iter::once(format_size(footprint)).chain(cells));
    }
    format!("{table}\n")
}
