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

use crate::REGION;
use crate::plan::{Plan, Verdict, Why};
use crate::site::{Frame, Level, Site, SiteKind};
use crate::wire::{
    ACTIONS_MAGIC, ANY, ActionsHeader, FrameMatch, Interval, MAX_FRAMES, Module, Rule, flags,
};

/// Advice codes of [`Interval::advice`].
const HUGE: u32 = 1;
const NO_HUGE: u32 = 2;
const TOGETHER: u32 = 3;
/// Sites with more blocks than this get class rules only.
const MAX_EXACT: usize = 64;

/// Whether `part` is at least 75 % of `whole`, enough to act on all of it.
fn is_most(part: u64, whole: u64) -> bool {
    part > 0 && u128::from(part) * 4 >= u128::from(whole) * 3
}

/// Location of a plan's frame in a current module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameRange {
    /// As [`Frame::module`].
    pub module: String,
    /// Return addresses `low..=high`, as offsets in the module.
    pub low: u64,
    pub high: u64,
    /// False if the program was rebuilt: the site then matches only as a class.
    pub exact: bool,
}

impl FrameRange {
    /// The same return address in the same build.
    pub fn exact(module: String, offset: u64) -> FrameRange {
        FrameRange {
            module,
            low: offset,
            high: offset,
            exact: true,
        }
    }

    /// A function in another build: the return address is after its first byte and at most at its
    /// end (`low..high` is the function).
    pub fn function(module: String, low: u64, high: u64) -> FrameRange {
        FrameRange {
            module,
            low,
            high,
            exact: false,
        }
    }

    /// The recorded frame.
    pub fn recorded(frame: &Frame) -> FrameRange {
        FrameRange::exact(frame.module.clone(), frame.offset)
    }
}

/// Shares of the planned benefit by how well its sites were found again; they sum to 1 (all 0 for a
/// plan without benefit).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Matched {
    pub exact: f64,
    pub class: f64,
    pub kind: f64,
    pub lost: f64,
}

/// The actions of a plan.
#[derive(Debug, Clone, Default)]
pub struct Actions {
    /// Bits of [`flags`]; callers may add to them.
    pub flags: u32,
    pub modules: Vec<Module>,
    pub rules: Vec<Rule>,
    pub intervals: Vec<Interval>,
    /// Byte intervals from the heap's start.
    pub heap: Vec<(u64, u64)>,
    /// Fixed address ranges: sorted, disjoint, multiples of 2 MiB.
    pub addresses: Vec<(u64, u64)>,
    /// Whether to act on all other large anonymous memory.
    pub anonymous: bool,
    /// Runtimes with a reservation that is to be huge.
    pub reservations: Vec<String>,
    /// Named mappings and the byte intervals from their start.
    pub vmas: Vec<(String, Vec<(u64, u64)>)>,
    /// Names of planned sites that were not found.
    pub lost: Vec<String>,
    pub matched: Matched,
}

impl Actions {
    /// Returns the actions of the variant "all": everything huge.
    pub fn all() -> Actions {
        Actions {
            flags: flags::ALL,
            ..Actions::default()
        }
    }

    /// Whether there is nothing to do for the preload library and the parent.
    pub fn is_empty(&self) -> bool {
        let preload = self.flags & flags::ALL != 0 || !self.rules.is_empty();
        let parent =
            !self.heap.is_empty() || !self.vmas.is_empty() || !self.reservations.is_empty();
        !(preload || parent || self.anonymous || !self.addresses.is_empty())
    }

    /// Encodes the action file in the layout of [`crate::wire`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size());
        out.extend_from_slice(&ACTIONS_MAGIC);
        let (modules, rules) = (self.modules.len(), self.rules.len());
        for count in [modules, rules, self.intervals.len()] {
            put32(&mut out, count as u32);
        }
        for word in [self.flags, self.addresses.len() as u32, 0] {
            put32(&mut out, word);
        }
        self.modules
            .iter()
            .for_each(|module| put_module(&mut out, module));
        self.rules.iter().for_each(|rule| put_rule(&mut out, rule));
        for interval in &self.intervals {
            put64(&mut out, &[interval.start, interval.end]);
            put32(&mut out, interval.advice);
            put32(&mut out, 0);
        }
        for &(start, end) in &self.addresses {
            put64(&mut out, &[start, end]);
        }
        out
    }

    fn size(&self) -> usize {
        size_of::<ActionsHeader>()
            + size_of_val(&self.modules[..])
            + size_of_val(&self.rules[..])
            + size_of_val(&self.intervals[..])
            + self.addresses.len() * 16
    }

    /// Returns the index of a module and adds it if it is new; `None` if its name is invalid.
    fn module(&mut self, name: &str) -> Option<u32> {
        let module = module(name)?;
        let same = |known: &Module| known.id == module.id && known.path == module.path;
        let index = self.modules.iter().position(same).unwrap_or_else(|| {
            self.modules.push(module);
            self.modules.len() - 1
        });
        Some(index as u32)
    }

    /// Encodes an interval; `code` is the advice for the parts to make huge.
    fn rule(&mut self, rule: Rule, code: u32, huge: &[(u64, u64)], losers: &[(u64, u64)]) {
        let first = self.intervals.len() as u32;
        let advised = |advice| {
            move |&(start, end): &(u64, u64)| Interval {
                start,
                end,
                advice,
                _pad: 0,
            }
        };
        self.intervals.extend(huge.iter().map(advised(code)));
        self.intervals.extend(losers.iter().map(advised(NO_HUGE)));
        self.intervals[first as usize..].sort_by_key(|interval| interval.start);
        let count = self.intervals.len() as u32 - first;
        self.rules.push(Rule {
            first,
            count,
            ..rule
        });
    }
}

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
            SiteKind::Vma { name } => actions.vmas.push((name.clone(), planned.huge.clone())),
            SiteKind::File { .. } | SiteKind::Stack => actions.lost.push(site.to_string()),
        }
        let exact = blocks
            .last()
            .filter(|block| block.id == site.id)
            .map(|block| block.exact);
        tally.add(&planned, exact);
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

/// A site of a plan with the byte intervals to act on.
struct Planned<'a> {
    site: &'a Site,
    huge: Vec<(u64, u64)>,
    losers: Vec<(u64, u64)>,
    /// Whether its blocks fill regions with their neighbours.
    together: bool,
    benefit: f64,
}

impl Planned<'_> {
    fn acts(&self) -> bool {
        !self.huge.is_empty() || !self.losers.is_empty()
    }
}

/// Returns every site of a plan, in order.
fn planned_sites(plan: &Plan) -> Vec<Planned<'_>> {
    let empty = |site| Planned {
        site,
        huge: Vec::new(),
        losers: Vec::new(),
        together: false,
        benefit: 0.0,
    };
    let mut planned: Vec<Planned> = plan.sites.iter().map(empty).collect();
    let index: std::collections::HashMap<u32, usize> = plan
        .sites
        .iter()
        .enumerate()
        .map(|(index, site)| (site.id, index))
        .collect();
    for region in &plan.regions {
        let Some(&index) = index.get(&region.site) else {
            continue;
        };
        let planned = &mut planned[index];
        let interval = (region.offset, region.end());
        if region.verdict == Verdict::Huge {
            planned.huge.push(interval);
            planned.together |= region.length < REGION;
            planned.benefit += region.benefit_ns;
        } else if plan.thp_always && region.why == Why::CostsMore {
            planned.losers.push(interval);
        }
    }
    for planned in &mut planned {
        planned.huge = merged(std::mem::take(&mut planned.huge));
        planned.losers = merged(std::mem::take(&mut planned.losers));
    }
    planned
}

/// Sorts intervals and merges adjacent and overlapping ones.
fn merged(mut intervals: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    intervals.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::with_capacity(intervals.len());
    for (start, end) in intervals {
        match out.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => out.push((start, end)),
        }
    }
    out
}

/// An allocation event of the plan, mapped to the current modules.
struct Block {
    id: u32,
    frames: Vec<FrameMatch>,
    /// Whether the same event was found, rather than only the same site.
    exact: bool,
    class: u8,
    ordinal: u32,
    thread: u32,
    length: u64,
    /// Bytes of the block that can be huge at its recorded alignment.
    full: u64,
    huge: Vec<(u64, u64)>,
    losers: Vec<(u64, u64)>,
    /// Whether it fills regions with its neighbours.
    together: bool,
}

impl Block {
    fn huge_bytes(&self) -> u64 {
        self.huge.iter().map(|(start, end)| end - start).sum()
    }

    /// Returns the advice for the parts to make huge.
    fn code(&self) -> u32 {
        match self.together {
            true => TOGETHER,
            false => HUGE,
        }
    }

    /// Returns the intervals of its exact rule: the whole block if everything that can be huge is
    /// planned.
    fn intervals(&self) -> &[(u64, u64)] {
        match self.together || self.full > 0 && self.huge_bytes() >= self.full {
            true => &[(0, u64::MAX)],
            false => &self.huge,
        }
    }

    fn call_site(&self) -> Vec<(u32, u64, u64)> {
        let key = |frame: &FrameMatch| (frame.module, frame.low, frame.high);
        self.frames.iter().map(key).collect()
    }
}

/// Maps an allocation event: all of its frames must be found.
fn block(
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

/// Adds the exact rules of all sites, followed by the class rules.
fn add_rules(actions: &mut Actions, mut blocks: Vec<Block>) {
    blocks.sort_by_cached_key(Block::call_site);
    let same = |a: &Block, b: &Block| a.call_site() == b.call_site();
    let call_sites: Vec<&[Block]> = blocks
        .chunk_by(same)
        .filter(|call_site| {
            call_site
                .iter()
                .any(|block| !block.huge.is_empty() || !block.losers.is_empty())
        })
        .collect();
    let classes: Vec<Vec<ClassRule>> = call_sites
        .iter()
        .map(|call_site| class_rules(call_site))
        .collect();
    for (call_site, classes) in call_sites.iter().zip(&classes) {
        let exact: Vec<&Block> = call_site.iter().filter(|block| block.exact).collect();
        let has_neighbours = classes.iter().any(|class| class.code == TOGETHER);
        for block in exact.iter().take_while(|_| exact.len() <= MAX_EXACT) {
            let acts = !block.huge.is_empty() || !block.losers.is_empty();
            let is_kept_off = !classes.is_empty() && !has_neighbours;
            if acts || is_kept_off {
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

/// Benefit by match quality.
#[derive(Default)]
struct Tally(Matched);

impl Tally {
    /// `exact`: whether the same event was found; `None` if it was not found, or is not an event.
    fn add(&mut self, planned: &Planned<'_>, exact: Option<bool>) {
        let is_event = matches!(planned.site.kind, SiteKind::Alloc { .. });
        let share = match (is_event, exact, planned.site.level) {
            (true, None, _) => &mut self.0.lost,
            (true, Some(true), _) => &mut self.0.exact,
            (true, Some(false), _) => &mut self.0.class,
            (false, _, Level::Exact) => &mut self.0.exact,
            (false, _, Level::Class) => &mut self.0.class,
            (false, _, Level::Kind) => &mut self.0.kind,
            (false, _, Level::NotFound) => &mut self.0.lost,
        };
        *share += planned.benefit;
    }

    fn shares(self) -> Matched {
        let Matched {
            exact,
            class,
            kind,
            lost,
        } = self.0;
        let all = exact + class + kind + lost;
        if all <= 0.0 {
            return Matched::default();
        }
        Matched {
            exact: exact / all,
            class: class / all,
            kind: kind / all,
            lost: lost / all,
        }
    }
}

/// Parses [`Frame::module`]: a build-id in hex, or `path:BASENAME`.
fn module(name: &str) -> Option<Module> {
    let mut module = Module {
        id_len: 0,
        id: [0; 32],
        path: [0; 220],
    };
    if let Some(base) = name.strip_prefix("path:") {
        let room = module
            .path
            .get_mut(..base.len())
            .filter(|_| base.len() < 220)?;
        room.copy_from_slice(base.as_bytes());
        return Some(module);
    }
    let digits = name.as_bytes();
    if digits.is_empty() || digits.len() % 2 != 0 || digits.len() > 64 {
        return None;
    }
    for (byte, pair) in module.id.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
        *byte = (high? * 16 + low?) as u8;
    }
    module.id_len = (digits.len() / 2) as u32;
    Some(module)
}

fn put32(out: &mut Vec<u8>, word: u32) {
    out.extend_from_slice(&word.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, words: &[u64]) {
    words
        .iter()
        .for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

fn put_module(out: &mut Vec<u8>, module: &Module) {
    put32(out, module.id_len);
    out.extend_from_slice(&module.id);
    out.extend_from_slice(&module.path);
}

fn put_rule(out: &mut Vec<u8>, rule: &Rule) {
    for frame in &rule.frames {
        put32(out, frame.module);
        put32(out, 0);
        put64(out, &[frame.low, frame.high]);
    }
    for word in [rule.frames_used, rule.ordinal, rule.thread, 0] {
        put32(out, word);
    }
    put64(out, &[rule.length_low, rule.length_high]);
    put32(out, rule.first);
    put32(out, rule.count);
}
