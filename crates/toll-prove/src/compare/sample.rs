// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measurements of one run of one variant, and how they compare.

use serde::{Deserialize, Serialize};

/// One run. Times are seconds, sizes are bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Round in which it ran; the first round, 0, only warms up.
    pub round: u32,
    /// Wall time of the program, or of the workload against a server.
    pub elapsed: f64,
    pub user: f64,
    pub sys: f64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub max_rss: u64,
    /// Largest huge-page-backed anonymous memory seen; 0 if the run was not sampled.
    pub huge_peak: u64,
    /// Samples of huge-page-backed memory. Only the first round is sampled: a sample costs a
    /// program with 4 KiB pages more time than one with huge pages.
    #[serde(default)]
    pub huge_samples: u64,
    /// The number captured by --metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<f64>,
    /// Exit code; 128 + the signal for a program killed by a signal.
    pub status: i32,
    /// Fingerprints of stdout and stderr; absent if the output is not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<[u64; 2]>,
    /// The first difference of the output from that of the first run.
    #[serde(skip)]
    pub difference: Option<String>,
}

/// The quantity that a verdict compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Wall time.
    Elapsed,
    /// User plus system time.
    Cpu,
    /// A captured number; smaller is better.
    MetricTime,
    /// A captured number; larger is better.
    MetricRate,
}

impl Resource {
    /// The sample's value as a time: smaller is better, and a ratio of two is a speed-up.
    pub fn time_of(self, sample: &Sample) -> f64 {
        match self {
            Resource::Elapsed => sample.elapsed,
            Resource::Cpu => sample.user + sample.sys,
            Resource::MetricTime => sample.metric.unwrap_or(f64::NAN),
            Resource::MetricRate => 1.0 / sample.metric.unwrap_or(f64::NAN),
        }
    }

    /// The sample's value as measured.
    pub fn value_of(self, sample: &Sample) -> f64 {
        match self {
            Resource::MetricRate => sample.metric.unwrap_or(f64::NAN),
            _ => self.time_of(sample),
        }
    }

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Elapsed => "elapsed time",
            Resource::Cpu => "CPU time",
            Resource::MetricTime => "the captured time",
            Resource::MetricRate => "the captured rate",
        }
    }
}

#[cfg(test)]
mod tests;
