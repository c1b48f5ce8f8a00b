// SPDX-License-Identifier: MIT OR Apache-2.0

use super::super::tests::{MIB, at};
use super::*;

#[test]
fn a_block_keeps_its_name_when_it_moves() {
    let found = blocks(&[
        at(EventKind::Malloc, 1, 0x1000, MIB, 0),
        at(EventKind::Move, 2, 0x900_0000, 4 * MIB, 0x1000),
        at(EventKind::Free, 3, 0x900_0000, 4 * MIB, 0),
    ]);
    let seen: Vec<_> = found
        .iter()
        .map(|b| (b.event_index, b.address, b.born_ns, b.died_ns))
        .collect();
    assert_eq!(seen, [(0, 0x1000, 1, 2), (0, 0x900_0000, 2, 3)]);
}

#[test]
fn a_new_block_ends_what_it_covers() {
    let found = blocks(&[
        at(EventKind::Mmap, 1, 8 * MIB, 8 * MIB, 0),
        at(EventKind::Malloc, 2, 9 * MIB, 2 * MIB, 0),
        at(EventKind::Malloc, 3, 10 * MIB, 2 * MIB, 0),
        at(EventKind::Mmap, 4, 12 * MIB, 2 * MIB, 0),
    ]);
    let seen: Vec<_> = found
        .iter()
        .map(|b| (b.event_index, b.length / MIB, b.died_ns))
        .collect();
    let alive = u64::MAX;
    let front = (0, 4, alive);
    assert_eq!(
        seen,
        [(0, 8, 4), (1, 2, 3), (2, 2, alive), front, (3, 2, alive)]
    );
}

#[test]
fn a_fork_has_its_parents_blocks_and_exec_has_none() {
    let mut child = at(EventKind::Process, 2, 8, 0, 7);
    child.process = 8;
    let mut exec = at(EventKind::Process, 4, 8, 0, 0);
    exec.process = 8;
    let found = blocks(&[
        at(EventKind::Process, 0, 7, 0, 0),
        at(EventKind::Malloc, 1, 0x1000, MIB, 0),
        child,
        at(EventKind::Free, 3, 0x1000, MIB, 0),
        exec,
    ]);
    let seen: Vec<_> = found
        .iter()
        .map(|b| (b.process, b.born_ns, b.died_ns))
        .collect();
    assert_eq!(seen, [(7, 1, 3), (8, 2, 4)]);
}
