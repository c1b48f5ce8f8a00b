// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree plan --verify`: measures what lines of a plan save, as the difference between the
//! program under the whole plan and under the plan without the line.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use tempfile::TempDir;
use toll_act::actuate::{Actuator, Policy, Settings};
use toll_act::error::UserError;
use toll_act::{files, messages, signals, thp};
use toll_model::lines::{Line, lines};
use toll_model::plan::{Plan, Verdict, Why};
use toll_model::site::SiteKind;
use toll_model::stats::Interval;
use toll_model::units::{format_ns, format_size};

use super::Args;
use crate::cmd::compare::finish;
use crate::compare::input::Input;
use crate::compare::outputs::OutputCheck;
use crate::compare::program::Program;
use crate::compare::runner::{Clock, Progress};
use crate::compare::schedule::{Rules, Stopped};
use crate::compare::warm::{Warmer, Warming};
use crate::compare::{Comparison, Resource, Variant, compare, table};
use crate::output;

/// `tollfree plan --verify --json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    format: &'static str,
    version: u32,
    program: &'a str,
    /// Confidence of every interval, 0..1.
    confidence: f64,
    pairs: u32,
    stopped: Stopped,
    complete: bool,
    /// CPU time of a run under the whole plan; absent without a complete run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_ns: Option<f64>,
    warmed_bytes: u64,
    output: &'a OutputCheck,
    lines: &'a [Verified],
    notes: &'a [String],
}

/// A line of the plan, and its result.
#[derive(Debug, Serialize)]
struct Verified {
    memory: String,
    offset: u64,
    length: u64,
    /// Benefit less cost, CPU time.
    predicted_ns: f64,
    /// CPU time of a run without the line, minus that with it; absent with fewer than two rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_ns: Option<Interval>,
    verdict: Finding,
}

/// What a measured saving says about the predicted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Finding {
    /// The line saves time.
    Confirmed,
    /// The line saves no measurable time, although half of the prediction would have been
    /// measurable.
    Contradicted,
    CannotTell,
}

/// A line to verify.
#[derive(Debug)]
struct Claim {
    memory: String,
    offset: u64,
    length: u64,
    predicted_ns: f64,
    /// Indices of the plan's regions.
    regions: Vec<usize>,
    /// The allocator makes the heap huge, which is all or nothing.
    whole_heap: bool,
}

pub fn run(args: &Args, wanted: usize, json: bool) -> Result<ExitCode> {
    let policy = Policy::read(&args.file)?;
    let Policy::Plan(plan) = &policy else {
        let detail = format!(
            "{}: a list of addresses has no predictions to verify",
            args.file.display()
        );
        return Err(UserError::UnfitFile(detail).into());
    };
    let claims = claims(plan, wanted);
    check(args, plan, &claims)?;
    // Refuse a plan for another program before anything runs.
    Actuator::new(&policy, &args.command, Settings::default())?;
    let directory = tempfile::Builder::new()
        .prefix("tollfree-")
        .tempdir()
        .context("no temporary directory")?;
    let variants = variants(&args.file, plan, &claims, &directory)?;
    let _signals = signals::watch()?;
    let comparison = measure(args, &variants)?;
    let lines = verified(&claims, &comparison);
    match json {
        true => output::json(&report(&comparison, &lines))?,
        false => output::text(&text(&comparison, &lines))?,
    }
    finish(&comparison, args.any_output, args.within)
}

/// Refuses what cannot be measured.
fn check(args: &Args, plan: &Plan, claims: &[Claim]) -> Result<()> {
    if claims.is_empty() {
        let detail = format!(
            "{}: it makes nothing huge, so there is nothing to verify",
            args.file.display()
        );
        return Err(UserError::UnfitFile(detail).into());
    }
    if thp::is_always() && !plan.thp_always {
        let detail =
            "transparent huge pages are `always` here: memory that a plan omits is huge anyway";
        return Err(UserError::Missing(detail.to_owned()).into());
    }
    Ok(())
}

/// The lines with the largest predicted savings.
fn claims(plan: &Plan, wanted: usize) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for line in lines(plan).into_iter().filter(|line| line.huge) {
        let site = plan.site(line.first.site);
        let in_heap = plan.whole_heap && site.is_some_and(|it| it.kind == SiteKind::Heap);
        match claims.iter_mut().find(|claim| in_heap && claim.whole_heap) {
            Some(heap) => heap.join(line),
            None => claims.push(Claim::new(line, in_heap)),
        }
    }
    claims.sort_by(|a, b| b.predicted_ns.total_cmp(&a.predicted_ns));
    claims.truncate(wanted);
    claims
}

impl Claim {
    fn new(line: Line<'_>, whole_heap: bool) -> Claim {
        Claim {
            offset: line.first.offset,
            length: line.length,
            predicted_ns: line.benefit - line.cost,
            memory: line.name,
            regions: line.regions,
            whole_heap,
        }
    }

    fn join(&mut self, line: Line<'_>) {
        self.length += line.length;
        self.predicted_ns += line.benefit - line.cost;
        self.regions.extend(line.regions);
    }

    /// The plan without this line.
    fn removed_from(&self, plan: &Plan) -> Plan {
        let mut rest = plan.clone();
        for &index in &self.regions {
            rest.regions[index].verdict = Verdict::Leave;
            // Under THP `always`, a plan removes huge pages that cost more than they save.
            rest.regions[index].why = if plan.thp_always {
                Why::CostsMore
            } else {
                Why::Spare
            };
        }
        rest.whole_heap &= !self.whole_heap;
        rest
    }
}

/// The whole plan, and the plan without each of the lines.
fn variants(
    file: &Path,
    plan: &Plan,
    claims: &[Claim],
    directory: &TempDir,
) -> Result<Vec<Variant>> {
    let mut variants = vec![Variant::plan(file)];
    for (claim, number) in claims.iter().zip(1..) {
        let path: PathBuf = directory.path().join(format!("without-{number}.toml"));
        files::write(&path, claim.removed_from(plan).to_toml()?.as_bytes())?;
        variants.push(Variant::without(number, path));
    }
    Ok(variants)
}

fn measure(args: &Args, variants: &[Variant]) -> Result<Comparison> {
    let bar = messages::progress(&format!("at most {} s", args.within.as_secs_f64()));
    let progress = Progress {
        bar: bar.clone(),
        step: String::new(),
    };
    let warming = Warming::of_machine(args.cold);
    let warmer = Warmer::new(warming.on);
    let mut program = Program::new(
        &args.command,
        Input::read()?,
        Clock::start(),
        progress,
        warmer,
    )?;
    program.resource = Resource::Cpu;
    let rules = Rules {
        pairs: args.pairs,
        deadline: args.within,
        each: true,
    };
    let name = args.command[0].to_string_lossy();
    let mut comparison = compare(&mut program, &name, variants, &rules, None)?;
    comparison.notes.extend(program.notes());
    comparison.warming = Some(warming);
    bar.finish_and_clear();
    Ok(comparison)
}

fn verified(claims: &[Claim], comparison: &Comparison) -> Vec<Verified> {
    let run_ns = run_ns(comparison);
    let one = |(claim, variant): (&Claim, &crate::compare::result::VariantResult)| {
        let saved = variant
            .speedup
            .zip(run_ns)
            .and_then(|(speedup, run_ns)| saved(speedup, run_ns));
        Verified {
            memory: claim.memory.clone(),
            offset: claim.offset,
            length: claim.length,
            predicted_ns: claim.predicted_ns,
            verdict: finding(saved.as_ref(), claim.predicted_ns),
            saved_ns: saved,
        }
    };
    claims
        .iter()
        .zip(&comparison.variants[1..])
        .map(one)
        .collect()
}

fn run_ns(comparison: &Comparison) -> Option<f64> {
    Some(comparison.variants[0].median.as_ref()?.cpu * 1e9)
}

/// Converts the speed-up without a line (below 1: slower) into the time that the line saves.
fn saved(without: Interval, run_ns: f64) -> Option<Interval> {
    let longer = |speedup: f64| run_ns * (1.0 / speedup - 1.0);
    (without.low > 0.0).then(|| Interval {
        median: longer(without.median),
        low: longer(without.high),
        high: longer(without.low),
    })
}

fn finding(saved: Option<&Interval>, predicted_ns: f64) -> Finding {
    match saved {
        Some(saved) if saved.low > 0.0 => Finding::Confirmed,
        Some(saved) if saved.high < predicted_ns.max(0.0) / 2.0 => Finding::Contradicted,
        _ => Finding::CannotTell,
    }
}

fn report<'a>(comparison: &'a Comparison, lines: &'a [Verified]) -> Report<'a> {
    Report {
        format: "tollfree-verification",
        version: 1,
        program: &comparison.program,
        confidence: comparison.confidence,
        pairs: comparison.pairs,
        stopped: comparison.stopped,
        complete: comparison.complete,
        run_ns: run_ns(comparison),
        warmed_bytes: comparison.warmed_bytes,
        output: &comparison.output,
        lines,
        notes: &comparison.notes,
    }
}

fn text(comparison: &Comparison, lines: &[Verified]) -> String {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header(["memory", "from", "size", "predicted", "saves", "verdict"]);
    for line in lines {
        table.add_row([
            line.memory.clone(),
            format!("{:#x}", line.offset),
            format_size(line.length),
            format_ns(line.predicted_ns),
            line.saved_ns.as_ref().map_or("-".to_owned(), |saved| {
                let [median, low, high] = [saved.median, saved.low, saved.high].map(format_ns);
                format!("{median} ({low} to {high})")
            }),
            line.verdict.words().to_owned(),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = format!("{table}\n\n");
    if let Some(run_ns) = run_ns(comparison) {
        text += &format!(
            "CPU time, {:.0} % intervals, {} pairs; a run under the whole plan takes {}\n",
            comparison.confidence * 100.0,
            comparison.pairs,
            format_ns(run_ns)
        );
    }
    let warmed = table::warmed(comparison).map(|line| format!("{line}\n"));
    text += &warmed.unwrap_or_default();
    let notes = comparison
        .notes
        .iter()
        .map(|note| format!("note: {note}\n"));
    text + &notes.collect::<String>()
}

impl Finding {
    fn words(self) -> &'static str {
        match self {
            Finding::Confirmed => "confirmed",
            Finding::Contradicted => "contradicted",
            Finding::CannotTell => "cannot tell",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::schedule::tests::{Mock, rules};

    fn interval(low: f64, median: f64, high: f64) -> Interval {
        Interval { median, low, high }
    }

    #[test]
    fn a_saving_is_what_a_run_takes_longer_without_the_line() {
        let saved = saved(interval(0.4, 0.5, 0.8), 1e9).unwrap();
        assert!((saved.median - 1e9).abs() < 1.0);
        assert!((saved.low - 0.25e9).abs() < 1.0 && (saved.high - 1.5e9).abs() < 1.0);
        assert_eq!(super::saved(interval(0.0, 1.0, f64::INFINITY), 1e9), None);
    }

    #[test]
    fn findings() {
        for (saved, predicted, finding) in [
            (interval(1.0, 2.0, 3.0), 10.0, Finding::Confirmed),
            (interval(-1.0, 2.0, 4.9), 10.0, Finding::Contradicted),
            (interval(-1.0, 2.0, 5.1), 10.0, Finding::CannotTell),
            (interval(-3.0, -2.0, -1.0), 10.0, Finding::Contradicted),
            // Predicted not to pay, and measured not to pay.
            (interval(-3.0, -2.0, -1.0), -5.0, Finding::Contradicted),
            (interval(-3.0, -2.0, 1.0), -5.0, Finding::CannotTell),
        ] {
            assert_eq!(
                super::finding(Some(&saved), predicted),
                finding,
                "{saved:?}"
            );
        }
        assert_eq!(super::finding(None, 1.0), Finding::CannotTell);
    }

    /// Three lines: one as predicted, one without effect, one that cannot be decided.
    #[test]
    fn each_line_is_judged_by_its_own_variant() {
        let claim = |memory: &str| Claim {
            memory: memory.to_owned(),
            offset: 0,
            length: 2 << 20,
            predicted_ns: 1e9,
            regions: Vec::new(),
            whole_heap: false,
        };
        let mut mock = Mock::new(&[
            ("plan", &[2.0, 2.001]),
            ("without 1", &[3.0, 3.001]),
            ("without 2", &[2.001, 2.0]),
            ("without 3", &[1.2, 4.0]),
        ]);
        let variants = [
            Variant::plan("p"),
            Variant::without(1, "a"),
            Variant::without(2, "b"),
            Variant::without(3, "c"),
        ];
        let rules = Rules {
            each: true,
            ..rules(Some(8), 9999.0)
        };
        let comparison = compare(&mut mock, "x", &variants, &rules, None).unwrap();
        let lines = verified(&[claim("a"), claim("b"), claim("c")], &comparison);
        let found: Vec<Finding> = lines.iter().map(|line| line.verdict).collect();
        assert_eq!(
            found,
            [
                Finding::Confirmed,
                Finding::Contradicted,
                Finding::CannotTell
            ]
        );
        let saved = lines[0].saved_ns.unwrap();
        assert!((saved.median - 1e9).abs() < 1e7, "{saved:?}");
        let text = text(&comparison, &lines);
        assert!(
            text.contains("confirmed") && text.contains("8 pairs"),
            "{text}"
        );
    }
}
