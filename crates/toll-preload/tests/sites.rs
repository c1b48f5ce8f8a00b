// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events get the same names in each run, independent of addresses.

mod support;

use std::path::Path;

use support::{Fixture, MIB, Run};
use toll_linux::events::blocks;
use toll_model::wire::EventKind;
use toll_testkit::actions::Actions;
use toll_testkit::recorded::Recorded;

#[test]
fn names_are_stable_under_aslr() {
    let fixture = Fixture::new();
    let program = fixture.program("sites.c");
    let first = Run::new(&program).record();
    assert_eq!(first.names().len(), 13);
    for _ in 0..3 {
        let again = Run::new(&program).record();
        assert_eq!(first.names(), again.names());
        let addresses =
            |run: &Recorded| -> Vec<u64> { run.events.iter().map(|event| event.address).collect() };
        assert_ne!(addresses(&first), addresses(&again), "ASLR is off");
    }
}

#[test]
fn every_function_is_an_event_of_its_line() {
    let fixture = Fixture::new();
    let run = Run::new(&fixture.program("sites.c")).record();
    for mib in 2..=11 {
        let events = run.with_length(mib * MIB);
        assert_eq!(events.len(), 1, "{mib} MiB");
        assert_eq!(run.first_function(events[0]), "main", "{mib} MiB");
    }
    let loops: Vec<_> = run
        .with_length(12 * MIB)
        .iter()
        .map(|e| e.ordinal)
        .collect();
    assert_eq!(loops, [0, 1, 2]);
    let freed: Vec<_> = run.of(EventKind::Free).map(|e| e.length / MIB).collect();
    assert_eq!(freed, [2, 11]);
}

#[test]
fn call_sites_stay_with_another_input_size() {
    let fixture = Fixture::new();
    let program = fixture.program("sites.c");
    let call_sites = |factor: &str| -> Vec<_> {
        let run = Run::new(&program).args([factor]).record();
        let made = run.of(EventKind::Malloc).chain(run.of(EventKind::Mmap));
        made.map(|event| (event.frame_offset, event.ordinal))
            .collect()
    };
    assert_eq!(call_sites("1"), call_sites("3"));
}

#[test]
fn threads_are_numbered_by_creation() {
    let fixture = Fixture::new();
    let program = fixture.program("threads.c");
    let mut names = None;
    for _ in 0..3 {
        let run = Run::new(&program).record();
        for number in 0..8 {
            let events = run.with_length((number + 2) * MIB);
            assert_eq!(events.len(), 1);
            assert_eq!(u64::from(events[0].thread), number + 1);
            assert_eq!(run.first_function(events[0]), "work");
        }
        assert_eq!(*names.get_or_insert(run.names()), run.names());
    }
}

#[test]
fn cpp_blocks_are_named_outside_operator_new() {
    let fixture = Fixture::new();
    let program = fixture.program("objects.cc");
    let run = Run::new(&program).record();
    let block = run.with_length(8 * MIB);
    assert_eq!(run.first_function(block[0]), "main");
    let modules = run.modules.iter();
    let ours: Vec<_> = modules
        .filter(|module| module.path.ends_with("objects"))
        .collect();
    assert_eq!(ours.len(), 1);
    assert!(ours[0].id.len() >= 16 && !ours[0].id.starts_with("path:"));
    assert_eq!(run.names(), Run::new(&program).record().names());
}

#[test]
fn a_module_without_build_id_goes_by_its_name() {
    let fixture = Fixture::new();
    let program = fixture.compile("sites.c", "anonymous", &["-Wl,--build-id=none"]);
    let run = Run::new(&program).record();
    assert!(
        run.modules
            .iter()
            .any(|module| module.id == "path:anonymous")
    );
    let event = run.with_length(2 * MIB)[0];
    let mut actions = Actions::default();
    actions.exact(&run, event, &[(0, u64::MAX)]);
    let (plan, events) = (fixture.plan(&actions), fixture.events(1000));
    Run::new(&program).same(Some(&plan), Some(&events));
    let acted = Recorded::read(&events);
    assert_eq!(acted.with_length(2 * MIB)[0].rule, 0);
}

#[test]
fn forks_and_execs_are_followed() {
    let fixture = Fixture::new();
    let run = Run::new(&fixture.program("processes.c")).record();
    let processes: Vec<_> = run.of(EventKind::Process).collect();
    let [first, fork, exec] = processes[..] else {
        panic!("{processes:?}");
    };
    assert_eq!((first.old, exec.old), (0, 0));
    assert_eq!(fork.old, u64::from(first.process));
    let made: Vec<_> = run
        .of(EventKind::Malloc)
        .map(|event| event.process)
        .collect();
    assert_eq!(made, [first.process, fork.process, exec.process]);
    let lives = blocks(&run.events);
    let of = |process| {
        lives
            .iter()
            .filter(|block| block.process == process)
            .count()
    };
    assert_eq!(
        (of(first.process), of(fork.process), of(exec.process)),
        (1, 2, 1)
    );
}

#[test]
fn constructors_are_early_enough() {
    let fixture = Fixture::new();
    let library = fixture.compile("early.c", "libearly.so", &["-shared", "-fPIC"]);
    let program = fixture.compile("constructor.c", "constructor", &[library.to_str().unwrap()]);
    let run = Run::new(&program).record();
    assert_eq!(run.with_length(6 * MIB).len(), 1);
    assert_eq!(run.with_length(7 * MIB).len(), 1);
}

#[test]
fn plug_ins_that_take_each_others_place_are_told_apart() {
    let fixture = Fixture::new();
    let plugin = |number: &str| {
        let name = format!("plugin{number}.so");
        fixture.compile(
            "plugin.c",
            &name,
            &["-shared", "-fPIC", &format!("-DNAME={number}")],
        )
    };
    let (two, three) = (plugin("2"), plugin("3"));
    let program = fixture.compile("plugins.c", "plugins", &["-ldl"]);
    let run = Run::new(&program).args([&two, &three]).record();
    for (mib, path) in [(2, &two), (3, &three)] {
        let events = run.with_length(mib * MIB);
        let ordinals: Vec<_> = events.iter().map(|event| event.ordinal).collect();
        assert_eq!(ordinals, [0, 1, 2]);
        for event in events {
            let module = &run.modules[event.frame_module[0] as usize];
            assert_eq!(Path::new(&module.path), path);
        }
    }
}

#[test]
fn python_call_sites_are_stable() {
    let fixture = Fixture::new();
    let script = fixture.path("grow.py");
    std::fs::write(
        &script,
        "b = bytes(5 << 20)\nl = list(range(1 << 19))\nprint(len(b), len(l))\n",
    )
    .unwrap();
    let python = Path::new("/usr/bin/python3");
    if !python.exists() {
        eprintln!("no python3: not tested");
        return;
    }
    let record = || {
        Run::new(python)
            .env("PYTHONHASHSEED", "0")
            .args([&script])
            .record()
    };
    let first = record();
    assert!(
        first
            .events
            .iter()
            .any(|e| e.length > 5 * MIB && e.length < 6 * MIB)
    );
    // Its arenas of 1 MiB are mapped when a small object needs memory.
    assert!(first.names_from(2 * MIB).len() >= 2);
    assert_eq!(first.names_from(2 * MIB), record().names_from(2 * MIB));
}
