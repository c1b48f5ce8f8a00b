// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that a page can show.

use toll_model::plan::{Estimate, Plan};
use toll_model::profile::Profile;

/// Everything that a page can show. Absent parts are omitted.
#[derive(Debug, Default)]
pub struct PageData<'a> {
    /// Display name of the program.
    pub program: String,
    /// The box at the top. `None`: derived from the profiles alone.
    pub verdict: Option<VerdictBox>,
    /// The profile without the plan; absent if tuning ended before recording one.
    pub before: Option<&'a Profile>,
    /// A second recording, under the plan.
    pub after: Option<&'a Profile>,
    pub plan: Option<&'a Plan>,
    pub measured: Option<Measured>,
    pub permanent: Vec<Permanent>,
    /// Kernel, CPU, memory, THP mode...: name and value.
    pub environment: Vec<(String, String)>,
    /// How it was measured, one sentence per item.
    pub method: Vec<String>,
    /// Warnings for the reader; [`super::render`] adds those of the profiles and the plan.
    pub warnings: Vec<String>,
    /// Command line and environment variables; `None` unless the user asked for them.
    pub command: Option<Command>,
}

/// The command that was run.
#[derive(Debug, Clone)]
pub struct Command {
    pub arguments: Vec<String>,
    /// One `NAME=value` per item.
    pub environment: Vec<String>,
}

/// The recommendation in plain words.
#[derive(Debug, Clone)]
pub struct VerdictBox {
    pub tone: Tone,
    /// One line: "Apply the plan: 1.31 times as fast".
    pub headline: String,
    /// Sentences below it.
    pub details: Vec<String>,
}

/// The category of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Worth doing.
    Apply,
    /// Nothing to gain.
    DoNothing,
    /// Undecided, or the run is incomplete.
    Unsure,
}

/// The result of the interleaved runs.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What was compared: "elapsed time", "CPU time", "requests per second".
    pub metric: String,
    /// Unit of the samples: "s".
    pub unit: String,
    /// True where a larger number is better (a `--metric`).
    pub larger_is_better: bool,
    /// Confidence of every interval, 0..1.
    pub confidence: f64,
    /// Rounds in which each variant ran once.
    pub pairs: usize,
    /// In display order; the others are compared with the first.
    pub variants: Vec<Variant>,
    /// Smallest relative effect that such runs detect with a probability of 80 % (0.01 is 1 %).
    pub smallest_visible: Option<f64>,
    /// Counters per variant, for the chart of counters.
    pub counters: Vec<Counter>,
}

/// One way of running the program.
#[derive(Debug, Clone)]
pub struct Variant {
    /// "none", "plan", "all", "never", or the name of a permanent change.
    pub name: String,
    /// Display text: "as it is run today".
    pub meaning: String,
    /// One value per run, in [`Measured::unit`].
    pub samples: Vec<f64>,
    pub median: f64,
    /// Interval of the median.
    pub low: f64,
    pub high: f64,
    /// Time of the first variant / time of this one, with its interval; `None` for the first variant.
    pub speedup: Option<Estimate>,
    /// The plan's prediction for this variant, with its 80 % interval.
    pub predicted: Option<Estimate>,
}

/// A counter with one value per variant, such as page faults.
#[derive(Debug, Clone)]
pub struct Counter {
    pub name: String,
    /// The unit of the values.
    pub unit: CounterUnit,
    /// Median per variant, in the order of [`Measured::variants`]; `None` if not measured.
    pub values: Vec<Option<f64>>,
}

/// The unit of a [`Counter`].
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
    /// The text to paste.
    pub paste: String,
    /// Where to apply it, and its other effects.
    pub note: String,
    /// Measured speed-up of exactly this change; `None`: not measured, as the page then shows.
    pub speedup: Option<Estimate>,
}
