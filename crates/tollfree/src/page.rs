// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report page: one HTML file that needs no network and no script.
//!
//! [`render`] is a function of [`PageData`] alone: equal data give an equal page.

use toll_model::plan::{Estimate, Plan};
use toll_model::profile::Profile;

/// Everything that a page can show. What is absent is left out of the page.
#[derive(Debug, Default)]
pub struct PageData<'a> {
    /// Name of the program, for people.
    pub program: String,
    /// The box on top. `None`: it is made from the profiles alone.
    pub verdict: Option<VerdictBox>,
    /// The profile without the plan; absent where tuning ended before it recorded one.
    pub before: Option<&'a Profile>,
    /// A second recording, under the plan.
    pub after: Option<&'a Profile>,
    pub plan: Option<&'a Plan>,
    pub measured: Option<Measured>,
    pub permanent: Vec<Permanent>,
    /// Kernel, CPU, memory, THP mode...: name and value.
    pub environment: Vec<(String, String)>,
    /// How it was measured, one sentence each.
    pub method: Vec<String>,
    /// What a reader must know; the profiles' and the plan's own warnings are added by [`render`].
    pub warnings: Vec<String>,
    /// Command line and environment variables; `None` unless the user asked to show them.
    pub command: Option<Command>,
}

/// The command as it was run.
#[derive(Debug, Clone)]
pub struct Command {
    pub arguments: Vec<String>,
    /// `NAME=value` each.
    pub environment: Vec<String>,
}

/// What to do, in plain words.
#[derive(Debug, Clone)]
pub struct VerdictBox {
    pub tone: Tone,
    /// One line: "Apply the plan: 1.31 times as fast".
    pub headline: String,
    /// Sentences below it.
    pub details: Vec<String>,
}

/// The mood of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Worth doing.
    Apply,
    /// Nothing to gain.
    DoNothing,
    /// It could not be told, or the run is incomplete.
    Unsure,
}

/// The result of the A/B runs.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What was compared: "elapsed time", "CPU time", "requests per second".
    pub metric: String,
    /// Unit of the samples: "s".
    pub unit: String,
    /// True where a larger number is better (a `--metric`).
    pub larger_is_better: bool,
    /// Of every interval, 0..1.
    pub confidence: f64,
    /// Rounds in which each arm ran once.
    pub pairs: usize,
    /// In the order in which they are shown; the first is what the others are compared with.
    pub arms: Vec<Arm>,
    /// Smallest relative effect that these runs could have seen (0.01 is 1 %).
    pub smallest_visible: Option<f64>,
    /// Counters per arm, for the chart of counters.
    pub counters: Vec<Counter>,
}

/// One way of running the program.
#[derive(Debug, Clone)]
pub struct Arm {
    /// "none", "plan", "all", "never", or the name of a permanent change.
    pub name: String,
    /// For people: "as it is run today".
    pub meaning: String,
    /// One number for each run, in [`Measured::unit`].
    pub samples: Vec<f64>,
    pub median: f64,
    /// Interval of the median.
    pub low: f64,
    pub high: f64,
    /// Time of the first arm / time of this one, with its interval; `None` for the first arm.
    pub speedup: Option<Estimate>,
    /// What the plan predicted for this arm, with its 80 % interval.
    pub predicted: Option<Estimate>,
}

/// A number that each arm has one of, such as page faults.
#[derive(Debug, Clone)]
pub struct Counter {
    pub name: String,
    /// How a value is written.
    pub unit: CounterUnit,
    /// Median per arm, in the order of [`Measured::arms`]; `None` where it was not measured.
    pub values: Vec<Option<f64>>,
}

/// What the values of a [`Counter`] are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterUnit {
    Count,
    Seconds,
    Bytes,
}

/// A change that makes the result permanent without tollfree.
#[derive(Debug, Clone)]
pub struct Permanent {
    /// "glibc: huge pages for malloc".
    pub title: String,
    /// What to paste, as it is.
    pub paste: String,
    /// Where it goes and what else it does.
    pub note: String,
    /// Measured speed-up of exactly this change; `None`: not measured, and the page says so.
    pub speedup: Option<Estimate>,
}
