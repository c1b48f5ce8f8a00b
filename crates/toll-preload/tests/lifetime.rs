// SPDX-License-Identifier: MIT OR Apache-2.0
//! Advice ends with its block: later memory at the same address has none.

mod support;

use support::{Actions, Fixture, MIB, Run, text};

/// With `madvise`, stale advice makes other memory huge.
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
    let fixture = Fixture::new();
    let program = fixture.program("lives.c");
    let mut actions = Actions::default();
    // Only of the block: realloc makes it longer.
    actions.any(20 * MIB, &[(2 * MIB, 8 * MIB), (12 * MIB, 20 * MIB)]);
    let plan = fixture.path("actions");
    actions.write(&plan);
    for kind in ["mmap", "malloc", "heap", "heap-moved"] {
        let run = Run::new(&program).args([kind]);
        assert_eq!(text(&run.plain().stdout), "0 0\n", "{kind}, without a plan");
        let output = run.with(Some(&plan), None);
        assert_eq!(text(&output.stdout), "1 0\n", "{kind}: {output:?}");
    }
}
