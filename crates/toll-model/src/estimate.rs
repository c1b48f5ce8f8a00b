// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes a plan from a profile and a cost table. docs/guide/estimates.md has the formulas, with
//! the source of every constant.
//!
//! | module | computes |
//! |---|---|
//! | `walk` | the cost of one miss |
//! | `region` | benefit and cost of each region |
//! | `neighbours` | small blocks that fill regions together |
//! | `sampling` | the error of a sampled count of one region |
//! | `choose` | the regions to make huge, and the benefit of the set |
//! | `range` | arithmetic on intervals |

mod choose;
mod neighbours;
mod range;
mod region;
mod sampling;
mod walk;

use std::collections::HashSet;
use std::sync::Arc;

use self::choose::{ALONE, Goal, Unit, choose, together};
use self::neighbours::{Group, join};
use self::range::{Doubt, Z80, combined, doubted, minus, negative, plus, sum, times};
use self::region::{Chunk, chunks, net};
use self::sampling::Sampling;
use self::walk::Walk;
use crate::REGION;
use crate::cost::CostTable;
use crate::plan::{Estimate, FORMAT, Plan, Region, VERSION, Verdict, Why};
use crate::profile::{Profile, Source};
use crate::site::{Frame, SiteKind};
use crate::units::{format_count, format_ns, format_size};

/// Maximum number of regions with verdict `leave` in a plan: those with the most misses.
pub const MAX_LEAVES: usize = 4096;
/// A gain with a high end below this share of the run is not worth a change: a comparison of a few
/// runs would not show it.
const MIN_SHARE: f64 = 0.02;
/// A gain with a median below this share is not worth a change either.
const MIN_MEDIAN: f64 = 0.005;
/// Upper bound of the share of a run that huge pages save.
const MAX_SHARE: f64 = 0.9;
/// Time of one instruction without walks, for runs that were not timed (low, median, high), ns:
/// 2.8, 1.1 and 0.3 instructions per cycle at 3 GHz.
const INSTRUCTION_NS: [f64; 3] = [0.12, 0.3, 1.1];
/// Share of a run in walks if the run's time is unknown: CBMM's five programs have 3, 7, 11, 18 and
/// 41 %.
const WALK_SHARE: [f64; 3] = [0.03, 0.11, 0.41];
/// One timed run predicts another within this share.
const ONE_RUN: f64 = 0.05;
/// Minimum run-to-run uncertainty of a measured speed-up. An assumption, from comparisons of equal
/// runs on virtual machines.
const RUN_TO_RUN: f64 = 0.015;
/// The largest speed-up that is predicted.
const MAX_SPEEDUP: f64 = 1.0 / (1.0 - MAX_SHARE);

/// Options of the user, and facts about the machine and the run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Options {
    /// CPU time of one run without a plan, ns.
    pub baseline_ns: Option<f64>,
    /// Choose this many regions, those with the most misses, regardless of cost.
    pub top: Option<u64>,
    /// Use at most this many bytes.
    pub budget: Option<u64>,
    /// 2 MiB regions that are free without compaction.
    pub free_regions: Option<u64>,
    /// THP is `always`: everything is huge without a plan.
    pub thp_always: bool,
    /// The blocks for huge pages were recently used, as in a comparison that warms memory up before
    /// each run: the host's cost of providing them is not included.
    pub warm: bool,
    /// Measured speed-up of everything huge (time before / after). If it is known, it is combined
    /// with the model for the total benefit; the model alone distributes it over regions.
    pub upper_bound: Option<Estimate>,
    /// Repeatability of the comparison that will check the prediction: half of its 80 % interval,
    /// on a logarithmic scale.
    pub repeats: Option<f64>,
    /// A comparison will check the plan before it is used: a set with a positive median gain is
    /// then worth its runs, even if the gain is not yet significant.
    pub is_proved_next: bool,
}

/// Estimates every region of a profile, chooses a set, and predicts its gain.
pub fn estimate(profile: &Profile, costs: &CostTable, options: Options) -> Plan {
    let walk = Walk::new(costs, profile.footprint);
    let sampling = Sampling::of(profile);
    let mut chunks = chunks(
        &profile.sites,
        costs,
        &walk,
        sampling.as_ref(),
        options.warm,
    );
    let groups = match options.thp_always {
        true => Vec::new(),
        false => join(&profile.sites, &mut chunks, costs),
    };
    let whole_heap =
        options.chooses() && heap_is_better_whole(profile, &mut chunks, costs, options.warm);
    let toll = sum(profile
        .rows()
        .map(|row| times(walk.saved_per_miss(row), row.misses)));
    let mut estimates = Estimates {
        profile,
        costs,
        options,
        everything: eligible(&chunks).map(|chunk| chunk.benefit.median).sum(),
        misses: profile.misses(),
        toll,
        baseline: baseline(profile, options, toll),
        measured: None,
        whole_heap,
        units: Vec::new(),
        groups,
        chunks,
    };
    estimates.units = estimates.units();
    if let Some(upper_bound) = options.upper_bound {
        estimates.correct(upper_bound);
    }
    let verdict = estimates.decide();
    estimates.plan(verdict)
}

impl Options {
    /// Whether to choose the fewest regions with enough gain, rather than a given number.
    fn chooses(&self) -> bool {
        self.top.is_none() && self.budget.is_none() && !self.thp_always
    }
}

/// Whether the allocator's own switch, which makes the whole heap huge at its first touch, gains
/// more than collapsing the regions that pay; if so, the heap's chunks get that time.
fn heap_is_better_whole(
    profile: &Profile,
    chunks: &mut [Chunk],
    costs: &CostTable,
    warm: bool,
) -> bool {
    let is_heap = |chunk: &&mut Chunk| {
        profile.sites[chunk.site as usize].site.kind == SiteKind::Heap && chunk.barred.is_none()
    };
    let mut heap: Vec<&mut Chunk> = chunks.iter_mut().filter(is_heap).collect();
    let mut gains = [0.0; 2];
    for chunk in &heap {
        let gain = |time: Estimate| chunk.benefit.median - time.median - chunk.bloat;
        gains[0] += gain(chunk.time_at_fault(costs, warm));
        gains[1] += gain(chunk.time).max(0.0);
    }
    let whole = gains[0] > gains[1];
    if whole {
        for chunk in &mut heap {
            chunk.time = chunk.time_at_fault(costs, warm);
        }
    }
    whole
}

/// Returns the possible ratio of a source's counts to the misses of the CPU.
fn source_doubt(source: Source) -> Doubt {
    let (low, high) = match source {
        // Modelled replacement, no prefetch of translations, different code paths, and costs that
        // were measured with a synthetic loop.
        Source::Sim => (0.5, 2.0),
        // Skid, and TLB levels that CPUs report differently; never compared with gains on such a
        // CPU, so the range is wider than that of the simulator.
        Source::Perf => (0.4, 2.5),
        // A page that was touched between two samples may have missed any number of times.
        Source::Accessed => (0.1, 100.0),
    };
    Doubt { low, high }
}

/// Returns the sampling error of the misses that some chunks avert.
fn sampled(chunks: &[&Chunk]) -> Doubt {
    let averted: f64 = chunks.iter().map(|chunk| chunk.averted).sum();
    let noise: f64 = chunks.iter().map(|chunk| chunk.noise).sum();
    Doubt::of_error(match averted > 0.0 {
        true => Z80 * noise.sqrt() / averted,
        false => 0.0,
    })
}

/// Returns the possible error of a source at one place relative to another.
fn place_doubt(source: Source) -> Doubt {
    match source {
        Source::Sim | Source::Perf => source_doubt(source),
        Source::Accessed => Doubt {
            low: 0.1,
            high: 5.0,
        },
    }
}

fn eligible(chunks: &[Chunk]) -> impl Iterator<Item = &Chunk> {
    chunks.iter().filter(|chunk| chunk.barred.is_none())
}

/// Returns the time of one run without the plan, from the best available source.
fn baseline(profile: &Profile, options: Options, toll: Estimate) -> Option<Estimate> {
    let positive = |ns: &f64| ns.is_finite() && *ns > 0.0;
    if let Some(ns) = options.baseline_ns.filter(positive) {
        return Some(Estimate::exact(ns));
    }
    if let Some(ns) = profile.native_ns.map(|ns| ns as f64).filter(positive) {
        return Some(Estimate {
            median: ns,
            low: ns * (1.0 - ONE_RUN),
            high: ns * (1.0 + ONE_RUN),
        });
    }
    let instructions = profile.instructions.filter(|&count| count > 0)? as f64;
    let [low, median, high] = INSTRUCTION_NS.map(|ns| ns * instructions + toll.median);
    Some(Estimate { median, low, high })
}

/// Returns the time before / after for a saved time and a baseline. Without a baseline, it is
/// derived from `share`, the share of the full benefit.
fn speedup(saved: Estimate, baseline: Option<Estimate>, share: f64, repeats: f64) -> Estimate {
    let part = match baseline {
        Some(run) => Estimate {
            median: saved.median / run.median,
            low: (saved.low / run.high).min(saved.low / run.low),
            high: (saved.high / run.low).max(saved.high / run.high),
        },
        None => Estimate {
            median: WALK_SHARE[1] * share,
            low: 0.0,
            high: WALK_SHARE[2] * share,
        },
    };
    let ratio = |part: f64| 1.0 / (1.0 - part.clamp(-9.0, MAX_SHARE));
    let median = ratio(part.median);
    // Ratios of times have multiplicative errors.
    let doubt = |end: f64| (end / median).ln().hypot(repeats.max(RUN_TO_RUN)).exp();
    Estimate {
        median,
        low: median / doubt(ratio(part.low)),
        high: (median * doubt(ratio(part.high))).min(MAX_SPEEDUP.max(median)),
    }
}

/// The decision for the whole program.
enum Decision {
    /// Make the chosen regions huge.
    Huge,
    /// Remove huge pages where they lose (only with THP `always`).
    Less,
    /// Do nothing, for this reason.
    Nothing(String),
}

/// State of an estimation.
struct Estimates<'a> {
    profile: &'a Profile,
    costs: &'a CostTable,
    options: Options,
    chunks: Vec<Chunk>,
    units: Vec<Unit>,
    /// Small blocks that fill regions together.
    groups: Vec<Group>,
    /// Benefit of making everything eligible huge, ns.
    everything: f64,
    /// All misses of the profile.
    misses: f64,
    /// Time in walks that huge pages could avert if all memory were huge, ns.
    toll: Estimate,
    /// Time of one run without the plan, ns, if known.
    baseline: Option<Estimate>,
    /// Whether the heap is one unit, which the allocator makes huge.
    whole_heap: bool,
    /// Time that everything huge saves, ns, from a measured upper bound combined with the model.
    measured: Option<Estimate>,
}

impl Estimates<'_> {
    /// Shifts benefits and times so that everything huge saves the combined estimate of model and
    /// measurement. The shift is divided by variance: the measurement includes the walks and the
    /// faults, warm or cold as they were.
    fn correct(&mut self, upper_bound: Estimate) {
        let Some(run) = self.baseline.map(|run| run.median) else {
            return;
        };
        let sound = upper_bound.low > 0.0
            && upper_bound.low <= upper_bound.median
            && upper_bound.median <= upper_bound.high;
        if !sound || !upper_bound.high.is_finite() || self.everything <= 0.0 {
            return;
        }
        let saved = |speedup: f64| run * (1.0 - 1.0 / speedup);
        let measured = Estimate {
            median: saved(upper_bound.median),
            low: saved(upper_bound.low),
            high: saved(upper_bound.high),
        };
        let all: Vec<&Chunk> = eligible(&self.chunks).collect();
        let benefit = doubted(self.everything, &self.doubts(&all));
        let time = self.times();
        // Touched pages, and counts of a part of the run, give the distribution but not the amount.
        let says_how_much = self.profile.source != Source::Accessed && self.profile.complete;
        let both = match says_how_much {
            true => combined(minus(benefit, time), measured),
            false => measured,
        };
        let shift = both.median - (benefit.median - time.median);
        let (up, down) = match shift > 0.0 {
            true => (benefit.high - benefit.median, time.median - time.low),
            false => (benefit.median - benefit.low, time.high - time.median),
        };
        let share = |part: f64, rest: f64| part.powi(2) / (part.powi(2) + rest.powi(2)).max(1e-9);
        let moved = (shift * share(down, up)).abs().min(down);
        // Of the uncertainty of the times, only that of the benefit remains.
        let rest = share(up, down).sqrt();
        let time_at = |time: Estimate| moved_time(time, moved.copysign(shift) / down, rest);
        let time = match down > 0.0 {
            true => time_at(time),
            false => time,
        };
        let factor = (both.median + time.median).max(0.0) / self.everything;
        for chunk in &mut self.chunks {
            chunk.benefit = times(chunk.benefit, factor);
            if down > 0.0 {
                chunk.time = time_at(chunk.time);
            }
        }
        self.everything *= factor;
        self.toll = times(self.toll, factor);
        self.measured = Some(both);
        // The measurement is a ratio: the uncertainty of the run time does not apply.
        self.baseline = Some(Estimate::exact(run));
        self.units = self.units();
    }

    /// Returns all sources of uncertainty of the benefit of some chunks.
    fn doubts(&self, chunks: &[&Chunk]) -> [Doubt; 3] {
        let [estimate, source] = self.shared(sum(chunks.iter().map(|chunk| chunk.benefit)));
        [estimate, source, sampled(chunks)]
    }

    /// Returns the uncertainty of a set's benefit relative to that of all other eligible memory. A
    /// common error of all costs is excluded: it does not change shares.
    fn odds(&self, set: &[&Chunk]) -> Doubt {
        let in_set: HashSet<*const Chunk> = set.iter().map(|&chunk| chunk as *const _).collect();
        let is_rest = |chunk: &&Chunk| !in_set.contains(&(*chunk as *const _));
        let rest: Vec<&Chunk> = eligible(&self.chunks).filter(is_rest).collect();
        let benefit = |chunks: &[&Chunk]| sum(chunks.iter().map(|chunk| chunk.benefit));
        Doubt::all(&[
            Doubt::beside(benefit(set), benefit(&rest)),
            place_doubt(self.profile.source),
            sampled(set),
            sampled(&rest).inverse(),
        ])
    }

    /// Returns the uncertainty of a benefit that all regions share.
    fn shared(&self, benefit: Estimate) -> [Doubt; 2] {
        [Doubt::of(benefit), source_doubt(self.profile.source)]
    }

    /// Returns the chunks that can be huge, as regions or whole sites.
    fn units(&self) -> Vec<Unit> {
        let in_groups = self.groups.iter().flat_map(|group| &group.chunks);
        let joint: HashSet<usize> = in_groups.copied().collect();
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for (index, chunk) in self.chunks.iter().enumerate() {
            let same = |set: &Vec<usize>| self.chunks[set[0]].site == chunk.site;
            match sets.last_mut() {
                _ if joint.contains(&index) => {}
                Some(last) if self.is_whole(chunk.site) && same(last) => last.push(index),
                _ => sets.push(vec![index]),
            }
        }
        let alone = sets.into_iter().map(|set| self.unit(set));
        let together = self.groups.iter().map(|group| Unit {
            is_joint: true,
            regions: group.regions,
            ..self.unit(group.chunks.clone())
        });
        let units = alone.chain(together);
        units.filter(|unit| unit.regions > 0).collect()
    }

    /// Combines chunks into one unit; must not be empty.
    fn unit(&self, chunks: Vec<usize>) -> Unit {
        let first = &self.chunks[chunks[0]];
        let last = &self.chunks[chunks[chunks.len() - 1]];
        let mut unit = Unit {
            site: first.site,
            bytes: first.offset..last.offset + last.length,
            is_joint: false,
            chunks: Vec::new(),
            regions: 0,
            benefit: 0.0,
            refund: 0.0,
            net: Estimate::exact(0.0),
            most: 0.0,
            misses: 0.0,
            verdict: None,
        };
        for chunk in self.eligible(&chunks) {
            unit.regions += 1;
            unit.benefit += chunk.benefit.median;
            unit.refund += (-chunk.cost()).max(0.0);
            unit.net = sum([unit.net, net(chunk, &[])].into_iter());
            unit.most += net(chunk, &self.shared(chunk.benefit)).high;
            unit.misses += chunk.misses;
        }
        Unit { chunks, ..unit }
    }

    /// Filters chunks that can be huge.
    fn eligible<'c>(&'c self, chunks: &'c [usize]) -> impl Iterator<Item = &'c Chunk> {
        let chunks = chunks.iter().map(|&index| &self.chunks[index]);
        chunks.filter(|chunk| chunk.barred.is_none())
    }

    /// Whether a site is advised as a whole because its offsets have no meaning in another run.
    fn is_whole(&self, site: u32) -> bool {
        let kind = &self.profile.sites[site as usize].site.kind;
        match kind {
            SiteKind::Anonymous | SiteKind::Reservation { .. } => true,
            SiteKind::Heap => self.whole_heap,
            _ => false,
        }
    }

    /// Decides on the program and on every unit.
    fn decide(&mut self) -> Decision {
        let options = self.options;
        let goal = match (options.top, options.budget) {
            (Some(count), _) => Goal::Top(count),
            (None, Some(bytes)) => Goal::Budget(bytes),
            (None, None) => Goal::Enough,
        };
        if let Goal::Top(count) = goal {
            choose(&mut self.units, self.everything, goal, None);
            return match count.min(self.units.len() as u64) {
                0 => self.nothing("no region was asked for or none can be huge".to_owned()),
                _ => Decision::Huge,
            };
        }
        if let Some(reason) = self.hopeless() {
            return self.nothing(reason);
        }
        if options.thp_always {
            return self.decide_less();
        }
        choose(&mut self.units, self.everything, goal, options.free_regions);
        match self.too_little() {
            Some(reason) => self.nothing(reason),
            None => Decision::Huge,
        }
    }

    /// With THP `always`: removes huge pages where they surely lose.
    fn decide_less(&mut self) -> Decision {
        let mut losers = 0;
        for unit in &mut self.units {
            let loses = unit.most < 0.0;
            losers += u64::from(loses);
            unit.verdict = Some(if loses {
                Why::CostsMore
            } else {
                Why::AlreadyHuge
            });
        }
        match losers {
            0 => Decision::Nothing(
                "THP is always: everything is huge already, and no region surely loses by it"
                    .to_owned(),
            ),
            _ => Decision::Less,
        }
    }

    /// Returns why nothing can be gained at all, before the choice.
    fn hopeless(&self) -> Option<String> {
        let (footprint, reach) = (self.profile.footprint, self.costs.tlb.reach_4k());
        if footprint <= reach {
            let (footprint, reach) = (format_size(footprint), format_size(reach));
            return Some(format!(
                "the program touches {footprint}, and the second-level TLB reaches {reach} with 4 KiB pages"
            ));
        }
        if self.misses <= 0.0 {
            return Some("no TLB miss was recorded".to_owned());
        }
        if self.units.is_empty() {
            return Some(match self.most_barred() {
                Some(why) => format!("no region can be made huge (most misses: {})", why.words()),
                None => "no region can be made huge".to_owned(),
            });
        }
        None
    }

    /// Returns why most of the misses cannot be averted.
    fn most_barred(&self) -> Option<Why> {
        let mut by_why: Vec<(Why, f64)> = Vec::new();
        for chunk in &self.chunks {
            let Some(why) = chunk.barred else { continue };
            match by_why.iter_mut().find(|(other, _)| *other == why) {
                Some((_, misses)) => *misses += chunk.misses,
                None => by_why.push((why, chunk.misses)),
            }
        }
        by_why
            .into_iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(why, _)| why)
    }

    /// Returns why the chosen set is not worth a change, if it is not.
    fn too_little(&self) -> Option<String> {
        let worth =
            |unit: &&Unit| matches!(unit.verdict, Some(Why::Pays | Why::Spare | Why::Budget));
        let units: Vec<&Unit> = self.units.iter().filter(worth).collect();
        if units.is_empty() {
            let saved = format_ns(self.everything);
            let cost = format_ns(eligible(&self.chunks).map(Chunk::cost).sum());
            let unclear = self
                .units
                .iter()
                .any(|unit| unit.verdict == Some(Why::Unclear));
            return Some(match unclear {
                true => format!(
                    "no region's gain can be told from zero (benefit about {saved}, cost {cost})"
                ),
                false => format!(
                    "huge pages cost more than they save (benefit about {saved}, cost {cost})"
                ),
            });
        }
        let (saved, _) = self.saved(|unit| worth(&unit));
        let sure = match self.options.is_proved_next {
            true => saved.median,
            false => saved.low,
        };
        if sure <= 0.0 {
            return Some("the gain of all regions together cannot be told from zero".to_owned());
        }
        let run = self.baseline?;
        let (median, high) = (saved.median / run.median, saved.high / run.median);
        (high < MIN_SHARE || median < MIN_MEDIAN).then(|| {
            format!(
                "everything huge would save about {:.1} % of the run (at most {:.1} %), too little to show or to care",
                median * 100.0,
                high * 100.0
            )
        })
    }

    /// Sets the verdict of every unit to leave.
    fn nothing(&mut self, reason: String) -> Decision {
        for unit in &mut self.units {
            unit.verdict = match unit.verdict {
                Some(Why::Pays | Why::Spare | Why::Budget) | None => Some(Why::Nothing),
                kept => kept,
            };
        }
        Decision::Nothing(reason)
    }

    /// Returns the time that a set of units saves after faults and collapses, ns, and its share of
    /// the full benefit.
    fn saved(&self, pick: impl Fn(&Unit) -> bool) -> (Estimate, f64) {
        let picked = self.units.iter().filter(|unit| pick(unit));
        let chunks: Vec<&Chunk> = picked
            .flat_map(|unit| self.eligible(&unit.chunks))
            .collect();
        let benefit: f64 = chunks.iter().map(|chunk| chunk.benefit.median).sum();
        let time = sum(chunks.iter().map(|chunk| chunk.time));
        let share = self.share(benefit);
        let saved = match self.measured {
            Some(all) => self.part_of(all, share, time, self.odds(&chunks)),
            None => {
                let alone = ALONE.map(|alone| together(alone, share));
                let set = Doubt {
                    low: alone[0] / alone[1],
                    high: alone[2] / alone[1],
                };
                let [estimate, source, sampling] = self.doubts(&chunks);
                let doubts = [estimate, source, sampling, set];
                minus(doubted(benefit * alone[1], &doubts), time)
            }
        };
        (saved, share)
    }

    /// Returns the time that a set with `share` of all benefit and the time `time` saves, if
    /// everything saves `all`: that share of it, corrected for times that are not proportional.
    /// `odds` is the uncertainty of the set's gain relative to the rest. If the set is everything,
    /// only the uncertainty of the measurement remains.
    fn part_of(&self, all: Estimate, share: f64, time: Estimate, odds: Doubt) -> Estimate {
        let part = |share: f64, alone: usize| share * together(ALONE[alone], share);
        let kept = part(share, 1);
        let everything = self.times();
        // Times have a common error.
        let spared = |end: fn(&Estimate) -> f64| kept * end(&everything) - end(&time);
        let ends = [spared(|e| e.low), spared(|e| e.median), spared(|e| e.high)];
        let spared = Estimate {
            median: ends[1],
            low: ends.into_iter().fold(f64::INFINITY, f64::min),
            high: ends.into_iter().fold(f64::NEG_INFINITY, f64::max),
        };
        // Distribution of the benefit: the odds of being in the set.
        let at = |factor: f64| share * factor / (share * factor + (1.0 - share)).max(1e-12);
        let error = |shares: [f64; 2], alone: [usize; 2]| Estimate {
            median: 0.0,
            low: self.everything * (part(shares[0], alone[0]) - kept),
            high: self.everything * (part(shares[1], alone[1]) - kept),
        };
        let placed = error([at(odds.low), at(odds.high)], [1, 1]);
        let alone = error([share, share], [0, 2]);
        // The uncertainty of everything applies to a set that has its benefit or its faults.
        let carried = kept.max(ratio(time.median, everything.median).clamp(0.0, 1.0));
        let all_kept = Estimate {
            median: all.median * kept,
            low: all.median * kept - carried * (all.median - all.low),
            high: all.median * kept + carried * (all.high - all.median),
        };
        let saved = plus(plus(all_kept, spared), plus(placed, alone));
        // Times come from the model and contradict the measurement here: they must not move a set
        // beyond the maximum measured for everything, including uncertainty.
        let median = saved.median.min(all.high);
        Estimate {
            median,
            low: saved.low.min(median),
            high: saved.high.min(2.0 * all.high - all.median).max(median),
        }
    }

    /// Returns the time that everything huge takes. Unused regions are left out: the program does
    /// not wait for them.
    fn times(&self) -> Estimate {
        let used = eligible(&self.chunks).filter(|chunk| chunk.is_used());
        sum(used.map(|chunk| chunk.time))
    }

    /// Whether the heap is among the memory to make huge.
    fn takes_heap(&self) -> bool {
        let is_heap =
            |unit: &Unit| self.profile.sites[unit.site as usize].site.kind == SiteKind::Heap;
        self.units.iter().any(|unit| is_heap(unit) && is_huge(unit))
    }

    fn share(&self, benefit: f64) -> f64 {
        match self.everything > 0.0 {
            true => (benefit / self.everything).min(1.0),
            false => 0.0,
        }
    }

    /// Builds the plan.
    fn plan(self, decision: Decision) -> Plan {
        let (saved_all, _) = self.saved(|_| true);
        let (saved, share) = match decision {
            Decision::Huge => self.saved(is_huge),
            Decision::Nothing(_) => (Estimate::exact(0.0), 0.0),
            Decision::Less => {
                let (lost, share) = self.saved(|unit| unit.verdict == Some(Why::CostsMore));
                (negative(lost), share)
            }
        };
        let predicted_speedup = match decision {
            Decision::Nothing(_) => Estimate::exact(1.0),
            _ => {
                let repeats = self.options.repeats.unwrap_or(0.0);
                speedup(saved, self.baseline, share, repeats)
            }
        };
        let (regions, left_out) = self.regions(share);
        let reason = match &decision {
            Decision::Nothing(reason) => format!("Do nothing: {reason}."),
            _ => self.reason(&decision, [saved, saved_all], predicted_speedup),
        };
        Plan {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: self.profile.program.clone(),
            source: self.profile.source,
            cpu: self.costs.cpu.clone(),
            saved_ns: saved,
            saved_all_ns: saved_all,
            baseline_ns: self.baseline.map(|run| run.median),
            predicted_speedup,
            reason,
            warnings: self.warnings(left_out),
            thp_always: self.options.thp_always,
            whole_heap: self.whole_heap && self.takes_heap(),
            sites: self.sites(&regions),
            regions,
        }
    }

    /// Returns the regions to list in the plan, in the order of the profile, and the number of
    /// omitted ones.
    fn regions(&self, share: f64) -> (Vec<Region>, usize) {
        let mut verdicts: Vec<Option<Why>> = self.chunks.iter().map(|chunk| chunk.barred).collect();
        for unit in &self.units {
            for &index in &unit.chunks {
                verdicts[index] = verdicts[index].or(unit.verdict);
            }
        }
        let whys: Vec<Why> = verdicts
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect();
        let acts = |why: Why| {
            matches!(why, Why::Pays | Why::Asked)
                || self.options.thp_always && why == Why::CostsMore
        };
        let mut leaves: Vec<usize> = (0..whys.len())
            .filter(|&index| !acts(whys[index]))
            .collect();
        let left_out = leaves.len().saturating_sub(MAX_LEAVES);
        if left_out > 0 {
            let misses = |&index: &usize| self.chunks[index].misses;
            leaves.sort_by(|a, b| misses(b).total_cmp(&misses(a)).then(a.cmp(b)));
            leaves.truncate(MAX_LEAVES);
        }
        let leaves: HashSet<usize> = leaves.into_iter().collect();
        let listed = |index: &usize| acts(whys[*index]) || leaves.contains(index);
        let together = together(ALONE[1], share);
        let region = |index: usize| self.region(&self.chunks[index], whys[index], together);
        (
            (0..whys.len()).filter(listed).map(region).collect(),
            left_out,
        )
    }

    fn region(&self, chunk: &Chunk, why: Why, together: f64) -> Region {
        let site = &self.profile.sites[chunk.site as usize].site;
        let huge = matches!(why, Why::Pays | Why::Asked);
        Region {
            site: site.id,
            offset: chunk.offset,
            length: chunk.length,
            level: site.level,
            misses: chunk.misses,
            benefit_ns: chunk.benefit.median * together,
            cost_ns: chunk.cost(),
            verdict: if huge { Verdict::Huge } else { Verdict::Leave },
            why,
            touched_pages: chunk.touched.round() as u32,
        }
    }

    /// Returns the sites of the listed regions, and those that share a call site with one to act
    /// on: a class rule must take them into account.
    fn sites(&self, regions: &[Region]) -> Vec<crate::site::Site> {
        let listed: HashSet<u32> = regions.iter().map(|region| region.site).collect();
        let acted: HashSet<u32> = regions
            .iter()
            .filter(|region| region.verdict == Verdict::Huge)
            .map(|region| region.site)
            .collect();
        let all = || self.profile.sites.iter().map(|rows| &rows.site);
        let call_sites: HashSet<&[Arc<Frame>]> = all()
            .filter(|site| acted.contains(&site.id))
            .filter_map(|a| call_site(&a.kind))
            .collect();
        let keeps = |site: &&crate::site::Site| {
            let shares = call_site(&site.kind).is_some_and(|frames| call_sites.contains(frames));
            listed.contains(&site.id) || shares && site.length >= REGION
        };
        all().filter(keeps).cloned().collect()
    }

    fn reason(
        &self,
        decision: &Decision,
        [saved, all_saved]: [Estimate; 2],
        speedup: Estimate,
    ) -> String {
        let picked = |unit: &&Unit| match decision {
            Decision::Less => unit.verdict == Some(Why::CostsMore),
            _ => is_huge(unit),
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
            Decision::Less => format!(
                "Keep huge pages away from {regions} of {all} regions ({size}), where they cost {saved} more than they save: {expect}."
            ),
            _ => format!(
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
    fn warnings(&self, left_out: usize) -> Vec<String> {
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
            .is_some_and(|run| self.toll.median > MAX_SHARE * run.median);
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

/// Returns `a / b`, and 0 if `b` is 0.
fn ratio(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

/// Moves a time by `by` half intervals downwards and scales its uncertainty by `rest`.
fn moved_time(time: Estimate, by: f64, rest: f64) -> Estimate {
    let (below, above) = (time.median - time.low, time.high - time.median);
    let median = time.median - by * if by > 0.0 { below } else { above };
    Estimate {
        median,
        low: median - rest * below,
        high: median + rest * above,
    }
}

fn is_huge(unit: &Unit) -> bool {
    matches!(unit.verdict, Some(Why::Pays | Why::Asked))
}

/// Returns the call stack that names an allocation that can be found again.
fn call_site(kind: &SiteKind) -> Option<&[Arc<Frame>]> {
    match kind {
        SiteKind::Alloc { frames, .. } => Some(frames),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
