// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree kernel calibrate`: costs for the kernel's estimator.
//!
//! Each cost comes from the best available source: measured now; else the kernel's own measurement;
//! else a preset; else the kernel's current value.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use toll_act::error::UserError;
use toll_act::{files, messages, signals};
use toll_linux::calibrate::{self, Found, KernelCost};
use toll_linux::econ::{self, DIRECTORY};
use toll_linux::{Root, cpu, sys};
use toll_model::kernel_costs::{self, Cost};
use toll_model::numbers::count;
use toll_model::units::{format_ns, parse_duration};

use crate::output;

/// Used for costs that were not measured.
const PRESET: &str = "epyc";
/// Minimum number of the kernel's own samples for a cost.
const ENOUGH: u64 = 16;

/// Measure and print the costs for the kernel's estimator
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tollfree kernel calibrate -o here.costs
  tollfree kernel calibrate --preset here.costs --load --freeze

The costs are in nanoseconds, each with its source. They can be measured on any kernel;
--load needs root and a kernel with econ (the exit code is 4 on another kernel).")]
pub struct Args {
    /// Time limit
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = parse_duration)]
    pub within: Duration,
    /// Write the costs to this file too
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Use the costs of a preset (epyc) or a file instead of measuring
    #[arg(long, value_name = "NAME|FILE")]
    pub preset: Option<String>,
    /// Load the costs into the running kernel, all or none
    #[arg(long)]
    pub load: bool,
    /// Freeze the loaded costs: the kernel stops measuring
    #[arg(long, requires = "load")]
    pub freeze: bool,
}

/// `tollfree kernel calibrate --json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    format: &'static str,
    version: u32,
    /// The machine that the costs belong to.
    of: &'a str,
    costs: &'a [Line],
    /// Whether the kernel has loaded the costs, and whether they are frozen.
    loaded: bool,
    frozen: bool,
    notes: &'a [String],
}

/// One cost.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    ns: u64,
    from: From,
    source: String,
    /// 10th and 90th percentile, and number of samples, if it was measured now.
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    #[serde(skip)]
    line: usize,
}

/// The source of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum From {
    Measured,
    KernelMeasured,
    Preset,
    Kernel,
}

pub fn run(args: Args, root: &Root, json: bool) -> Result<ExitCode> {
    let args = &args;
    if args.load && root.line(format!("{DIRECTORY}/mode")).is_none() {
        return Err(UserError::Missing(super::decisions::no_econ()).into());
    }
    if let Some(path) = &args.output {
        files::check_writable(path, true)?;
    }
    let (of, lines) = match &args.preset {
        Some(preset) => (preset.clone(), of_preset(preset)?),
        None => (machine(root), measure(args, root)?),
    };
    let text = kernel_costs::format(&of, &lines.iter().map(Line::cost).collect::<Vec<_>>());
    let notes = match args.load {
        true => load(args, root, &lines)?,
        false => Vec::new(),
    };
    if let Some(path) = &args.output {
        files::write(path, text.as_bytes())?;
    }
    if json {
        output::json(&Report {
            format: "tollfree-kernel-costs",
            version: 1,
            of: &of,
            costs: &lines,
            loaded: args.load,
            frozen: args.load && econ::Machine::read(root).is_some_and(|it| it.frozen),
            notes: &notes,
        })?;
    } else {
        output::text(&text)?;
        said(args, &notes)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the messages that follow the costs.
fn said(args: &Args, notes: &[String]) -> Result<()> {
    if let Some(path) = &args.output {
        output::text(&format!("\nwritten to {}\n", path.display()))?;
    }
    if args.load {
        let kept = if args.freeze { ", and frozen" } else { "" };
        output::text(&format!("\nloaded into the kernel{kept}\n"))?;
    }
    notes.iter().for_each(messages::note);
    Ok(())
}

fn machine(root: &Root) -> String {
    format!("{}, Linux {}", cpu::model(root), sys::kernel_release(root))
}

/// The costs of a built-in preset, or of a file.
fn of_preset(preset: &str) -> Result<Vec<Line>> {
    let costs = match kernel_costs::shipped(preset) {
        Some(costs) => costs,
        None => read(Path::new(preset))?,
    };
    Ok(costs
        .into_iter()
        .map(|cost| Line::of(cost, From::Preset))
        .collect())
}

fn read(path: &Path) -> Result<Vec<Cost>> {
    let names = kernel_costs::SHIPPED.map(|(name, _)| name).join(", ");
    let bytes = fs::read(path).with_context(|| {
        format!(
            "{}: cannot be read, and is not a preset ({names})",
            path.display()
        )
    })?;
    kernel_costs::parse(&bytes).map_err(|source| {
        let path = path.to_owned();
        UserError::Input { path, source }.into()
    })
}

fn measure(args: &Args, root: &Root) -> Result<Vec<Line>> {
    let guard = signals::watch().context("no pipe for signals")?;
    let bar = messages::progress("measuring");
    let measured = calibrate::kernel_costs(
        args.within,
        calibrate::available_memory() / 2,
        &|| signals::interrupted().is_some(),
        &mut |step| bar.set_message(format!("measuring: {step}")),
    );
    bar.finish_and_clear();
    drop(guard);
    // Discard an interrupted measurement.
    if signals::interrupted().is_some() {
        return Err(UserError::Interrupted.into());
    }
    Ok(best(root, &measured))
}

/// The best value of each cost that this build or the kernel has.
fn best(root: &Root, measured: &[KernelCost]) -> Vec<Line> {
    let preset = kernel_costs::shipped(PRESET).unwrap_or_default();
    let samples = econ::samples(root);
    let kernel = econ::costs(root);
    let mut names: Vec<&str> = measured.iter().map(|cost| cost.name).collect();
    let shipped = preset.iter().map(|cost| cost.name.as_str());
    for name in shipped.chain(kernel.iter().map(|(name, _)| name.as_str())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let line = |name: &str| {
        let cost = measured.iter().find(|cost| cost.name == name);
        let why = cost.and_then(|cost| cost.found.as_ref().err().copied());
        let own = samples
            .iter()
            .find(|it| it.name == name && it.number >= ENOUGH);
        let shipped = preset.iter().find(|it| it.name == name);
        let here = kernel.iter().find(|it| it.0 == name).map(|it| it.1);
        cost.and_then(Line::measured)
            .or_else(|| own.map(Line::sampled))
            .or_else(|| shipped.map(|cost| Line::shipped(cost, why)))
            .or_else(|| here.map(|ns| Line::kept(name, ns)))
    };
    names.into_iter().filter_map(line).collect()
}

/// Loads the costs into the kernel, all or none. Returns notes for the user.
fn load(args: &Args, root: &Root, lines: &[Line]) -> Result<Vec<String>> {
    let kernel = econ::costs(root);
    let has = |line: &&Line| kernel.iter().any(|(name, _)| *name == line.name);
    let (known, unknown): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(has);
    // Of the measured costs, those that the kernel supports are loaded; a file must match exactly.
    if let (Some(file), Some(line)) = (&args.preset, unknown.first()) {
        let Line { name, line, .. } = line;
        let detail = format!("{file}: line {line}: this kernel has no cost {name}");
        return Err(UserError::UnfitFile(detail).into());
    }
    let costs: Vec<(&str, u64)> = known.iter().map(|it| (it.name.as_str(), it.ns)).collect();
    econ::load_costs(root, &costs, args.freeze)?;
    let mut notes = Vec::new();
    let left = kernel
        .iter()
        .filter(|(name, _)| lines.iter().all(|line| line.name != *name));
    for (name, ns) in left {
        notes.push(format!(
            "{name} keeps the kernel's value, {}",
            format_ns(*ns as f64)
        ));
    }
    let machine = econ::Machine::read(root).unwrap_or_default();
    if machine.mode != "off" && !machine.frozen {
        notes.push(
            "the kernel keeps measuring: its samples will replace these costs (--freeze keeps them)"
                .to_owned(),
        );
    }
    Ok(notes)
}

impl Line {
    fn of(cost: Cost, from: From) -> Line {
        Line {
            name: cost.name,
            ns: cost.ns,
            from,
            source: cost.source,
            low: None,
            high: None,
            samples: None,
            line: cost.line,
        }
    }

    fn with(name: &str, ns: u64, from: From, source: String) -> Line {
        let name = name.to_owned();
        Line::of(
            Cost {
                name,
                ns,
                source,
                line: 0,
            },
            from,
        )
    }

    /// Returns `None` if it could not be measured.
    fn measured(cost: &KernelCost) -> Option<Line> {
        let Found {
            cost: ns,
            samples,
            left_out,
        } = cost.found.ok()?;
        let without = match left_out {
            0 => String::new(),
            some => format!(", without {some} that took over 4 times as long"),
        };
        let source = format!(
            "measured: {}; {} to {} in {samples} samples{without}",
            cost.how,
            format_ns(ns.low),
            format_ns(ns.high)
        );
        Some(Line {
            low: Some(ns.low),
            high: Some(ns.high),
            samples: Some(samples as u64),
            ..Line::with(cost.name, ns.median.round() as u64, From::Measured, source)
        })
    }

    fn sampled(own: &econ::Samples) -> Line {
        let number = count(own.number as f64);
        let source = format!("the kernel's own: half of its {number} samples are not above it");
        Line {
            samples: Some(own.number),
            ..Line::with(&own.name, own.median, From::KernelMeasured, source)
        }
    }

    fn shipped(cost: &Cost, why: Option<&str>) -> Line {
        let why = why
            .map(|why| format!("not measured: {why}; "))
            .unwrap_or_default();
        let source = format!("{why}from the preset {PRESET}: {}", cost.source);
        Line::with(&cost.name, cost.ns, From::Preset, source)
    }

    fn kept(name: &str, ns: u64) -> Line {
        let source = "not measured; the kernel's value".to_owned();
        Line::with(name, ns, From::Kernel, source)
    }

    fn cost(&self) -> Cost {
        Cost {
            name: self.name.clone(),
            ns: self.ns,
            source: self.source.clone(),
            line: self.line,
        }
    }
}
