// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab outside`: test suites of other projects, on stock and patched kernels.

mod checked;
mod kernel;
mod mm;
mod plan;
mod sheet;
mod verdict;

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::Args as ClapArgs;
use serde::Serialize;

use super::built;
use crate::error::LabError;
use crate::workspace::Workspace;
use crate::{files, output};
use checked::Checked;
use kernel::TestedKernel;
use mm::Tests;
use plan::{Case, Group, LeftOut, Plan, SET_UP, SuiteName};
use sheet::{Difference, Kernel, Row, Sheet};

/// The stressor classes of stress-ng.
const CLASSES: [&str; 2] = ["memory", "vm"];

const EXAMPLE: &str = "\
Examples:
  toll-lab outside --markdown docs/results/outside.md
  toll-lab outside --suite mm --variant vanilla --variant tollfree -- cow khugepaged
  toll-lab outside --config kernel/config/outside.config
  toll-lab outside --adversary --suite mm --variant vanilla --variant tollfree

lab/outside.toml lists the tests, the excluded tests, and the explained differences.
Status 5: a kernel differs from the first one without an explanation in the file; with
--adversary, hardware could have been hurt, or a guest was not checked.";

/// Run the kernel's mm selftests, stress-ng and a file-system load on stock and patched kernels
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// Kernel variants; the first is the reference
    #[arg(long = "variant", value_name = "VARIANT", default_values = ["vanilla", "tollfree", "tollfree-debug"])]
    variants: Vec<String>,
    /// Run only these suites
    #[arg(long = "suite", value_name = "SUITE")]
    suites: Vec<SuiteName>,
    /// Also set these symbols (a .config fragment)
    #[arg(long, value_name = "FRAGMENT")]
    config: Vec<PathBuf>,
    /// Number of repeats on all kernels for a test with a result that differs from the first
    /// kernel's
    #[arg(long, value_name = "TIMES", default_value_t = 2)]
    again: u32,
    /// Reuse the results of an earlier call with the same kernels and tests
    #[arg(long)]
    resume: bool,
    /// Run them on the adversarial TLB, and fail if hardware could be hurt
    #[arg(long, conflicts_with = "resume")]
    adversary: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Write the results to this file as a document
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Run only tests with a name that begins with one of these
    #[arg(value_name = "TEST", last = true)]
    named: Vec<String>,
}

impl Args {
    fn asks_for(&self, test: &str) -> bool {
        self.named.is_empty() || self.named.iter().any(|it| test.starts_with(it.as_str()))
    }

    fn asks_for_suite(&self, suite: SuiteName) -> bool {
        self.suites.is_empty() || self.suites.contains(&suite)
    }

    /// The command line without `--resume`.
    fn command(&self) -> String {
        let words = std::env::args().skip(1);
        let words: Vec<String> = words.filter(|word| word != "--resume").collect();
        format!("toll-lab {}", words.join(" "))
    }
}

#[derive(Serialize)]
struct Report<'a> {
    kernels: &'a [Kernel],
    rows: &'a [Row],
    differences: &'a [Difference],
    left_out: &'a [LeftOut],
    /// With --adversary.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    checked: &'a [Checked],
}

pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let plan = Plan::read(&workspace)?;
    let built = built(&workspace, &args.variants, &args.config)?;
    let tests = match args.asks_for_suite(SuiteName::Mm) {
        true => Some(Tests::compile(&built[0])?),
        false => None,
    };
    let groups = groups(args, &plan, tests.as_ref())?;
    let tested = built
        .iter()
        .map(|built| TestedKernel::ready(&workspace, &plan, built, tests.as_ref(), args))
        .collect::<Result<Vec<_>>>()?;
    let mut sheet = Sheet::new(tested.iter().map(TestedKernel::kernel).collect());
    for (number, tested) in tested.iter().enumerate() {
        for group in &groups {
            for (name, verdict) in tested.run(group)? {
                sheet.add(number, group.suite, &name, verdict);
            }
        }
    }
    for _ in 0..args.again {
        again(&tested, &groups, &mut sheet)?;
    }
    let checked = tested.into_iter().filter_map(TestedKernel::checked);
    report(args, &plan, &sheet, &checked.collect::<Vec<_>>())
}

/// Repeats, on all kernels, the tests with results that differ from the first kernel's.
fn again(tested: &[TestedKernel], groups: &[Group], sheet: &mut Sheet) -> Result<()> {
    for group in groups {
        let differs = |case: &&Case| sheet.differs(group.suite, &case.name);
        let cases: Vec<&Case> = group.cases.iter().filter(differs).collect();
        for (number, tested) in tested.iter().enumerate() {
            let can = |case: &&&Case| tested.obstacle(group, case).is_none();
            let cases: Vec<&Case> = cases.iter().filter(can).copied().collect();
            for (name, verdict) in tested.boot_until_done(group, &cases)? {
                let name = if name == SET_UP {
                    group.set_up_name()
                } else {
                    name
                };
                sheet.add(number, group.suite, &name, verdict);
            }
        }
    }
    Ok(())
}

fn report(args: &Args, plan: &Plan, sheet: &Sheet, checked: &[Checked]) -> Result<()> {
    let differences = sheet.differences(plan);
    if args.json {
        output::json(&Report {
            kernels: &sheet.kernels,
            rows: &sheet.rows,
            differences: &differences,
            left_out: &plan.left_out,
            checked,
        })?;
    } else {
        print!("{}", sheet.table(plan));
        checked.iter().for_each(|it| println!("{it}"));
    }
    if let Some(path) = &args.markdown {
        files::write(path, sheet.markdown(plan, &args.command()).as_bytes())?;
    }
    if let Some(why) = checked.iter().find_map(Checked::problem) {
        return Err(LabError::Test(why).into());
    }
    let unexplained = differences.iter().filter(|it| it.reason.is_none());
    let names: Vec<String> = unexplained
        .map(|it| format!("{} {} on {}", it.suite.name(), it.test, it.variant))
        .collect();
    match names.is_empty() {
        true => Ok(()),
        false => {
            let first = &sheet.kernels[0].variant;
            let why = format!(
                "differs from {first} without an explanation: {}",
                names.join(", ")
            );
            Err(LabError::Test(why).into())
        }
    }
}

/// Groups the selected tests by guest.
fn groups(args: &Args, plan: &Plan, tests: Option<&Tests>) -> Result<Vec<Group>> {
    let mut all = Vec::new();
    if let Some(tests) = tests {
        let cases: Vec<Case> = plan
            .groups(SuiteName::Mm, &[])
            .into_iter()
            .flat_map(|it| it.cases)
            .collect();
        let is_known = |name: &str| {
            let is_run = cases.iter().any(|case| mm::program(&case.name) == name);
            is_run || plan.is_left_out(SuiteName::Mm, name)
        };
        let unknown = tests.unknown(is_known);
        if !unknown.is_empty() {
            let why = "are neither run nor left out by lab/outside.toml";
            return Err(LabError::Input(format!("mm: {} {why}", unknown.join(", "))).into());
        }
        all.extend(plan.groups(SuiteName::Mm, &[]));
    }
    if args.asks_for_suite(SuiteName::Stress) {
        all.extend(plan.groups(SuiteName::Stress, &stressors()?));
    }
    if args.asks_for_suite(SuiteName::Files) {
        all.extend(plan.groups(SuiteName::Files, &[]));
    }
    for group in &mut all {
        group.cases.retain(|case| args.asks_for(&case.name));
    }
    all.retain(|group| !group.cases.is_empty());
    match all.is_empty() {
        true => Err(LabError::Usage("no test has such a name".to_owned()).into()),
        false => Ok(all),
    }
}

/// Lists the stressors by asking stress-ng itself.
fn stressors() -> Result<Vec<String>> {
    let mut all = Vec::new();
    for class in CLASSES {
        let output = Command::new("stress-ng")
            .args(["--class", &format!("{class}?")])
            .output()
            .map_err(|error| {
                let why = "setup/setup.sh outside installs it";
                LabError::Missing(format!("stress-ng: {error}: {why}"))
            })?;
        all.extend(names(&String::from_utf8_lossy(&output.stdout)));
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// The names after `class 'x' stressors: `.
fn names(text: &str) -> Vec<String> {
    let list = text.split_once("stressors: ").map_or("", |(_, list)| list);
    list.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
