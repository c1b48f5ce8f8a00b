// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the text of a recording line by line, and counts.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, BufRead};
use std::path::Path;

use toll_linux::symbols;
use toll_model::builder::{Counts, Meta};
use toll_model::error::FormatError;
use toll_model::profile::{Program, Source};

use super::code;
use super::detect::{Format, detect, foreign, looks_like_script, shorten};
use super::layout::Layout;
use super::pending::Pending;
use super::place::Places;
use super::reading::{Imported, Kind, Reading, Tally, WHAT};
use super::stacks::Stacks;
use super::tlb::Tlb;
use super::{script, table};

/// Longer lines cannot be perf's.
pub(super) const MAX_LINE: usize = 1 << 20;
/// Maximum number of lines before the first one that identifies the text.
const MAX_STRANGE: usize = 200;

/// The state of a reader.
pub struct Reader<'a> {
    places: Places,
    reading: &'a Reading,
    tally: Tally,
    /// The last sample, until it is complete.
    pending: Option<Pending>,
    stacks: Stacks,
    /// Sum of the periods of counted samples, and number of samples with a period.
    periods: (f64, u64),
    /// Sum of latencies and number of samples, without and with a page walk.
    latency: [(u64, u64); 2],
    /// Page walks of each process.
    processes: HashMap<u32, u64>,
    has_samples_column: bool,
    cmdline: Option<String>,
    warnings: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    pub fn new(reading: &'a Reading) -> Reader<'a> {
        let layout = Layout::new(reading.random_bits);
        let places = Places::new(reading.only.clone(), layout);
        Reader {
            places: places.with_blocks(reading.blocks.clone()),
            reading,
            tally: Tally::default(),
            pending: None,
            stacks: Stacks::default(),
            periods: (0.0, 0),
            latency: [(0, 0); 2],
            processes: HashMap::new(),
            has_samples_column: true,
            cmdline: None,
            warnings: BTreeSet::new(),
        }
    }

    /// Reads the whole text, of a known kind or of the one that is detected.
    pub fn read(
        mut self,
        mut reader: impl BufRead,
        known: Option<Format>,
    ) -> Result<Imported, FormatError> {
        let mut format = known;
        let mut strange = None;
        let mut number = 0;
        let mut buffer = Vec::new();
        while next_line(&mut reader, &mut buffer, number + 1)? {
            number += 1;
            let line = text_of(&buffer, number)?;
            if let Some(more) = detect(line, number)? {
                format = Some(more);
                continue;
            }
            match &format {
                Some(format) => self
                    .line(format, line)
                    .map_err(|detail| FormatError::Damaged {
                        what: WHAT,
                        detail: format!("line {number}: {detail}"),
                    })?,
                None if line.trim().is_empty() || line.starts_with('#') => self.comment(line),
                None if looks_like_script(line) => {
                    format = Some(Format::Script);
                    self.line(&Format::Script, line)
                        .map_err(|detail| FormatError::Damaged {
                            what: WHAT,
                            detail: format!("line {number}: {detail}"),
                        })?;
                }
                None => {
                    let (first, shown) = strange.get_or_insert((number, shorten(line)));
                    if number - *first >= MAX_STRANGE {
                        return Err(foreign(*first, shown));
                    }
                }
            }
        }
        match (format, strange) {
            (Some(format), _) => self.finish(&format),
            (None, Some((first, shown))) => Err(foreign(first, &shown)),
            (None, None) => Err(FormatError::Foreign {
                expected: WHAT,
                found: format!("nothing in {number} lines"),
            }),
        }
    }

    fn line(&mut self, format: &Format, line: &str) -> Result<(), String> {
        match format {
            _ if line.starts_with('#') => self.comment(line),
            Format::Script => self.script_line(line)?,
            _ if line.trim().is_empty() => {}
            Format::Report(columns) => {
                self.has_samples_column = columns.has_samples();
                self.table_line(&columns.parse(line)?);
            }
            Format::Dump => self.table_line(&table::parse_dump(line)?),
        }
        Ok(())
    }

    /// Parses the header of `perf script --header`, which contains the command.
    fn comment(&mut self, line: &str) {
        if let Some(command) = line.strip_prefix("# cmdline : ") {
            self.cmdline = Some(command.trim().to_owned());
        }
    }

    fn script_line(&mut self, line: &str) -> Result<(), String> {
        if self.pending.as_mut().is_some_and(|it| it.add(line)) {
            return Ok(());
        }
        self.settle();
        match script::parse(line)? {
            script::Line::Sample(sample) => {
                let file = |ip| self.places.file(sample.pid, ip).map(code::in_brackets);
                self.pending = Some(Pending::new(sample, line, file));
            }
            script::Line::Sourceless => self.tally.sourceless += 1,
            script::Line::Map(map) => self.places.map(&map),
            script::Line::Exec { pid } => self.places.exec(pid),
            script::Line::Fork { pid, parent } => self.places.fork(pid, parent),
            script::Line::Other => {}
        }
        Ok(())
    }

    /// Counts the last sample, which is complete now.
    fn settle(&mut self) {
        if let Some(Pending { sample, frames }) = self.pending.take() {
            let before = self.tally.misses;
            self.sample(&sample);
            if self.tally.misses > before {
                let period = sample.period.map_or(1.0, |p| p as f64);
                self.stacks.count(&frames, period);
            }
        }
    }

    fn sample(&mut self, sample: &script::Sample) {
        let samples = table::Line {
            samples: 1,
            address: Some(sample.address),
            tlb: sample.tlb,
            weight: sample.weight,
        };
        let before = self.tally.misses;
        let period = sample.period.map_or(1.0, |p| p as f64);
        self.access(&samples, period, sample.huge, sample.pid, sample.time_ns);
        if self.tally.misses > before {
            if sample.period.is_some() {
                self.periods = (self.periods.0 + period, self.periods.1 + 1);
            }
            if let Some(pid) = sample.pid {
                *self.processes.entry(pid).or_default() += 1;
            }
        }
    }

    fn table_line(&mut self, line: &table::Line) {
        self.access(line, 1.0, false, None, None);
    }

    /// Counts `line.samples` equal accesses.
    fn access(
        &mut self,
        line: &table::Line,
        period: f64,
        huge: bool,
        pid: Option<u32>,
        time: Option<u64>,
    ) {
        self.tally.samples += line.samples;
        let miss = match line.tlb {
            Tlb::Unknown => return,
            Tlb::Hit => false,
            Tlb::Miss => true,
        };
        self.tally.with_tlb += line.samples;
        if let Some(weight) = line.weight {
            let (sum, count) = &mut self.latency[usize::from(miss)];
            *sum = sum.saturating_add(weight.saturating_mul(line.samples));
            *count += line.samples;
        }
        let samples = line.samples as f64;
        let counts = Counts {
            accesses: samples * period,
            misses: if miss { samples * period } else { 0.0 },
            huge,
            ..Counts::default()
        };
        match line.address {
            None => self.tally.symbols_only += if miss { line.samples } else { 0 },
            Some(0) => self.tally.elsewhere += line.samples,
            Some(address) if address >= 1 << 56 => self.tally.elsewhere += line.samples,
            Some(address) if !self.places.wants(address) => {
                self.tally.outside += if miss { line.samples } else { 0 };
            }
            Some(address) => {
                self.tally.misses += if miss { line.samples } else { 0 };
                self.places.count(pid, time, address, &counts);
            }
        }
    }

    fn finish(mut self, format: &Format) -> Result<Imported, FormatError> {
        self.settle();
        self.check()?;
        self.warn();
        let kind = match format {
            Format::Script => Kind::Script,
            Format::Report(_) => Kind::Report,
            Format::Dump => Kind::Dump,
        };
        let mean_period = match self.periods {
            (sum, count) if count > 0 && sum > 0.0 => sum / count as f64,
            _ => 1.0,
        };
        let meta = Meta {
            source: Source::Perf,
            source_detail: self.detail(kind, mean_period),
            program: self.program(),
            command: self.reading.command.clone(),
            complete: true,
            sampled: (1.0 / mean_period).min(1.0),
            observations: self.tally.misses,
            instructions: None,
            native_ns: None,
            footprint: None,
            warnings: Vec::new(),
        };
        let (mut profile, random) = self.places.finish(meta);
        if random {
            self.warnings.insert("some addresses are random in every run (ASLR) and the recording does not say what was mapped there: they are shown but never advised; record with `tollfree record`, or name a fixed mapping with --only".to_owned());
        }
        profile.warnings = self.warnings.into_iter().collect();
        profile.stacks = self.stacks.finish();
        Ok(Imported {
            profile,
            kind,
            tally: self.tally,
        })
    }

    /// Rejects recordings without usable samples.
    fn check(&self) -> Result<(), FormatError> {
        let tally = &self.tally;
        let detail = if tally.samples == 0 && tally.sourceless > 0 {
            format!(
                "its {} samples have no data source: record with `perf mem record`",
                tally.sourceless
            )
        } else if tally.samples == 0 {
            "it has no sample of a memory access".to_owned()
        } else if tally.with_tlb == 0 {
            format!(
                "none of its {} samples has a TLB level (all are N/A): this CPU or event does not report it",
                tally.samples
            )
        } else {
            return Ok(());
        };
        Err(FormatError::Invalid { what: WHAT, detail })
    }

    fn warn(&mut self) {
        let tally = self.tally;
        let mut warn = |text: String| self.warnings.insert(text);
        if self.periods.1 == 0 {
            warn(
                "the text has no periods: counts are samples, and their scale is unknown"
                    .to_owned(),
            );
        }
        if tally.misses == 0 {
            warn("no sample had a page walk in the requested range".to_owned());
        }
        if tally.symbols_only > 0 {
            warn(format!(
                "{} page walks lie in data that the text names by symbol, without an address: not counted",
                tally.symbols_only
            ));
        }
        if tally.with_tlb < tally.samples {
            warn(format!(
                "{} of {} samples have no TLB level: not counted",
                tally.samples - tally.with_tlb,
                tally.samples
            ));
        }
        if !self.has_samples_column {
            warn("the text has no column of samples: each line counts as one".to_owned());
        }
        if self.processes.len() > 1 {
            warn(format!(
                "{} processes were recorded; their counts are summed",
                self.processes.len()
            ));
        }
        warn("touched pages are those with a sample: a lower bound".to_owned());
    }

    fn detail(&self, kind: Kind, mean_period: f64) -> String {
        let mut parts = Vec::new();
        if !self.reading.detail.is_empty() {
            parts.push(self.reading.detail.clone());
        }
        parts.push(kind.name().to_owned());
        parts.push(format!(
            "{} samples, {} with a page walk",
            self.tally.samples, self.tally.misses
        ));
        if mean_period > 1.0 {
            parts.push(format!("mean period {mean_period:.0}"));
        }
        let mean =
            |(sum, count): (u64, u64)| (count > 0 && sum > 0).then(|| sum as f64 / count as f64);
        if let (Some(hit), Some(miss)) = (mean(self.latency[0]), mean(self.latency[1])) {
            parts.push(format!(
                "mean latency {hit:.0} cycles without a page walk, {miss:.0} with one"
            ));
        }
        if let Some(range) = &self.reading.only {
            parts.push(format!("only {:#x}..{:#x}", range.start, range.end));
        }
        if let Some(command) = &self.cmdline {
            parts.push(format!("recorded by: {command}"));
        }
        parts.join("; ")
    }

    /// The program of the process with the most page walks.
    fn program(&self) -> Program {
        if let Some(path) = self.reading.command.first() {
            return program(path);
        }
        let busiest = self
            .processes
            .iter()
            .max_by_key(|&(pid, count)| (*count, *pid));
        busiest
            .and_then(|(pid, _)| self.places.program(*pid))
            .map_or_else(Program::default, program)
    }
}

fn program(path: &str) -> Program {
    Program {
        path: path.to_owned(),
        build_id: symbols::build_id(Path::new(path)),
    }
}

/// Reads the next line into `buffer`, without its terminator. Returns false at the end of the text.
fn next_line(
    reader: &mut impl BufRead,
    buffer: &mut Vec<u8>,
    number: usize,
) -> Result<bool, FormatError> {
    buffer.clear();
    let damaged = |detail: String| FormatError::Damaged { what: WHAT, detail };
    let mut limited = io::Read::take(reader, MAX_LINE as u64);
    let read = limited
        .read_until(b'\n', buffer)
        .map_err(|error| damaged(format!("line {number}: {error}")))?;
    if buffer.last() == Some(&b'\n') {
        buffer.pop();
    } else if read == MAX_LINE {
        return Err(damaged(format!(
            "line {number} is longer than {MAX_LINE} bytes"
        )));
    }
    Ok(read > 0)
}

/// A line as text; truncated at invalid UTF-8 (in a file's name, for example).
fn text_of(bytes: &[u8], number: usize) -> Result<&str, FormatError> {
    if bytes.contains(&0) {
        return Err(FormatError::Foreign {
            expected: WHAT,
            found: format!("line {number} is binary"),
        });
    }
    Ok(match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The fields in use are ASCII and precede any name.
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
    })
}
