// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab selftest --plants`: whether the tests find the bugs that can be planted in morselfs.

use anyhow::{Context, Result};

use super::{Bench, Job, Tested, job, tested};
use crate::error::LabError;
use crate::guest::{Done, Outcome, Status};

/// Names all of them, and plants the one that is written to it.
const PLANT: &str = "/sys/kernel/mm/morsel/plant";
/// The tests that are to find them, and what makes them end with the first that fails.
const TESTS: [&str; 2] = ["/test/morsel", "/test/morsel_fsx"];
const FIRST: &str = "TOLLFREE_STOP_AT_FAILURE=1";
/// What the names of those begin with that an emulator's TLB, which forgets early, hides.
const HIDDEN: &str = "tlb_";
/// A report of the kernel is the end, not what it does to memory afterwards.
const APPEND: [&str; 1] = ["panic_on_warn=1"];

/// What became of a bug.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// By which test, or which report of the kernel.
    Found(String),
    /// What was seen instead.
    Missed(String),
}

/// Boots one guest for each bug that is asked for, or for each that there is.
///
/// # Errors
/// [`LabError::Usage`] names one that there is not, [`LabError::Test`] those that are not found.
pub fn run(bench: &Bench, asked: &[String]) -> Result<()> {
    let mut missed = Vec::new();
    let mut names = names(bench)?;
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
        if name.starts_with(HIDDEN) {
            println!("{name:24} not asked: needs a TLB that remembers all it may");
            continue;
        }
        let outcome = bench.boot(jobs(bench, &name), bench.args.within, &APPEND);
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

/// The names of all bugs, as the kernel lists them after `[nothing]`.
fn names(bench: &Bench) -> Result<Vec<String>> {
    let list = vec![Job::shell("list", &format!("cat {PLANT}"))];
    let outcome = bench.boot(list, bench.args.within, &[])?;
    let list = outcome
        .done
        .first()
        .filter(|done| done.status == Status::Exit(0));
    let text = list.map(|done| done.out.clone()).ok_or_else(|| {
        LabError::Usage(format!(
            "{}: has no {PLANT}: it belongs to tollfree-debug",
            bench.built.variant
        ))
    })?;
    Ok(text.lines().skip(1).map(str::to_owned).collect())
}

fn jobs(bench: &Bench, name: &str) -> Vec<Job> {
    let settings: Vec<&str> = [FIRST]
        .iter()
        .chain(bench.args.settings())
        .copied()
        .collect();
    let plant = Job::shell("plant", &format!("echo {name} > {PLANT}"));
    let tests = bench.tests.iter();
    let tests = tests.filter(|test| TESTS.contains(&test.guest.as_str()));
    let tests = tests.map(|test| job(test, &settings, &[]));
    [plant].into_iter().chain(tests).collect()
}

/// A test that failed, or a report of the kernel; a guest that hangs or is out of memory has found nothing.
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

/// What the kernel found to be wrong, if it is not that nothing moves, or that memory is short.
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
