// SPDX-License-Identifier: MIT OR Apache-2.0
//! Advice ends with its block: later memory at the same address has none.

mod support;

use support::{Fixture, MIB, Run};
use toll_testkit::actions::Actions;
use toll_testkit::machine::thp_is_madvise;
use toll_testkit::output::stdout;

#[test]
fn advice_ends_with_the_block() {
    // Only then, stale advice makes other memory huge.
    if !thp_is_madvise() {
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program("lives.c");
    let mut actions = Actions::default();
    // Only of the block: realloc makes it longer.
    actions.any(20 * MIB, &[(2 * MIB, 8 * MIB), (12 * MIB, 20 * MIB)]);
    let plan = fixture.plan(&actions);
    for kind in ["mmap", "malloc", "heap", "heap-moved"] {
        let run = Run::new(&program).args([kind]);
        assert_eq!(stdout(&run.plain()), "0 0\n", "{kind}, without a plan");
        let output = run.with(Some(&plan), None);
        assert_eq!(stdout(&output), "1 0\n", "{kind}: {output:?}");
    }
}
