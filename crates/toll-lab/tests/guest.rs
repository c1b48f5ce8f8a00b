// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests with every machine shape, and guests that fail: each failure is one clear error with the
//! end of the console and leaves nothing behind.
//!
//! The tests build and boot the vanilla kernel: `setup/setup.sh lab` installs the dependencies.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use toll_lab::error::LabError;
use toll_lab::guest::{Guest, Job, Machine, Outcome, Program};
use toll_lab::kernel::{Variant, build};
use toll_lab::workspace::Workspace;

fn directory(name: &str) -> PathBuf {
    Workspace::find().unwrap().cache.join("tests").join(name)
}

/// Runs a shell line in a guest with half a GiB.
fn shell(name: &str, line: &str, seconds: u64) -> Result<Outcome> {
    shell_in(Machine::plain(2, 512), name, line, seconds)
}

fn shell_in(machine: Machine, name: &str, line: &str, seconds: u64) -> Result<Outcome> {
    let workspace = Workspace::find()?;
    let built = build(&workspace, &Variant::find(&workspace, "vanilla", &[])?)?;
    let job = Job {
        name: "job".to_owned(),
        command: ["/bin/busybox", "sh", "-c", line].map(str::to_owned).into(),
    };
    Guest {
        image: &built.image,
        machine,
        append: &[],
        programs: &Program::installed("busybox")?,
        disks: &[],
        pmem: None,
        jobs: &[job],
        limit: Duration::from_secs(seconds),
        preset: None,
        lines: false,
        adversary: false,
        stores: false,
        directory: &directory(name),
    }
    .run(&workspace)
}

/// Returns the error of a guest that fails: its message, and the end of the console.
fn failure(name: &str, line: &str, seconds: u64) -> (String, String) {
    let error = shell(name, line, seconds).unwrap_err();
    let Some(LabError::Guest { why, console, tail }) = error.downcast_ref() else {
        panic!("{name}: not a guest error: {error:#}");
    };
    assert!(console.is_file(), "{name}: the console is kept");
    assert!(!is_running(name), "{name}: QEMU is still there");
    (why.clone(), tail.clone())
}

/// Whether a process has the guest's directory in its command line.
fn is_running(name: &str) -> bool {
    let directory = directory(name).display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|process| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.contains("qemu-system") && line.contains(&directory)
    })
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn what_a_job_writes_comes_back() {
    let outcome = shell("fine", "echo out; echo err >&2; exit 3", 60).unwrap();
    let done = &outcome.done[0];
    assert_eq!((done.out.as_str(), done.err.as_str()), ("out\n", "err\n"));
    assert_eq!(done.status.to_string(), "status 3");
    assert!(outcome.sections.is_empty());
    assert!(!is_running("fine"));
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_machine_has_the_nodes_and_the_memory_that_it_was_given() {
    let machine = Machine {
        nodes: 2,
        slow_mib: 256,
        pti: true,
        ..Machine::plain(4, 512)
    };
    let line = "cd /sys/devices/system/node; cat online node0/cpulist node1/cpulist; \
                echo \"slow: $(cat node2/cpulist)\"; ls -d /sys/devices/virtual/memory_tiering/memory_tier* | wc -l; \
                grep -c ' pti ' /proc/cpuinfo";
    let outcome = shell_in(machine, "shapes", line, 60).unwrap();
    let said: Vec<&str> = outcome.done[0].out.lines().collect();
    // Two memory tiers; each CPU with page-table isolation.
    assert_eq!(
        said,
        ["0-2", "0-1", "2-3", "slow: ", "2", "4"],
        "{}",
        outcome.done[0].err
    );
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn persistent_memory_holds_a_file_system_that_is_mapped_directly() {
    let machine = Machine {
        pmem_mib: 64,
        ..Machine::plain(1, 512)
    };
    let line = "set -e; cat /sys/block/pmem0/queue/dax; mke2fs -b 4096 /dev/pmem0 >/dev/null; mkdir /p; \
                mount -t ext4 -o dax=always /dev/pmem0 /p; grep -c dax=always /proc/mounts; \
                echo kept >/p/file; umount /p; mount -t ext4 /dev/pmem0 /p; cat /p/file";
    let outcome = shell_in(machine, "pmem", line, 60).unwrap();
    let done = &outcome.done[0];
    assert_eq!(done.out, "1\n1\nkept\n", "{}", done.err);
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn five_levels_of_page_tables_boot() {
    let machine = Machine {
        la57: true,
        ..Machine::plain(2, 512)
    };
    let outcome = shell_in(machine, "la57", "grep -c ' la57 ' /proc/cpuinfo", 60).unwrap();
    assert_eq!(outcome.done[0].out, "2\n");
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_guest_that_hangs_is_ended() {
    let (why, _) = failure("hangs", "echo waiting > /dev/console; sleep 1000", 15);
    assert_eq!(why, "the guest was not done after 15 s");
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_panic_is_told_with_the_end_of_the_console() {
    let (why, tail) = failure("panics", "echo c > /proc/sysrq-trigger", 60);
    assert!(why.contains("Kernel panic - not syncing"), "{why}");
    assert!(tail.contains("Kernel Offset: disabled"), "{tail}");
    let console = fs::read_to_string(directory("panics").join("console")).unwrap();
    assert!(console.contains("sysrq: Trigger a crash"), "{console}");
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_guest_without_memory_says_so() {
    let (why, _) = failure(
        "eats",
        "dd if=/dev/zero of=/tmp/x bs=1M; tail /dev/zero",
        120,
    );
    assert!(why.contains("Out of memory"), "{why}");
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_guest_that_ends_early_is_an_error() {
    let (why, _) = failure("leaves", "busybox poweroff -f", 60);
    assert_eq!(why, "the guest switched itself off before it was done");
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn garbage_for_results_is_named() {
    let (why, _) = failure("garbage", "printf '\\377\\376' ", 60);
    assert!(why.ends_with("job.out: is not text"), "{why}");
    let (why, _) = failure("notes", "echo no-number > /out/main.notes", 60);
    assert!(
        why.contains("main.notes") && why.contains("not a note"),
        "{why}"
    );
}
