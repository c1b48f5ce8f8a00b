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
use crate::format::Format;

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
        Some(number) => Err(damaged(format!(
            "it says {} costs and holds {}",
            clip(&number),
            costs.len()
        ))),
        None => Err(damaged("its last line, the end, is missing".to_owned())),
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
            Err(_) => Err(COSTS.invalid(format!("{} is no version", clip(version)))),
        },
        _ => Err(FormatError::Foreign {
            expected: COSTS.what,
            found: format!("it does not begin with `{MAGIC} {VERSION}`"),
        }),
    }
}

fn cost(words: &[&str], source: &str, line: usize) -> Result<Cost, String> {
    let [name, ns] = words else {
        return Err("it is not a name and a number of nanoseconds".to_owned());
    };
    if !is_name(name) {
        return Err(format!("{} is no name of a cost", clip(name)));
    }
    let is_number = ns.bytes().all(|byte| byte.is_ascii_digit());
    match ns.parse() {
        Ok(ns) if is_number => Ok(Cost {
            name: (*name).to_owned(),
            ns,
            source: source.to_owned(),
            line,
        }),
        _ => Err(format!("{} is no number of nanoseconds", clip(ns))),
    }
}

/// Whether a word is a valid name of a cost: it becomes a file name.
fn is_name(word: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !word.is_empty() && word.bytes().all(fits) && !NOT_COSTS.contains(&word)
}

fn damaged(detail: String) -> FormatError {
    FormatError::Damaged {
        what: COSTS.what,
        detail,
    }
}

/// Quotes a word of the file for an error message.
fn clip(word: &str) -> String {
    let shown: String = word.chars().take(40).collect();
    format!("{shown:?}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WHOLE: &str =
        "# of a machine\nmm_costs 1\n\nfault 1300 # measured\n  split 0\nend 2 # that is all\n";

    fn says(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_file_has_names_numbers_and_where_they_come_from() {
        let costs = parse(WHOLE.as_bytes()).unwrap();
        let [fault, split] = &costs[..] else {
            panic!("{costs:?}")
        };
        assert_eq!(
            (fault.name.as_str(), fault.ns, fault.line),
            ("fault", 1300, 4)
        );
        assert_eq!(
            (fault.source.as_str(), split.source.as_str()),
            ("measured", "")
        );
        assert_eq!((split.ns, split.line), (0, 5));
    }

    #[test]
    fn nonsense_is_named_with_its_line() {
        for (text, part) in [
            (
                "mm_costs 1\nfault\nend 1\n",
                "line 2: it is not a name and a number",
            ),
            (
                "mm_costs 1\nfault 1 2\nend 1\n",
                "line 2: it is not a name and a number",
            ),
            (
                "mm_costs 1\nfault 12x\nend 1\n",
                "line 2: \"12x\" is no number",
            ),
            (
                "mm_costs 1\nfault -1\nend 1\n",
                "line 2: \"-1\" is no number",
            ),
            (
                "mm_costs 1\nfault +1\nend 1\n",
                "line 2: \"+1\" is no number",
            ),
            (
                "mm_costs 1\nfault 18446744073709551616\nend 1\n",
                "is no number",
            ),
            (
                "mm_costs 1\n../mode 1\nend 1\n",
                "line 2: \"../mode\" is no name",
            ),
            (
                "mm_costs 1\nfrozen 1\nend 1\n",
                "line 2: \"frozen\" is no name",
            ),
            (
                "mm_costs 1\nfault 1\nfault 2\nend 2\n",
                "line 3: fault has a cost already",
            ),
            (
                "mm_costs 1\nfault 1\nend 1\nsplit 2\n",
                "line 4: it stands behind the end",
            ),
            (
                "mm_costs 1\nfault 1\nend 2\n",
                "says \"2\" costs and holds 1",
            ),
            ("mm_costs 1\nfault 1\n", "the end, is missing"),
            (
                "mm_costs 2\nend 0\n",
                "version 2; this build reads version 1",
            ),
            ("mm_costs x\nend 0\n", "\"x\" is no version"),
            ("mm_profile 1\nend 0\n", "does not begin with `mm_costs 1`"),
            ("", "does not begin with `mm_costs 1`"),
        ] {
            assert!(says(text).contains(part), "{text:?}: {}", says(text));
        }
        assert!(parse(b"\xff").is_err());
    }

    #[test]
    fn every_preset_is_one() {
        for (name, _) in SHIPPED {
            let costs = shipped(name).unwrap();
            assert!(costs.len() >= 8);
            assert!(costs.iter().all(|cost| !cost.source.is_empty()), "{name}");
        }
        assert_eq!(shipped("nothing"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(numbers in prop::collection::vec(any::<u64>(), 0..20)) {
            let costs: Vec<Cost> = numbers
                .iter()
                .enumerate()
                .map(|(index, ns)| Cost {
                    name: format!("cost_{index}"),
                    ns: *ns,
                    source: format!("measured {index} times"),
                    line: index + 3,
                })
                .collect();
            prop_assert_eq!(parse(format("a machine", &costs).as_bytes()).unwrap(), costs);
        }

        #[test]
        fn no_text_panics(text in "(mm_costs 1\n)?[a-z0-9_#\\. \n]{0,60}") {
            let _ = parse(text.as_bytes());
        }
    }
}
