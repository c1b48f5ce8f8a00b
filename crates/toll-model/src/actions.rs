// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts a plan to actions: rules for the preload library, ranges for the watching parent.
//!
//! Exact rules come first, one per planned event; then class rules, one per call
//! site (or per site and length class), which also match in a rebuilt program,
//! in other threads, and for blocks of another size:
//! - where at least 75 % of a site's memory is planned, all of its blocks of at
//!   least the smallest planned length class, whole;
//! - else the parts that at least 75 % of the site's blocks of one class agree
//!   on, in blocks of that class.
//!
//! Small blocks that fill regions together with their neighbours have plan regions shorter than 2
//! MiB. In another run other blocks are their neighbours: a rule for such a site applies to whole
//! blocks, without exceptions for single blocks.
//!
//! An event that was examined and rejected gets an exact rule without intervals, so that no class
//! rule applies to it. Intervals are bytes, not regions: the preload library derives regions from
//! the actual alignment of a block, and acts if at least 75 % of a region lies in planned
//! intervals.

mod block;
mod file;
mod frame;
mod matched;
mod planned;
mod rules;

use self::block::{Block, block};
use self::matched::Tally;
use self::planned::planned_sites;
use self::rules::add_rules;
use crate::intervals::merged;
use crate::plan::Plan;
use crate::site::{Frame, SiteKind};
use crate::wire::flags;

pub use self::file::Actions;
pub use self::frame::FrameRange;
pub use self::matched::Matched;

/// Computes the actions of a plan for the current modules. `rebase` maps a frame to them.
pub fn compile(plan: &Plan, rebase: &dyn Fn(&Frame) -> Option<FrameRange>) -> Actions {
    let mut actions = Actions::default();
    let mut blocks: Vec<Block> = Vec::new();
    let mut tally = Tally::default();
    for planned in planned_sites(plan) {
        let site = planned.site;
        let acts = planned.acts();
        match &site.kind {
            SiteKind::Alloc { .. } => match block(&mut actions, &planned, rebase) {
                Some(block) => blocks.push(block),
                None if acts => actions.lost.push(site.to_string()),
                None => continue,
            },
            _ if !acts => continue,
            SiteKind::Heap => actions.heap.extend(&planned.huge),
            SiteKind::Address { start } => {
                let moved = planned
                    .huge
                    .iter()
                    .map(|(from, to)| (start + from, start + to));
                actions.addresses.extend(moved);
            }
            SiteKind::Anonymous => actions.anonymous = true,
            SiteKind::Reservation { runtime } => actions.reservations.push(runtime.clone()),
            SiteKind::Shared { path } => {
                actions.flags |= flags::SHARED;
                actions.files.push((path.clone(), planned.huge.clone()));
            }
            SiteKind::Vma { name } => actions.vmas.push((name.clone(), planned.huge.clone())),
            SiteKind::File { .. } | SiteKind::Stack => actions.lost.push(site.to_string()),
        }
        let exact = blocks
            .last()
            .filter(|block| block.id == site.id)
            .map(|block| block.exact);
        tally.add(&planned, exact);
    }
    for text in &plan.text {
        match actions.module(&text.module()) {
            Some(module) => actions.texts.push(module),
            None => actions.lost.push(format!("text of {}", text.path)),
        }
    }
    actions.matched = tally.shares();
    if plan.thp_always {
        actions.flags |= flags::NOHUGE;
    }
    actions.addresses = merged(std::mem::take(&mut actions.addresses));
    actions.heap = merged(std::mem::take(&mut actions.heap));
    add_rules(&mut actions, blocks);
    actions
}
