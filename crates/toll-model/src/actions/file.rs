// SPDX-License-Identifier: MIT OR Apache-2.0
//! The actions of a plan, and the file that holds those of the preload library.

use super::matched::Matched;
use crate::wire::advice::NO_HUGE;
use crate::wire::{
    ACTIONS_MAGIC, ActionsHeader, AddressRange, Interval, MODULE_PATH, Module, Rule, Text, Value,
    flags,
};

/// The actions of a plan.
#[derive(Debug, Clone, Default)]
pub struct Actions {
    /// Bits of [`flags`]; callers may add to them.
    pub flags: u32,
    pub modules: Vec<Module>,
    pub rules: Vec<Rule>,
    pub intervals: Vec<Interval>,
    /// Modules with text to hold in huge pages, by index.
    pub texts: Vec<u32>,
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
    /// Files in memory and the byte intervals from their start.
    pub files: Vec<(String, Vec<(u64, u64)>)>,
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
        let preload =
            self.flags & flags::ALL != 0 || !self.rules.is_empty() || !self.texts.is_empty();
        let parent = !self.heap.is_empty()
            || !self.vmas.is_empty()
            || !self.files.is_empty()
            || !self.reservations.is_empty();
        !(preload || parent || self.anonymous || !self.addresses.is_empty())
    }

    /// Encodes the action file in the layout of [`crate::wire`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size());
        let header = ActionsHeader {
            magic: ACTIONS_MAGIC,
            modules: self.modules.len() as u32,
            rules: self.rules.len() as u32,
            intervals: self.intervals.len() as u32,
            flags: self.flags,
            addresses: self.addresses.len() as u32,
            texts: self.texts.len() as u32,
        };
        header.write(&mut out);
        self.modules.iter().for_each(|it| it.write(&mut out));
        self.rules.iter().for_each(|it| it.write(&mut out));
        self.intervals.iter().for_each(|it| it.write(&mut out));
        for &(start, end) in &self.addresses {
            AddressRange { start, end }.write(&mut out);
        }
        for &module in &self.texts {
            Text { module, _pad: 0 }.write(&mut out);
        }
        out
    }

    fn size(&self) -> usize {
        size_of::<ActionsHeader>()
            + size_of_val(&self.modules[..])
            + size_of_val(&self.rules[..])
            + size_of_val(&self.intervals[..])
            + self.addresses.len() * size_of::<AddressRange>()
            + self.texts.len() * size_of::<Text>()
    }

    /// Returns the index of a module and adds it if it is new; `None` if its name is invalid.
    pub(super) fn module(&mut self, name: &str) -> Option<u32> {
        let module = module(name)?;
        let same = |known: &Module| known.id == module.id && known.path == module.path;
        let index = self.modules.iter().position(same).unwrap_or_else(|| {
            self.modules.push(module);
            self.modules.len() - 1
        });
        Some(index as u32)
    }

    /// Adds a rule with its intervals; `code` is the advice for the parts to make huge.
    pub(super) fn rule(
        &mut self,
        rule: Rule,
        code: u32,
        huge: &[(u64, u64)],
        losers: &[(u64, u64)],
    ) {
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

/// Parses [`crate::site::Frame::module`]: a build-id in hex, or `path:BASENAME`.
fn module(name: &str) -> Option<Module> {
    let mut module = Module {
        id_len: 0,
        id: [0; 32],
        path: [0; MODULE_PATH],
    };
    if let Some(base) = name.strip_prefix("path:") {
        let room = module
            .path
            .get_mut(..base.len())
            .filter(|_| base.len() < MODULE_PATH)?;
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
