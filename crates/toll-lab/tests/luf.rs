// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lazy unmap flush in machines of every shape: the stand-in for inference reclaims in each of them.
//!
//! They build and boot the tollfree kernel: `setup/setup.sh lab` brings what that needs.

use std::time::Duration;

use toll_lab::guest::{Guest, Job, Machine, Program};
use toll_lab::house::House;
use toll_lab::kernel::{Variant, build};
use toll_lab::scenario::{DiskSpec, FileSpec};

const STATS: &str = "/sys/kernel/mm/luf/stats";

/// What was unmapped lazily where twice as much is read through mappings as there is memory.
fn deferred(name: &str, machine: Machine, append: &[&str], before: &str) -> u64 {
    let house = House::find().unwrap();
    let built = build(&house, &Variant::find(&house, "tollfree", &[]).unwrap()).unwrap();
    let disk = DiskSpec {
        ext4_mib: 320,
        files: vec![FileSpec {
            name: "model".to_owned(),
            mib: 256,
        }],
        ..DiskSpec::default()
    };
    let mut programs = Program::installed("busybox").unwrap();
    programs.push(Program::compiled(&house, "model").unwrap());
    let work = format!(
        "mkdir -p /data; mount -t ext4 -o ro /dev/vda /data; {before}; model 2 1 1M /data/model"
    );
    let sum = format!("cat {STATS}/deferred_*; grep -c ext4 /proc/mounts");
    let outcome = Guest {
        image: &built.image,
        machine,
        append,
        programs: &programs,
        disks: &[disk.made(&house).unwrap()],
        jobs: &[Job::shell("work", &work), Job::shell("sum", &sum)],
        limit: Duration::from_secs(300),
        preset: None,
        lines: false,
        folder: &house.cache.join("tests").join(name),
    }
    .run(&house)
    .unwrap();
    for done in &outcome.done {
        assert_eq!(
            done.status.to_string(),
            "status 0",
            "{}: {}",
            done.name,
            done.err
        );
    }
    let counts: Vec<u64> = outcome.done[1]
        .out
        .lines()
        .map(|it| it.parse().unwrap())
        .collect();
    assert_eq!(counts.len(), 6, "{}", outcome.done[1].out);
    counts[..5].iter().sum()
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn it_is_on_where_nothing_is_said() {
    assert!(deferred("luf-on", Machine::plain(2, 128), &[], "true") > 10_000);
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn it_can_be_off_from_the_beginning_and_switched_on() {
    let off = ["luf=off"];
    assert_eq!(deferred("luf-off", Machine::plain(2, 128), &off, "true"), 0);
    let on = "echo 1 > /sys/kernel/mm/luf/enabled";
    assert!(deferred("luf-off-on", Machine::plain(2, 128), &off, on) > 10_000);
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn one_cpu_needs_no_interrupts() {
    assert_eq!(deferred("luf-one", Machine::plain(1, 128), &[], "true"), 0);
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_pool_of_one_page_is_still_right() {
    let one = "echo 1 > /sys/kernel/mm/luf/pool_max_pages";
    assert!(deferred("luf-tiny", Machine::plain(2, 128), &[], one) > 1000);
}
