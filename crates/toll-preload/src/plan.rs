// SPDX-License-Identifier: MIT OR Apache-2.0
//! The action file: loaded once, validated, and indexed so that the rule for an event is found
//! without reading the others.

use core::cell::UnsafeCell;
use core::mem::size_of;

use toll_wire::advice::NO_HUGE;
use toll_wire::{
    self as wire, ANY, ActionsHeader, AddressRange, Interval, MAX_FRAMES, REGION, Rule, Text,
};

use crate::hash::mix;
use crate::os;
use crate::path::base_name;

/// Words of the filter of first frames, 32 bits each.
const BLOOM: usize = 1 << 10;

/// Actions of the action file.
pub struct Plan {
    modules: &'static [wire::Module],
    rules: &'static [Rule],
    intervals: &'static [Interval],
    addresses: &'static [AddressRange],
    texts: &'static [Text],
    flags: u32,
    /// First exact rule of each bucket, and the next one in the same bucket.
    buckets: &'static [u32],
    next: &'static [u32],
    /// Rules that do not fit the buckets, in order.
    wide: &'static [u32],
    /// Filter of the exact rules' first frames.
    bloom: &'static [u32],
    /// Whether a rule exists that needs no frame.
    frameless: bool,
}

struct Cell(UnsafeCell<Plan>);
// SAFETY: written once, by `load`, before the hooks are enabled.
unsafe impl Sync for Cell {}

static PLAN: Cell = Cell(UnsafeCell::new(Plan {
    modules: &[],
    rules: &[],
    intervals: &[],
    addresses: &[],
    texts: &[],
    flags: 0,
    buckets: &[],
    next: &[],
    wide: &[],
    bloom: &[],
    frameless: false,
}));

/// Returns the plan of this process; an empty one if there is no action file.
pub fn get() -> &'static Plan {
    // SAFETY: no longer written once the hooks are enabled.
    unsafe { &*PLAN.0.get() }
}

/// Reads the action file that the environment names. On any problem there is no plan.
pub fn load() {
    let Some(plan) = os::variable(wire::variables::ACTIONS)
        .and_then(|path| os::read_file(path, room))
        .and_then(|(file, room)| parse(file, Room(room)))
    else {
        return;
    };
    // SAFETY: the plan is not read before `load` has returned.
    unsafe { PLAN.0.get().write(plan) };
}

/// Returns the index in the action file of the module that `record` describes.
pub fn module(record: &wire::Module, name_hash: u64) -> u32 {
    let same = |ours: &wire::Module| match (ours.id_len, record.id_len) {
        (0, 0) => base_name(&ours.path) == base_name(&record.path),
        (8, 0) => ours.id.get(..8) == Some(&name_hash.to_le_bytes()[..]),
        (0, _) => false,
        (ours_length, length) => ours_length == length && ours.id == record.id,
    };
    let found = get().modules.iter().position(same);
    found.map_or(ANY, |index| index as u32)
}

/// Whether a module may be identified by its path only.
pub fn knows_paths() -> bool {
    const BUILD_ID: u32 = 16;
    let modules = get().modules;
    modules.iter().any(|module| module.id_len < BUILD_ID)
}

/// Returns the maximum number of words for the tables for a file of this length in bytes: up to two
/// buckets, a link and an entry in the list of other rules per rule.
fn room(length: usize) -> usize {
    BLOOM + length / size_of::<Rule>() * 4
}

/// Memory for the tables, allocated in parts.
struct Room(&'static mut [u32]);

impl Room {
    fn take(&mut self, length: usize, word: u32) -> Option<&'static mut [u32]> {
        let (part, rest) = core::mem::take(&mut self.0).split_at_mut_checked(length)?;
        self.0 = rest;
        if word != 0 {
            part.fill(word);
        }
        Some(part)
    }
}

/// Cuts typed sections off the front of the file.
struct Sections(&'static [u8]);

impl Sections {
    /// # Safety
    /// Any bit pattern must be a valid `T`.
    unsafe fn take<T>(&mut self, count: u32) -> Option<&'static [T]> {
        let bytes = size_of::<T>().checked_mul(count as usize)?;
        let (section, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        let start = section.as_ptr().cast::<T>();
        // SAFETY: inside the file; checked for alignment; valid by the contract.
        start
            .is_aligned()
            .then(|| unsafe { core::slice::from_raw_parts(start, count as usize) })
    }
}

fn parse(file: &'static [u8], room: Room) -> Option<Plan> {
    let mut sections = Sections(file);
    // SAFETY: all sections are made of plain integers.
    let (header, modules, rules, intervals, addresses, texts) = unsafe {
        let header = sections.take::<ActionsHeader>(1)?.first()?;
        if header.magic != wire::ACTIONS_MAGIC {
            return None;
        }
        (
            header,
            sections.take::<wire::Module>(header.modules)?,
            sections.take::<Rule>(header.rules)?,
            sections.take::<Interval>(header.intervals)?,
            sections.take::<AddressRange>(header.addresses)?,
            sections.take::<Text>(header.texts)?,
        )
    };
    let sound = |rule: &Rule| {
        let last = rule.first.checked_add(rule.count);
        last.is_some_and(|last| last <= header.intervals) && rule.frames_used as usize <= MAX_FRAMES
    };
    if !sections.0.is_empty() || !rules.iter().all(sound) {
        return None;
    }
    let mut plan = Plan {
        modules,
        rules,
        intervals,
        addresses,
        texts,
        flags: header.flags,
        buckets: &[],
        next: &[],
        wide: &[],
        bloom: &[],
        frameless: rules.iter().any(|rule| rule.frames_used == 0),
    };
    plan.index(room)?;
    Some(plan)
}

/// Whether the buckets can hold a rule: its first frame is one address, and its ordinal and thread
/// are fixed.
fn is_exact(rule: &Rule) -> bool {
    let first = rule.frames.first().is_some_and(|f| f.low == f.high);
    rule.frames_used > 0 && first && rule.ordinal != ANY && rule.thread != ANY
}

fn frame_key(frame: Frame) -> u64 {
    mix(frame.offset ^ u64::from(frame.module) << 48)
}

fn event_key(frame: u64, ordinal: u32, thread: u32) -> usize {
    mix(frame ^ (u64::from(thread) << 32 | u64::from(ordinal))) as usize
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        let nothing = self.rules.is_empty() && self.addresses.is_empty();
        nothing && self.texts.is_empty() && !self.advises_all() && !self.wants_shared()
    }

    pub fn advises_all(&self) -> bool {
        self.flags & wire::flags::ALL != 0
    }

    pub fn uses_hugetlb(&self) -> bool {
        self.flags & wire::flags::HUGETLB != 0
    }

    pub fn wants_shared(&self) -> bool {
        self.flags & wire::flags::SHARED != 0
    }

    pub fn has_texts(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Whether the text of the module with this index is to be huge.
    pub fn wants_text(&self, module: u32) -> bool {
        self.texts.iter().any(|text| text.module == module)
    }

    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty() && !self.advises_all()
    }

    pub fn addresses(&self) -> &'static [AddressRange] {
        self.addresses
    }

    /// Returns the length of the shortest relevant event.
    pub fn shortest(&self) -> usize {
        let lengths = self.rules.iter().map(|rule| rule.length_low as usize);
        let shortest = match () {
            () if self.advises_all() => REGION as usize,
            () if !self.addresses.is_empty() => 0,
            () => lengths.min().unwrap_or(usize::MAX),
        };
        shortest.max(wire::MIN_EVENT)
    }

    /// Returns the intervals of a rule with `advice`, as offsets from the block's start.
    pub fn intervals(&self, rule: u32, advice: u32) -> impl Iterator<Item = (u64, u64)> + use<> {
        let rule = self.rules.get(rule as usize);
        let wanted = advice != NO_HUGE || self.flags & wire::flags::NOHUGE != 0;
        let range = rule.map(|rule| rule.first as usize..(rule.first + rule.count) as usize);
        let intervals = range.and_then(|range| self.intervals.get(range));
        intervals
            .unwrap_or_default()
            .iter()
            .filter(move |interval| wanted && interval.advice == advice)
            .map(|interval| (interval.start, interval.end))
    }

    /// Builds the buckets, the list of other rules, and the filter of first frames.
    fn index(&mut self, mut room: Room) -> Option<()> {
        if self.rules.is_empty() {
            return Some(());
        }
        let count = self.rules.len();
        let bloom = room.take(BLOOM, 0)?;
        let buckets = room.take(count.checked_next_power_of_two()?, ANY)?;
        let next = room.take(count, ANY)?;
        let wide = room.take(count, ANY)?;
        let mut wide_used = 0;
        // Backwards, so that each chain has its rules in file order.
        for (index, rule) in self.rules.iter().enumerate().rev() {
            if !is_exact(rule) {
                wide_used += 1;
                *wide.get_mut(count - wide_used)? = index as u32;
                continue;
            }
            let first = rule.frames.first()?;
            let frame = frame_key(Frame {
                module: first.module,
                offset: first.low,
            });
            *bloom.get_mut(bloom_word(frame))? |= bloom_bit(frame);
            let bucket = event_key(frame, rule.ordinal, rule.thread) & (buckets.len() - 1);
            let bucket = buckets.get_mut(bucket)?;
            *next.get_mut(index)? = *bucket;
            *bucket = index as u32;
        }
        self.bloom = bloom;
        self.wide = wide.get(count - wide_used..)?;
        self.buckets = buckets;
        self.next = next;
        Some(())
    }

    /// Whether an event with first frame `frame` may match a rule: a cheap test before the rest of
    /// the stack is unwound.
    pub fn may_start(&self, frame: Frame) -> bool {
        if self.frameless {
            return true;
        }
        if frame.module == ANY {
            return false;
        }
        let key = frame_key(frame);
        let exact = self.bloom.get(bloom_word(key));
        exact.is_some_and(|word| word & bloom_bit(key) != 0)
            || self.wide().any(|(_, rule)| frame_matches(rule, 0, frame))
    }

    fn wide(&self) -> impl Iterator<Item = (u32, &'static Rule)> {
        let rule = |&index: &u32| Some((index, self.rules.get(index as usize)?));
        self.wide.iter().filter_map(rule)
    }

    /// Returns exact rules that may match, in order.
    fn exact(&self, event: &Event) -> impl Iterator<Item = (u32, &'static Rule)> {
        let first = event.frames.first().map_or(ANY, |&frame| {
            let bucket = event_key(frame_key(frame), event.ordinal, event.thread);
            let bucket = bucket & self.buckets.len().wrapping_sub(1);
            self.buckets.get(bucket).copied().unwrap_or(ANY)
        });
        core::iter::successors(Some(first), |&index| self.next.get(index as usize).copied())
            .map_while(|index| Some((index, self.rules.get(index as usize)?)))
    }

    /// Returns the first rule that matches, or `ANY`.
    pub fn rule(&self, event: &Event) -> u32 {
        let matching = |(_, rule): &(u32, &Rule)| event.matches(rule);
        let exact = self.exact(event).find(matching).map(|found| found.0);
        let wide = self.wide().find(matching).map(|found| found.0);
        exact.unwrap_or(ANY).min(wide.unwrap_or(ANY))
    }
}

fn bloom_word(key: u64) -> usize {
    (key >> 5) as usize % BLOOM
}

fn bloom_bit(key: u64) -> u32 {
    1 << (key % 32)
}

fn frame_matches(rule: &Rule, index: usize, frame: Frame) -> bool {
    rule.frames.get(index).is_some_and(|wanted| {
        wanted.module == frame.module && (wanted.low..=wanted.high).contains(&frame.offset)
    })
}

/// A return address.
#[derive(Clone, Copy)]
pub struct Frame {
    /// Index of its module in the action file, or `ANY`.
    pub module: u32,
    pub offset: u64,
}

/// The properties that rules are matched against.
pub struct Event<'a> {
    /// Innermost first.
    pub frames: &'a [Frame],
    pub length: u64,
    pub ordinal: u32,
    pub thread: u32,
}

impl Event<'_> {
    fn matches(&self, rule: &Rule) -> bool {
        let same = |wanted: u32, got: u32| wanted == ANY || wanted == got;
        let wanted = rule.frames_used as usize;
        (rule.length_low..=rule.length_high).contains(&self.length)
            && same(rule.ordinal, self.ordinal)
            && same(rule.thread, self.thread)
            && self.frames.get(..wanted).is_some_and(|frames| {
                let mut numbered = frames.iter().enumerate();
                numbered.all(|(index, &frame)| frame_matches(rule, index, frame))
            })
    }
}
