// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::memory::{Memory, Pages};

/// This process reads itself: of three regions, one page in four is written.
#[test]
fn pages_that_were_not_written_are_counted() {
    let memory = Memory::reserve(3 * REGION, Pages::Small).unwrap();
    let first = memory.base() as u64;
    for page in (0..3 * REGION).step_by(4 * PAGE as usize) {
        // SAFETY: within the mapping, which is writable.
        unsafe { ((first + page + 100) as *mut u8).write_volatile(1) };
    }
    let regions = vec![first, first + REGION, first + 2 * REGION];
    let time = Duration::from_secs(60);
    let pid = std::process::id();
    let all = unused(pid, regions.clone(), 10, time).unwrap();
    assert_eq!(all.regions, 3);
    assert_eq!(all.zero, [REGION / 4 * 3; 3]);
    let some = unused(pid, regions, 2, time).unwrap();
    assert_eq!((some.regions, some.zero.len()), (3, 2));
}

#[test]
fn memory_that_cannot_be_read_is_an_error() {
    let time = Duration::from_secs(60);
    let error = unused(std::process::id(), vec![0], 10, time).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    let none = unused(std::process::id(), vec![], 10, time).unwrap();
    assert_eq!(none, Content::default());
}

#[test]
fn a_single_byte_makes_a_page_used() {
    let mut buffer = vec![0; 4 * PAGE as usize];
    assert_eq!(zero(&buffer), 4 * PAGE);
    buffer[2 * PAGE as usize - 1] = 1;
    assert_eq!(zero(&buffer), 3 * PAGE);
}

#[test]
fn huge_mappings_are_told_without_a_page_map() {
    let root = Root::at("/nonexistent");
    let mapping = |at: u64, huge| Inner {
        start: at * REGION,
        end: (at + 2) * REGION,
        huge,
    };
    assert_eq!(backing(&root, 7, &[mapping(1, REGION)]), None);
    let found = backing(&root, 7, &[mapping(1, REGION), mapping(5, 2 * REGION)]);
    assert_eq!(found.unwrap().huge, [5 * REGION, 6 * REGION]);
}
