// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tabular texts: `perf mem report --stdio`, and the dump of `perf mem -D report`.

use super::tlb::{self, Tlb};

/// One parsed line of a report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Number of samples of the line.
    pub samples: u64,
    /// `None`: the data is named by symbol, without an address.
    pub address: Option<u64>,
    pub tlb: Tlb,
    pub weight: Option<u64>,
}

/// The columns of `perf mem report --stdio`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    names: usize,
    samples: Option<usize>,
    weight: Option<usize>,
    data: usize,
    tlb: usize,
}

impl Columns {
    /// Parses the line of column names (`# Overhead  Samples  ...`).
    ///
    /// # Errors
    /// The missing column, and the command that prints it.
    pub fn of(header: &str) -> Result<Columns, String> {
        let names: Vec<&str> = fields(header.trim_start_matches('#')).collect();
        let find = |wanted: &str| names.iter().position(|n| n.eq_ignore_ascii_case(wanted));
        let must = |wanted: &str| {
            find(wanted).ok_or_else(|| {
                format!("no column {wanted:?}: only `perf mem report --stdio` prints it, `perf report` does not")
            })
        };
        Ok(Columns {
            names: names.len(),
            samples: find("Samples"),
            weight: find("Local Weight"),
            data: must("Data Symbol")?,
            tlb: must("TLB access")?,
        })
    }

    /// Whether lines have a number of samples.
    pub fn has_samples(&self) -> bool {
        self.samples.is_some()
    }

    /// Parses a line of numbers.
    ///
    /// # Errors
    /// The missing cell.
    pub fn parse(&self, line: &str) -> Result<Line, String> {
        let cells: Vec<&str> = fields(line).collect();
        let (data, tlb) = self.data_and_tlb(&cells)?;
        let samples = match self.samples {
            Some(column) => cells
                .get(column)
                .and_then(|c| c.parse().ok())
                .ok_or("no number of samples")?,
            None => 1,
        };
        Ok(Line {
            samples,
            address: address(data),
            tlb,
            weight: self.weight.and_then(|c| cells.get(c)?.parse().ok()),
        })
    }

    /// Returns the data cell and the TLB. If a cell is empty or contains a gap, the columns after
    /// it shift: then the data is the last cell with a mode (`[.] ...`), and the TLB follows it.
    fn data_and_tlb<'a>(&self, cells: &[&'a str]) -> Result<(&'a str, Tlb), String> {
        if cells.len() == self.names {
            if let (true, Some(tlb)) = (has_mode(cells[self.data]), tlb::from_text(cells[self.tlb]))
            {
                return Ok((cells[self.data], tlb));
            }
        }
        let at = cells
            .iter()
            .rposition(|c| has_mode(c))
            .ok_or("no data symbol")?;
        let tlb = cells[at + 1..]
            .iter()
            .filter(|c| c.ends_with("hit") || c.ends_with("miss"))
            .find_map(|c| tlb::from_text(c))
            .or_else(|| cells[at + 1..].contains(&"N/A").then_some(Tlb::Unknown))
            .ok_or("no TLB access (is the line cut short?)")?;
        Ok((cells[at], tlb))
    }
}

/// Splits cells at two or more spaces.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split("  ").map(str::trim).filter(|f| !f.is_empty())
}

/// `[.] symbol`: user space, `[k]` kernel, and a few others.
fn has_mode(cell: &str) -> bool {
    let bytes = cell.as_bytes();
    bytes.len() > 4 && bytes[0] == b'[' && bytes[2] == b']' && bytes[3] == b' '
}

/// The address of `[.] 0x00007f0000001008`; `None` for `[.] table+0x8`.
fn address(cell: &str) -> Option<u64> {
    let digits = cell.get(4..)?.trim().strip_prefix("0x")?;
    u64::from_str_radix(digits, 16).ok()
}

/// Parses a line of `perf mem -D report`: `pid tid ip addr weight dsrc object:symbol`, or the same
/// separated by commas or semicolons (`-x`), possibly with a page size among them.
///
/// # Errors
/// The missing field.
pub fn parse_dump(line: &str) -> Result<Line, String> {
    let words: Vec<&str> = line
        .split([' ', '\t', ',', ';'])
        .filter(|w| !w.is_empty())
        .collect();
    let number = |at: usize| {
        let word: &str = words.get(at)?;
        match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        }
    };
    let hex_at = |at: usize| words.get(at).is_some_and(|w| w.starts_with("0x"));
    let address = (hex_at(2) && hex_at(3)).then(|| number(3)).flatten();
    let address = address.ok_or("no address in the fourth column")?;
    let source = (4..words.len())
        .filter(|&i| hex_at(i))
        .filter_map(number)
        .find(|&v| tlb::is_data_src(v))
        .ok_or("no data source")?;
    Ok(Line {
        samples: 1,
        address: Some(address),
        tlb: tlb::from_bits(source),
        weight: (4..words.len()).filter(|&i| !hex_at(i)).find_map(number),
    })
}

#[cfg(test)]
mod tests;
