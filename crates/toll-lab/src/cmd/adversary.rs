// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab adversary`: checks every access of a guest against old translations that hardware
//! could still use.

pub(in crate::cmd) mod findings;
mod minimise;
mod plan;
mod sheet;
pub(in crate::cmd) mod symbols;
pub(in crate::cmd) mod tested;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::error::LabError;
use crate::workspace::Workspace;
use crate::{files, output};
use plan::Plan;
use sheet::Sheet;
use tested::Tester;

const EXAMPLE: &str = "\
Examples:
  toll-lab adversary tollfree
  toll-lab adversary ~/queue/series --seconds 600
  toll-lab adversary tollfree --scenario morsel-dma
  toll-lab adversary vanilla --scenario munmap --plant munmap
  toll-lab adversary vanilla tollfree --plants --markdown docs/results/adversary.md
  toll-lab adversary ~/queue/series --scenario random --seed 7 --minimise
  toll-lab adversary ~/queue/series --program ./repro --run 'repro 100'

lab/adversary.toml lists the scenarios and the bugs that can be planted.
Status 5: hardware could have been hurt, a planted bug was not found, a scenario failed, or
nothing was checked.";

/// Check a kernel against the worst TLB that the architecture allows
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// Kernel variants
    #[arg(value_name = "VARIANT", default_value = "tollfree")]
    variants: Vec<String>,
    /// Run only these scenarios
    #[arg(long = "scenario", value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Run this line of shell instead of the scenarios; SEED is replaced by the seed
    #[arg(long, value_name = "LINE", conflicts_with_all = ["scenarios", "plant", "plants", "minimise"])]
    run: Option<String>,
    /// Copy this program, with its libraries, to the guest's /bin
    #[arg(long = "program", value_name = "FILE")]
    programs: Vec<PathBuf>,
    /// Also set these symbols (a .config fragment); may be repeated
    #[arg(long, value_name = "FRAGMENT")]
    config: Vec<PathBuf>,
    /// Repeat the scenarios, with other seeds, for at least this long on each kernel
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    seconds: u64,
    /// First seed of the random scenarios
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Plant this bug, which must be found; the scenarios are then those that the bug is for
    #[arg(long = "plant", value_name = "BUG")]
    plant: Vec<String>,
    /// Also plant each bug, one in each guest: in the first of these kernels that can have it, or
    /// else in one that can
    #[arg(long, conflicts_with = "plant")]
    plants: bool,
    /// Use only the scenarios and bugs of the short form
    #[arg(long)]
    short: bool,
    /// Run all CPUs on one host thread, with an instruction-count clock: slower, and two runs find
    /// the same causes
    #[arg(long)]
    icount: bool,
    /// Search for the fewest operations of one scenario of mmfuzz that still give its first
    /// report, one guest for each attempt; with --plant under that bug, with --seconds for about
    /// this long
    #[arg(long, conflicts_with_all = ["plants", "short", "markdown"])]
    minimise: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Write the results to this file as a document
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

impl Args {
    /// Whether scenarios run on a machine, without a planted bug.
    fn asks_for_machine(&self, machine: &plan::MachineSpec) -> bool {
        self.plant.is_empty() && (machine.short || !self.short)
    }

    /// Prints a result as soon as it is there.
    fn show(&self, result: &impl Display) {
        if !self.json {
            println!("{result}");
        }
    }

    fn asks_for(&self, scenario: &plan::Scenario) -> bool {
        match self.scenarios.is_empty() {
            true => scenario.short || !self.short,
            false => self.scenarios.contains(&scenario.name),
        }
    }

    fn asks_for_plant(&self, plant: &plan::Plant) -> bool {
        match self.plants {
            true => (plant.short || !self.short) && self.asks_for_its_scenario(plant),
            false => self.plant.contains(&plant.name),
        }
    }

    /// Each bug that is asked for, at the first of the given kernels that can have it, or else at
    /// one that can.
    fn plants_by_kernel<'a>(&self, plan: &'a Plan) -> BTreeMap<String, Vec<&'a plan::Plant>> {
        let mut all: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for plant in plan.plants.iter().filter(|it| self.asks_for_plant(it)) {
            let mut given = self.variants.iter();
            let kernel = given.find(|it| plant.variants.contains(it));
            let kernel = kernel.unwrap_or(&plant.variants[0]).clone();
            all.entry(kernel).or_default().push(plant);
        }
        all
    }

    fn asks_for_its_scenario(&self, plant: &plan::Plant) -> bool {
        self.scenarios.is_empty() || self.scenarios.contains(&plant.scenario)
    }
}

pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let mut plan = Plan::read(&workspace)?;
    if let Some(line) = &args.run {
        plan = plan.of_line(line);
    }
    plan.check_names(&args.scenarios, &args.plant)?;
    if args.minimise {
        return minimise(args, &workspace, &plan);
    }
    let mut sheet = Sheet::default();
    let machines = plan.machines.iter().filter(|it| args.asks_for_machine(it));
    let machines: Vec<_> = machines.collect();
    let mut plants = args.plants_by_kernel(&plan);
    let others = plants.keys().filter(|it| !args.variants.contains(it));
    let kernels: Vec<String> = args.variants.iter().chain(others).cloned().collect();
    let share = Duration::from_secs(args.seconds) / machines.len().max(1) as u32;
    for (number, kernel) in kernels.iter().enumerate() {
        let tester = Tester::ready(&workspace, &plan, kernel, args)?;
        let is_given = number < args.variants.len();
        for machine in machines.iter().filter(|_| is_given) {
            if let Some(plain) = tester.run_on(machine, share)? {
                args.show(&plain);
                sheet.kernels.push(plain);
            }
        }
        for plant in plants.remove(kernel).unwrap_or_default() {
            let planted = tester.run_plant(plant)?;
            args.show(&planted);
            sheet.plants.push(planted);
        }
    }
    if let Some(path) = &args.markdown {
        files::write(path, sheet.markdown().as_bytes())?;
    }
    match args.json {
        true => output::json(&sheet.summary())?,
        false => println!("{}", sheet.total()),
    }
    match sheet.problem() {
        None => Ok(()),
        Some(why) => Err(LabError::Test(why).into()),
    }
}

/// On the first kernel.
fn minimise(args: &Args, workspace: &Workspace, plan: &Plan) -> Result<()> {
    minimise::check(plan, args)?;
    let tester = Tester::ready(workspace, plan, &args.variants[0], args)?;
    let minimum = minimise::run(&tester, plan, args)?;
    match args.json {
        true => output::json(&minimum)?,
        false => println!("{minimum}"),
    }
    Ok(())
}
