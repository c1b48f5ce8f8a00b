// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of one test on one kernel, in a form that can be compared.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::guest::{Done, Part, Status};
use crate::tap::Tap;

/// Exit statuses of lab/guest/within.c.
const TIME_OVER: i32 = 124;
const STUCK: i32 = 125;
/// The maximum number of failed subtests that are kept.
const NAMES: usize = 20;
/// The number of output lines that are kept if a test does not pass.
const REMARKS: usize = 20;

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Passed,
    Skipped,
    /// Its exit status.
    Failed(i32),
    /// The signal.
    Killed(i32),
    TimeOver,
    /// Its processes could not be killed.
    Stuck,
    /// The guest ended while the test ran; the reason.
    Crashed(String),
    /// It could not be compiled; the reason.
    NotBuilt(String),
}

/// A result. Remarks are not compared.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Verdict {
    pub end: End,
    /// The number of subtests that passed and were skipped, and the names of those that failed.
    pub passed: usize,
    pub skipped: usize,
    pub failed: Vec<String>,
    /// The kernel's reports while it ran.
    pub reports: Vec<String>,
    /// The end of its output if it did not pass, and where the console is.
    pub remarks: Vec<String>,
}

impl PartialEq for Verdict {
    fn eq(&self, other: &Verdict) -> bool {
        let parts = |it: &Verdict| (it.passed, it.skipped);
        self.end == other.end
            && parts(self) == parts(other)
            && self.failed == other.failed
            && self.reports == other.reports
    }
}

impl Verdict {
    /// Returns the result of a job; `None` if it was not started. `skipped` are exit statuses of
    /// skipped tests.
    pub fn of(part: &Part, skipped: &[i32]) -> Option<Verdict> {
        match part {
            Part::Ended(done, reports) => Some(Verdict::of_done(done, reports, skipped)),
            Part::Broken(why, reports) => Some(Verdict {
                reports: unique(reports),
                ..Verdict::plain(End::Crashed(why.clone()))
            }),
            Part::NotBegun => None,
        }
    }

    pub fn not_built(why: &str) -> Verdict {
        Verdict::plain(End::NotBuilt(why.to_owned()))
    }

    /// Returns the result of booting and preparing a guest.
    pub fn set_up(reports: &[String]) -> Verdict {
        Verdict {
            reports: unique(reports),
            ..Verdict::plain(End::Passed)
        }
    }

    /// Appends the path of the console if the kernel reported something.
    pub fn with_console(mut self, console: &Path) -> Verdict {
        if !self.reports.is_empty() || matches!(self.end, End::Crashed(_)) {
            self.remarks.push(format!("console: {}", console.display()));
        }
        self
    }

    pub fn skipped() -> Verdict {
        Verdict::plain(End::Skipped)
    }

    fn plain(end: End) -> Verdict {
        Verdict {
            end,
            passed: 0,
            skipped: 0,
            failed: Vec::new(),
            reports: Vec::new(),
            remarks: Vec::new(),
        }
    }

    fn of_done(done: &Done, reports: &[String], skipped: &[i32]) -> Verdict {
        let tap = Tap::parse(&done.out);
        let end = match done.status {
            Status::Exit(TIME_OVER) => End::TimeOver,
            Status::Exit(STUCK) => End::Stuck,
            Status::Exit(code) if skipped.contains(&code) && tap.failed.is_empty() => End::Skipped,
            Status::Exit(0) if !tap.failed.is_empty() => End::Failed(0),
            Status::Exit(0) if tap.passed == 0 && tap.skipped > 0 => End::Skipped,
            Status::Exit(0) => End::Passed,
            Status::Exit(code) => End::Failed(code),
            Status::Signal(signal) => End::Killed(signal),
        };
        let is_good = matches!(end, End::Passed | End::Skipped);
        let (passed, omitted) = match tap.planned {
            None if tap.passed == 0 => sums(&done.out).unwrap_or_default(),
            _ => (tap.passed, tap.skipped),
        };
        let said = || done.out.lines().chain(done.err.lines());
        let mut failed: Vec<String> = tap.failed.iter().map(|name| plain(name)).collect();
        if failed.is_empty() && matches!(end, End::Failed(_)) {
            failed = said().filter(|line| is_failure(line)).map(plain).collect();
        }
        failed = unique(&failed);
        failed.truncate(NAMES);
        let remarks: Vec<String> = said().map(str::to_owned).collect();
        let first = remarks.len().saturating_sub(REMARKS);
        Verdict {
            end,
            passed,
            skipped: omitted,
            failed,
            reports: unique(reports),
            remarks: if is_good {
                Vec::new()
            } else {
                remarks[first..].to_vec()
            },
        }
    }
}

/// The sums of a program without TAP that ends with `pass=N, skip=N`.
fn sums(out: &str) -> Option<(usize, usize)> {
    let line = out.lines().rev().find(|line| line.contains("pass="))?;
    let number = |name: &str| {
        let (_, rest) = line.split_once(name)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    Some((number("pass=")?, number("skip=").unwrap_or(0)))
}

/// Whether a line of a program without TAP reports a failure.
fn is_failure(line: &str) -> bool {
    const SIGNS: [&str; 5] = ["fail", "error", "assert", "mismatch", "bail out"];
    let line = line.to_lowercase();
    SIGNS.iter().any(|sign| line.contains(sign)) && !line.contains("fail:0")
}

/// Normalizes a text: `N` for each number, no colours, and at most three dots: addresses, times,
/// identifiers and progress dots differ between runs.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A terminal control sequence ends with a letter.
            while chars.next_if(|c| !c.is_ascii_alphabetic()).is_some() {}
            chars.next();
        } else if c.is_ascii_digit() {
            while chars.next_if(char::is_ascii_digit).is_some() {}
            plain.push('N');
        } else if c != '.' || !plain.ends_with("...") {
            plain.push(c);
        }
    }
    plain
}

/// Removes duplicates.
fn unique(all: &[String]) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for text in all {
        if !seen.contains(text) {
            seen.push(text.clone());
        }
    }
    seen
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.end {
            End::Passed => f.write_str("ok")?,
            End::Skipped => f.write_str("skipped")?,
            End::Failed(status) => write!(f, "FAILED (status {status})")?,
            End::Killed(signal) => write!(f, "KILLED by signal {signal}")?,
            End::TimeOver => f.write_str("TIME OVER")?,
            End::Stuck => f.write_str("STUCK")?,
            End::Crashed(why) => write!(f, "CRASHED: {why}")?,
            End::NotBuilt(why) => write!(f, "not built: {why}")?,
        }
        if self.passed > 0 {
            write!(f, ", {} passed", self.passed)?;
        }
        if self.skipped > 0 && self.end != End::Skipped {
            write!(f, ", {} skipped", self.skipped)?;
        }
        if !self.failed.is_empty() {
            write!(f, ", failed: {}", self.failed.join("; "))?;
        }
        if !self.reports.is_empty() {
            write!(f, ", REPORT: {}", self.reports.join("; "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(status: Status, out: &str, err: &str) -> Verdict {
        let done = Done {
            name: "x".to_owned(),
            status,
            out: out.to_owned(),
            err: err.to_owned(),
        };
        Verdict::of(&Part::Ended(done, Vec::new()), &[4]).unwrap()
    }

    #[test]
    fn statuses_and_subtests_make_the_result() {
        let end = |status, out| verdict(status, out, "").end;
        assert_eq!(end(Status::Exit(0), ""), End::Passed);
        assert_eq!(end(Status::Exit(4), ""), End::Skipped);
        assert_eq!(end(Status::Exit(4), "not ok 1 a\n"), End::Failed(4));
        assert_eq!(end(Status::Exit(0), "1..1\nok 1 # SKIP no\n"), End::Skipped);
        assert_eq!(end(Status::Exit(0), "1..1\nnot ok 1 a\n"), End::Failed(0));
        assert_eq!(end(Status::Exit(1), ""), End::Failed(1));
        assert_eq!(end(Status::Exit(124), ""), End::TimeOver);
        assert_eq!(end(Status::Exit(125), ""), End::Stuck);
        assert_eq!(end(Status::Signal(11), ""), End::Killed(11));
        let both = verdict(Status::Exit(0), "1..2\nok 1 a\nok 2 # SKIP b\n", "");
        assert_eq!(both.to_string(), "ok, 1 passed, 1 skipped");
    }

    #[test]
    fn colours_and_progress_make_no_difference() {
        let text = "Collapse 17 tables....... \u{1b}[31mFail\u{1b}[0m";
        assert_eq!(plain(text), "Collapse N tables... Fail");
        assert_eq!(plain("a.b.. c..."), "a.b.. c...");
    }

    #[test]
    fn sums_are_read_where_there_is_no_tap() {
        let out = "Testing x... done\nUserfaults unit tests: pass=67, skip=2, fail=0 (total=69)\n";
        let said = verdict(Status::Exit(0), out, "").to_string();
        assert_eq!(said, "ok, 67 passed, 2 skipped");
        assert_eq!(verdict(Status::Exit(0), "pass=\n", "").to_string(), "ok");
    }

    #[test]
    fn numbers_and_remarks_make_no_difference() {
        let of = |address: &str| {
            verdict(
                Status::Exit(1),
                "",
                &format!("all is well\nERROR: mismatch at {address} after 12 s\n"),
            )
        };
        assert_eq!(of("0x7000"), of("0x7001"));
        assert_eq!(of("0x1").failed, ["ERROR: mismatch at NxN after N s"]);
        assert_eq!(of("0x1").remarks.len(), 2);
        assert_ne!(of("0x1"), verdict(Status::Exit(1), "", ""));
        assert_ne!(
            verdict(Status::Exit(1), "not ok 1 a\n", ""),
            verdict(Status::Exit(1), "not ok 1 b\n", "")
        );
    }

    #[test]
    fn crashes_and_reports_are_part_of_the_result() {
        let report = || vec!["BUG: x".to_owned(), "BUG: x".to_owned()];
        let crashed = Verdict::of(&Part::Broken("panic".to_owned(), report()), &[]).unwrap();
        assert_eq!(crashed.to_string(), "CRASHED: panic, REPORT: BUG: x");
        let crashed = crashed.with_console(Path::new("/c"));
        assert_eq!(crashed.remarks, ["console: /c"]);
        assert!(Verdict::of(&Part::NotBegun, &[]).is_none());
        let set_up = Verdict::set_up(&report());
        assert_eq!(set_up.to_string(), "ok, REPORT: BUG: x");
        assert_ne!(set_up, Verdict::set_up(&[]));
    }
}
