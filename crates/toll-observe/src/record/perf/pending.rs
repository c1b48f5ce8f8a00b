// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sample; its call chain and page size may follow in the next lines.

use super::code;
use super::script::Sample;
use super::tlb::Tlb;

/// A sample, and what the lines behind it add.
#[derive(Debug)]
pub struct Pending {
    pub sample: Sample,
    /// Names of functions, innermost first; `None`: unknown. Only for a miss.
    pub frames: Vec<Option<String>>,
}

impl Pending {
    /// A sample and its line; `file` names the file that is mapped at an address.
    pub fn new(sample: Sample, line: &str, file: impl Fn(u64) -> Option<String>) -> Pending {
        let is_miss = sample.tlb == Tlb::Miss;
        let instruction = is_miss.then(|| code::of_sample(line)).flatten();
        let frames = instruction.map(|it| it.name().or_else(|| file(it.ip)));
        Pending {
            sample,
            frames: frames.into_iter().collect(),
        }
    }

    /// Adds a line, if it belongs to the sample.
    pub fn add(&mut self, line: &str) -> bool {
        if let Some(address) = code::of_chain(line) {
            if self.sample.tlb == Tlb::Miss {
                self.frames.push(address.name());
            }
            return true;
        }
        let page_size = code::page_size(line);
        self.sample.huge |= page_size == Some(true);
        page_size.is_some()
    }
}
