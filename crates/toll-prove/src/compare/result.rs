// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of all runs: intervals and a verdict.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use toll_act::error::UserError;
use toll_model::pages::PageKind;
use toll_model::plan::Estimate;
use toll_model::stats::{self, Interval, Verdict};

use super::invocation::Invocation;
use super::outputs::OutputCheck;
use super::sample::{Resource, Sample};
use super::schedule::Stopped;
use super::warm::Warming;

/// The `format` field of a comparison.
pub const FORMAT: &str = "tollfree-comparison";
/// The version of the format that this build writes.
pub const VERSION: u32 = 1;

/// The result of interleaved runs, as `compare --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub format: String,
    pub version: u32,
    /// Path or name of the program, as given.
    pub program: String,
    /// The quantity of the verdict; all `speedup*` fields are ratios of it.
    pub resource: Resource,
    /// Confidence of every measured interval, 0..1.
    pub confidence: f64,
    /// For the plan, or the second command; without them, for everything huge.
    pub verdict: Verdict,
    /// Counted rounds; each ran every variant once.
    pub pairs: u32,
    /// Time without / with the plan, or of the first / second command; absent without them, or with
    /// fewer than two pairs.
    pub speedup: Option<Interval>,
    /// The same for everything huge.
    pub speedup_all: Option<Interval>,
    /// The plan's prediction of this program's speed-up, with its 80 % interval.
    pub predicted_speedup: Option<Estimate>,
    /// The same ratio as for `verdict`, of user plus system time.
    pub cpu_speedup: Option<Interval>,
    /// The smallest |speedup - 1| that such runs detect with a probability of 80 %.
    pub smallest_visible_effect: Option<f64>,
    /// Total pairs that would settle a "cannot tell" with a probability of 80 %, if the noise and
    /// the median do not change.
    pub pairs_to_settle: Option<u32>,
    pub stopped: Stopped,
    /// The most memory touched before a run, bytes; 0 if none was.
    #[serde(default)]
    pub warmed_bytes: u64,
    /// Whether memory was warmed before runs, and why; in a comparison of `tune`, the findings have
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warming: Option<Warming>,
    /// False if the runs were interrupted.
    pub complete: bool,
    /// The common exit code of all runs; absent without a complete run.
    pub status: Option<i32>,
    pub output: OutputCheck,
    /// The others are compared with the first.
    #[serde(alias = "arms")]
    pub variants: Vec<VariantResult>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The allowed slow-down of the second variant against the first, percent; absent if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_slowdown_percent: Option<f64>,
    /// Whether a larger slow-down is proved; absent without a threshold or an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_slow: Option<bool>,
}

/// The results of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantResult {
    pub name: String,
    pub meaning: String,
    /// The kinds of large pages that it adds, as far as they are known.
    #[serde(default)]
    pub pages: Vec<PageKind>,
    /// In a comparison of two commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// Time of the first variant / time of this one; absent for the first variant.
    pub speedup: Option<Interval>,
    /// The same for CPU time.
    pub cpu_speedup: Option<Interval>,
    /// Whether the gain holds although several variants were judged (Holm, 1979): all gains called
    /// proved are real with a confidence of 95 %. Absent for a variant that cannot be applied as it
    /// is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven: Option<bool>,
    /// Medians over the counted runs; absent without one.
    pub median: Option<Medians>,
    /// Resident memory minus that of the first variant, bytes.
    pub bloat: Option<i64>,
    /// Whether that is within the limit for a gain. Absent without a limit, or if the variant is
    /// not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affordable: Option<bool>,
    /// Every run, including the first round.
    pub runs: Vec<Sample>,
}

/// One of two compared commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// As a line of the shell.
    pub line: String,
    /// The variables that it gets in addition.
    pub env: BTreeMap<String, String>,
}

impl Command {
    pub(super) fn of(invocation: &Invocation) -> Command {
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        let set = invocation.env().iter();
        Command {
            line: invocation.line().to_owned(),
            env: set.map(|(name, value)| (text(name), text(value))).collect(),
        }
    }
}

/// Medians of a variant's counted runs. Times are seconds, sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Medians {
    pub elapsed: f64,
    pub user: f64,
    pub sys: f64,
    pub cpu: f64,
    pub minor_faults: f64,
    pub major_faults: f64,
    /// Of the sampled runs, those of the first round; see `huge_samples`.
    pub huge_peak: f64,
    /// Samples of huge-page-backed memory; if it is 0, `huge_peak` is 0 and meaningless.
    #[serde(default)]
    pub huge_samples: u64,
    pub max_rss: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<f64>,
}

impl VariantResult {
    /// Whether it can be advised: its gain is proved, and within the memory limit.
    pub fn gains(&self) -> bool {
        self.proven == Some(true) && self.affordable != Some(false)
    }
}

impl Comparison {
    /// The interval of the verdict.
    pub fn main(&self) -> Option<Interval> {
        self.variants.get(1)?.speedup
    }

    /// Time of the variant `before` / time of the variant `after`, over the counted rounds.
    pub fn between(&self, before: &str, after: &str) -> Option<Interval> {
        let times = |name: &str| -> Option<Vec<f64>> {
            let runs = self.variant(name)?.runs.iter();
            let counted = runs.filter(|run| run.round > 0).take(self.pairs as usize);
            Some(counted.map(|run| self.resource.time_of(run)).collect())
        };
        let (before, after) = (times(before)?, times(after)?);
        if before.len() < 2 {
            return None;
        }
        stats::ratio_of_rounds(&before, &after, self.confidence)
    }

    /// Applies a threshold: a slow-down is proved if the whole interval is beyond it.
    pub fn allow_slowdown(&mut self, percent: Option<f64>) {
        let slowest = percent.map(|percent| 1.0 / (1.0 + percent / 100.0));
        self.allowed_slowdown_percent = percent;
        self.too_slow = slowest
            .zip(self.main())
            .map(|(slowest, interval)| interval.high < slowest);
    }

    /// Resident memory of a variant above that of the first one, in percent of the first; absent if
    /// the first is unknown.
    pub(crate) fn growth_percent(&self, variant: &VariantResult) -> Option<f64> {
        let first = self.variants.first()?.median.as_ref()?.max_rss;
        let bloat = variant.bloat?;
        (first > 0.0).then(|| bloat as f64 / first * 100.0)
    }

    /// Marks the judged variants within the memory limit, in percent.
    pub(crate) fn allow_growth(&mut self, percent: f64) {
        let affordable = |variant: &VariantResult| {
            variant.proven?;
            Some(self.growth_percent(variant)? <= percent)
        };
        let marks: Vec<_> = self.variants.iter().map(affordable).collect();
        for (variant, mark) in self.variants.iter_mut().zip(marks) {
            variant.affordable = mark;
        }
    }

    /// The verdict on the CPU time of the main variant.
    pub(crate) fn cpu_verdict(&self) -> Verdict {
        self.cpu_speedup
            .map_or(Verdict::CannotTell, |interval| interval.verdict())
    }

    /// Whether two commands were compared, and not the variants of one.
    pub fn compares_commands(&self) -> bool {
        let command = |variant: &VariantResult| variant.command.is_some();
        self.variants.iter().any(command)
    }

    /// Whether the time limit ended the runs.
    pub(crate) fn ran_out_of_time(&self) -> bool {
        matches!(self.stopped, Stopped::Time | Stopped::TooLong)
    }

    pub fn variant(&self, name: &str) -> Option<&VariantResult> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// Returns an error unless each variant ran, with the same output.
    ///
    /// # Errors
    /// [`UserError::Interrupted`]; [`UserError::Usage`] if the time limit was too short for a round;
    /// as [`Comparison::check_output`].
    pub fn check(&self, any_output: bool, within: Duration) -> Result<()> {
        if self.stopped == Stopped::Interrupted {
            return Err(UserError::Interrupted.into());
        }
        self.check_output(any_output)?;
        if self.pairs == 0 {
            return Err(UserError::Usage(format!(
                "one round of {} runs does not fit into {} s; raise --within",
                self.variants.len(),
                within.as_secs_f64()
            ))
            .into());
        }
        Ok(())
    }

    /// Returns an error if the program's output differs between the variants.
    pub(crate) fn check_output(&self, any_output: bool) -> Result<()> {
        match &self.output {
            OutputCheck::DiffersBetweenVariants {
                variant,
                difference,
            } if !any_output => {
                let advice = match self.compares_commands() {
                    true => "",
                    false => "Do not use this plan until the reason is known. ",
                };
                anyhow::bail!(
                    "THE PROGRAM'S OUTPUT DIFFERS in variant {variant}, and is the same in all runs of each variant: {difference}. \
                     {advice}If the program prints times or rates, which may differ, add --any-output"
                )
            }
            _ => Ok(()),
        }
    }
}
