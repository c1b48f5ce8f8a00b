// SPDX-License-Identifier: MIT OR Apache-2.0
//! Action files of the preload library.

use std::fs;
use std::path::Path;

use toll_linux::events::ModuleInfo;
use toll_model::wire::{
    ACTIONS_MAGIC, ANY, ActionsHeader, Event, FrameMatch, Interval, MAX_FRAMES, MODULE_PATH,
    Module, Rule, Text, flags,
};

use crate::recorded::Recorded;

/// Builder of an action file.
#[derive(Default)]
pub struct Actions {
    pub modules: Vec<Module>,
    pub rules: Vec<Rule>,
    pub intervals: Vec<Interval>,
    pub addresses: Vec<(u64, u64)>,
    pub flags: u32,
    /// Modules with text to hold in huge pages.
    pub texts: Vec<u32>,
}

impl Actions {
    pub fn all() -> Actions {
        Actions {
            flags: flags::ALL,
            ..Actions::default()
        }
    }

    /// Adds a rule for exactly this event of a recorded run.
    pub fn exact(&mut self, run: &Recorded, event: &Event, intervals: &[(u64, u64)]) -> &mut Rule {
        let frames: [FrameMatch; MAX_FRAMES] = std::array::from_fn(|frame| {
            let used = frame < event.frames_used as usize;
            let module = event.frame_module[frame];
            FrameMatch {
                module: if used {
                    self.module(&run.modules[module as usize])
                } else {
                    ANY
                },
                _pad: 0,
                low: event.frame_offset[frame],
                high: event.frame_offset[frame],
            }
        });
        let first = self.add_intervals(intervals);
        let class = event.length.ilog2();
        self.rules.push(Rule {
            frames,
            frames_used: event.frames_used,
            ordinal: event.ordinal,
            thread: event.thread,
            _pad: 0,
            length_low: 1 << class,
            length_high: (2 << class) - 1,
            first,
            count: intervals.len() as u32,
        });
        self.rules.last_mut().unwrap()
    }

    /// Adds a rule for all events of at least `low` bytes, from any site.
    pub fn any(&mut self, low: u64, intervals: &[(u64, u64)]) {
        let first = self.add_intervals(intervals);
        let nowhere = FrameMatch {
            module: ANY,
            _pad: 0,
            low: 0,
            high: 0,
        };
        self.rules.push(Rule {
            frames: [nowhere; MAX_FRAMES],
            frames_used: 0,
            ordinal: ANY,
            thread: ANY,
            _pad: 0,
            length_low: low,
            length_high: u64::MAX,
            first,
            count: intervals.len() as u32,
        });
    }

    /// Adds intervals with advice. Returns the number of the first.
    fn add_intervals(&mut self, intervals: &[(u64, u64)]) -> u32 {
        let first = self.intervals.len() as u32;
        self.intervals
            .extend(intervals.iter().map(|&(start, end)| Interval {
                start,
                end,
                advice: 1,
                _pad: 0,
            }));
        first
    }

    fn module(&mut self, info: &ModuleInfo) -> u32 {
        let mut module = Module {
            id_len: 0,
            id: [0; 32],
            path: [0; MODULE_PATH],
        };
        if !info.id.starts_with("path:") {
            module.id_len = (info.id.len() / 2) as u32;
            for (index, byte) in module.id.iter_mut().take(info.id.len() / 2).enumerate() {
                *byte = u8::from_str_radix(&info.id[2 * index..2 * index + 2], 16).unwrap();
            }
        }
        module.path[..info.path.len()].copy_from_slice(info.path.as_bytes());
        let same = |other: &Module| other.id == module.id && other.path == module.path;
        if let Some(found) = self.modules.iter().position(same) {
            return found as u32;
        }
        self.modules.push(module);
        self.modules.len() as u32 - 1
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let header = ActionsHeader {
            magic: ACTIONS_MAGIC,
            modules: self.modules.len() as u32,
            rules: self.rules.len() as u32,
            intervals: self.intervals.len() as u32,
            flags: self.flags,
            addresses: self.addresses.len() as u32,
            texts: self.texts.len() as u32,
        };
        let mut bytes = raw(std::slice::from_ref(&header));
        bytes.extend(raw(&self.modules));
        bytes.extend(raw(&self.rules));
        bytes.extend(raw(&self.intervals));
        bytes.extend(raw(&self.addresses));
        let text = |&module: &u32| Text { module, _pad: 0 };
        bytes.extend(raw(&self.texts.iter().map(text).collect::<Vec<_>>()));
        bytes
    }

    pub fn write(&self, path: &Path) {
        fs::write(path, self.to_bytes()).unwrap();
    }
}

/// Returns the bytes of plain structures without padding.
fn raw<T>(items: &[T]) -> Vec<u8> {
    // SAFETY: the wire structures are integers without padding.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }.to_vec()
}
