// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the preload library: exact ones for single events, class rules for call sites.

use super::block::Block;
use super::file::Actions;
use crate::intervals::merged;
use crate::wire::advice::{HUGE, TOGETHER};
use crate::wire::{ANY, FrameMatch, MAX_FRAMES, Rule};

/// Sites with more blocks than this get class rules only.
const MAX_EXACT: usize = 64;

/// Adds the exact rules of all sites, followed by the class rules.
pub(super) fn add_rules(actions: &mut Actions, mut blocks: Vec<Block>) {
    blocks.sort_by_cached_key(Block::call_site);
    let same = |a: &Block, b: &Block| a.call_site() == b.call_site();
    let call_sites: Vec<&[Block]> = blocks
        .chunk_by(same)
        .filter(|call_site| call_site.iter().any(Block::acts))
        .collect();
    let classes: Vec<Vec<ClassRule>> = call_sites
        .iter()
        .map(|call_site| class_rules(call_site))
        .collect();
    for (call_site, classes) in call_sites.iter().zip(&classes) {
        let exact: Vec<&Block> = call_site.iter().filter(|block| block.exact).collect();
        let has_neighbours = classes.iter().any(|class| class.code == TOGETHER);
        for block in exact.iter().take_while(|_| exact.len() <= MAX_EXACT) {
            let is_kept_off = !classes.is_empty() && !has_neighbours;
            if block.acts() || is_kept_off {
                let rule = rule(block, block.class, None, block.ordinal, block.thread);
                actions.rule(rule, block.code(), block.intervals(), &block.losers);
            }
        }
    }
    for (call_site, classes) in call_sites.iter().zip(&classes) {
        for class in classes {
            let rule = rule(&call_site[0], class.class, class.longest, ANY, ANY);
            actions.rule(rule, class.code, &class.huge, &[]);
        }
    }
}

/// The common part of the blocks of a site and length class.
struct ClassRule {
    class: u8,
    /// Length of the longest block, if it is below the maximum of the class.
    longest: Option<u64>,
    /// The advice for the parts to make huge.
    code: u32,
    huge: Vec<(u64, u64)>,
}

fn class_rules(call_site: &[Block]) -> Vec<ClassRule> {
    let planned = || call_site.iter().filter(|block| !block.huge.is_empty());
    let Some(smallest) = planned().map(|block| block.class).min() else {
        return Vec::new();
    };
    let compared = || call_site.iter().filter(|block| block.class >= smallest);
    let huge = compared().map(Block::huge_bytes).sum();
    let together = planned().any(|block| block.together);
    let full = |block: &Block| match together {
        true => block.length,
        false => block.full,
    };
    if is_most(huge, compared().map(full).sum()) {
        return vec![ClassRule {
            class: smallest,
            longest: Some(u64::MAX),
            code: if together { TOGETHER } else { HUGE },
            huge: vec![(0, u64::MAX)],
        }];
    }
    if together {
        return Vec::new();
    }
    let mut classes: Vec<u8> = planned().map(|block| block.class).collect();
    classes.sort_unstable();
    classes.dedup();
    let rule = |class: u8| ClassRule {
        class,
        longest: None,
        code: HUGE,
        huge: agreed(call_site.iter().filter(|block| block.class == class)),
    };
    classes
        .into_iter()
        .map(rule)
        .filter(|rule| !rule.huge.is_empty())
        .collect()
}

/// Returns the parts that are planned in at least 75 % of the blocks that are long enough.
fn agreed<'a>(blocks: impl Iterator<Item = &'a Block>) -> Vec<(u64, u64)> {
    // At each edge: the blocks and the planned intervals that start or end there.
    let mut edges: Vec<(u64, i64, i64)> = Vec::new();
    for block in blocks {
        edges.extend([(0, 1, 0), (block.length, -1, 0)]);
        for &(start, end) in &block.huge {
            edges.extend([(start, 0, 1), (end, 0, -1)]);
        }
    }
    edges.sort_unstable();
    let (mut reach, mut planned) = (0, 0);
    let mut parts = Vec::new();
    for pair in edges.windows(2) {
        let [(at, begins, plans), (next, ..)] = *pair else {
            continue;
        };
        reach += begins;
        planned += plans;
        if next > at && is_most(planned.max(0) as u64, reach.max(0) as u64) {
            parts.push((at, next));
        }
    }
    merged(parts)
}

/// Whether `part` is at least 75 % of `whole`, enough to act on all of it.
fn is_most(part: u64, whole: u64) -> bool {
    part > 0 && u128::from(part) * 4 >= u128::from(whole) * 3
}

fn rule(block: &Block, class: u8, longest: Option<u64>, ordinal: u32, thread: u32) -> Rule {
    let none = FrameMatch {
        module: ANY,
        _pad: 0,
        low: 0,
        high: 0,
    };
    let mut frames = [none; MAX_FRAMES];
    frames[..block.frames.len()].copy_from_slice(&block.frames);
    let shortest = 1u64 << class.min(63);
    Rule {
        frames,
        frames_used: block.frames.len() as u32,
        ordinal,
        thread,
        _pad: 0,
        length_low: shortest,
        length_high: longest.unwrap_or(shortest | (shortest - 1)),
        first: 0,
        count: 0,
    }
}
