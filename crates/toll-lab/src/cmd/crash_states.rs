// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab crash-states`: the states of persistent memory that a crash can leave, and whether the
//! bugs that are planted in the writer, the reader and the recovery are found by them.

mod kernel;
mod recording;

use anyhow::Result;
use clap::Args as ClapArgs;
use serde::Serialize;
use toll_image::crash::{Report, Violation, all};
use toll_image::fault::Fault;

pub use self::kernel::examine;
use crate::error::LabError;
use crate::output;
use crate::workspace::Workspace;

const EXAMPLE: &str = "\
Examples:
  toll-lab crash-states --json
  toll-lab crash-states --kernel tollfree

Of each operation of the format, the states that x86 allows after a crash are made: of each cache
line, the stores up to any point since its last flush that a fence followed. Each is recovered, with
a second crash at any point of the recovery, and compared with a model: a finished operation is
there, and an unfinished one is there or not. All sequences of up to three operations over two files
and a directory, then random ones. Where a fence has too many states, a sample is taken, and its
share is printed. Boots no guest.

With --kernel, the operations are those of a guest, which mounts the memory and creates, writes, maps,
synchronizes, seals, renames and removes files. All its stores to the memory, its flushes and fences
are recorded. Some of the states are then mounted by the kernel. About 1 minute for 14 operations.";

/// Examine the states that a crash of the format's operations can leave
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// Go on with random sequences until N states are examined
    #[arg(long, value_name = "N", default_value_t = 0)]
    states: u64,
    /// Examine what this kernel variant does, instead of the format's operations
    #[arg(long, value_name = "VARIANT", conflicts_with = "states")]
    kernel: Option<String>,
    /// Number of operations of the kernel
    #[arg(long, value_name = "N", default_value_t = 14, requires = "kernel", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    operations: u32,
    /// Inject this bug, which a state has to show (only in tollfree-debug)
    #[arg(
        long,
        value_name = "NAME",
        requires = "kernel",
        conflicts_with = "json"
    )]
    plant: Option<String>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Default, Serialize)]
pub struct Figures {
    pub sequences: u64,
    /// States after a crash, and after a second one in the recovery.
    pub crash_states: u64,
    /// Fences, and those of them with too many states to examine each.
    pub fences: u64,
    pub sampled: u64,
    /// States that are wrong. The search ends at the first.
    pub lost: u64,
    pub planted: u64,
    pub caught: u64,
    pub bugs: Vec<Bug>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation: Option<String>,
}

/// A planted bug.
#[derive(Debug, Serialize)]
pub struct Bug {
    pub name: String,
    /// States until it was found, and how; nothing if it was not.
    pub states: Option<u64>,
    pub found: Option<String>,
}

pub fn run(args: &Args) -> Result<()> {
    if let Some(variant) = &args.kernel {
        return run_kernel(args, variant);
    }
    let figures = examined(args.states);
    match args.json {
        true => output::json(&figures)?,
        false => print(&figures),
    }
    figures.conclude()
}

fn run_kernel(args: &Args, variant: &str) -> Result<()> {
    let workspace = Workspace::find()?;
    let plant = args.plant.as_deref();
    let figures = examine(&workspace, variant, args.operations, plant)?;
    match (plant, &figures.violation) {
        (Some(plant), Some(what)) => {
            println!("{plant} found: {what}");
            return Ok(());
        }
        (Some(plant), None) => {
            return Err(LabError::Test(format!("{plant} is not found")).into());
        }
        (None, _) if args.json => output::json(&figures)?,
        (None, _) => figures.print(),
    }
    figures.conclude()
}

/// Examines at least `states`.
pub fn examined(states: u64) -> Figures {
    let bar = output::progress("crash states");
    let mut figures = Figures::default();
    if let Err(violation) = figures.search(states, &|length| {
        bar.set_message(format!("crash states: sequences of {length} operations"));
    }) {
        figures.lost = 1;
        figures.crash_states += violation.states;
        figures.violation = Some(violation.to_string());
    }
    for fault in Fault::ALL {
        bar.set_message(format!("crash states: {fault:?}"));
        figures.plant(fault);
    }
    figures
}

impl Figures {
    fn search(&mut self, states: u64, begins: &dyn Fn(usize)) -> Result<(), Box<Violation>> {
        for length in 1..=all::LENGTH {
            begins(length);
            self.add(&all::sequences(length)?);
        }
        let mut seed = 0;
        loop {
            begins(150);
            self.add(&all::long(seed..seed + 10)?);
            self.add(&all::with_blocks(seed..seed + 3)?);
            seed += 10;
            if self.crash_states >= states {
                return Ok(());
            }
        }
    }

    fn add(&mut self, report: &Report) {
        self.sequences += report.sequences;
        self.crash_states += report.all();
        self.fences += report.fences;
        self.sampled += report.sampled;
    }

    fn plant(&mut self, fault: Fault) {
        let found = all::violation(fault);
        self.planted += 1;
        self.caught += u64::from(found.is_some());
        self.bugs.push(Bug {
            name: format!("{fault:?}"),
            states: found.as_ref().map(|it| it.states),
            found: found.map(|it| it.to_string()),
        });
    }

    /// # Errors
    /// [`LabError::Test`] for a wrong state, or a bug that was not found.
    pub fn conclude(&self) -> Result<()> {
        let missed = self.bugs.iter().filter(|bug| bug.found.is_none());
        let missed = missed.map(|bug| format!("planted bug {} was not found", bug.name));
        let all: Vec<String> = self.violation.iter().cloned().chain(missed).collect();
        match all.is_empty() {
            true => Ok(()),
            false => Err(LabError::Test(all.join("\n")).into()),
        }
    }
}

fn print(figures: &Figures) {
    println!("{:>9}  {:24} found by", "states", "planted bug");
    for bug in &figures.bugs {
        let states = bug.states.map_or("-".to_owned(), |it| it.to_string());
        let found = bug.found.as_deref().unwrap_or("not found");
        println!("{states:>9}  {:24} {found}", bug.name);
    }
    println!(
        "\n{} sequences, {} states, {} of them wrong; of {} fences {} by a sample of their states; \
         {} of {} planted bugs found",
        figures.sequences,
        figures.crash_states,
        figures.lost,
        figures.fences,
        figures.sampled,
        figures.caught,
        figures.planted
    );
}
