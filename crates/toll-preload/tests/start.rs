// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library's system calls at the start of a program.

mod support;

use std::path::Path;
use std::process::Command;

use libc::{SYS_close, SYS_fstat, SYS_mmap, SYS_mprotect, SYS_newfstatat, SYS_openat, SYS_read};
use support::{Fixture, MIB, library};
use toll_testkit::actions::Actions;
use toll_testkit::trace::system_calls;

/// Returns the calls that the library makes at its start under this plan: those beyond a start
/// without a plan, in which it is loaded as well.
fn own_calls(fixture: &Fixture, program: &Path, actions: &Actions) -> Vec<i64> {
    let plan = fixture.plan(actions);
    let command = |with_plan: bool| {
        let mut command = Command::new(program);
        command.env_clear().env("LD_PRELOAD", library());
        if with_plan {
            command.env("TOLLFREE_ACTIONS", &plan);
        }
        command
    };
    let (plain, _) = system_calls(command(false));
    let (mut with, _) = system_calls(command(true));
    // The constructor runs after the loader, and before the end of the program.
    let after = plain.len() - 1;
    assert_eq!(with[..after], plain[..after]);
    assert_eq!(with.pop(), plain.last().copied());
    with.drain(..after);
    // The unwinder of some C libraries wakes threads that wait for its initialisation.
    with.retain(|call| *call != libc::SYS_futex);
    // C libraries use different calls to query a file's state.
    let state = |call| {
        if call == SYS_newfstatat {
            SYS_fstat
        } else {
            call
        }
    };
    with.into_iter().map(state).collect()
}

/// The private copy of the plan, and the limit of mappings.
const FOR_ANY_PLAN: [i64; 9] = [
    SYS_openat,
    SYS_fstat,
    SYS_mmap,
    SYS_read,
    SYS_mprotect,
    SYS_close,
    SYS_openat,
    SYS_read,
    SYS_close,
];

#[test]
fn a_start_under_rules_makes_twelve_system_calls() {
    let fixture = Fixture::new();
    let program = fixture.program("empty.c");
    let mut actions = Actions::default();
    for _ in 0..100 {
        actions.any(MIB, &[(0, 3 * MIB)]);
    }
    // Rules depend on whether THP is madvise: that is read as well.
    let thp = [SYS_openat, SYS_read, SYS_close];
    let expected = [&FOR_ANY_PLAN[..], &thp[..]].concat();
    assert_eq!(own_calls(&fixture, &program, &actions), expected);
}

#[test]
fn a_start_under_all_or_addresses_makes_nine() {
    let fixture = Fixture::new();
    let program = fixture.program("empty.c");
    let addresses = Actions {
        addresses: vec![(1 << 40, (1 << 40) + (2 << 20))],
        ..Actions::default()
    };
    for actions in [Actions::all(), addresses] {
        assert_eq!(own_calls(&fixture, &program, &actions), FOR_ANY_PLAN);
    }
}

#[test]
fn an_empty_plan_is_read_and_no_more() {
    let fixture = Fixture::new();
    let program = fixture.program("empty.c");
    let calls = own_calls(&fixture, &program, &Actions::default());
    assert_eq!(calls, FOR_ANY_PLAN[..6]);
}
