// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual PMU against programs whose counts can be worked out by hand.
//!
//! They build and boot the vanilla kernel: `setup/setup.sh lab` brings what that needs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use toll_lab::guest::{Guest, Job, Machine, Program, Section, Status};
use toll_lab::house::House;
use toll_lab::kernel::{Variant, build};
use toll_lab::preset::Preset;

/// Compiles a program of lab/guest.
fn compile(house: &House, folder: &std::path::Path, name: &str) -> Program {
    let host: PathBuf = folder.join(name);
    let status = Command::new("gcc")
        .args(["-static", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&host)
        .arg(house.guest.join(name).with_extension("c"))
        .status()
        .unwrap();
    assert!(status.success(), "{name}");
    Program {
        host,
        guest: format!("/bin/{name}"),
    }
}

/// Runs `stride` with each of these words, as one section each.
fn strides(runs: &[&str]) -> BTreeMap<String, Section> {
    let house = House::find().unwrap();
    let built = build(&house, &Variant::find(&house, "vanilla", &[]).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let jobs: Vec<Job> = runs
        .iter()
        .map(|words| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            Job {
                name: words[0].clone(),
                command: [vec!["/bin/stride".to_owned()], words].concat(),
            }
        })
        .collect();
    let outcome = Guest {
        image: &built.image,
        machine: Machine {
            cpus: 1,
            memory_mib: 1024,
        },
        append: &[],
        programs: &[compile(&house, folder.path(), "stride")],
        jobs: &jobs,
        limit: Duration::from_secs(120),
        preset: Some(&Preset::find("skylake").unwrap()),
        folder: &folder.path().join("guest"),
    }
    .run(&house)
    .unwrap();
    for done in &outcome.done {
        assert_eq!(done.status, Status::Exit(0), "{}: {}", done.name, done.err);
    }
    outcome.sections
}

/// Skylake: 64 entries of first level, 1,536 of the second, 12-way. A sweep over twice as many
/// pages finds none of them again, whatever the kernel does in between; one over half as many
/// finds nearly all, and loses those only that the kernel's own pages push out.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn sweeps_miss_as_the_shapes_say() {
    let got = strides(&[
        "far-read 3072 4k read 10",
        "far-write 3072 4k write 10",
        "near 512 4k read 10",
        "huge 24 2m read 1000",
    ]);
    let count = |section: &str, counter: &str| got[section].total(counter);
    let near = |value: u64, expected: u64| {
        let slack = expected / 100 + 100;
        assert!(
            value.abs_diff(expected) <= slack,
            "{value}, not about {expected}"
        );
    };
    near(count("far-read", "dtlb_load_misses"), 30_720);
    near(count("far-read", "dtlb_store_misses"), 0);
    near(count("far-write", "dtlb_store_misses"), 30_720);
    near(count("far-write", "dtlb_load_misses"), 0);
    near(count("near", "dtlb_load_misses"), 0);
    near(count("huge", "dtlb_load_misses"), 0);
    // Nothing that flushes for a batch of unmaps: both TLBs see the same.
    for section in got.values() {
        assert_eq!(
            section.total("dtlb_load_misses"),
            section.total("shadow_dtlb_load_misses")
        );
    }
}
