// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failing system calls of the library: the program's memory stays intact.

mod support;

use std::path::{Path, PathBuf};

use support::{Fixture, MIB, Run};
use toll_model::REGION;
use toll_testkit::actions::Actions;
use toll_testkit::output::stdout;

/// More system calls than the library makes for one mremap here.
const ENOUGH: usize = 30;

fn faults(fixture: &Fixture) -> PathBuf {
    fixture.compile("faults.c", "faults.so", &["-shared", "-fPIC"])
}

/// A plan that splits each mapping into many.
fn splitting(fixture: &Fixture) -> PathBuf {
    let mut actions = Actions::default();
    let holes: Vec<_> = (0..40)
        .map(|hole| (hole * 3 * REGION, (hole * 3 + 1) * REGION))
        .collect();
    actions.any(MIB, &holes);
    fixture.plan(&actions)
}

/// Returns a program's output under the plan.
fn moved(run: &Run, plan: &Path) -> String {
    let output = run.with(Some(plan), None);
    assert!(output.status.success(), "{output:?}");
    stdout(&output)
}

#[test]
fn a_mapping_is_moved_as_a_whole_or_not_at_all() {
    let fixture = Fixture::new();
    let (program, faults, plan) = (
        fixture.program("moves.c"),
        faults(&fixture),
        splitting(&fixture),
    );
    let kinds = ["FAIL_AGAIN", "FAIL_DONTUNMAP", "UNUSED"];
    for (arguments, kind) in [&[][..], &["fixed"]]
        .into_iter()
        .flat_map(|arguments| kinds.map(|kind| (arguments, kind)))
    {
        let mut refused = 0;
        for nth in 1..=ENOUGH {
            let run = Run::new(&program)
                .args(arguments)
                .after(&faults)
                .env(kind, "1")
                .env("FAIL_MREMAP", nth.to_string());
            match moved(&run, &plan).trim() {
                "refused 1 whole 1 more 0" => refused += 1,
                "moved errno 0 whole 1 more 0" => {}
                other => panic!("{arguments:?}, {kind}, failure {nth}: {other}"),
            }
        }
        // The mapping has six pieces. A single failure is recovered, except at the last step.
        let least = if kind == "UNUSED" { 1 } else { 6 };
        assert!(
            (least..ENOUGH / 2).contains(&refused),
            "{arguments:?}, {kind}: {refused}"
        );
    }
}

#[test]
fn a_mapping_is_not_moved_over_itself() {
    let fixture = Fixture::new();
    let plan = splitting(&fixture);
    let run = Run::new(&fixture.program("moves.c")).args(["overlap"]);
    assert_eq!(moved(&run, &plan).trim(), "refused 1 whole 1 more 0");
}

/// If the old mapping was removed and cannot be replaced, the program's mmap fails. It does not get
/// a mapping with a hole.
#[test]
fn a_mapping_that_cannot_be_put_back_is_refused() {
    let fixture = Fixture::new();
    let code = r#"
        #include <errno.h>
        #include <stdio.h>
        #include <sys/mman.h>
        int main(void) {
            char *p = mmap((void *)0x600000000000, 16 << 20, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (p == MAP_FAILED) {
                printf("refused %d\n", errno == ENOMEM);
                return 0;
            }
            for (long i = 0; i < 16 << 20; i += 4096)
                p[i] = 1;
            puts("whole");
            return 0;
        }"#;
    let source = fixture.write("fixed.c", code);
    let program = fixture.compile(source.to_str().unwrap(), "fixed", &["-D_GNU_SOURCE"]);
    let base = 0x6000_0000_0000;
    let actions = Actions {
        addresses: vec![(base + REGION, base + 4 * REGION)],
        flags: toll_model::wire::flags::HUGETLB,
        ..Actions::default()
    };
    let plan = fixture.plan(&actions);
    let run = Run::new(&program)
        .after(&faults(&fixture))
        .env("FAIL_HUGETLB", "1");
    assert_eq!(moved(&run, &plan), "whole\n");
    let run = run.env("FAIL_FIXED", "1");
    assert_eq!(moved(&run, &plan), "refused 1\n");
}

#[test]
fn threads_of_a_forked_child_have_the_same_numbers_in_both_runs() {
    let fixture = Fixture::new();
    let run = Run::new(&fixture.program("forks.c"));
    let recorded = run.record();
    let [event] = recorded.with_length(24 * MIB)[..] else {
        panic!("one block of the child");
    };
    assert_eq!(event.thread, 1, "the first thread that the child starts");
    let mut actions = Actions::default();
    actions.exact(&recorded, event, &[(0, u64::MAX)]);
    let (plan, log) = (fixture.plan(&actions), fixture.path("witness"));
    let witness = fixture.compile("witness.c", "witness.so", &["-shared", "-fPIC"]);
    let run = run.before(&witness).env("WITNESS", &log);
    assert!(run.with(Some(&plan), None).status.success());
    let advised = fixture.read("witness");
    assert_eq!(advised.lines().count(), 1, "{advised}");
}
