// SPDX-License-Identifier: MIT OR Apache-2.0
//! The huge pages of a program without tollfree, and their effect.

use serde::{Deserialize, Serialize};
use toll_linux::calibrate::{Tail, Tails};
use toll_linux::sys::Mode;
use toll_model::numbers;
use toll_model::plan::Estimate;
use toll_model::stats::{Interval, Verdict};
use toll_model::units::format_ns;
use toll_observe::observation::{Observation, is_mostly_huge};

use crate::compare::Comparison;
use crate::ratio::with_interval;

/// The huge-page settings of the machine and this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// The setting for 2 MiB pages; `None` if the kernel has no transparent huge pages.
    pub mode: Option<Mode>,
    /// Whether huge pages are disabled for programs that tollfree starts (PR_SET_THP_DISABLE).
    pub inherits_off: bool,
    /// Whether a program can be run as on a machine with the setting `madvise`.
    pub can_limit: bool,
}

impl Host {
    /// The settings of this machine and process.
    pub fn here() -> Host {
        let thp = toll_linux::sys::Thp::read(&toll_linux::Root::system());
        Host {
            mode: thp.map(|thp| thp.region_mode()),
            inherits_off: toll_act::thp::is_off(),
            can_limit: toll_act::thp::can_be_advised_only(),
        }
    }

    /// Whether no advice makes memory huge here.
    pub fn is_never(&self) -> bool {
        self.mode == Some(Mode::Never)
    }

    /// Whether all memory is huge here without advice.
    pub fn is_always(&self) -> bool {
        self.mode == Some(Mode::Always)
    }
}

/// What disabled huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchedOff {
    /// The program itself, or its wrapper.
    Program,
    /// The parent of tollfree: all variants except the first enable them again.
    Parent,
}

/// The slow tail of page fault times: first touches of tollfree's own memory on this machine, wall
/// time. Times are ns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FaultTail {
    pub faults: u64,
    /// 99th percentile.
    pub p99_ns: f64,
    pub longest_ns: f64,
}

impl From<Tail> for FaultTail {
    fn from(tail: Tail) -> FaultTail {
        FaultTail {
            faults: tail.faults as u64,
            p99_ns: tail.p99,
            longest_ns: tail.longest,
        }
    }
}

impl FaultTail {
    fn text(&self) -> String {
        format!(
            "{} for 99 of 100 and {} for the longest of {}",
            format_ns(self.p99_ns),
            format_ns(self.longest_ns),
            self.faults
        )
    }
}

/// The estimated gain of a plan on a machine at `madvise`. Not measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AtMadvise {
    pub planned_bytes: u64,
    /// Time as it is / time there, 80 % interval.
    pub speedup: Estimate,
}

impl AtMadvise {
    fn text(&self) -> String {
        let Estimate { median, low, high } = self.speedup;
        format!(
            ". With THP madvise (as root: `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`) \
             a plan of {} is estimated to make it {median:.3} ({low:.3} to {high:.3}) times as fast \
             (80 % interval, not measured)",
            numbers::bytes(self.planned_bytes)
        )
    }
}

/// The huge pages of the program as it is run today.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Today {
    /// The machine's setting: `always`, `madvise`, `never`; absent if the kernel has none.
    pub thp: Option<String>,
    pub switched_off: Option<SwitchedOff>,
    /// Bytes of anonymous memory, and of its huge-page-backed part, at the maximum.
    pub anonymous_bytes: u64,
    pub huge_bytes: u64,
    /// Time without any huge page / time as it is.
    pub gain: Option<Interval>,
    /// Resident memory as it is, minus that without huge pages; bytes.
    pub memory_cost: Option<i64>,
    /// Time without any huge page / time on a machine at `madvise`, under the plan.
    pub plan_only: Option<Interval>,
    /// The memory of that, as `memory_cost`.
    pub plan_only_memory_cost: Option<i64>,
    /// The estimate for a plan on a machine at `madvise`; only at `never`.
    #[serde(default)]
    pub at_madvise: Option<AtMadvise>,
    /// The tail of faults of huge pages, and of 4 KiB pages; only if the program has huge pages.
    #[serde(default)]
    pub huge_fault_tail: Option<FaultTail>,
    #[serde(default)]
    pub small_fault_tail: Option<FaultTail>,
}

impl Today {
    /// From the first observation.
    pub fn new(look: &Observation, host: &Host) -> Today {
        let switched_off = look.switched_off.then_some(match host.inherits_off {
            true => SwitchedOff::Parent,
            false => SwitchedOff::Program,
        });
        Today {
            thp: host.mode.map(|mode| mode.to_string()),
            switched_off,
            anonymous_bytes: look.anonymous,
            huge_bytes: look.huge,
            gain: None,
            memory_cost: None,
            plan_only: None,
            plan_only_memory_cost: None,
            at_madvise: None,
            huge_fault_tail: None,
            small_fault_tail: None,
        }
    }

    /// Adds the tails of page fault times of this machine.
    pub fn take_tails(&mut self, tails: Tails) {
        self.huge_fault_tail = tails.huge.map(FaultTail::from);
        self.small_fault_tail = tails.small.map(FaultTail::from);
    }

    /// Adds the result of a comparison with the variant `never`.
    pub fn learn(&mut self, comparison: &Comparison) {
        let bloat = |variant: &str| {
            comparison
                .variant(variant)
                .and_then(|variant| variant.bloat)
        };
        let never = bloat("never");
        self.gain = comparison.between("never", "none").or(self.gain);
        self.memory_cost = never.map(|never| -never).or(self.memory_cost);
        let planned = comparison.between("never", "plan-only");
        self.plan_only = planned.or(self.plan_only);
        let cost = bloat("plan-only")
            .zip(never)
            .map(|(plan, none)| plan - none);
        self.plan_only_memory_cost = cost.or(self.plan_only_memory_cost);
    }

    /// The state in one line.
    pub fn text(&self) -> String {
        match (self.switched_off, self.thp.as_deref()) {
            (Some(SwitchedOff::Parent), _) => {
                return "no huge pages: tollfree was started with them disabled \
                        (PR_SET_THP_DISABLE), and the program inherits that"
                    .to_owned();
            }
            (Some(SwitchedOff::Program), _) => {
                return "no huge pages: the program disables them for itself \
                        (PR_SET_THP_DISABLE), or its parent does"
                    .to_owned();
            }
            (None, Some("never")) if self.huge_bytes == 0 => {
                return "no huge pages: they are disabled on this machine (THP never)".to_owned();
            }
            _ => {}
        }
        let share = 100.0 * self.huge_bytes as f64 / self.anonymous_bytes.max(1) as f64;
        let already = if self.is_huge() { "already " } else { "" };
        let setting = self.thp.as_deref().unwrap_or("not in this kernel");
        format!(
            "{already}huge-page-backed: {:.0} % ({} of {}; THP {setting})",
            share.floor(),
            numbers::bytes(self.huge_bytes),
            numbers::bytes(self.anonymous_bytes)
        )
    }

    fn is_huge(&self) -> bool {
        is_mostly_huge(self.huge_bytes, self.anonymous_bytes)
    }

    /// The state, with the gain and the cost of huge pages now.
    pub fn now(&self) -> String {
        let Some(gain) = &self.gain else {
            return self.text();
        };
        let effect = match gain.verdict() {
            Verdict::Faster => "Huge pages make it faster now",
            Verdict::Slower => "Huge pages make it SLOWER now",
            Verdict::NoDifference => "Huge pages make no difference of 2 % or more now",
            Verdict::CannotTell => "The effect of huge pages is not yet known",
        };
        format!(
            "{}. {effect}: {} times as fast as without any{}{}",
            self.text(),
            with_interval(gain),
            memory(self.memory_cost),
            self.tails()
        )
    }

    /// The tail of first-touch times of a huge page and of a 4 KiB page.
    fn tails(&self) -> String {
        let Some(huge) = &self.huge_fault_tail else {
            return String::new();
        };
        let small = self.small_fault_tail.as_ref();
        let small = small.map_or(String::new(), |small| {
            format!("; of a 4 KiB page {}", small.text())
        });
        format!(
            ". The first touch of a huge page takes {} on this machine{small}",
            huge.text()
        )
    }

    /// The same, and the effect of a machine at `madvise`. `planned`: bytes of the plan, if there
    /// is one.
    pub fn answer(&self, planned: Option<u64>, host: &Host) -> String {
        self.now() + &self.elsewhere(planned, host)
    }

    /// The effect of the plan on a machine at `madvise`; empty if that is not the question.
    pub fn elsewhere(&self, planned: Option<u64>, host: &Host) -> String {
        if let Some(estimate) = &self.at_madvise {
            return estimate.text();
        }
        match (&self.plan_only, planned) {
            _ if !host.is_always() => String::new(),
            (Some(interval), Some(planned)) => format!(
                ". On a machine at madvise, the plan's {} alone would make it {} times as fast \
                 as without any{}",
                numbers::bytes(planned),
                with_interval(interval),
                memory(self.plan_only_memory_cost)
            ),
            _ if !host.can_limit => ". The effect of a plan on a machine at madvise cannot be \
                                     measured here: this needs Linux 6.18"
                .to_owned(),
            (_, Some(0)) => ". There is no plan for a machine at madvise".to_owned(),
            _ => String::new(),
        }
    }
}

/// The memory cost of huge pages.
fn memory(cost: Option<i64>) -> String {
    match cost {
        Some(cost @ 1..) => format!(", for {} more memory", numbers::bytes(cost as u64)),
        Some(_) => ", for no more memory".to_owned(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
