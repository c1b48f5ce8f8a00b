// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that crash, are killed, fork, exec, close everything, are setuid, static or
//! 32-bit, under `record --source accessed`, `compare` and `tune`. For `run` see
//! tests/pass_through, for the simulator simulated.rs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use toll_testkit::machine::is_root;
use toll_testkit::output::{assert_fails, json, stderr};
use toll_testkit::schema;

use crate::place::{Place, has_simulator};

/// `compare` and `tune` on ./faulty, short.
fn compare<'a>(command: &[&'a str]) -> Vec<&'a str> {
    let compare = ["--json", "compare", "--plan", "none.txt", "-n", "1", "--"];
    [&compare[..], command].concat()
}

fn tune<'a>(command: &[&'a str]) -> Vec<&'a str> {
    let tune = ["--json", "tune", "--within", "6s", "-o", "out", "--force"];
    [&tune[..], &["--"], command].concat()
}

#[test]
fn a_recording_passes_what_the_program_does_and_keeps_the_profile() {
    let place = Place::new();
    for (how, code, signal) in [
        ("exit", Some(5), None),
        ("fork", Some(5), None),
        ("exec", Some(6), None),
        ("close", Some(5), None),
        ("abort", None, Some(libc::SIGABRT)),
        ("kill", None, Some(libc::SIGKILL)),
        ("term", None, Some(libc::SIGTERM)),
    ] {
        let alone = Command::new(place.path("faulty"))
            .arg(how)
            .output()
            .unwrap();
        let (output, profile) = place.record("accessed", &["./faulty", how]);
        let status = (output.status.code(), output.status.signal());
        assert_eq!(status, (code, signal), "{how}: {}", stderr(&output));
        assert_eq!(output.stdout, alone.stdout, "{how}");
        assert!(output.stderr.starts_with(&alone.stderr), "{how}");
        schema::check("profile", &profile);
        let (program, faulty) = (&profile["program"]["path"], place.path("faulty"));
        assert_eq!(*program, *faulty.canonicalize().unwrap().to_string_lossy());
    }
}

/// A program may fork, replace itself or close all descriptors.
#[test]
fn programs_that_fork_exec_or_close_are_compared_and_tuned() {
    let place = Place::new();
    for (how, status) in [("fork", 5), ("exec", 6), ("close", 5)] {
        let command = ["./faulty", how, "-", "1000"];
        let output = place.run(&compare(&command));
        assert_eq!(output.status.code(), Some(0), "{how}: {}", stderr(&output));
        let compared = schema::json("compare", &output);
        assert_eq!(compared["status"], status, "{how}");
        assert_eq!(compared["output"]["state"], "same", "{how}");
    }
    let output = place.run(&tune(&["./faulty", "fork", "-", "1000"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    schema::json("tune", &output);
}

#[test]
fn a_program_that_dies_is_named_with_its_signal() {
    let place = Place::new();
    for (how, signal) in [("abort", "signal 6"), ("kill", "signal 9")] {
        let command = ["./faulty", how, "-", "1000"];
        assert_fails(&place.run(&compare(&command)), 5, &[signal]);
        assert_fails(&place.run(&tune(&command)), 5, &[signal]);
    }
}

#[test]
fn static_programs_are_recorded_without_names_and_compared() {
    let place = Place::new();
    if !place.compile("static", &["-static"]) {
        return;
    }
    let sources = match has_simulator() {
        true => &["accessed", "sim"][..],
        false => &["accessed"],
    };
    for source in sources {
        let (output, profile) = place.record(source, &["./static"]);
        assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
        let warnings = profile["warnings"].to_string();
        assert!(warnings.contains("linked statically"), "{warnings}");
        assert!(!profile["sites"].to_string().contains("\"alloc\""));
        assert!(!profile["sites"].as_array().unwrap().is_empty());
    }
    let output = place.run(&compare(&["./static", "exit", "-", "1000"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(json(&output)["status"], 5);
}

#[test]
fn setuid_programs_are_left_alone() {
    if !is_root() {
        eprintln!("skipped: not root");
        return;
    }
    let place = Place::new();
    let setuid = place.path("setuid");
    fs::copy(place.path("faulty"), &setuid).unwrap();
    std::os::unix::fs::chown(&setuid, Some(65534), Some(65534)).unwrap();
    fs::set_permissions(&setuid, fs::Permissions::from_mode(0o4755)).unwrap();
    let (output, profile) = place.record("accessed", &["./setuid"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(
        profile["warnings"]
            .to_string()
            .contains("privileges of its own")
    );
    // Under QEMU it would run without its privileges.
    let (output, profile) = place.record("sim", &["./setuid", "sleep", "ran"]);
    assert_fails(
        &output,
        125,
        &["privileges of its own", "--source accessed"],
    );
    assert!(profile.is_null() && !place.path("ran").exists());
    let output = place.run(&compare(&["./setuid", "exit", "-", "1000"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// An i386 program with two system calls: it writes nothing and exits with 11.
fn elf32() -> Vec<u8> {
    let code = b"\xb8\x01\0\0\0\xbb\x0b\0\0\0\xcd\x80";
    let (base, head) = (0x0804_8000u32, 52 + 32);
    let half = |n: u16| n.to_le_bytes().to_vec();
    let word = |n: u32| n.to_le_bytes().to_vec();
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    // Executable, 80386, version, entry, program headers, no sections.
    file.extend(
        [
            half(2),
            half(3),
            word(1),
            word(base + head),
            word(52),
            word(0),
        ]
        .concat(),
    );
    file.extend(
        [
            word(0),
            half(52),
            half(32),
            half(1),
            half(0),
            half(0),
            half(0),
        ]
        .concat(),
    );
    let size = head + code.len() as u32;
    // One segment to load: offset, addresses, sizes, read and execute, alignment.
    let segment = [1, 0, base, base, size, size, 5, 4096];
    file.extend(segment.map(word).concat());
    file.extend(code);
    file
}

#[test]
fn programs_of_32_bits_run_and_are_said_to_be_that() {
    let place = Place::new();
    place.executable("small", elf32());
    let (output, profile) = place.record("sim", &["./small"]);
    assert_fails(&output, 125, &["32-bit", "--source accessed"]);
    assert!(profile.is_null());
    let alone = Command::new(place.path("small")).status();
    if !alone.is_ok_and(|status| status.code() == Some(11)) {
        eprintln!("skipped: this kernel runs no 32-bit programs");
        return;
    }
    let (output, profile) = place.record("accessed", &["./small"]);
    assert_eq!(output.status.code(), Some(11), "{}", stderr(&output));
    assert!(profile["warnings"].to_string().contains("32-bit"));
    let output = place.run(&compare(&["./small"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(json(&output)["status"], 11);
    let output = place.run(&tune(&["./small"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(json(&output)["advice"], "do-nothing");
}
