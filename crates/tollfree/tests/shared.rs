// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared memory: found by a recording, made huge under a plan, and left as it was afterwards.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use toll_linux::Root;
use toll_linux::sys::Thp;
use toll_model::REGION;
use toll_model::plan::Verdict;
use toll_model::site::SiteKind;
use toll_testkit::compiler::compile;
use toll_testkit::machine::has_program;
use toll_testkit::model::{plan, region, site};
use toll_testkit::output::{stderr, stdout, succeeds};
use toll_testkit::{Directory, schema, tool};

const LENGTH: u64 = 32 << 20;
const ALL: u64 = LENGTH >> 10;

struct Fixture(Directory);

impl Deref for Fixture {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

impl Fixture {
    /// `None` without a C compiler, or where the machine forbids huge pages in shared memory.
    fn new() -> Option<Fixture> {
        tool::library();
        let thp = Thp::read(&Root::system());
        let setting = thp.as_ref().and_then(|thp| thp.shmem_mode());
        if !matches!(setting, Some("never" | "advise")) {
            eprintln!("skipped: shmem_enabled is {setting:?}");
            return None;
        }
        let fixture = Fixture(Directory::empty());
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/shared.c");
        let options = ["-O1", "-g", "-Wl,--build-id"];
        compile(&source, &fixture.path("shared"), &options).then_some(fixture)
    }

    /// A plan for the whole of one site.
    fn plan(&self, kind: SiteKind) {
        let regions = (0..LENGTH / REGION).map(|number| region(0, number, Verdict::Huge));
        let sites = vec![site(0, kind, LENGTH)];
        let plan = plan(&self.path("shared"), sites, regions.collect());
        self.write("plan.toml", plan.to_toml().unwrap());
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut run = self.tollfree(&["run", "--plan", "plan.toml", "--", "./shared"]);
        let output = run.args(arguments).output().unwrap();
        succeeds(&output);
        output
    }
}

/// What the program prints: kB in huge pages.
fn huge(output: &Output) -> u64 {
    let text = stdout(output);
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// A file on tmpfs that is removed at the end.
struct Named(PathBuf);

impl Named {
    /// `None` without /dev/shm.
    fn new(name: &str) -> Option<Named> {
        let name = format!("/dev/shm/tollfree-{name}-{}", std::process::id());
        fs::write(&name, b"").ok()?;
        Some(Named(name.into()))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_planned_memfd_is_collapsed_wherever_it_is_mapped() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let path = "/memfd:pool (deleted)".to_owned();
    fixture.plan(SiteKind::Shared { path });
    // Watched from outside: the program lives long enough.
    assert_eq!(huge(&fixture.run(&["memfd", "0", "3000"])), ALL);
    let other = "/memfd:other (deleted)".to_owned();
    fixture.plan(SiteKind::Shared { path: other });
    assert_eq!(huge(&fixture.run(&["memfd", "0", "500"])), 0);
}

#[test]
fn a_file_on_tmpfs_is_as_before_after_the_run() {
    let Some((fixture, file)) = Fixture::new().zip(Named::new("plan")) else {
        return;
    };
    let path = file.path().to_owned();
    fixture.plan(SiteKind::Shared { path });
    let arguments = [file.path(), "0", "3000"];
    assert_eq!(huge(&fixture.run(&arguments)), ALL);
    // Without a plan it is mapped anew; at an address where huge pages fit or not.
    let plain = Command::new(fixture.path("shared"))
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(huge(&plain), 0);
    assert_eq!(resident_in_huge_pages(&fixture, file.path()), 0);
}

/// kB of a file in huge pages, as a process at a suitable address sees it: a plan for another
/// file aligns every mapping.
fn resident_in_huge_pages(fixture: &Fixture, path: &str) -> u64 {
    let other = "/dev/shm/other".to_owned();
    fixture.plan(SiteKind::Shared { path: other });
    huge(&fixture.run(&[path, "0"]))
}

#[test]
fn everything_includes_shared_memory() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture.plan(SiteKind::Shared {
        path: "/memfd:pool (deleted)".to_owned(),
    });
    for kind in ["anonymous", "memfd"] {
        let mut compare = fixture.tollfree(&["compare", "--plan", "plan.toml", "--json"]);
        compare.args(["-n", "1", "--cold", "--any-output"]);
        compare.args(["--", "./shared", kind, "0", "3000"]);
        let output = compare.output().unwrap();
        succeeds(&output);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        schema::check("compare", &found);
        let all = found["variants"].as_array().unwrap();
        let all = all.iter().find(|variant| variant["name"] == "all").unwrap();
        let peak = all["median"]["huge_peak"].as_f64().unwrap();
        // Collapsed from outside, at half of a CPU at most.
        assert!(peak >= LENGTH as f64 / 2.0, "{kind}: {peak}");
    }
}

/// Records with the simulator; `None` where it is missing.
fn record(fixture: &Fixture, arguments: &[&str]) -> Option<Value> {
    if !has_program("qemu-x86_64") {
        eprintln!("skipped: no qemu-x86_64");
        return None;
    }
    let mut record = fixture.tollfree(&["record", "--source", "sim", "-o", "profile.json"]);
    let output = record
        .args(["--", "./shared"])
        .args(arguments)
        .output()
        .unwrap();
    if !output.status.success() {
        eprintln!("skipped: {}", stderr(&output));
        return None;
    }
    Some(fixture.json("profile.json"))
}

#[test]
fn a_recording_names_shared_memory_and_its_plan_makes_it_huge() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    for (kind, name) in [("anonymous", "alloc"), ("memfd", "shared")] {
        let Some(profile) = record(&fixture, &[kind, "3000000"]) else {
            return;
        };
        schema::check("profile", &profile);
        let sites = profile["sites"].as_array().unwrap();
        let misses = |site: &Value| -> f64 {
            let rows = site["rows"].as_array().unwrap();
            rows.iter().map(|row| row["misses"].as_f64().unwrap()).sum()
        };
        let most = sites.iter().max_by(|a, b| misses(a).total_cmp(&misses(b)));
        let most = most.unwrap();
        assert_eq!(most["kind"], name, "{kind}");
        assert!(kind == "memfd" || most["shared"] == true);
        let averted = |row: &Value| row["misses"].as_f64() > row["misses_huge"].as_f64();
        assert!(most["rows"].as_array().unwrap().iter().any(averted));
        let plan = [
            "plan",
            "-o",
            "plan.toml",
            "--force",
            "--top",
            "16",
            "profile.json",
        ];
        succeeds(&fixture.tollfree(&plan).output().unwrap());
        let least = ALL - 2 * (REGION >> 10);
        assert!(huge(&fixture.run(&[kind, "0", "3000"])) >= least, "{kind}");
        fs::remove_file(fixture.path("profile.json")).unwrap();
    }
}
