// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parser for the Test Anything Protocol, as the kernel's selftests print it.

use serde::Serialize;

/// Test results of one program.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tap {
    pub passed: usize,
    pub skipped: usize,
    pub failed: Vec<String>,
    /// Planned number of tests.
    pub planned: Option<usize>,
}

impl Tap {
    /// Parses a program's output. Lines that are not TAP are ignored.
    pub fn parse(text: &str) -> Tap {
        let mut tap = Tap::default();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("not ok ") {
                tap.failed.push(name.to_owned());
            } else if let Some(rest) = line.strip_prefix("ok ") {
                match rest.contains("# SKIP") {
                    true => tap.skipped += 1,
                    false => tap.passed += 1,
                }
            } else if let Some(plan) = line.strip_prefix("1..") {
                let count: String = plan.chars().take_while(char::is_ascii_digit).collect();
                tap.planned = count.parse().ok();
            }
        }
        tap
    }

    /// Parses the KUnit results of all suites, concatenated (/sys/kernel/debug/kunit/*/results):
    /// test cases are the lines indented below a suite.
    pub fn parse_kunit(text: &str) -> Tap {
        let mut all = Tap {
            planned: Some(0),
            ..Tap::default()
        };
        let cases: String = text
            .lines()
            .filter_map(|line| Some(format!("{}\n", line.strip_prefix("    ")?)))
            .collect();
        for suite in cases.split("KTAP version 1\n").skip(1) {
            let tap = Tap::parse(suite);
            all.passed += tap.passed;
            all.skipped += tap.skipped;
            all.failed.extend(tap.failed);
            all.planned = all.planned.zip(tap.planned).map(|(a, b)| a + b);
        }
        all
    }

    /// Returns why a program's tests did not pass, if they did not.
    pub fn problem(&self) -> Option<String> {
        let ran = self.passed + self.skipped + self.failed.len();
        match self.planned {
            _ if !self.failed.is_empty() => Some(format!("failed: {}", self.failed.join("; "))),
            None => Some("no plan (1..N)".to_owned()),
            Some(planned) if planned != ran => {
                Some(format!("planned {planned} tests and ran {ran}"))
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted() {
        let tap = Tap::parse(
            "TAP version 13\n1..3\nok 1 a\nsome output\nok 2 # SKIP no swap\nnot ok 3 c\n",
        );
        let expected = Tap {
            passed: 1,
            skipped: 1,
            failed: vec!["3 c".to_owned()],
            planned: Some(3),
        };
        assert_eq!(tap, expected);
        assert_eq!(tap.problem().as_deref(), Some("failed: 3 c"));
    }

    #[test]
    fn the_cases_of_all_suites_are_counted() {
        let suites = "    KTAP version 1\n    # Subtest: a\n    1..2\n    ok 1 x\n    not ok 2 y\n\
            # a: pass:1 fail:1 skip:0 total:2\nnot ok 1 a\n\
            KTAP version 1\n    KTAP version 1\n    # Subtest: b\n    1..1\n    ok 1 z # SKIP no\nok 1 b\n";
        let tap = Tap::parse_kunit(suites);
        assert_eq!((tap.passed, tap.skipped, tap.planned), (1, 1, Some(3)));
        assert_eq!(tap.failed, ["2 y"]);
        assert_eq!(Tap::parse_kunit("").planned, Some(0));
    }

    #[test]
    fn a_program_that_ends_early_has_not_passed() {
        assert_eq!(
            Tap::parse("1..2\nok 1 a\n").problem().as_deref(),
            Some("planned 2 tests and ran 1")
        );
        assert!(Tap::parse("ok 1 a\n").problem().is_some());
        assert_eq!(Tap::parse("1..0 # SKIP not here\n").problem(), None);
        assert_eq!(Tap::parse("1..1\nok 1 a\n").problem(), None);
    }
}
