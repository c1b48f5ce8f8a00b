// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes a plan from a profile and a cost table. docs/guide/estimates.md has the formulas, with
//! the source of every constant.
//!
//! | module | computes |
//! |---|---|
//! | `walk` | the cost of one miss |
//! | `chunk` | the counts and costs of one region |
//! | `region` | benefit and cost of each region |
//! | `neighbours` | small blocks that fill regions together |
//! | `sampling` | the error of a sampled count of one region |
//! | `heap` | whether the heap is better huge as a whole |
//! | `choose` | the regions to make huge, and the benefit of the set |
//! | `range` | arithmetic on intervals |
//! | `doubts` | the uncertainty of counts |
//! | `run_time` | the time of a run, and a speed-up |
//! | `options` | the options of the user |
//! | `estimation` | the state of an estimation |
//! | `upper_bound` | the model combined with a measured speed-up of everything huge |
//! | `saved` | the time that a set of units saves |
//! | `decision` | the decision on the program and on every unit |
//! | `text` | the sentences of a plan |
//! | `assemble` | the plan |

mod assemble;
mod choose;
mod chunk;
mod decision;
mod doubts;
mod estimation;
mod heap;
mod neighbours;
mod options;
mod range;
mod region;
mod run_time;
mod sampling;
mod saved;
mod text;
mod upper_bound;
mod walk;

use self::chunk::{Chunk, eligible};
use self::estimation::Estimation;
use self::neighbours::join;
use self::range::{sum, times};
use self::region::chunks;
use self::run_time::baseline;
use self::sampling::Sampling;
use self::walk::Walk;
use crate::cost::CostTable;
use crate::plan::{Plan, Why};
use crate::profile::Profile;

pub use self::assemble::MAX_LEAVES;
pub use self::options::Options;

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
    if options.shared_forbidden {
        forbid_shared(profile, &mut chunks);
    }
    let groups = match options.thp_always {
        true => Vec::new(),
        false => join(&profile.sites, &mut chunks, costs),
    };
    let whole_heap =
        options.chooses() && heap::is_better_whole(profile, &mut chunks, costs, options.warm);
    let overhead = sum(profile
        .rows()
        .map(|row| times(walk.saved_per_miss(row), row.misses)));
    let mut estimation = Estimation {
        profile,
        costs,
        options,
        everything: eligible(&chunks).map(|chunk| chunk.benefit.median).sum(),
        misses: profile.misses(),
        overhead,
        baseline: baseline(profile, options, overhead),
        measured: None,
        whole_heap,
        units: Vec::new(),
        groups,
        chunks,
    };
    estimation.units = estimation.units();
    if let Some(upper_bound) = options.upper_bound {
        estimation.correct(upper_bound);
    }
    let decision = estimation.decide();
    estimation.plan(decision)
}

fn forbid_shared(profile: &Profile, chunks: &mut [Chunk]) {
    for chunk in chunks {
        if profile.sites[chunk.site as usize].site.kind.is_shared() {
            chunk.barred = Some(Why::Forbidden);
        }
    }
}
