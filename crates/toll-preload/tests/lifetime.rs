// SPDX-License-Identifier: MIT OR Apache-2.0
//! Advice ends with the block that it was given for: what comes to be in its place has none.

mod support;

use support::{Actions, Bench, MIB, Run, text};

/// With `madvise`, a hint that stays makes other memory huge.
fn hints_matter() -> bool {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let matter = enabled.is_ok_and(|text| text.contains("[madvise]"));
    if !matter {
        eprintln!("skipped: THP is not madvise");
    }
    matter
}

#[test]
fn advice_ends_with_the_block() {
    if !hints_matter() {
        return;
    }
    let bench = Bench::new();
    let program = bench.program("lives.c");
    let mut actions = Actions::default();
    // Of the block only: what realloc makes of it is longer.
    actions.any(20 * MIB, &[(2 * MIB, 8 * MIB), (12 * MIB, 20 * MIB)]);
    let plan = bench.path("actions");
    actions.write(&plan);
    for kind in ["mmap", "malloc", "heap", "heap-moved"] {
        let run = Run::new(&program).args([kind]);
        assert_eq!(text(&run.plain().stdout), "0 0\n", "{kind}, without a plan");
        let output = run.with(Some(&plan), None);
        assert_eq!(text(&output.stdout), "1 0\n", "{kind}: {output:?}");
    }
}
