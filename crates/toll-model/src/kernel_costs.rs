// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost files for the kernel's estimator (mm/econ): one line per cost, in nanoseconds.
//!
//! ```text
//! mm_costs 1
//! fault 1300 # measured: 1,210 to 1,420 in 400 samples
//! split 60000 # as in the preset epyc
//! end 2
//! ```
//!
//! Costs are named as the files in /sys/kernel/mm/econ/costs; unknown names are accepted. Their
//! meaning is described in the patch queue's Documentation/ABI/testing/sysfs-kernel-mm-econ.

use std::fmt::Write;

use crate::error::FormatError;
use crate::format::{Format, clip};

/// First word of a file.
pub const MAGIC: &str = "mm_costs";
/// The version of the format that this build writes and reads.
pub const VERSION: u32 = 1;

const COSTS: Format = Format {
    what: "file of the kernel's costs",
    name: MAGIC,
    version: VERSION,
};

/// Files of the directory that are not costs.
pub const NOT_COSTS: [&str; 2] = ["frozen", "samples"];

/// Presets of this build, by name.
pub const SHIPPED: [(&str, &str); 1] = [("epyc", include_str!("../../../lab/presets/epyc.costs"))];

/// Cost of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    pub name: String,
    pub ns: u64,
    /// Description of the source of the number.
    pub source: String,
    /// Line in the file, from 1; 0: not from a file.
    pub line: usize,
}

/// Parses the costs of a file, in order.
///
/// # Errors
/// [`FormatError`] names the invalid line.
pub fn parse(bytes: &[u8]) -> Result<Vec<Cost>, FormatError> {
    let text = COSTS.utf8(bytes)?;
    let mut lines = text.lines().enumerate().filter_map(|(index, line)| {
        let (said, source) = line.split_once('#').unwrap_or((line, ""));
        let words: Vec<&str> = said.split_whitespace().collect();
        (!words.is_empty()).then_some((index + 1, words, source.trim()))
    });
    check_head(lines.next().map(|(_, words, _)| words).as_deref())?;
    let mut costs: Vec<Cost> = Vec::new();
    let mut end = None;
    for (line, words, source) in lines {
        let wrong = |detail: String| COSTS.invalid(format!("line {line}: {detail}"));
        if end.is_some() {
            return Err(wrong("it stands behind the end".to_owned()));
        }
        if let ["end", number] = words[..] {
            end = Some(number.to_owned());
            continue;
        }
        let cost = cost(&words, source, line).map_err(wrong)?;
        if costs.iter().any(|earlier| earlier.name == cost.name) {
            return Err(wrong(format!("{} has a cost already", cost.name)));
        }
        costs.push(cost);
    }
    match end {
        Some(number) if number == costs.len().to_string() => Ok(costs),
        Some(number) => Err(COSTS.damaged(format!(
            "it says {:?} costs and holds {}",
            clip(&number),
            costs.len()
        ))),
        None => Err(COSTS.damaged("its last line, the end, is missing".to_owned())),
    }
}

/// Formats the costs as a file. `about` describes their origin.
pub fn format(about: &str, costs: &[Cost]) -> String {
    let mut text = format!("{MAGIC} {VERSION}\n# {about}\n");
    for cost in costs {
        let _ = writeln!(text, "{} {} # {}", cost.name, cost.ns, cost.source);
    }
    let _ = writeln!(text, "end {}", costs.len());
    text
}

/// Returns a preset of this build; `None` for an unknown name.
pub fn shipped(name: &str) -> Option<Vec<Cost>> {
    let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name)?;
    Some(parse(text.as_bytes()).expect("the tests read every preset"))
}

fn check_head(words: Option<&[&str]>) -> Result<(), FormatError> {
    match words {
        Some([MAGIC, version]) => match version.parse() {
            Ok(version) => COSTS.check(MAGIC, version),
            Err(_) => Err(COSTS.invalid(format!("{:?} is no version", clip(version)))),
        },
        _ => Err(COSTS.foreign(format!("it does not begin with `{MAGIC} {VERSION}`"))),
    }
}

fn cost(words: &[&str], source: &str, line: usize) -> Result<Cost, String> {
    let [name, ns] = words else {
        return Err("it is not a name and a number of nanoseconds".to_owned());
    };
    if !is_name(name) {
        return Err(format!("{:?} is no name of a cost", clip(name)));
    }
    let is_number = ns.bytes().all(|byte| byte.is_ascii_digit());
    match ns.parse() {
        Ok(ns) if is_number => Ok(Cost {
            name: (*name).to_owned(),
            ns,
            source: source.to_owned(),
            line,
        }),
        _ => Err(format!("{:?} is no number of nanoseconds", clip(ns))),
    }
}

/// Whether a word is a valid name of a cost: it becomes a file name.
fn is_name(word: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !word.is_empty() && word.bytes().all(fits) && !NOT_COSTS.contains(&word)
}

#[cfg(test)]
mod tests;
