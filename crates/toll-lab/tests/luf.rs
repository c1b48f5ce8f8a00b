// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lazy unmap flush on machines of every shape: the model program, which stands in for inference,
//! causes reclaim on each.
//!
//! The tests build and boot the tollfree kernel: `setup/setup.sh lab` installs the dependencies.

use std::time::Duration;

use toll_lab::guest::{Guest, Job, Machine, Program};
use toll_lab::kernel::{Variant, build};
use toll_lab::scenario::{DiskSpec, FileSpec};
use toll_lab::workspace::Workspace;

const STATS: &str = "/sys/kernel/mm/luf/stats";

/// Returns the guest's output of `asked` after each line of `before` and a workload that reads
/// twice the size of memory through mappings.
fn said(name: &str, machine: Machine, append: &[&str], before: &[&str], asked: &str) -> String {
    let workspace = Workspace::find().unwrap();
    let built = build(
        &workspace,
        &Variant::find(&workspace, "tollfree", &[]).unwrap(),
    )
    .unwrap();
    let disk = DiskSpec {
        ext4_mib: 320,
        files: vec![FileSpec {
            name: "model".to_owned(),
            mib: 256,
        }],
        ..DiskSpec::default()
    };
    let mut programs = Program::installed("busybox").unwrap();
    programs.push(Program::compiled(&workspace, "model").unwrap());
    let ready = Job::shell(
        "ready",
        "mkdir -p /data; mount -t ext4 -o ro /dev/vda /data",
    );
    let mut jobs = vec![ready];
    for (i, line) in before.iter().enumerate() {
        let work = format!("{line}; model 2 1 1M /data/model");
        jobs.push(Job::shell(&format!("work-{i}"), &work));
        jobs.push(Job::shell(&format!("asked-{i}"), asked));
    }
    let outcome = Guest {
        image: &built.image,
        machine,
        append,
        programs: &programs,
        disks: &[disk.made(&workspace).unwrap()],
        pmem: None,
        jobs: &jobs,
        limit: Duration::from_secs(300),
        preset: None,
        lines: false,
        adversary: false,
        stores: false,
        directory: &workspace.cache.join("tests").join(name),
    }
    .run(&workspace)
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
    let asked = outcome
        .done
        .iter()
        .filter(|done| done.name.starts_with("asked"));
    asked.map(|done| done.out.as_str()).collect()
}

/// Returns the number of pages that were unmapped lazily.
fn deferred(name: &str, machine: Machine, append: &[&str], before: &str) -> u64 {
    let asked = format!("cat {STATS}/deferred_*; grep -c ext4 /proc/mounts");
    let out = said(name, machine, append, &[before], &asked);
    let counts: Vec<u64> = out.lines().map(|it| it.parse().unwrap()).collect();
    assert_eq!(counts.len(), 6, "{out}");
    counts[..5].iter().sum()
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn it_is_on_where_nothing_is_said() {
    assert!(deferred("luf-on", Machine::plain(2, 128), &[], "true") > 20_000);
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn it_can_be_off_from_the_beginning_and_switched_on() {
    let off = ["luf=off"];
    assert_eq!(deferred("luf-off", Machine::plain(2, 128), &off, "true"), 0);
    let on = "echo 1 > /sys/kernel/mm/luf/enabled";
    assert!(deferred("luf-off-on", Machine::plain(2, 128), &off, on) > 20_000);
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

/// Most memory is set aside, so that pools could be larger than they are.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn econ_makes_pools_as_large_as_they_pay() {
    let before = [
        // One flush per hundred pages; no flush is worth its cost.
        "echo 100 > /sys/kernel/mm/luf/direct_batch_pages; \
         echo 1 > /sys/kernel/mm/econ/costs/frozen; \
         echo 1000000000000 > /sys/kernel/mm/econ/costs/flush",
        "echo observe > /sys/kernel/mm/econ/mode",
        "echo on > /sys/kernel/mm/econ/mode",
        "echo 300 > /sys/kernel/mm/luf/pool_max_pages",
        "echo 0 > /sys/kernel/mm/luf/pool_max_pages; echo off > /sys/kernel/mm/econ/mode",
    ];
    let machine = Machine::plain(2, 1280);
    let asked = "cat /sys/kernel/mm/luf/pool_size_pages; head -n 1 /sys/kernel/mm/econ/stats/pool";
    let out = said("luf-econ", machine, &["hugepages=560"], &before, asked);
    let numbers: Vec<u64> = out
        .lines()
        .map(|line| line.trim_start_matches("asked ").parse().unwrap())
        .collect();
    let [usual, _, seen, observed, larger, _, set, _, off, _] = numbers[..] else {
        panic!("{out}");
    };
    assert_eq!(numbers[1], 0, "{out}");
    assert_eq!(seen, usual, "{out}");
    assert!(observed > 0, "{out}");
    assert!(larger > usual, "{out}");
    assert_eq!(set, 300, "{out}");
    assert_eq!(off, usual, "{out}");
}
