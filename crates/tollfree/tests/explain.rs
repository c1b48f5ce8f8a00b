// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree kernel explain` on fixture kernels, and profiles for the kernel on kernels without econ.

use std::fs;
use std::process::Command;

use assert_cmd::prelude::*;
use toll_model::profile::Profile;
use toll_testkit::model::regions;
use toll_testkit::{Directory, schema};

const LEDGER: &str = "mode default\nhuge 12 10 2200000 50000000 130\nlarge 0 0 0 0 0\n";
const PROFILE: &str = "mm_profile 1\nprogram redis\nrun 1000000000\n\
    heap 0x0 0x400000 250000 480 90 # at 0x555500000000 huge 0 small 2\n\
    mmap 2 30 3 0x0 0x1400000 5000000 512 75 # at 0x7f0000200000 huge 10 small 0 observed 8 used 3\nend 2\n";

fn whole() -> Directory {
    Directory::with(&[
        ("sys/kernel/mm/econ/mode", "on\n"),
        ("proc/42/mm_ledger", LEDGER),
        ("proc/42/mm_profile", PROFILE),
        ("proc/43/comm", "other\n"),
    ])
}

fn explain(machine: &Directory, arguments: &[&str]) -> Command {
    machine.as_machine(&[&["kernel", "explain"], arguments].concat())
}

#[test]
fn what_was_decided_and_what_is_known() {
    let output = explain(&whole(), &["42"]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(
        text.starts_with("decisions: on, as the machine\n"),
        "{text}"
    );
    let line = |of: &str| {
        text.lines()
            .find(|line| line.contains(of))
            .map(str::to_owned)
    };
    let header = line("asked").unwrap();
    assert!(header.trim_start().starts_with("decision"), "{header}");
    let huge = line("a huge page at the first touch").unwrap();
    assert!(
        huge.contains("12") && huge.contains("10") && huge.contains("50"),
        "{huge}"
    );
    // Models without requests.
    assert_eq!(line("several pages"), None);
    // The memory with the largest benefit comes first.
    assert!(line("mmap 2 30 3").unwrap().contains("3 of 8"), "{text}");
    let [rich, poor] = ["mmap 2 30 3", "heap"].map(|name| text.find(name).unwrap());
    assert!(rich < poor, "{text}");
}

#[test]
fn json_has_every_row() {
    let output = explain(&whole(), &["42", "--json"]).assert().success();
    let report = schema::json("explain", output.get_output());
    assert_eq!(report["decisions"].as_array().unwrap().len(), 2);
    assert_eq!(report["decisions"][0]["approved"], 10);
    assert_eq!(report["rows"][1]["regions_huge"], 10);
    assert_eq!(report["rows"][1]["regions_used"], 3);
    assert_eq!(report["rows"][0].get("regions_used"), None);
    assert_eq!(report["rows"][1]["address"], 0x7f00_0020_0000_u64);
}

#[test]
fn a_process_without_a_profile_and_a_kernel_without_econ_are_told_apart() {
    for (pid, machine, why) in [
        ("43", whole(), "process 43 (other) has no profile"),
        ("44", whole(), "there is no process 44"),
        ("42", Directory::empty(), "this kernel has no econ"),
    ] {
        let output = explain(&machine, &[pid]).assert().code(4);
        let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
        assert!(said.contains(why), "{said}");
    }
    explain(&whole(), &["nonsense"]).assert().code(2);
}

/// On a stock kernel, the program runs without the profile.
#[test]
fn a_profile_for_the_kernel_is_no_obstacle() {
    if fs::exists("/proc/self/mm_profile").unwrap() {
        return eprintln!("skipped: this kernel takes profiles");
    }
    let directory = Directory::with(&[("redis.mm_profile", PROFILE)]);
    let run = ["run", "--plan", "redis.mm_profile", "--"];
    let program = ["sh", "-c", "echo it runs; exit 7"];
    let mut command = directory.tollfree(&[&run[..], &program].concat());
    let output = command.assert().code(7);
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert_eq!(output.get_output().stdout, b"it runs\n");
    assert!(said.contains("this kernel has no econ"), "{said}");
}

/// The line of the kernel's profile with the duration of the run.
fn run_of(directory: &Directory, options: &[&str]) -> String {
    let words = [&["kernel", "profile", "app.json"], options].concat();
    let output = directory.tollfree(&words).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let line = text.lines().find(|line| line.starts_with("run "));
    line.unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// A kernel ages rows by CPU time: of several threads it passes faster than time does.
#[test]
fn the_kernel_gets_the_cpu_time_of_the_run() {
    let directory = Directory::empty();
    let timed = Profile {
        native_ns: Some(2_000_000_000),
        ..regions(&[1e6, 1e3])
    };
    let write = |profile: &Profile| directory.write("app.json", profile.to_json().unwrap());
    write(&timed);
    assert_eq!(run_of(&directory, &[]), "run 2000000000");
    write(&Profile {
        native_cpu_ns: Some(7_000_000_000),
        ..timed
    });
    assert_eq!(run_of(&directory, &[]), "run 7000000000");
    assert_eq!(run_of(&directory, &["--baseline", "3s"]), "run 3000000000");
}
