// SPDX-License-Identifier: MIT OR Apache-2.0

use std::hint::black_box;
use std::time::Duration;

use toll_testkit::Directory;

use super::*;

#[test]
fn the_cpu_time_of_a_process_grows_by_less_than_a_tick() {
    let own = std::process::id();
    let before = cpu_time(own).unwrap();
    black_box((0..100_000u64).map(black_box).sum::<u64>());
    let after = cpu_time(own).unwrap();
    assert!(after > before, "{before:?} {after:?}");
    assert!(after.subsec_nanos() % 10_000_000 != 0 || before.subsec_nanos() % 10_000_000 != 0);
    // Ids end at 2^22.
    assert!(cpu_time(1 << 23).is_err());
}

#[test]
fn a_thread_that_has_ended_still_counts() {
    let own = std::process::id();
    let before = cpu_time(own).unwrap();
    let busy = move || while cpu_time(own).unwrap() < before + Duration::from_millis(20) {};
    std::thread::spawn(busy).join().unwrap();
    assert!(cpu_time(own).unwrap() >= before + Duration::from_millis(20));
}

#[test]
fn calls_are_the_sum_of_reads_and_writes() {
    let io = "rchar: 5000\nwchar: 70\nsyscr: 12\nsyscw: 30\nread_bytes: 0\n";
    let place = Directory::with(&[("proc/7/io", io), ("proc/8/io", "rchar: 1\n")]);
    let root = Root::at(place.as_path());
    assert_eq!(calls(&root, 7).unwrap(), 42);
    let error = calls(&root, 8).unwrap_err().to_string();
    assert!(
        error.contains("/proc/8/io") && error.contains("syscr"),
        "{error}"
    );
    assert!(calls(&root, 9).is_err());
}
