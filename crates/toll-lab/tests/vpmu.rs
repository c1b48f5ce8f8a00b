// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual PMU on programs with counts that can be derived by hand.
//!
//! The tests build and boot the vanilla kernel: `setup/setup.sh lab` installs the dependencies.

use std::time::Duration;

use toll_lab::guest::{Guest, Job, Machine, Outcome, Program, Section, Status};
use toll_lab::kernel::{Variant, build};
use toll_lab::preset::Preset;
use toll_lab::workspace::Workspace;

/// Skylake's second level has 1,536 entries, 12-way.
const TWICE_THE_REACH: u64 = 3072;
/// 13 pages for each of its 128 sets: each set evicts the page that is accessed next.
const ONE_WAY_TOO_MANY: u64 = 13 * 128;

/// Boots the vanilla kernel and runs commands of lab/guest, each named by its second word; a
/// command that begins with "sh" is a shell line.
fn boot(directory: &str, machine: Machine, append: &[&str], commands: &[&str]) -> Outcome {
    let workspace = Workspace::find().unwrap();
    let built = build(
        &workspace,
        &Variant::find(&workspace, "vanilla", &[]).unwrap(),
    )
    .unwrap();
    let mut programs = Program::installed("busybox").unwrap();
    for name in ["stride", "pingpong", "renew", "shoot", "scale", "alloc"] {
        programs.push(Program::compiled(&workspace, name).unwrap());
    }
    let job = |text: &&str| {
        if let Some(line) = text.strip_prefix("sh ") {
            return Job::shell("sh", line);
        }
        let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        let name = words[1].clone();
        words[0] = format!("/bin/{}", words[0]);
        Job {
            name,
            command: words,
        }
    };
    let outcome = Guest {
        image: &built.image,
        machine,
        append,
        programs: &programs,
        disks: &[],
        pmem: None,
        jobs: &commands.iter().map(job).collect::<Vec<_>>(),
        limit: Duration::from_secs(300),
        preset: Some(&Preset::find("skylake").unwrap()),
        lines: false,
        adversary: false,
        stores: false,
        directory: &workspace.cache.join("tests").join(directory),
    }
    .run(&workspace)
    .unwrap_or_else(|error| panic!("{error:#}"));
    for done in &outcome.done {
        assert_eq!(done.status, Status::Exit(0), "{}: {}", done.name, done.err);
    }
    outcome
}

/// Returns a program's note in a section; 0 if there is none.
fn noted(outcome: &Outcome, section: &str, name: &str) -> u64 {
    outcome.notes[section].get(name).copied().unwrap_or(0.0) as u64
}

/// Returns the repeats of a section (NAME-0, NAME-1...) that no interrupt disturbed.
fn undisturbed<'a>(outcome: &'a Outcome, name: &str) -> Vec<&'a Section> {
    let found: Vec<&Section> = outcome
        .sections
        .iter()
        .filter(|(section, _)| {
            let repeat = section
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('-'));
            repeat.is_some_and(|repeat| repeat.parse::<u32>().is_ok())
        })
        .map(|(_, section)| section)
        .filter(|section| section.total("interrupts") == 0)
        .collect();
    assert!(
        !found.is_empty(),
        "{name}: an interrupt occurred in every repeat"
    );
    found
}

/// A sweep over twice as many pages as the second level holds misses on all of them; one over as
/// many as the first level holds hits on all.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn sweeps_miss_as_the_shapes_say() {
    let far = TWICE_THE_REACH;
    let commands = [
        format!("stride far-read {far} 4k read 2"),
        format!("stride far-write {far} 4k write 2"),
        format!("stride far-execute {far} 4k execute 2"),
        "stride near-read 48 4k read 50".to_owned(),
        "stride near-execute 96 4k execute 20".to_owned(),
        format!("stride huge-far {ONE_WAY_TOO_MANY} 2m read 2"),
        "stride huge-near 24 2m read 50".to_owned(),
        "stride giant 3 1g read 50".to_owned(),
    ];
    // More than 3 GiB of huge pages, and 3 giant ones.
    let machine = Machine {
        icount: true,
        ..Machine::plain(1, 8 * 1024)
    };
    let outcome = boot(
        "sweeps",
        machine,
        &["default_hugepagesz=2M", "hugepagesz=1G", "hugepages=3"],
        &commands.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let check = |name: &str, expected: [u64; 3]| {
        for section in undisturbed(&outcome, name) {
            let got = ["load", "store", "fetch"]
                .map(|kind| section.total(&format!("watched_{kind}_misses")));
            assert_eq!(got, expected, "{name}: loads, stores, fetches");
            // No flush for a batch of unmaps: both TLBs see the same.
            let shadow = section.total("shadow_dtlb_load_misses");
            assert_eq!(section.total("dtlb_load_misses"), shadow, "{name}");
        }
    };
    check("far-read", [2 * far, 0, 0]);
    check("far-write", [0, 2 * far, 0]);
    check("far-execute", [0, 0, 2 * far]);
    check("near-read", [0; 3]);
    check("near-execute", [0; 3]);
    check("huge-far", [2 * ONE_WAY_TOO_MANY, 0, 0]);
    check("huge-near", [0; 3]);
    check("giant", [0; 3]);
}

/// Two processes on one CPU: with PCIDs each finds its translations again, without them none.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn address_spaces_keep_their_translations_with_pcids() {
    const PAGES: u64 = 20;
    const TURNS: u64 = 40;
    // With PTI, and without INVPCID, unmapping a single page drops all user-mode translations: one
    // process frees a buffer between the sections.
    for (pcid, pti, expected) in [
        (true, false, 0),
        (true, true, PAGES),
        (false, false, 2 * PAGES * TURNS),
    ] {
        let machine = Machine {
            pcid,
            pti,
            icount: true,
            ..Machine::plain(1, 512)
        };
        let command = format!("pingpong turns {PAGES} {TURNS}");
        let outcome = boot("pcids", machine, &[], &[&command]);
        let got = outcome.sections["turns"].total("watched_load_misses");
        assert_eq!(got, expected, "pcid {pcid}, pti {pti}");
    }
}

/// Kernel bugs in the use of PCIDs show as missing misses: a wrong identifier lets one process use
/// the other's translations, and a flush that does not reach user mode leaves stale ones.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn planted_bugs_show_in_the_counts() {
    const PAGES: u64 = 20;
    const TURNS: u64 = 30;
    let machine = Machine {
        pti: true,
        icount: true,
        ..Machine::plain(1, 512)
    };
    let commands = [
        format!("pingpong turns {PAGES} {TURNS}"),
        format!("renew renewed {PAGES} {TURNS}"),
    ];
    let count = |append: &[&str]| {
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let outcome = boot("planted", machine, append, &commands);
        // One process writes its pages before the section, the other in it.
        let of = |section: &str| {
            let kinds = ["watched_load_misses", "watched_store_misses"];
            let total = |kind: &&str| outcome.sections[section].total(kind);
            kinds.iter().map(total).sum::<u64>()
        };
        (of("warming"), of("renewed"))
    };
    // A process of the guest that runs in between costs misses: on a busy host one did.
    let expected = (2 * PAGES, TURNS * PAGES);
    let mut tries = (0..3).map(|_| count(&[]));
    let sound = tries.find(|got| *got == expected).expect("no exact count");
    let (wrong_asid, dropped) = (
        count(&["toll_lab_plant=asid"]),
        count(&["toll_lab_plant=user-flush"]),
    );
    assert!(wrong_asid.0 < sound.0, "{wrong_asid:?}");
    assert!(dropped.1 < sound.1 / 2, "{dropped:?}");
}

/// Every flush interrupt that the kernel counts is counted by the plugin, with its cause; also with
/// one host thread for both CPUs.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn shootdowns_are_those_that_the_kernel_counts() {
    const TIMES: u64 = 200;
    let command = format!("shoot flushes {TIMES}");
    for icount in [false, true] {
        let machine = Machine {
            icount,
            ..Machine::plain(2, 512)
        };
        let outcome = boot("shootdowns", machine, &[], &[&command]);
        let section = &outcome.sections["flushes"];
        let is_shootdown = |name: &&str| name.starts_with("shootdowns_");
        let all: u64 = section
            .counters()
            .filter(is_shootdown)
            .map(|name| section.total(name))
            .sum();
        assert_eq!(
            all,
            noted(&outcome, "flushes", "vmstat_nr_tlb_remote_flush_received")
        );
        assert_eq!(section.total("shootdowns_mm"), all);
        // Twice each time, unless the other CPU was idle at that moment: with one host thread per
        // CPU, idle time depends on the host's scheduling.
        let least = if icount { TIMES } else { 1 };
        assert!((least..=2 * TIMES).contains(&all), "{all}");
    }
}

/// Each requested allocation is counted once, and so is each failed one; the second machine has one
/// host thread for both CPUs.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn allocations_are_those_that_were_asked_for() {
    for icount in [false, true] {
        let machine = Machine {
            icount,
            ..Machine::plain(2, 512)
        };
        // Each CPU asks for 800 MiB: more than the memory, even if the other one is late.
        let commands = [
            "alloc small paced 0 kernel 3000 10 1",
            "alloc large paced 9 atomic 800 800 1",
        ];
        let outcome = boot("allocations", machine, &[], &commands);
        for (done, expected) in outcome.done.iter().zip([3000, 800]) {
            let section = &outcome.sections[&done.name];
            let (asked, failed) = (section.total("allocs"), section.total("alloc_failures"));
            assert_eq!(done.out, format!("allocs {asked}\nfailures {failed}\n"));
            assert_eq!(asked, expected, "{}", done.name);
            assert_eq!(section.allocs.count(), expected, "{}", done.name);
            assert_eq!(done.name == "large", failed > 0, "{failed}");
            let (low, max) = (section.allocs.quantile(0.01), section.allocs.max);
            let sum = section.total("alloc_instructions");
            assert!((low * 9 / 10 * asked..=max * asked).contains(&sum), "{sum}");
            // The shortest path through the allocator, and the minimum for its huge pages.
            assert!((200..10_000).contains(&low), "{}: {low}", done.name);
        }
    }
}

/// Invalid requests are refused and allocate nothing.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn nonsense_is_no_allocation() {
    let good = "3 atomic 5 2 0";
    let long = format!("0 kernel 1 1 {:0>130}", 0);
    let nonsense = [
        "",
        "0",
        "0 kernel 1 1",
        "0 kernel 1 1 0 0",
        "11 kernel 1 1 0",
        "-1 kernel 1 1 0",
        "0 often 1 1 0",
        "0 kernel 0 1 0",
        "0 kernel 1 -1 0",
        "0 kernel 1 1 1000001",
        "0 kernel 99999999999999999999 1 0",
        "0x1 kernel 1 1 0",
        &long,
    ];
    let ask = |line: &str| format!("echo '{line}' >&3");
    let lines: Vec<String> = nonsense
        .iter()
        .map(|line| format!("! {}", ask(line)))
        .collect();
    let command = format!(
        "sh exec 3<>/sys/kernel/debug/toll_lab_alloc; {}; {} && cat <&3",
        lines.join("; "),
        ask(good)
    );
    let outcome = boot("nonsense", Machine::plain(1, 256), &[], &[&command]);
    let done = &outcome.done[0];
    let refused = done.err.matches("Invalid argument").count();
    assert_eq!(refused, nonsense.len(), "{}", done.err);
    assert_eq!(done.out, "allocs 5\nfailures 0\n");
}

/// On one CPU, each page that the kernel reports as flushed is one instruction.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn invalidations_are_those_that_the_kernel_counts() {
    let outcome = boot(
        "invalidations",
        Machine::plain(1, 512),
        &[],
        &["scale flush 1 300 flush"],
    );
    let invlpgs = outcome.sections["flush"].total("invlpgs");
    assert_eq!(
        invlpgs,
        noted(&outcome, "flush", "vmstat_nr_tlb_local_flush_one")
    );
    assert!(invlpgs >= 600, "{invlpgs}");
}

/// With an instruction-count clock, equal runs give equal counts.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_run_by_instruction_count_repeats() {
    let machine = Machine {
        icount: true,
        ..Machine::plain(2, 512)
    };
    let command = format!("stride again {TWICE_THE_REACH} 4k write 20");
    let run = || boot("repeat", machine, &[], &[&command]);
    let (first, second) = (run(), run());
    for counter in [
        "dtlb_store_misses",
        "walk_steps",
        "page_faults",
        "instructions_user",
    ] {
        let of = |outcome: &Outcome| outcome.sections["again-0"].total(counter);
        let (a, b) = (of(&first), of(&second));
        assert!(a.abs_diff(b) * 100 <= a.max(b), "{counter}: {a} and {b}");
    }
}
