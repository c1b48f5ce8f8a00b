// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree kernel luf`.

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use toll_act::error::UserError;
use toll_linux::Root;
use toll_linux::luf::{DIRECTORY, Luf};
use toll_model::numbers::{count, duration, of, percent};

use crate::output;

/// Show the counters of the kernel's lazy unmap flush since boot
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tollfree kernel luf

Reads /sys/kernel/mm/luf, which exists on kernels with tollfree's patches, and changes
nothing. The exit code is 4 on another kernel. For the meaning of each counter, see
Documentation/ABI/testing/sysfs-kernel-mm-luf.")]
pub struct Args {}

/// `tollfree kernel luf --json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    format: &'static str,
    version: u32,
    enabled: bool,
    pool_pages: u64,
    pool_max_pages: u64,
    direct_batch_pages: u64,
    max_age_ms: u64,
    counts: &'a std::collections::BTreeMap<String, u64>,
    /// (smallest number of pages, number of drains) per bucket.
    pages_per_drain: &'a [(u64, u64)],
}

pub fn run(root: &Root, json: bool) -> Result<ExitCode> {
    let Some(luf) = Luf::read(root) else {
        let why = "not found: this kernel has no lazy unmap flush (CONFIG_LUF)";
        return Err(UserError::Missing(format!("{DIRECTORY}: {why}")).into());
    };
    if json {
        output::json(&Report {
            format: "tollfree-luf",
            version: 1,
            enabled: luf.enabled,
            pool_pages: luf.pool_pages,
            pool_max_pages: luf.pool_max_pages,
            direct_batch_pages: luf.direct_batch_pages,
            max_age_ms: luf.max_age_ms,
            counts: &luf.counts,
            pages_per_drain: &luf.pages_per_drain,
        })?;
    } else {
        output::text(&text(&luf))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(luf: &Luf) -> String {
    let deferred: u64 = luf.of("deferred_").iter().map(|it| it.1).sum();
    let released = luf.count("released_flushed") + luf.count("released_elided");
    let [interrupted, spared] =
        ["cpus_interrupted", "cpus_spared"].map(|name| luf.count(name) as f64);
    let drains: u64 = luf.pages_per_drain.iter().map(|it| it.1).sum();
    let switch = if luf.enabled { "on" } else { "off" };
    let rows = [
        (
            "lazy unmap flush",
            format!("{switch}, {} wait", pages(luf.pool_pages)),
        ),
        ("unmapped lazily", total(deferred, &luf.of("deferred_"))),
        ("released", pages(released)),
        ("drains", drains_in_words(drains, &luf.pages_per_drain)),
        ("flushes", parts(&luf.of("flushes_"))),
        (
            "CPUs",
            format!(
                "interrupted {}, spared {} ({})",
                count(interrupted),
                count(spared),
                percent(spared / (interrupted + spared))
            ),
        ),
        ("refused", parts(&luf.of("refused_"))),
        (
            "writers",
            format!(
                "{} waited, {} together",
                count(luf.count("writers_waited") as f64),
                duration(luf.count("writers_ns") as f64)
            ),
        ),
        (
            "longest drain",
            duration(luf.count("longest_drain_ns") as f64),
        ),
    ];
    rows.iter()
        .map(|(name, what)| format!("{name:17} {what}\n"))
        .collect()
}

fn pages(number: u64) -> String {
    of(usize::try_from(number).unwrap_or(usize::MAX), "page")
}

/// The nonzero counters, largest first.
fn parts(counts: &[(&str, u64)]) -> String {
    let seen: Vec<String> = counts
        .iter()
        .filter(|(_, number)| *number > 0)
        .map(|(name, number)| format!("{} {}", name.replace('_', " "), count(*number as f64)))
        .collect();
    match seen.is_empty() {
        true => "none".to_owned(),
        false => seen.join(", "),
    }
}

fn total(number: u64, counts: &[(&str, u64)]) -> String {
    match number {
        0 => pages(0),
        _ => format!("{} ({})", pages(number), parts(counts)),
    }
}

/// The number of drains, and the number of pages that half of them reach.
fn drains_in_words(drains: u64, sizes: &[(u64, u64)]) -> String {
    if drains == 0 {
        return "none".to_owned();
    }
    let mut larger = drains;
    let mut median = 0;
    for &(size, number) in sizes {
        if larger * 2 >= drains {
            median = size;
        }
        larger -= number;
    }
    format!(
        "{}, half of them of at least {}",
        count(drains as f64),
        pages(median)
    )
}

#[cfg(test)]
mod tests;
