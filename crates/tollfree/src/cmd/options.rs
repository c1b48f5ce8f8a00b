// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that several commands have: the load of a server, what estimates are based on, and the
//! values of others.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use toll_act::error::UserError;
use toll_act::files;
use toll_linux::{Root, calibrate};
use toll_model::estimate::{Options, estimate};
use toll_model::losses::EventCosts;
use toll_model::plan::Plan;
use toll_model::profile::Profile;
use toll_model::units::parse_duration;
use toll_observe::machine;
use toll_prove::compare::load::Load;
use toll_prove::compare::metric::Metric;

/// How a server is loaded.
#[derive(Debug, Clone, clap::Args)]
pub struct LoadArgs {
    /// The program is a server: observe it for this long once it is ready
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub for_: Option<Duration>,
    /// The load to drive against a server (a shell command); its elapsed time is compared
    #[arg(long, value_name = "CMD")]
    pub workload: Option<String>,
    /// A command that succeeds once the server is up
    #[arg(long, value_name = "CMD")]
    pub ready: Option<String>,
    /// Compare the number that REGEX captures from the workload's output instead of its time
    ///
    /// The last match counts. Larger is better, unless the group is named (?<time>...) or a unit
    /// of time follows the number.
    #[arg(long, value_name = "REGEX", requires = "workload")]
    pub metric: Option<String>,
}

impl LoadArgs {
    /// `None` for a program that ends by itself.
    ///
    /// # Errors
    /// [`UserError::Usage`] for an expression that cannot be read, and for --ready alone.
    pub fn load(&self) -> Result<Option<Load>> {
        let metric = self.metric.as_deref().map(Metric::new).transpose()?;
        let server = self.workload.is_some() || self.for_.is_some();
        if self.ready.is_some() && !server {
            let message = "--ready is for servers: add --workload CMD or --for TIME";
            return Err(UserError::Usage(message.to_owned()).into());
        }
        Ok(server.then(|| Load {
            workload: self.workload.clone(),
            ready: self.ready.clone(),
            window: self.for_,
            metric,
        }))
    }
}

/// The costs of this machine's events, or the defaults.
pub fn event_costs(root: &Root) -> EventCosts {
    let table = calibrate::load(&calibrate::key(root));
    EventCosts::of(&table.unwrap_or_else(calibrate::default_costs))
}

/// Parses a threshold in percent, at least 0: `2`, `2%`.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.trim_end().parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("is not a percentage of 0 or more".to_owned()),
    }
}

/// What estimates are based on, besides the profile.
#[derive(Debug, Clone, clap::Args)]
pub struct EstimateArgs {
    /// CPU time of one run without the plan, if known (1.5s, 300ms)
    #[arg(long, value_name = "TIME")]
    pub baseline: Option<String>,
    /// Cost table (default: this machine's, calibrated or preset)
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
}

impl EstimateArgs {
    /// Options from the command line and the machine.
    ///
    /// # Errors
    /// [`UserError::Usage`] if --baseline is not a time above 0.
    pub fn options(&self) -> Result<Options, UserError> {
        let time = self.baseline.as_deref().map(parse_duration).transpose();
        let time = time.map_err(|error| UserError::Usage(error.to_string()))?;
        if time.is_some_and(|time| time.is_zero()) {
            return Err(UserError::Usage("--baseline: must be above 0".to_owned()));
        }
        Ok(Options {
            baseline_ns: time.map(|time| time.as_nanos() as f64),
            ..machine::estimate_options()
        })
    }

    /// Reads the profile, and estimates its regions.
    ///
    /// # Errors
    /// If the profile or the cost table cannot be read.
    pub fn estimate(&self, profile: &Path, options: Options) -> Result<(Profile, Plan)> {
        let profile = files::read(profile, |bytes| Profile::from_json(bytes))?;
        let costs = machine::costs(self.costs.as_deref())?;
        let plan = estimate(&profile, &costs, options);
        Ok((profile, plan))
    }
}
