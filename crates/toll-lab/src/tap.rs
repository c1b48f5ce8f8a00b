// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Test Anything Protocol, as the kernel's selftests speak it.

use serde::Serialize;

/// What one program said of its tests.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tap {
    pub passed: usize,
    pub skipped: usize,
    pub failed: Vec<String>,
    /// How many there should have been.
    pub planned: Option<usize>,
}

impl Tap {
    /// Reads a program's output. Lines that are no TAP are nobody's business.
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

    /// Why a program's tests did not pass, if they did not.
    pub fn problem(&self) -> Option<String> {
        let ran = self.passed + self.skipped + self.failed.len();
        match self.planned {
            _ if !self.failed.is_empty() => Some(format!("failed: {}", self.failed.join("; "))),
            None => Some("said no plan (1..N)".to_owned()),
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
