// SPDX-License-Identifier: MIT OR Apache-2.0
//! The findings on a running process.

use serde::{Deserialize, Serialize};
use toll_act::messages;
use toll_act::permanent::{Candidate, GLIBC, candidates};
use toll_act::switch::{Shares, Unrestored};
use toll_linux::{Root, proc};
use toll_model::stats::{Interval, Verdict, ratio_of_medians, ratio_of_rounds};
use toll_model::{REGION, numbers};
use toll_observe::observation::Observation;

use super::SMALL_BEFORE;
use super::alternation::Ended;
use super::look::Look;
use crate::compare::schedule::CONFIDENCE;
use crate::compare::{Comparison, Sample};
use crate::ratio::with_interval;
use crate::tune::directory::Directory;
use crate::tune::findings::{Advice, Answer, Results};

/// Share of regions with the wrong page size from which a note reports it.
const ASTRAY: f64 = 0.02;

/// How the memory of a running process alternated, as `tune --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alternated {
    pub pid: u32,
    /// The compared quantity.
    pub measure: String,
    /// What has to hold so that it stands for the work.
    pub assumption: Option<String>,
    /// Length of a window; absent if a window is a run of the workload.
    pub window_seconds: Option<f64>,
    /// Time in the pages as they were before the first change / in huge pages. The windows are not
    /// interleaved. Absent if the memory was mostly huge, or without two windows of each.
    #[serde(default)]
    pub speedup_from_before: Option<Interval>,
    /// Units per second in huge pages / in 4 KiB pages; absent without a counter of progress.
    pub rate_speedup: Option<Interval>,
    /// Regions that alternated.
    pub regions: u64,
    /// Regions of the touched memory that could have; fewer alternate if changes take too long.
    pub selected_regions: u64,
    /// Bytes that were huge before.
    pub huge_before: u64,
    /// Bytes without a page in the selected regions before: making them huge allocates these.
    pub added_bytes: u64,
    /// Resident bytes that did not take part: not touched, forbidden or locked, shared or files.
    pub idle_bytes: u64,
    pub forbidden_bytes: u64,
    pub shared_bytes: u64,
    pub collapses: u64,
    pub splits: u64,
    pub refused: u64,
    pub refusal: Option<String>,
    /// Whether a thread of the process is stopped for each call (ptrace).
    pub stops: bool,
    /// The longest delay of the process by one call, the sum, and the sum as a share of the
    /// alternation's time.
    pub longest_pause_ns: u64,
    pub pauses_ns: u64,
    pub pauses_share: f64,
    /// CPU time of this process in these calls.
    pub pauses_cpu_ns: u64,
    /// Progress per second while page sizes change / in the windows.
    pub rate_while_changing: Option<f64>,
    /// Mean share of regions that had another page size at the end of a window.
    pub astray_share: f64,
    /// Whether the memory was left huge (--keep).
    pub kept: bool,
    /// Regions without their page size from before.
    pub unrestored_regions: u64,
    pub unrestored_reason: Option<String>,
}

/// What the conclusion needs besides the comparison.
pub(super) struct Context<'a> {
    pub pid: u32,
    pub look: &'a Look,
    pub directory: Option<&'a Directory>,
}

/// Sets the answer by the comparison of "never" and "all".
pub(super) fn conclude(
    results: &mut Results,
    comparison: Comparison,
    ended: Ended,
    context: &Context,
) {
    let look = context.look;
    let live = alternated(&comparison, &ended, context);
    let was_huge = look.is_mostly_huge();
    let found = &mut results.findings;
    found.notes.extend(notes(&live, &ended, context));
    let (before, interleaved) = (live.speedup_from_before, comparison.main());
    found.notes.extend(more_from_before(before, interleaved));
    found.pairs = Some(comparison.pairs);
    found.cpu_speedup = comparison.cpu_speedup;
    found.smallest_visible_effect = comparison.smallest_visible_effect;
    let interval = comparison.main();
    if let Some(today) = found.today.as_mut().filter(|_| was_huge) {
        today.gain = interval;
    }
    (found.advice, found.answer) = answer(interval.as_ref(), was_huge);
    found.reason = reason(&comparison, &live, was_huge);
    if found.advice == Advice::Apply {
        let traits = &look.observation.traits;
        let environment = proc::words(&Root::system(), context.pid, "environ");
        let known = candidates(traits, &[], &|name| proc::variable(&environment, name));
        let fitting = known
            .iter()
            .filter(|change| fits(change, &look.observation));
        found.permanent = fitting.map(|change| change.with(None)).collect();
    }
    found.live = Some(live);
    results.upper_bound(comparison);
}

impl Ended {
    /// Reports on stderr what could not be restored, where there is no answer that does.
    pub(super) fn warn(&self, pid: u32, directory: Option<&Directory>) {
        let Unrestored { regions, reason } = &self.unrestored;
        let lists = directory.map_or_else(String::new, |it| it.path().display().to_string());
        if let Some(what) = unrestored(pid, *regions, reason.as_deref()) {
            messages::note(format!(
                "{what}; the lists for tollfree apply are in {lists}"
            ));
        }
    }
}

fn answer(interval: Option<&Interval>, was_huge: bool) -> (Advice, Answer) {
    match interval.map(Interval::verdict) {
        None | Some(Verdict::CannotTell) => (Advice::DoNothing, Answer::Undecided),
        Some(Verdict::Faster) if !was_huge => (Advice::Apply, Answer::Apply),
        Some(_) => (Advice::DoNothing, Answer::DoNothing),
    }
}

fn reason(comparison: &Comparison, live: &Alternated, was_huge: bool) -> String {
    let Some(interval) = comparison.main() else {
        return "the time limit did not suffice; raise --within".to_owned();
    };
    let memory = numbers::bytes(live.regions * REGION);
    let measured = format!(
        "with {memory} of its memory huge it is {} times as fast as with 4 KiB pages, by {}",
        with_interval(&interval),
        live.measure
    );
    match interval.verdict() {
        Verdict::Faster if was_huge => format!("{measured}; it has these huge pages already"),
        Verdict::Slower if was_huge => format!("{measured}; it has these huge pages now"),
        Verdict::Faster => measured,
        Verdict::NoDifference => format!("{measured}: no difference of 2 % or more"),
        Verdict::Slower => format!("{measured}: huge pages make it SLOWER"),
        Verdict::CannotTell => format!("{measured}: neither a gain nor its absence is proved"),
    }
}

fn alternated(comparison: &Comparison, ended: &Ended, context: &Context) -> Alternated {
    let (costs, look) = (&ended.costs, context.look);
    let Shares {
        idle,
        forbidden,
        shared,
    } = look.selection.left_out;
    let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let counted = ended.rate_while_changing.is_some();
    Alternated {
        pid: context.pid,
        measure: ended.measure.clone(),
        assumption: ended.assumption.map(str::to_owned),
        window_seconds: ended.window.map(|window| window.as_secs_f64()),
        speedup_from_before: speedup_from_before(comparison, &ended.before),
        rate_speedup: counted.then(|| rate_speedup(comparison)).flatten(),
        regions: ended.regions,
        selected_regions: ended.selected,
        huge_before: look.selection.huge(),
        added_bytes: look.selection.holes,
        idle_bytes: idle,
        forbidden_bytes: forbidden,
        shared_bytes: shared,
        collapses: costs.collapsed,
        splits: costs.split,
        refused: costs.failed,
        refusal: costs.failure.clone(),
        stops: ended.stops,
        longest_pause_ns: ns(costs.longest),
        pauses_ns: ns(costs.spent),
        pauses_share: costs.spent.as_secs_f64() / ended.elapsed.as_secs_f64().max(1e-9),
        pauses_cpu_ns: ns(costs.cpu),
        rate_while_changing: ended.rate_while_changing,
        astray_share: ended.astray,
        kept: ended.kept,
        unrestored_regions: ended.unrestored.regions,
        unrestored_reason: ended.unrestored.reason.clone(),
    }
}

/// The ratio of the times before the first change and in huge pages.
fn speedup_from_before(comparison: &Comparison, before: &[Sample]) -> Option<Interval> {
    let time = |sample: &Sample| comparison.resource.time_of(sample);
    let huge = comparison.variant("all")?.runs.iter();
    let huge: Vec<f64> = huge.filter(|run| run.round > 0).map(time).collect();
    let before: Vec<f64> = before.iter().map(time).collect();
    (before.len() > 1 && huge.len() > 1)
        .then(|| ratio_of_medians(&before, &huge, CONFIDENCE))
        .flatten()
}

/// The ratio of units per second, over the counted rounds.
fn rate_speedup(comparison: &Comparison) -> Option<Interval> {
    let times = |variant: &str| -> Option<Vec<f64>> {
        let runs = comparison.variant(variant)?.runs.iter();
        let counted = runs.filter(|run| run.round > 0);
        let time = |run: &Sample| run.elapsed;
        Some(counted.take(comparison.pairs as usize).map(time).collect())
    };
    let (never, all) = (times("never")?, times("all")?);
    (never.len() > 1)
        .then(|| ratio_of_rounds(&never, &all, CONFIDENCE))
        .flatten()
}

fn notes(live: &Alternated, ended: &Ended, context: &Context) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(
        live.assumption
            .as_ref()
            .map(|what| format!("assumed: {what}")),
    );
    if ended.stood_still {
        notes.push("the counter stood still for 10 s, which ended the windows".to_owned());
    }
    if live.regions < live.selected_regions {
        notes.push(format!(
            "{} of {} touched regions alternated: {}",
            live.regions,
            live.selected_regions,
            live.refusal.as_deref().unwrap_or(
                "changes of all would take too long for the time limit; the most touched mappings \
                 come first"
            )
        ));
    }
    if live.astray_share > ASTRAY {
        notes.push(format!(
            "{} of the regions had the other page size at the end of a window (khugepaged, or no \
             huge page free): the effect is larger than measured",
            numbers::percent(live.astray_share)
        ));
    }
    if live.added_bytes > 0 {
        notes.push(format!(
            "up to {} that had no page before were allocated for huge pages, and stay allocated",
            numbers::bytes(live.added_bytes)
        ));
    }
    notes.extend(undo(live, context));
    notes
}

/// Explains a speed-up over the pages as they were that is larger than the interleaved one.
fn more_from_before(before: Option<Interval>, interleaved: Option<Interval>) -> Option<String> {
    let (before, interleaved) = before.zip(interleaved)?;
    (before.low > interleaved.high).then(|| {
        "the pages as they were cost more than split ones, which are contiguous in physical \
         memory; or the work changed after the first windows. tollfree compare decides it by \
         restarts"
            .to_owned()
    })
}

/// How the memory was left, if not as before.
fn undo(live: &Alternated, context: &Context) -> Option<String> {
    let pid = context.pid;
    let list = context
        .directory
        .map(|directory| directory.file(SMALL_BEFORE))?;
    let list = list.display();
    if live.kept {
        return Some(format!(
            "the memory stays huge (--keep); to split it: tollfree apply --undo --plan {list} \
             --pid {pid}"
        ));
    }
    unrestored(
        pid,
        live.unrestored_regions,
        live.unrestored_reason.as_deref(),
    )
    .map(|what| format!("{what}; later: tollfree apply --undo --plan {list} --pid {pid}"))
}

/// Reports regions that were not restored.
fn unrestored(pid: u32, regions: u64, reason: Option<&str>) -> Option<String> {
    (regions > 0).then(|| {
        format!(
            "{} of process {pid} could not be given the page size from before: {}",
            numbers::of(regions as usize, "region"),
            reason.unwrap_or("unknown")
        )
    })
}

/// Whether an unmeasured change can affect the memory at all. Memory that a program maps itself
/// (arenas of Python) is not malloc's, and cannot be distinguished from malloc's large blocks.
fn fits(change: &Candidate, look: &Observation) -> bool {
    change.name != GLIBC || 2 * look.heap >= look.anonymous
}

#[cfg(test)]
mod tests;
