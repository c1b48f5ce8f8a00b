// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sentences of a plan: its reason and its warnings.

use std::fmt;

use super::choose::Unit;
use super::decision::{Decision, NoGain};
use super::estimation::Estimation;
use super::range::ratio;
use super::run_time::MAX_SHARE;
use crate::REGION;
use crate::plan::{Estimate, Why};
use crate::profile::Source;
use crate::units::{format_count, format_ns, format_size};

impl fmt::Display for NoGain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            NoGain::NoneAsked => write!(f, "no region was asked for or none can be huge"),
            NoGain::NoLoser => write!(
                f,
                "THP is always: everything is huge already, and no region surely loses by it"
            ),
            NoGain::InReach { footprint, reach } => write!(
                f,
                "the program touches {}, and the second-level TLB reaches {} with 4 KiB pages",
                format_size(footprint),
                format_size(reach)
            ),
            NoGain::NoMiss => write!(f, "no TLB miss was recorded"),
            NoGain::NoRegion(None) => write!(f, "no region can be made huge"),
            NoGain::NoRegion(Some(why)) => write!(
                f,
                "no region can be made huge (most misses: {})",
                why.words()
            ),
            NoGain::NoneWorth {
                benefit_ns,
                cost_ns,
                is_unclear,
            } => {
                let what = match is_unclear {
                    true => "no region's gain can be told from zero",
                    false => "huge pages cost more than they save",
                };
                let (benefit, cost) = (format_ns(benefit_ns), format_ns(cost_ns));
                write!(f, "{what} (benefit about {benefit}, cost {cost})")
            }
            NoGain::Unclear => {
                write!(
                    f,
                    "the gain of all regions together cannot be told from zero"
                )
            }
            NoGain::TooLittle { median, high } => write!(
                f,
                "everything huge would save about {:.1} % of the run (at most {:.1} %), too little to show or to care",
                median * 100.0,
                high * 100.0
            ),
        }
    }
}

impl Estimation<'_> {
    /// Returns the reason for the plan, in one sentence.
    pub fn reason(
        &self,
        decision: &Decision,
        [saved, all_saved]: [Estimate; 2],
        speedup: Estimate,
    ) -> String {
        let picked = |unit: &&Unit| match decision {
            Decision::Huge => unit.is_huge(),
            Decision::Less => unit.verdict == Some(Why::CostsMore),
            Decision::Nothing(_) => false,
        };
        let regions: u64 = self
            .units
            .iter()
            .filter(picked)
            .map(|unit| unit.regions)
            .sum();
        let misses: f64 = self
            .units
            .iter()
            .filter(picked)
            .map(|unit| unit.misses)
            .sum();
        let all: u64 = self.units.iter().map(|unit| unit.regions).sum();
        let size = format_size(regions * REGION);
        let Estimate { median, low, high } = speedup;
        let expect = format!("expect {median:.2}x ({low:.2} to {high:.2})");
        let less = saved.median - all_saved.median;
        let others = match less > 0.0 {
            true => format!(
                " The regions left out would cost {} more than they save.",
                format_ns(less)
            ),
            false => String::new(),
        };
        let saved = format_ns(saved.median);
        match decision {
            Decision::Nothing(reason) => format!("Do nothing: {reason}."),
            Decision::Less => format!(
                "Keep huge pages away from {regions} of {all} regions ({size}), where they cost {saved} more than they save: {expect}."
            ),
            Decision::Huge => format!(
                "Make {regions} of {all} regions huge ({size}): they hold {:.0} % of the {} {} recorded, and save about {saved} a run; {expect}.{others}",
                100.0 * ratio(misses, self.misses),
                format_count(self.misses),
                match self.profile.source {
                    Source::Accessed => "page touches",
                    Source::Perf | Source::Sim => "misses",
                },
            ),
        }
    }

    /// Returns notes on the profile and the costs for the user.
    pub fn warnings(&self, left_out: usize) -> Vec<String> {
        let mut warnings = self.profile.warnings.clone();
        let mut warn = |applies: bool, text: String| {
            if applies {
                warnings.push(text);
            }
        };
        let profile = self.profile;
        warn(
            !profile.complete,
            "recording was cut short: counts and prediction are of a part of the run".to_owned(),
        );
        warn(
            !self.costs.complete,
            "costs are defaults: run tollfree calibrate for this machine's own".to_owned(),
        );
        warn(
            profile.source == Source::Accessed,
            "the profile counts touched pages, not misses: the prediction is very wide".to_owned(),
        );
        let timed = self.options.baseline_ns.is_some() || profile.native_ns.is_some();
        warn(
            !timed && self.baseline.is_some(),
            "no run was timed: its time is taken from its instructions, within a factor of three"
                .to_owned(),
        );
        warn(
            self.baseline.is_none(),
            "the time of a run is unknown: the speed-up is based on the share that other programs spend in walks".to_owned(),
        );
        let over = self
            .baseline
            .is_some_and(|run| self.overhead.median > MAX_SHARE * run.median);
        warn(
            timed && over,
            "the modelled translation overhead is more than the timed run: counts or costs are too high".to_owned(),
        );
        warn(
            left_out > 0,
            format!("{left_out} regions with fewer misses and verdict leave are not listed"),
        );
        warnings
    }
}
