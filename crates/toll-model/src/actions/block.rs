// SPDX-License-Identifier: MIT OR Apache-2.0
//! The allocation events of a plan, mapped to the current modules.

use super::file::Actions;
use super::frame::FrameRange;
use super::planned::Planned;
use crate::REGION;
use crate::site::{Frame, Level, Site, SiteKind};
use crate::wire::advice::{HUGE, TOGETHER};
use crate::wire::{FrameMatch, MAX_FRAMES};

/// An allocation event of the plan, mapped to the current modules.
pub(super) struct Block {
    pub id: u32,
    pub frames: Vec<FrameMatch>,
    /// Whether the same event was found, rather than only the same site.
    pub exact: bool,
    pub class: u8,
    pub ordinal: u32,
    pub thread: u32,
    pub length: u64,
    /// Bytes of the block that can be huge at its recorded alignment.
    pub full: u64,
    pub huge: Vec<(u64, u64)>,
    pub losers: Vec<(u64, u64)>,
    /// Whether it fills regions with its neighbours.
    pub together: bool,
}

impl Block {
    pub fn acts(&self) -> bool {
        !self.huge.is_empty() || !self.losers.is_empty()
    }

    pub fn huge_bytes(&self) -> u64 {
        self.huge.iter().map(|(start, end)| end - start).sum()
    }

    /// Returns the advice for the parts to make huge.
    pub fn code(&self) -> u32 {
        match self.together {
            true => TOGETHER,
            false => HUGE,
        }
    }

    /// Returns the intervals of its exact rule: the whole block if everything that can be huge is
    /// planned.
    pub fn intervals(&self) -> &[(u64, u64)] {
        match self.together || self.full > 0 && self.huge_bytes() >= self.full {
            true => &[(0, u64::MAX)],
            false => &self.huge,
        }
    }

    pub fn call_site(&self) -> Vec<(u32, u64, u64)> {
        let key = |frame: &FrameMatch| (frame.module, frame.low, frame.high);
        self.frames.iter().map(key).collect()
    }
}

/// Maps an allocation event: all of its frames must be found.
pub(super) fn block(
    actions: &mut Actions,
    planned: &Planned<'_>,
    rebase: &dyn Fn(&Frame) -> Option<FrameRange>,
) -> Option<Block> {
    let site = planned.site;
    let SiteKind::Alloc {
        frames,
        class,
        ordinal,
        thread,
        ..
    } = &site.kind
    else {
        return None;
    };
    let found: Vec<FrameRange> = frames
        .iter()
        .take(MAX_FRAMES)
        .map(|frame| rebase(frame))
        .collect::<Option<_>>()?;
    if found.is_empty() || site.level == Level::NotFound {
        return None;
    }
    let exact = site.level == Level::Exact && found.iter().all(|frame| frame.exact);
    let place = |frame: FrameRange| {
        Some(FrameMatch {
            module: actions.module(&frame.module)?,
            _pad: 0,
            low: frame.low,
            high: frame.high,
        })
    };
    Some(Block {
        id: site.id,
        frames: found.into_iter().map(place).collect::<Option<_>>()?,
        exact,
        class: *class,
        ordinal: *ordinal,
        thread: *thread,
        length: site.length,
        full: full_bytes(site),
        together: planned.together,
        huge: planned.huge.clone(),
        losers: planned.losers.clone(),
    })
}

/// Returns the bytes of a site in whole regions, at its recorded alignment.
fn full_bytes(site: &Site) -> u64 {
    let head = (REGION - site.misalignment % REGION) % REGION;
    site.length.saturating_sub(head) / REGION * REGION
}
