// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab power-cuts`: files in persistent memory are changed while the guest is killed.
//!
//! Guests change them in turn by the kernel, which has mounted it, and offline by `tollfree morsel`.
//! What the guest's caches had is lost with it. The memory behind /dev/pmem0 is a file of the host,
//! which is read after each cut; the next guest goes on with it, and its kernel mounts it first.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use serde::Serialize;
use toll_model::random::Random;

use super::persistent::{Files, How, PMEM_MIB, Tally, range};
use crate::error::LabError;
use crate::files;
use crate::guest::{Guest, Job, Machine, Program};
use crate::kernel::{Built, Variant, build};
use crate::output;
use crate::workspace::Workspace;

const EXAMPLE: &str = "\
Example:
  toll-lab power-cuts --cuts 500

A guest makes files in /dev/pmem0 and removes them: every other one mounts it and writes, maps, seals
and renames files; the others use `tollfree morsel put`. It is killed at a random time, and what it
has left is checked: no damage, each finished operation is there, and an unfinished one is there as a
whole or not at all. The next guest mounts it, reads all files, and goes on. About 5 s for each cut.";

/// Kill guests that change files in persistent memory, and check what is left
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// Kernel variant
    #[arg(value_name = "VARIANT", default_value = "tollfree")]
    variant: String,
    /// Number of cuts
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    cuts: u32,
    /// Seed of the times of the cuts (default: random)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Inject this bug, which a cut has to find (only in tollfree-debug)
    #[arg(long, value_name = "NAME")]
    plant: Option<String>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// Memory of the guests in turn. QEMU puts persistent memory behind all other: at 4 and 6 GiB.
const MEMORY_MIB: [u32; 2] = [512, 4096];
/// The time of a cut, from when the guest begins its work.
const WINDOW: Duration = Duration::from_secs(4);

/// What the cuts showed.
#[derive(Debug, Serialize)]
pub struct Figures {
    pub seed: u64,
    pub power_cuts: u32,
    /// Cuts that lost something. The first ends the run.
    pub lost: u64,
    #[serde(flatten)]
    pub tally: Tally,
    #[serde(skip)]
    error: Option<LabError>,
}

impl Figures {
    /// # Errors
    /// What was lost.
    pub fn conclude(self) -> Result<()> {
        self.error.map_or(Ok(()), |error| Err(error.into()))
    }
}

pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let seed = args.seed.unwrap_or_else(new_seed);
    let plant = args.plant.as_deref();
    let figures = cut(&workspace, &args.variant, args.cuts, seed, plant)?;
    if let Some(plant) = plant {
        return found(plant, figures);
    }
    if args.json {
        output::json(&figures)?;
    } else {
        print(&figures);
    }
    figures.conclude()
}

fn print(figures: &Figures) {
    println!(
        "{} power cuts (seed {}), {} in the middle of an operation: {} operations done before \
         them, {} files read after them, {} lost",
        figures.power_cuts,
        figures.seed,
        figures.tally.interrupted,
        figures.tally.done,
        figures.tally.files,
        figures.lost
    );
}

/// Cuts the power of `cuts` guests in turn, or until one has lost something. With `plant`, of guests
/// that have this bug.
pub fn cut(
    workspace: &Workspace,
    variant: &str,
    cuts: u32,
    seed: u64,
    plant: Option<&str>,
) -> Result<Figures> {
    let variant = Variant::find(workspace, variant, &[])?;
    let built = build(workspace, &variant)?;
    let mut programs = Program::installed("busybox")?;
    programs.extend(Program::installed("tollfree")?);
    programs.push(Program::compiled(workspace, "persist")?);
    let directory = workspace.cache.join("power-cuts");
    let _lock = files::lock(&files::with_suffix(&directory, ".lock"))?;
    let pmem = directory.with_extension("pmem");
    new_file(&pmem)?;
    let all = Cuts {
        workspace,
        built: &built,
        programs: &programs,
        directory: &directory,
        pmem: &pmem,
        plant,
    };
    all.cut(cuts, seed)
}

/// Whether a cut has found a bug.
fn found(plant: &str, figures: Figures) -> Result<()> {
    match figures.error {
        None => Err(LabError::Test(format!("{plant} is not found")).into()),
        Some(LabError::Guest { why, .. }) if is_loss(&why) => {
            println!("{plant} found: {why}");
            Ok(())
        }
        Some(error) => Err(error.into()),
    }
}

/// Whether the memory has shown this, and not the guest.
fn is_loss(why: &str) -> bool {
    why.starts_with("power cut ") && !why.contains("the guest reports: bad")
}

/// A new file of zeros for the persistent memory.
pub fn new_file(path: &Path) -> Result<()> {
    let file = File::create(path).and_then(|file| file.set_len(u64::from(PMEM_MIB) << 20));
    file.with_context(|| path.display().to_string())
}

struct Cuts<'a> {
    workspace: &'a Workspace,
    built: &'a Built,
    programs: &'a [Program],
    directory: &'a Path,
    pmem: &'a Path,
    plant: Option<&'a str>,
}

impl Cuts<'_> {
    fn cut(&self, count: u32, seed: u64) -> Result<Figures> {
        let bar = output::progress("power cuts: booting");
        let mut random = Random::new(seed);
        let mut files = Files::default();
        let mut figures = Figures {
            seed,
            power_cuts: 0,
            lost: 0,
            tally: Tally::default(),
            error: None,
        };
        let boot = self.boot_time()?;
        while figures.power_cuts < count && figures.lost == 0 {
            let number = figures.power_cuts;
            bar.set_message(format!("power cut {number} of {count}"));
            let after = boot + WINDOW.mul_f64(random.unit());
            let how = match self.plant {
                None => How::of(number),
                Some(_) => How::Mounted,
            };
            let memory = MEMORY_MIB[number as usize / 2 % MEMORY_MIB.len()];
            let console = self.cut_one(&files, after, how, memory)?;
            figures.power_cuts += 1;
            if let Err(why) = self.check(&mut files, &console, &mut figures.tally) {
                figures.lost = 1;
                figures.error = Some(self.failed(number, seed, why, &console));
            }
        }
        Ok(figures)
    }

    /// Makes an empty range. Returns the time until a guest begins its work.
    fn boot_time(&self) -> Result<Duration> {
        let begun = Instant::now();
        let jobs = [Job::shell("boot", "tollfree morsel mkfs /dev/pmem0")];
        self.guest(&jobs, Duration::from_secs(600), MEMORY_MIB[1])
            .run(self.workspace)?;
        Ok(begun.elapsed())
    }

    fn cut_one(&self, files: &Files, after: Duration, how: How, memory: u32) -> Result<String> {
        let jobs = [Job::shell("work", &files.script(how, self.plant))];
        self.guest(&jobs, after, memory).cut(self.workspace)
    }

    fn guest<'a>(&'a self, jobs: &'a [Job], limit: Duration, memory: u32) -> Guest<'a> {
        Guest {
            image: &self.built.image,
            machine: Machine {
                pmem_mib: PMEM_MIB,
                ..Machine::plain(1, memory)
            },
            append: &[],
            programs: self.programs,
            disks: &[],
            pmem: Some(self.pmem),
            jobs,
            limit,
            preset: None,
            lines: false,
            adversary: false,
            stores: false,
            directory: self.directory,
        }
    }

    fn check(&self, files: &mut Files, console: &str, tally: &mut Tally) -> Result<(), String> {
        let image = range(self.pmem).map_err(|error| error.to_string())?;
        files.note(console, tally)?;
        files.check(&image, tally)
    }

    /// Keeps what a cut has left.
    fn failed(&self, number: u32, seed: u64, why: String, console: &str) -> LabError {
        let kept = self.directory.with_extension("lost");
        let _ = fs::copy(self.pmem, &kept);
        LabError::Guest {
            why: format!(
                "power cut {number}, seed {seed}: {why} (the memory: {})",
                kept.display()
            ),
            console: self.directory.join("console"),
            tail: files::last_lines(console, 15),
        }
    }
}

/// A seed that was not used before.
pub fn new_seed() -> u64 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    since.as_nanos() as u64
}
