// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree calibrate --kernel`: prices for the kernel's estimator.
//!
//! Of each price the best that is known: measured now; else what the kernel has measured itself;
//! else that of a preset; else what the kernel has.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;
use toll_linux::calibrate::{self, Found, KernelPrice};
use toll_linux::econ::{self, FOLDER};
use toll_linux::{Root, cpu, sys};
use toll_model::kernel_costs::{self, Price};
use toll_model::units::format_ns;

use super::Args;
use crate::error::UserError;
use crate::units::count;
use crate::{output, signals};

/// Stands in for what is not measured.
const PRESET: &str = "epyc";
/// Samples of the kernel's own that are a price.
const ENOUGH: u64 = 16;

/// `tollfree calibrate --kernel --json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    format: &'static str,
    version: u32,
    /// What they are prices of.
    of: &'a str,
    prices: &'a [Line],
    /// Whether the kernel has them now, and keeps them.
    loaded: bool,
    frozen: bool,
    notes: &'a [String],
}

/// One price.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    ns: u64,
    from: From,
    source: String,
    /// 10th and 90th percentile, where it was measured now, and of how many samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    #[serde(skip)]
    line: usize,
}

/// Where a price comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum From {
    Measured,
    KernelMeasured,
    Preset,
    Kernel,
}

pub fn run(args: &Args, json: bool) -> Result<ExitCode> {
    let root = args.root.clone().map_or_else(Root::system, Root::at);
    if args.load && root.line(format!("{FOLDER}/mode")).is_none() {
        return Err(UserError::Missing(super::super::explain::no_econ()).into());
    }
    if let Some(path) = &args.output {
        output::check_writable(path, true)?;
    }
    let (of, lines) = match &args.preset {
        Some(preset) => (preset.clone(), of_preset(preset)?),
        None => (machine(&root), measure(args, &root)?),
    };
    let text = kernel_costs::format(&of, &lines.iter().map(Line::price).collect::<Vec<_>>());
    let notes = match args.load {
        true => load(args, &root, &lines)?,
        false => Vec::new(),
    };
    if let Some(path) = &args.output {
        output::write_file(path, text.as_bytes())?;
    }
    if json {
        output::json(&Report {
            format: "tollfree-kernel-costs",
            version: 1,
            of: &of,
            prices: &lines,
            loaded: args.load,
            frozen: args.load && econ::Machine::read(&root).is_some_and(|it| it.frozen),
            notes: &notes,
        })?;
    } else {
        output::text(&text)?;
        said(args, &notes)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What became of the prices, beside the prices themselves.
fn said(args: &Args, notes: &[String]) -> Result<()> {
    if let Some(path) = &args.output {
        output::text(&format!("\nwritten to {}\n", path.display()))?;
    }
    if args.load {
        let kept = if args.freeze { ", and frozen" } else { "" };
        output::text(&format!("\nloaded into the kernel{kept}\n"))?;
    }
    notes.iter().for_each(output::note);
    Ok(())
}

fn machine(root: &Root) -> String {
    format!("{}, Linux {}", cpu::model(root), sys::kernel_release(root))
}

/// The prices of a preset of this build, or of a file.
fn of_preset(preset: &str) -> Result<Vec<Line>> {
    let prices = match kernel_costs::shipped(preset) {
        Some(prices) => prices,
        None => read(Path::new(preset))?,
    };
    Ok(prices
        .into_iter()
        .map(|price| Line::of(price, From::Preset))
        .collect())
}

fn read(path: &Path) -> Result<Vec<Price>> {
    let names = kernel_costs::SHIPPED.map(|(name, _)| name).join(", ");
    let bytes = fs::read(path).with_context(|| {
        format!(
            "{}: cannot be read, and is no preset ({names})",
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
    let bar = output::progress("measuring");
    let measured = calibrate::kernel_prices(
        args.within,
        calibrate::available_memory() / 2,
        &|| signals::interrupted().is_some(),
        &mut |step| bar.set_message(format!("measuring: {step}")),
    );
    bar.finish_and_clear();
    drop(guard);
    // Half of the samples are no table that anybody asked for.
    if signals::interrupted().is_some() {
        return Err(UserError::Interrupted.into());
    }
    Ok(best(root, &measured))
}

/// The best that is known of each price that this build or the kernel knows.
fn best(root: &Root, measured: &[KernelPrice]) -> Vec<Line> {
    let preset = kernel_costs::shipped(PRESET).unwrap_or_default();
    let samples = econ::samples(root);
    let kernel = econ::prices(root);
    let mut names: Vec<&str> = measured.iter().map(|price| price.name).collect();
    let shipped = preset.iter().map(|price| price.name.as_str());
    for name in shipped.chain(kernel.iter().map(|(name, _)| name.as_str())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let line = |name: &str| {
        let price = measured.iter().find(|price| price.name == name);
        let why = price.and_then(|price| price.found.as_ref().err().copied());
        let own = samples
            .iter()
            .find(|it| it.name == name && it.number >= ENOUGH);
        let shipped = preset.iter().find(|it| it.name == name);
        let here = kernel.iter().find(|it| it.0 == name).map(|it| it.1);
        price
            .and_then(Line::measured)
            .or_else(|| own.map(Line::sampled))
            .or_else(|| shipped.map(|price| Line::shipped(price, why)))
            .or_else(|| here.map(|ns| Line::kept(name, ns)))
    };
    names.into_iter().filter_map(line).collect()
}

/// Gives the kernel the prices, all or none; says what a user should know.
fn load(args: &Args, root: &Root, lines: &[Line]) -> Result<Vec<String>> {
    let kernel = econ::prices(root);
    let has = |line: &&Line| kernel.iter().any(|(name, _)| *name == line.name);
    let (known, unknown): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(has);
    // Of what was measured a kernel takes what it knows; a file has to be right.
    if let (Some(file), Some(line)) = (&args.preset, unknown.first()) {
        let Line { name, line, .. } = line;
        let detail = format!("{file}: line {line}: this kernel has no price {name}");
        return Err(UserError::UnfitFile(detail).into());
    }
    let prices: Vec<(&str, u64)> = known.iter().map(|it| (it.name.as_str(), it.ns)).collect();
    econ::load_prices(root, &prices, args.freeze)?;
    let mut notes = Vec::new();
    let left = kernel
        .iter()
        .filter(|(name, _)| lines.iter().all(|line| line.name != *name));
    for (name, ns) in left {
        notes.push(format!(
            "{name} stays as the kernel has it, {}",
            format_ns(*ns as f64)
        ));
    }
    let machine = econ::Machine::read(root).unwrap_or_default();
    if machine.mode != "off" && !machine.frozen {
        notes.push(
            "the kernel goes on measuring: prices hold until it has samples (--freeze keeps them)"
                .to_owned(),
        );
    }
    Ok(notes)
}

impl Line {
    fn of(price: Price, from: From) -> Line {
        Line {
            name: price.name,
            ns: price.ns,
            from,
            source: price.source,
            low: None,
            high: None,
            samples: None,
            line: price.line,
        }
    }

    fn with(name: &str, ns: u64, from: From, source: String) -> Line {
        let name = name.to_owned();
        Line::of(
            Price {
                name,
                ns,
                source,
                line: 0,
            },
            from,
        )
    }

    /// `None` if it could not be measured.
    fn measured(price: &KernelPrice) -> Option<Line> {
        let Found {
            price: ns,
            samples,
            left_out,
        } = price.found.ok()?;
        let without = match left_out {
            0 => String::new(),
            some => format!(", without {some} that took over 4 times as long"),
        };
        let source = format!(
            "measured: {}; {} to {} in {samples} samples{without}",
            price.how,
            format_ns(ns.low),
            format_ns(ns.high)
        );
        Some(Line {
            low: Some(ns.low),
            high: Some(ns.high),
            samples: Some(samples as u64),
            ..Line::with(price.name, ns.median.round() as u64, From::Measured, source)
        })
    }

    fn sampled(own: &econ::Samples) -> Line {
        let number = count(own.number as f64);
        let source = format!("the kernel's own: half of its {number} samples do not exceed it");
        Line {
            samples: Some(own.number),
            ..Line::with(&own.name, own.median, From::KernelMeasured, source)
        }
    }

    fn shipped(price: &Price, why: Option<&str>) -> Line {
        let why = why
            .map(|why| format!("not measured: {why}; "))
            .unwrap_or_default();
        let source = format!("{why}as in the preset {PRESET}: {}", price.source);
        Line::with(&price.name, price.ns, From::Preset, source)
    }

    fn kept(name: &str, ns: u64) -> Line {
        let source = "not measured; as the kernel has it".to_owned();
        Line::with(name, ns, From::Kernel, source)
    }

    fn price(&self) -> Price {
        Price {
            name: self.name.clone(),
            ns: self.ns,
            source: self.source.clone(),
            line: self.line,
        }
    }
}
