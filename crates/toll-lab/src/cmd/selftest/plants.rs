// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab selftest --plants`: checks that the tests find bugs planted in morselfs.

use anyhow::{Context, Result};

use super::{Job, Session, Tested, job, tested};
use crate::error::LabError;
use crate::guest::{Done, Outcome, Status};

/// Sysfs file: reading lists all bugs, writing a name plants that bug.
const PLANT: &str = "/sys/kernel/mm/morsel/plant";
/// Tests that must find the bugs, with the option to stop at the first failure.
const TESTS: [&str; 2] = ["/test/morsel", "/test/morsel_fsx"];
/// Those for the bugs with this prefix.
const PMEM_TESTS: [&str; 1] = ["/test/morsel_pmem"];
const PMEM: &str = "pmem_";
const FIRST: &str = "TOLLFREE_STOP_AT_FAILURE=1";
/// Name prefixes of bugs that tests in a guest cannot see, and why.
const HIDDEN: [(&str, &str); 3] = [
    ("tlb_", "needs a TLB that keeps every entry"),
    ("cut_", "needs a power cut (toll-lab power-cuts --plant)"),
    (
        "lost_",
        "needs a crash that loses what is in caches (toll-lab crash-states --plant)",
    ),
];
/// Panic on the first kernel report: later effects on memory do not count.
const APPEND: [&str; 1] = ["panic_on_warn=1"];

/// Outcome for one bug.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Name of the test, or the kernel report.
    Found(String),
    /// What was observed instead.
    Missed(String),
}

/// Boots one guest for each requested bug, or for each known bug.
///
/// # Errors
/// [`LabError::Usage`] for an unknown bug, [`LabError::Test`] for bugs that are not found.
pub fn run(session: &Session, asked: &[String]) -> Result<()> {
    let mut missed = Vec::new();
    let mut names = names(session)?;
    if let Some(unknown) = asked.iter().find(|name| !names.contains(name)) {
        let why = format!(
            "{unknown}: no bug to plant; there are: {}",
            names.join(", ")
        );
        return Err(LabError::Usage(why).into());
    }
    if !asked.is_empty() {
        names.retain(|name| asked.contains(name));
    }
    for name in names {
        if let Some((_, why)) = HIDDEN.iter().find(|it| name.starts_with(it.0)) {
            println!("{name:24} skipped: {why}");
            continue;
        }
        let outcome = session.boot(jobs(session, &name), session.args.within, &APPEND);
        match verdict(outcome)? {
            Verdict::Found(by) => println!("{name:24} found: {by}"),
            Verdict::Missed(why) => {
                println!("{name:24} NOT FOUND: {why}");
                missed.push(name);
            }
        }
    }
    match missed.is_empty() {
        true => Ok(()),
        false => Err(LabError::Test(format!("not found: {}", missed.join(", "))).into()),
    }
}

/// Returns the names of all bugs, which the kernel lists after `[nothing]`.
fn names(session: &Session) -> Result<Vec<String>> {
    let list = vec![Job::shell("list", &format!("cat {PLANT}"))];
    let outcome = session.boot(list, session.args.within, &[])?;
    let list = outcome
        .done
        .first()
        .filter(|done| done.status == Status::Exit(0));
    let text = list.map(|done| done.out.clone()).ok_or_else(|| {
        LabError::Usage(format!(
            "{}: has no {PLANT}: it belongs to tollfree-debug",
            session.built.variant
        ))
    })?;
    Ok(text.lines().skip(1).map(str::to_owned).collect())
}

fn jobs(session: &Session, name: &str) -> Vec<Job> {
    let settings: Vec<&str> = [FIRST]
        .iter()
        .chain(session.args.settings())
        .copied()
        .collect();
    let plant = Job::shell("plant", &format!("echo {name} > {PLANT}"));
    let tests = session.tests.iter();
    let wanted: &[&str] = match name.starts_with(PMEM) {
        true => &PMEM_TESTS,
        false => &TESTS,
    };
    let tests = tests.filter(|test| wanted.contains(&test.guest.as_str()));
    let tests = tests.map(|test| job(test, &settings, &[]));
    [plant].into_iter().chain(tests).collect()
}

/// Returns the failed test or kernel report. A guest that hangs or runs out of memory has not found
/// the bug.
fn verdict(outcome: Result<Outcome>) -> Result<Verdict> {
    let error = match outcome {
        Ok(outcome) => return from_tests(&outcome.done),
        Err(error) => error,
    };
    match error.downcast_ref::<LabError>() {
        Some(LabError::Guest { why, .. }) => Ok(match report(why) {
            Some(report) => Verdict::Found(report.to_owned()),
            None => Verdict::Missed(why.clone()),
        }),
        _ => Err(error),
    }
}

fn from_tests(done: &[Done]) -> Result<Verdict> {
    let (plant, tests) = done.split_first().context("a guest without jobs")?;
    if plant.status != Status::Exit(0) {
        let why = format!("a bug that cannot be planted: {}", plant.err.trim_end());
        return Err(LabError::Test(why).into());
    }
    let found = |test: Tested| Some(format!("{} {}", test.program, test.problem?));
    Ok(match tests.iter().map(tested).find_map(found) {
        Some(by) => Verdict::Found(by),
        None => Verdict::Missed("all tests passed".to_owned()),
    })
}

/// Returns a kernel report, unless it is about lack of progress or of memory.
fn report(why: &str) -> Option<&str> {
    const NONE: [&str; 5] = ["Out of memory", "lockup", "rcu_", "hung_task", "deadlocked"];
    let (_, report) = why.split_once("kernel crashed: ")?;
    (!NONE.iter().any(|sign| report.contains(sign))).then_some(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(name: &str, status: Status, out: &str) -> Done {
        Done {
            name: name.to_owned(),
            status,
            out: out.to_owned(),
            err: String::new(),
        }
    }

    #[test]
    fn a_test_that_fails_finds_a_bug_that_was_planted() {
        let planted = done("plant", Status::Exit(0), "");
        let failed = done("morsel", Status::Exit(1), "1..2\nok 1 a\nnot ok 2 b\n");
        let passed = done("morsel_fsx", Status::Exit(0), "1..1\nok 1 c\n");
        let verdict = from_tests(&[planted, failed, passed]).unwrap();
        assert_eq!(verdict, Verdict::Found("morsel failed: 2 b".to_owned()));
        let planted = done("plant", Status::Exit(0), "");
        let passed = done("morsel", Status::Exit(0), "1..1\nok 1 c\n");
        assert!(matches!(
            from_tests(&[planted, passed]).unwrap(),
            Verdict::Missed(_)
        ));
        assert!(from_tests(&[done("plant", Status::Exit(1), "")]).is_err());
    }

    #[test]
    fn a_report_of_the_kernel_finds_a_bug_and_a_hang_does_not() {
        let crashed = |what: &str| format!("the guest's kernel crashed: {what}");
        assert_eq!(
            report(&crashed("BUG: KASAN: use-after-free in f")),
            Some("BUG: KASAN: use-after-free in f")
        );
        for none in [
            crashed("Out of memory: Killed process 7 (a)"),
            crashed("BUG: soft lockup - CPU#0 stuck for 22s!"),
            crashed("rcu: INFO: rcu_sched self-detected stall on CPU"),
            "the guest was not done after 600 s".to_owned(),
        ] {
            assert_eq!(report(&none), None, "{none}");
        }
    }
}
