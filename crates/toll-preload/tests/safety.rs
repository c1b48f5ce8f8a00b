// SPDX-License-Identifier: MIT OR Apache-2.0
//! The target is not affected by the content of the files or by what it does itself.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Fixture, MIB, Run, library};
use toll_testkit::actions::Actions;
use toll_testkit::output::stdout;
use toll_testkit::recorded::Recorded;

/// Programs that use memory in different ways.
const PROGRAMS: [&str; 5] = [
    "sites.c",
    "objects.cc",
    "threads.c",
    "processes.c",
    "grows.c",
];

/// A plan with a rule for every block.
fn plan(fixture: &Fixture) -> PathBuf {
    let mut actions = Actions::default();
    actions.any(MIB, &[(0, 3 * MIB), (4 * MIB, u64::MAX)]);
    fixture.plan(&actions)
}

fn log(fixture: &Fixture) -> PathBuf {
    fixture.events(50_000)
}

#[test]
fn only_the_hooks_are_exported() {
    let output = Command::new("nm")
        .args(["-D", "--defined-only", "--format=just-symbols"])
        .arg(library())
        .output()
        .unwrap();
    let text = stdout(&output);
    let mut symbols: Vec<_> = text.lines().collect();
    symbols.sort_unstable();
    assert_eq!(
        symbols,
        [
            "aligned_alloc",
            "calloc",
            "free",
            "malloc",
            "memalign",
            "mmap",
            "mmap64",
            "mremap",
            "munmap",
            "posix_memalign",
            "prctl",
            "pthread_create",
            "pvalloc",
            "realloc",
            "reallocarray",
            "syscall",
            "valloc",
        ]
    );
}

#[test]
fn output_is_the_same_with_and_without() {
    let fixture = Fixture::new();
    let (plan, events) = (plan(&fixture), log(&fixture));
    for source in PROGRAMS.into_iter().chain(["signals.c"]) {
        let run = Run::new(&fixture.program(source));
        run.same(None, None);
        run.same(Some(&plan), None);
        run.same(None, Some(&events));
        run.same(Some(&plan), Some(&events));
        let all = fixture.path("all");
        Actions::all().write(&all);
        run.same(Some(&all), None);
    }
}

#[test]
fn confined_targets_live() {
    let fixture = Fixture::new();
    let run = Run::new(&fixture.program("confined.c"));
    assert!(run.plain().status.success(), "{:?}", run.plain());
    run.same(Some(&plan(&fixture)), Some(&log(&fixture)));
    assert!(Recorded::read(&fixture.path("events")).events.len() >= 4);
}

#[test]
fn the_simulators_call_is_made_for_the_simulator_only() {
    let fixture = Fixture::new();
    let run = Run::new(&fixture.program("confined.c"));
    let events = log(&fixture);
    run.same(None, Some(&events));
    // The filter kills on the unused system call number.
    let announced = run.env("TOLLFREE_SIM", "1").with(None, Some(&events));
    assert!(!announced.status.success());
}

#[test]
fn ten_million_small_blocks() {
    let fixture = Fixture::new();
    let run = Run::new(&fixture.program("small.c"));
    run.same(Some(&plan(&fixture)), Some(&log(&fixture)));
}

#[test]
fn damaged_action_files_are_no_plan() {
    let fixture = Fixture::new();
    let program = fixture.program("sites.c");
    let witness = fixture.compile("witness.c", "witness.so", &["-shared", "-fPIC"]);
    let seen = fixture.path("seen");
    let run = Run::new(&program).before(&witness).env("WITNESS", &seen);
    let good = std::fs::read(plan(&fixture)).unwrap();
    let bad = fixture.path("bad");
    let refused = |bytes: &[u8]| {
        std::fs::write(&bad, bytes).unwrap();
        run.same(Some(&bad), None);
        assert!(!seen.exists(), "{} bytes", bytes.len());
    };
    refused(b"");
    refused(b"nonsense");
    refused(&good[..good.len() - 1]);
    refused(&[&good[..], b"x"].concat());
    for at in [0, 8, 12, 16, 24] {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        refused(&bytes);
    }
    let mut huge_counts = good.clone();
    huge_counts[8..20].fill(0xff);
    refused(&huge_counts);
    for odd in [
        fixture.as_path(),
        Path::new("/nonexistent"),
        Path::new("/dev/zero"),
        Path::new(""),
    ] {
        run.same(Some(odd), None);
        assert!(!seen.exists());
    }
    run.same(Some(&fixture.path("actions")), None);
    assert!(seen.exists(), "the good file works");
}

#[test]
fn noise_in_action_files_harms_nobody() {
    let fixture = Fixture::new();
    let run = Run::new(&fixture.program("sites.c"));
    let recorded = run.record();
    let mut actions = Actions::default();
    for event in recorded.made() {
        actions.exact(&recorded, event, &[(0, 5 * MIB), (6 * MIB, 7 * MIB)]);
    }
    let good = actions.to_bytes();
    let plain = run.plain();
    let mut state = 7u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    let bad = fixture.path("bad");
    for _ in 0..30 {
        let mut bytes = good.clone();
        for _ in 0..1 + random(40) {
            let at = 24 + random(bytes.len() - 24);
            bytes[at] = random(256) as u8;
        }
        std::fs::write(&bad, &bytes).unwrap();
        let output = run.with(Some(&bad), None);
        assert_eq!(
            (plain.status, &plain.stdout),
            (output.status, &output.stdout)
        );
    }
}

#[test]
fn damaged_event_files_are_no_log() {
    let fixture = Fixture::new();
    let run = Run::new(&fixture.program("sites.c"));
    let path = log(&fixture);
    let good = std::fs::read(&path).unwrap();
    for length in [0, 1, 23, 24, 5000, good.len() - 1] {
        std::fs::write(&path, &good[..length]).unwrap();
        run.same(None, Some(&path));
        assert_eq!(std::fs::read(&path).unwrap(), &good[..length]);
    }
    let mut foreign = good.clone();
    foreign[3] = b'X';
    std::fs::write(&path, &foreign).unwrap();
    run.same(None, Some(&path));
    assert!(std::fs::read(&path).unwrap() == foreign);
    run.same(None, Some(fixture.as_path()));
}

#[test]
fn a_full_event_file_counts_what_it_lost() {
    let fixture = Fixture::new();
    let path = fixture.events(5);
    Run::new(&fixture.program("sites.c")).same(None, Some(&path));
    let recorded = Recorded::read(&path);
    assert_eq!(recorded.events.len(), 5);
    assert_eq!(recorded.lost, 11, "1 process, 13 blocks and 2 deaths");
}

/// Returns the path of a shared library by its file name, if it is installed.
fn installed(name: &str) -> Option<PathBuf> {
    let directories = [
        "/usr/lib/x86_64-linux-gnu",
        "/lib/x86_64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    ];
    let paths = directories
        .iter()
        .map(|directory| Path::new(directory).join(name));
    paths.into_iter().find(|path| path.exists())
}

#[test]
fn other_allocators_keep_working() {
    let fixture = Fixture::new();
    for allocator in [
        "libjemalloc.so.2",
        "libtcmalloc_minimal.so.4",
        "libmimalloc.so.2.0",
    ] {
        let Some(allocator) = installed(allocator) else {
            eprintln!("{allocator} is not installed: not tested");
            continue;
        };
        let (plan, events) = (plan(&fixture), log(&fixture));
        for source in PROGRAMS {
            let linked = [allocator.to_str().unwrap()];
            let linked = fixture.compile(source, "linked", &linked);
            Run::new(&linked).same(Some(&plan), Some(&events));
            let program = fixture.program(source);
            Run::new(&program)
                .before(&allocator)
                .same(Some(&plan), Some(&events));
            Run::new(&program)
                .after(&allocator)
                .same(Some(&plan), Some(&events));
        }
    }
}

#[test]
fn jemalloc_blocks_are_named_outside_it() {
    let Some(allocator) = installed("libjemalloc.so.2") else {
        eprintln!("jemalloc is not installed: not tested");
        return;
    };
    let fixture = Fixture::new();
    let program = fixture.compile("sites.c", "linked", &[allocator.to_str().unwrap()]);
    let run = Run::new(&program).record();
    for mib in 2..=12 {
        let mut events = run.with_length(mib * MIB);
        // Its own mappings at start are not made by a function of the program.
        events.retain(|event| event.frames_used > 0);
        assert!(!events.is_empty(), "{mib} MiB");
        assert_eq!(run.first_function(events[0]), "main", "{mib} MiB");
    }
}

#[test]
fn rust_and_go_like_programs_run() {
    let fixture = Fixture::new();
    let (plan, events) = (plan(&fixture), log(&fixture));
    let source = fixture.path("vectors.rs");
    std::fs::write(
        &source,
        "fn main() {\n    let v: Vec<u64> = (0..2_000_000).collect();\n    let t: Vec<_> = (0..4)\n        \
         .map(|i| std::thread::spawn(move || vec![i; 3_000_000].iter().sum::<u64>()))\n        .collect();\n    \
         let s: u64 = t.into_iter().map(|t| t.join().unwrap()).sum();\n    println!(\"{} {}\", v.iter().sum::<u64>(), s);\n}\n",
    )
    .unwrap();
    let program = fixture.path("vectors");
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let status = Command::new(rustc)
        .args(["-O", "-o"])
        .arg(&program)
        .arg(&source)
        .status();
    assert!(status.unwrap().success());
    let run = Run::new(&program);
    run.same(Some(&plan), Some(&events));
    let recorded = run.record();
    assert_eq!(recorded.names(), run.record().names());

    let fixed = fixture.compile("touch.c", "static", &["-static"]);
    Run::new(&fixed).same(Some(&plan), Some(&events));
}
