// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions about the machine that are asked in forums and bug trackers: the counters answer them.

use std::fs;
use std::thread::available_parallelism;

use serde_json::Value;
use toll_testkit::Directory;
use toll_testkit::compiler::compile_text;
use toll_testkit::output::{stderr, succeeds};
use toll_testkit::process::Running;

use crate::{check, counter, report_in, value};

/// Makes a page read-only and writable CALLS times, with as many other threads as the second
/// argument says, each on a CPU of its own: protect CALLS THREADS.
const PROTECT: &str = r"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

static volatile char *memory;

static void on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *reader(void *cpu)
{
	on((long)cpu);
	for (;;)
		(void)memory[4096];
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	memory = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	on(0);
	for (long cpu = 1; cpu <= atoi(argv[2]); cpu++)
		pthread_create(&thread, 0, reader, (void *)cpu);
	for (int calls = atoi(argv[1]); calls > 0; calls--) {
		memory[0] = 1;
		mprotect((void *)memory, 4096, PROT_READ);
		mprotect((void *)memory, 4096, PROT_READ | PROT_WRITE);
	}
	return argc < 3;
}
";

/// 'Interrupts by mprotect dominate the profile': the shootdowns are counted, with the CPU time that
/// they cost. A thread alone causes none.
#[test]
fn shootdowns_by_mprotect_are_counted_with_their_cost() {
    let directory = Directory::empty();
    let is_one = available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
    let counted = fs::read_to_string("/proc/interrupts").is_ok_and(|it| it.contains("TLB:"));
    if is_one || !counted {
        return eprintln!("skipped: one CPU, or no shootdowns are counted here");
    }
    if !compile_text(PROTECT, &directory.path("protect"), &["-O1", "-pthread"]) {
        return;
    }
    let received = |threads: &str| {
        let line = [
            "stat",
            "--json",
            "-o",
            "out",
            "--",
            "./protect",
            "20000",
            threads,
        ];
        let output = directory.run(&line);
        assert!(output.status.success(), "{}", stderr(&output));
        let report = report_in(&directory, "out");
        let received = counter(&report, "machine", "tlb_shootdowns_received");
        assert!(received["loss_ns"].is_number(), "{received}");
        let own = counter(&report, "process tree", "tlb_shootdowns_sent");
        assert!(own["value"].is_number() || own["fix"].is_string(), "{own}");
        if let (Some(sent), "1") = (own["value"].as_f64(), threads) {
            // Two flushes each, and those of the program's start and end.
            assert!((1_000.0..=41_000.0).contains(&sent), "{own}");
        }
        (
            value(&report, "machine", "tlb_shootdowns_received"),
            received.clone(),
        )
    };
    let (many, row) = received("1");
    assert!(many >= 1_000.0, "of 20,000 calls: {row}");
    assert!(
        row["loss_ns"].as_f64().unwrap() >= many * 100.0,
        "ns: {row}"
    );
    let (few, _) = received("0");
    assert!(few < many / 2.0, "{few} of {many} without the other thread");
    let line = ["stat", "--", "./protect", "20000", "1"];
    let text = stderr(&directory.run(&line));
    assert!(text.contains("TLB shootdowns received"), "{text}");
    assert!(text.contains("machine, meanwhile"), "{text}");
}

/// A line of /proc/PID/stat of a kernel thread that used this many ticks of CPU time.
fn thread(pid: u32, name: &str, ticks: u64) -> String {
    const KERNEL: u64 = 0x0020_0000;
    let zeros = "0 ".repeat(30);
    format!("{pid} ({name}) R 2 0 0 0 -1 {KERNEL} 0 0 0 0 0 {ticks} 0 0 20 0 1 0 1 {zeros}\n")
}

/// 'kcompactd0 uses 62 to 94 % of a CPU': its time is a loss of its own.
#[test]
fn the_time_of_kcompactd_is_a_loss() {
    let machine = Directory::with(&[
        ("proc/vmstat", "pgfault 5\npgmajfault 1\n"),
        ("proc/45/stat", &thread(45, "kcompactd0", 1_000)),
        ("proc/46/stat", &thread(46, "kswapd0", 7)),
    ]);
    let mut stat = machine.as_machine(&["--json", "stat", "-a", "-I", "20ms"]);
    let mut stat = Running::start(&mut stat);
    let mut next = || -> Value { serde_json::from_str(&stat.line()).unwrap() };
    assert_eq!(value(&next(), "machine", "cpu_kcompactd"), 0.0);
    machine.replace("proc/45/stat", thread(45, "kcompactd0", 1_094));
    let report = loop {
        let report = next();
        if value(&report, "machine", "cpu_kcompactd") > 0.0 {
            break report;
        }
    };
    check(&report);
    let row = counter(&report, "machine", "cpu_kcompactd");
    assert_eq!(row["value"], 940e6, "94 ticks of 10 ms");
    assert!(row["loss_ns"].as_f64().unwrap() >= 930e6, "{row}");
    assert!(report["loss_ns"].as_f64().unwrap() >= 930e6, "{report:#}");
    let text = succeeds(
        &machine
            .as_machine(&["stat", "-a", "--for", "20ms"])
            .output()
            .unwrap(),
    );
    assert!(text.contains("CPU time of kcompactd"), "{text}");
}
