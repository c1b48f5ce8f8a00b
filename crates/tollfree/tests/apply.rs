// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree apply` on a live process: this test program, started again with `TOLL_TARGET` in its
//! environment.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use toll_linux::Root;
use toll_linux::proc::smaps;
use toll_model::plan::{Plan, Verdict};
use toll_model::profile::Program;
use toll_model::site::SiteKind;
use toll_model::{PAGE, REGION};
use toll_testkit::Directory;
use toll_testkit::model::{alloc, plan, region, site};
use toll_testkit::output::{json, stderr, stdout, succeeds};
use toll_testkit::process::{Running, TARGET, wait_until};
use toll_testkit::tool::tollfree;

toll_testkit::before_main!(target);

/// Becomes a target if that is requested.
fn target() {
    match env::var(TARGET).as_deref() {
        Ok("busy") => busy_target(),
        Ok("forbidden") => heap_target(true),
        Ok("heap") => heap_target(false),
        _ => {}
    }
}

/// Bytes of heap that the target grows and touches.
const HEAP: u64 = 8 * REGION;

/// Grows the brk heap in 4 KiB pages, prints a line, and waits to be killed. If huge pages are
/// `forbidden`, nothing there can be collapsed.
fn heap_target(forbidden: bool) -> ! {
    // SAFETY: no other code in this process uses the break meanwhile.
    unsafe {
        let start = libc::sbrk(HEAP as isize).cast::<u8>();
        assert_ne!(start as isize, -1);
        // 4 KiB pages under any policy, and not visible to khugepaged.
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
        for page in 0..(HEAP / PAGE) as usize {
            start.add(page * PAGE as usize).write_volatile(1);
        }
        libc::prctl(libc::PR_SET_THP_DISABLE, 0, 0, 0, 0);
        if forbidden {
            let page = start.add(start.align_offset(PAGE as usize));
            let length = (HEAP - PAGE) as usize;
            assert_eq!(libc::madvise(page.cast(), length, libc::MADV_NOHUGEPAGE), 0);
        }
    }
    println!("ready");
    loop {
        std::thread::sleep(std::time::Duration::from_secs(100));
    }
}

/// Maps two blocks of 16 MiB in 4 KiB pages, prints a line, and touches one of them repeatedly.
fn busy_target() -> ! {
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let map = |length: u64, protection| {
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let block = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length as usize,
                protection,
                private,
                -1,
                0,
            )
        };
        assert_ne!(block, libc::MAP_FAILED);
        block.cast::<u8>()
    };
    let touch = |block: *mut u8| {
        for page in 0..(HEAP / PAGE) as usize {
            // SAFETY: inside the block.
            unsafe { block.add(page * PAGE as usize).write_volatile(1) };
        }
    };
    // SAFETY: no pointer.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    // An unmapped gap: adjacent blocks would be one mapping.
    let cold = map(HEAP, libc::PROT_READ | libc::PROT_WRITE);
    map(HEAP, libc::PROT_NONE);
    let hot = map(HEAP, libc::PROT_READ | libc::PROT_WRITE);
    map(HEAP, libc::PROT_NONE);
    touch(cold);
    touch(hot);
    // SAFETY: no pointer.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 0, 0, 0, 0) };
    println!("ready");
    loop {
        touch(hot);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

struct Target(Running);

impl Target {
    fn start() -> Target {
        Target::start_as("heap")
    }

    fn start_as(kind: &str) -> Target {
        let mut target = Running::target(kind);
        assert_eq!(target.line(), "ready");
        Target(target)
    }

    fn pid(&self) -> u32 {
        self.0.pid()
    }

    fn huge(&self) -> u64 {
        let smaps = smaps(&Root::system(), self.pid()).unwrap();
        smaps.iter().map(|smap| smap.anon_huge).sum()
    }
}

/// A plan file for this program that selects the first six regions of the heap, and an allocation
/// that does not exist.
struct PlanFile(Directory);

impl PlanFile {
    fn new(change: impl FnOnce(&mut Plan)) -> PlanFile {
        let huge = |site: u32, number: u64| region(site, number, Verdict::Huge);
        let mut regions: Vec<_> = (0..6).map(|number| huge(0, number)).collect();
        regions.push(huge(1, 0));
        let sites = vec![
            site(0, SiteKind::Heap, HEAP),
            site(1, alloc(0x1234, 1 << 36, 0), 1 << 36),
        ];
        let mut plan = plan(&env::current_exe().unwrap(), sites, regions);
        change(&mut plan);
        let directory = Directory::empty();
        directory.write("plan", plan.to_toml().unwrap());
        PlanFile(directory)
    }

    fn apply(&self, pid: u32, options: &[&str]) -> Output {
        apply(pid, &self.0.path("plan"), options)
    }

    fn report(&self, target: &Target, options: &[&str]) -> Value {
        let output = self.apply(target.pid(), &[options, &["--json"]].concat());
        succeeds(&output);
        json(&output)
    }
}

/// Runs `tollfree apply` with a plan or a list of regions.
fn apply(pid: u32, plan: &Path, options: &[&str]) -> Output {
    Command::new(tollfree())
        .args(["apply", "--pid", &pid.to_string(), "--plan"])
        .arg(plan)
        .args(options)
        .output()
        .unwrap()
}

#[test]
fn a_plan_is_applied_and_undone() {
    let target = Target::start();
    let plan = PlanFile::new(|_| {});
    let dry = plan.report(&target, &["--dry-run"]);
    let regions = dry["regions"].as_array().unwrap().len() as u64;
    // Depending on the start of the heap, 5 or 6 regions are covered sufficiently.
    assert!((5..=6).contains(&regions), "{dry}");
    assert_eq!((dry["collapsed"].as_u64(), target.huge()), (Some(0), 0));
    assert_eq!(dry["found"]["heap"], "exact");
    assert_eq!(dry["lost"].as_array().unwrap().len(), 1, "{dry}");

    let done = plan.report(&target, &[]);
    assert_eq!(done["collapsed"], regions);
    assert_eq!(target.huge(), regions * REGION);
    assert_eq!(done["huge_after"], regions * REGION);

    let undone = plan.report(&target, &["--undo"]);
    assert_eq!(undone["split"], regions, "{undone}");
    assert_eq!(target.huge(), 0);
}

/// The locations of blocks are unknown in a process that was not observed from its start.
#[test]
fn a_plan_of_which_nothing_is_found_is_an_error() {
    let target = Target::start();
    let plan = PlanFile::new(|plan| plan.regions.retain(|region| region.site == 1));
    for options in [&["--json"][..], &["--json", "--dry-run"]] {
        let output = plan.apply(target.pid(), options);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(7), "{said}");
        for part in [
            "no memory of the plan",
            "it touched no large anonymous memory for 1 s",
            "tollfree run --plan",
            "tune --pid",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let report = json(&output);
        assert_eq!(report["lost"].as_array().unwrap().len(), 1, "{report}");
        assert!(report["unfit"].is_string(), "{report}");
    }
    let output = plan.apply(target.pid(), &[]);
    let text = stdout(&output);
    assert!(
        text.contains("FUNCTION+OFFSET 2^N #K: a block of"),
        "{text}"
    );
}

/// Touched memory is selected in place of blocks that were not found, and reported.
#[test]
fn touched_memory_stands_in_for_blocks_of_unknown_call_sites() {
    let target = Target::start_as("busy");
    let plan = PlanFile::new(|plan| plan.regions.retain(|region| region.site == 1));
    let list = plan.0.path("list");
    let keep = ["--regions", list.to_str().unwrap()];
    let report = plan.report(&target, &keep);
    let mappings = report["stand_in"]["mappings"].as_array().unwrap();
    assert_eq!(mappings.len(), 1, "{report}");
    let touched = mappings[0]["touched_bytes"].as_u64().unwrap();
    assert!(touched >= HEAP, "{report}");
    // One of the two blocks, with all of its whole regions.
    let huge = target.huge();
    assert!((HEAP - 2 * REGION..=HEAP).contains(&huge), "{report}");
    assert_eq!(
        report["collapsed"].as_u64(),
        Some(huge / REGION),
        "{report}"
    );
    assert_eq!(report["lost"].as_array().unwrap().len(), 1, "{report}");
    assert!(report["unfit"].is_null(), "{report}");

    let undo = plan.apply(target.pid(), &["--undo"]);
    let said = stderr(&undo);
    assert_eq!(undo.status.code(), Some(7), "{said}");
    assert!(said.contains("apply --regions FILE"), "{said}");
    let undo = apply(target.pid(), &list, &["--undo"]);
    assert!(undo.status.success(), "{undo:?}");
    assert_eq!(target.huge(), 0);

    let text = plan.apply(target.pid(), &["--dry-run"]);
    let text = stdout(&text);
    for part in [
        "not found by its call site",
        "whole mappings that the process touched most within 1 s were selected",
        "in memory  touched",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// A script must be able to distinguish this from an applied plan.
#[test]
fn nothing_that_became_huge_is_an_error() {
    let target = Target::start_as("forbidden");
    let output = PlanFile::new(|_| {}).apply(target.pid(), &["--json"]);
    let said = stderr(&output);
    let report = json(&output);
    assert_eq!((report["collapsed"].as_u64(), target.huge()), (Some(0), 0));
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("none of the"), "{said}");
}

#[test]
fn people_are_told_what_was_done_and_what_was_not_found() {
    let target = Target::start();
    let output = PlanFile::new(|_| {}).apply(target.pid(), &[]);
    let text = stdout(&output);
    for word in [
        "huge now",
        "found exactly: heap",
        "not found, left alone",
        "before",
    ] {
        assert!(text.contains(word), "{word:?} in {text}");
    }
}

#[test]
fn another_program_is_refused_and_another_build_is_said() {
    let target = Target::start();
    let other = PlanFile::new(|plan| {
        plan.program = Program {
            path: "/usr/bin/other".to_owned(),
            build_id: "00".to_owned(),
        };
    });
    let output = other.apply(target.pid(), &[]);
    assert_eq!(output.status.code(), Some(3));
    let said = stderr(&output);
    assert!(said.contains("/usr/bin/other"), "{said}");
    assert!(said.contains("started as "), "{said}");
    assert_eq!(target.huge(), 0);
    let rebuilt = PlanFile::new(|plan| plan.program.build_id = "00".to_owned());
    let report = rebuilt.report(&target, &["--dry-run"]);
    assert!(
        report["notes"].to_string().contains("another build"),
        "{report}"
    );
}

#[test]
fn processes_that_no_plan_applies_to() {
    let plan = PlanFile::new(|_| {});
    // Ids end at 2^22.
    assert_eq!(plan.apply(1 << 23, &[]).status.code(), Some(2));
    // A zombie: a child that ended and was not waited for.
    let mut zombie = Command::new("true").spawn().unwrap();
    let ended = || {
        let stat = toll_linux::proc::stat(&Root::system(), zombie.id()).unwrap();
        stat.state == 'Z'
    };
    wait_until("its end", ended);
    assert_eq!(plan.apply(zombie.id(), &[]).status.code(), Some(5));
    zombie.wait().unwrap();
    let is_kernel_thread =
        fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n");
    if is_kernel_thread {
        assert_eq!(plan.apply(2, &[]).status.code(), Some(5));
    }
}

#[test]
fn a_list_of_addresses_is_a_plan_as_well() {
    let target = Target::start();
    let smaps = smaps(&Root::system(), target.pid()).unwrap();
    let heap = smaps.iter().filter(|smap| &*smap.mapping.name == "[heap]");
    let big = heap.max_by_key(|smap| smap.mapping.len()).unwrap();
    let region = big.mapping.start.next_multiple_of(REGION);
    let directory = Directory::empty();
    let list = directory.write("largepages.txt", format!("{region}\n{}\n", 5 * REGION));
    let output = apply(target.pid(), &list, &["--json"]);
    let report = json(&output);
    assert_eq!(report["collapsed"], 1);
    assert_eq!(report["lost"], serde_json::json!(["address 0xa00000"]));
    assert_eq!(target.huge(), REGION);
}
