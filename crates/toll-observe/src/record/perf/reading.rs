// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options and results of reading a recording.

use std::ops::Range;

use toll_model::profile::Profile;

use super::place::Block;

/// The name of these files in a FormatError.
pub const WHAT: &str = "perf recording";

/// Options for reading a recording.
#[derive(Debug, Default)]
pub struct Reading {
    /// Addresses that count; `None`: all.
    pub only: Option<Range<u64>>,
    /// Blocks of the preload's allocation events.
    pub blocks: Vec<Block>,
    /// `vm.mmap_rnd_bits` of the recorded machine; `None`: unknown.
    pub random_bits: Option<u32>,
    /// Prefix of the profile's `source_detail`.
    pub detail: String,
    pub command: Vec<String>,
}

/// The result of reading a recording.
#[derive(Debug)]
pub struct Imported {
    pub profile: Profile,
    pub kind: Kind,
    pub tally: Tally,
}

/// The supported texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `perf script`.
    Script,
    /// `perf mem report --stdio`.
    Report,
    /// `perf mem -D report`.
    Dump,
}

impl Kind {
    /// The command that prints this text.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Script => "perf script",
            Kind::Report => "perf mem report --stdio",
            Kind::Dump => "perf mem -D report",
        }
    }
}

/// Counts of samples by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Samples of memory accesses.
    pub samples: u64,
    /// Samples with a TLB level.
    pub with_tlb: u64,
    /// Samples with a page walk that were counted.
    pub misses: u64,
    /// Page walks outside the requested range.
    pub outside: u64,
    /// Accesses to kernel memory, or without an address.
    pub elsewhere: u64,
    /// Page walks in data that the text names only by symbol.
    pub symbols_only: u64,
    /// Samples of events without a data source.
    pub sourceless: u64,
}
