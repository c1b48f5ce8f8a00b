// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of `perf script`: one line per sample or record.
//!
//! The order of the fields is fixed, whatever `-F` requests:
//! `comm [pid/]tid [cpu] time: period event: address data_src |OP ...|TLB ...|... weight ip symbol
//! (object)`.
//! All fields except the address and the data source are optional.

use super::tlb::{self, Tlb};

/// One parsed line.
#[derive(Debug, Clone, PartialEq)]
pub enum Line<'a> {
    Sample(Sample),
    /// A sample of an event without a data source.
    Sourceless,
    Map(Map<'a>),
    /// A new process image: its old mappings are removed.
    Exec {
        pid: u32,
    },
    Fork {
        pid: u32,
        parent: u32,
    },
    /// Other records, blank lines.
    Other,
}

/// One sampled memory access.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Process id if the line has one, else the thread id.
    pub pid: Option<u32>,
    /// CLOCK of the recording, ns.
    pub time_ns: Option<u64>,
    pub address: u64,
    /// Accesses per sample, if the line has them.
    pub period: Option<u64>,
    pub tlb: Tlb,
    /// Latency in cycles.
    pub weight: Option<u64>,
    /// Whether the data was in a page larger than 4 KiB.
    pub huge: bool,
}

/// A new mapping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Map<'a> {
    pub pid: u32,
    pub start: u64,
    pub length: u64,
    /// Offset in the file, bytes.
    pub offset: u64,
    pub executable: bool,
    pub name: &'a str,
}

/// Parses one line.
///
/// # Errors
/// The error in a line that looks like a sample.
pub fn parse(line: &str) -> Result<Line<'_>, String> {
    if let Some(at) = line.find(" PERF_RECORD_") {
        return Ok(record(&line[at + 1..]).unwrap_or(Line::Other));
    }
    match line.find("|OP ") {
        Some(at) => decoded(&line[..at], &line[at + 1..]).map(Line::Sample),
        None => Ok(undecoded(line)),
    }
}

/// Parses a sample with a data source in text form.
fn decoded(before: &str, source: &str) -> Result<Sample, String> {
    let mut head: Vec<&str> = before.split_whitespace().collect();
    let bits = head
        .pop()
        .and_then(hex)
        .ok_or("no number before the data source")?;
    let front = Front::of(&head)?;
    let mut fields = source.split('|');
    let tlb = fields
        .clone()
        .find_map(|field| field.trim_start().strip_prefix("TLB"))
        .ok_or("the data source has no TLB field (is the line cut short?)")?;
    let tail = fields.next_back().unwrap_or("");
    let (tlb, tail) = match tail.trim_start().starts_with("TLB") {
        // The TLB field is the last: its text ends where the numbers begin.
        true => split_tail(tlb.trim_start()),
        false => (tlb.trim(), tail),
    };
    let tlb = match tlb::from_text(tlb) {
        Some(Tlb::Unknown) => tlb::from_bits(bits),
        Some(known) => known,
        None => return Err(format!("{tlb:?} is not a TLB field")),
    };
    Ok(Sample {
        pid: front.pid,
        time_ns: front.time_ns,
        address: front.address,
        period: front.period,
        tlb,
        weight: numbers(tail).next(),
        huge: has_huge_page(tail),
    })
}

/// Splits `L2 miss   12 401000` after the last word of the TLB text.
fn split_tail(text: &str) -> (&str, &str) {
    for end in ["miss", "hit", "N/A"] {
        if let Some(at) = text.find(end) {
            return text.split_at(at + end.len());
        }
    }
    (text, "")
}

/// Parses a sample without decoded text: valid if its second number is a data source.
fn undecoded(line: &str) -> Line<'_> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some(event) = words.iter().rposition(|w| w.len() > 1 && w.ends_with(':')) else {
        return Line::Other;
    };
    let rest = &words[event + 1..];
    let bits = rest.get(1).copied().and_then(hex);
    match (Front::of(&words[..(event + 2).min(words.len())]), bits) {
        (Ok(front), Some(bits)) if tlb::is_data_src(bits) => Line::Sample(Sample {
            pid: front.pid,
            time_ns: front.time_ns,
            address: front.address,
            period: front.period,
            tlb: tlb::from_bits(bits),
            weight: rest.get(2).and_then(|w| w.parse().ok()),
            huge: has_huge_page(line),
        }),
        (Ok(front), _) if front.time_ns.is_some() => Line::Sourceless,
        _ => Line::Other,
    }
}

/// The fields before the data source.
struct Front {
    pid: Option<u32>,
    time_ns: Option<u64>,
    period: Option<u64>,
    address: u64,
}

impl Front {
    fn of(words: &[&str]) -> Result<Front, String> {
        let time = words.iter().position(|w| time_ns(w).is_some());
        let last_label = words.iter().rposition(|w| w.len() > 1 && w.ends_with(':'));
        // The address follows the event; symbol and object of the data may follow the address.
        let address = match last_label {
            Some(label) => words.get(label + 1),
            None => words.last(),
        };
        let address = address
            .copied()
            .and_then(hex)
            .ok_or("no data address before the data source (record with perf mem)")?;
        let numbers_before = |end: usize| words[..end].iter().rev();
        let pid = match time {
            Some(time) => numbers_before(time).find_map(|w| process(w)),
            None => words
                .iter()
                .find_map(|w| process(w).filter(|_| w.contains('/'))),
        };
        let period = match (time, last_label) {
            (Some(time), Some(label)) if label > time => {
                words[time + 1..label].iter().find_map(|w| w.parse().ok())
            }
            _ => None,
        };
        Ok(Front {
            pid,
            time_ns: time.and_then(|t| time_ns(words[t])),
            period,
            address,
        })
    }
}

/// `123/456` or `456`: the process, else the thread.
fn process(word: &str) -> Option<u32> {
    word.split('/').next()?.parse().ok()
}

/// `1189.349019:` in nanoseconds; the fraction has six or nine digits.
fn time_ns(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.strip_suffix(':')?.split_once('.')?;
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let digits = |s: &str| {
        s.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| s.parse::<u64>().ok())?
    };
    digits(seconds)?
        .checked_mul(1_000_000_000)?
        .checked_add(digits(fraction)? * scale)
}

/// A hexadecimal number with or without `0x`.
fn hex(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

/// The decimal numbers among the words, in order.
fn numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split_whitespace().filter_map(|w| w.parse().ok())
}

/// Whether the text has a data page size (`4K`, `2M`, `1G`) above 4 KiB.
fn has_huge_page(text: &str) -> bool {
    text.split_whitespace().any(|w| matches!(w, "2M" | "1G"))
}

/// Parses `PERF_RECORD_...` and its fields.
fn record(text: &str) -> Option<Line<'_>> {
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    match name {
        "PERF_RECORD_MMAP" | "PERF_RECORD_MMAP2" => map(rest).map(Line::Map),
        // PERF_RECORD_COMM exec: name:pid/tid
        "PERF_RECORD_COMM" if rest.starts_with("exec") => {
            let (_, ids) = rest.rsplit_once(':')?;
            Some(Line::Exec { pid: process(ids)? })
        }
        _ if name.starts_with("PERF_RECORD_FORK") => fork(text),
        _ => None,
    }
}

/// `PERF_RECORD_FORK(pid:tid):(parent:tid)`
fn fork(text: &str) -> Option<Line<'_>> {
    let ids = |part: &str| part.trim_start_matches('(').split(':').next()?.parse().ok();
    let (child, parent) = text.strip_prefix("PERF_RECORD_FORK")?.split_once("):")?;
    Some(Line::Fork {
        pid: ids(child)?,
        parent: ids(parent)?,
    })
}

/// `22768/22768: [0x7ffc3c2aa000(0x21000) @ 0x1000 fe:00 1 2]: rw-p [stack]`
fn map(text: &str) -> Option<Map<'_>> {
    let (ids, rest) = text.trim_start().split_once(": [")?;
    let (range, rest) = rest.split_once("]: ")?;
    let (start, rest_of_range) = range.split_once('(')?;
    let (length, offset) = rest_of_range.split_once(") @ ")?;
    let (protection, name) = rest.split_once(' ')?;
    Some(Map {
        pid: process(ids)?,
        start: hex(start)?,
        length: hex(length)?,
        offset: hex(offset.split(' ').next()?)?,
        executable: protection.contains('x'),
        name: name.trim_end(),
    })
}

#[cfg(test)]
mod tests;
