// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of one test on one kernel, in a form that can be compared.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::guest::{Done, Part, Status};
use crate::tap::Tap;

/// What lab/guest/within.c ends with.
const TIME_OVER: i32 = 124;
const STUCK: i32 = 125;
/// Names of failed tests, and lines that speak of failure where there are no names, at the most.
const NAMES: usize = 20;
/// Lines of what a test said that are kept, if it did not pass.
const REMARKS: usize = 20;

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Passed,
    Skipped,
    /// With this status.
    Failed(i32),
    /// By this signal.
    Killed(i32),
    TimeOver,
    /// Its processes could not be killed.
    Stuck,
    /// The guest ended meanwhile: why.
    Crashed(String),
    /// It could not be compiled: why.
    NotBuilt(String),
}

/// Two of them that are equal are no difference.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Verdict {
    pub end: End,
    /// Of its parts, as the Test Anything Protocol tells them.
    pub passed: usize,
    pub skipped: usize,
    pub failed: Vec<String>,
    /// What the kernel reported meanwhile.
    pub reports: Vec<String>,
    /// The last of what it said, if it did not pass; not compared.
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
    /// Of a job; `None` if it was not begun. `skipped` are the statuses of what cannot run here.
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
            passed: tap.passed,
            skipped: tap.skipped,
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

/// A line of a program without names for its parts that says that one failed.
fn is_failure(line: &str) -> bool {
    const SIGNS: [&str; 5] = ["fail", "error", "assert", "mismatch", "bail out"];
    let line = line.to_lowercase();
    SIGNS.iter().any(|sign| line.contains(sign)) && !line.contains("fail:0")
}

/// A text whose numbers are as good as others: addresses, times, identifiers.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut digits = false;
    for c in text.trim().chars() {
        if c.is_ascii_digit() {
            if !digits {
                plain.push('N');
            }
            digits = true;
        } else {
            digits = false;
            plain.push(c);
        }
    }
    plain
}

/// The same twice says no more than once.
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
    fn statuses_and_parts_are_told() {
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
    fn a_crash_and_a_report_are_told() {
        let report = || vec!["BUG: x".to_owned(), "BUG: x".to_owned()];
        let crashed = Verdict::of(&Part::Broken("panic".to_owned(), report()), &[]).unwrap();
        assert_eq!(crashed.to_string(), "CRASHED: panic, REPORT: BUG: x");
        assert!(Verdict::of(&Part::NotBegun, &[]).is_none());
    }
}
