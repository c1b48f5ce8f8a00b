// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree import`, from each kind of text and from perf.data.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use toll_testkit::output::{json, stderr, succeeds};
use toll_testkit::{Directory, tool};

/// 2 MiB.
const REGION: u64 = 2 << 20;
/// The mapping that the fixtures recorded.
const BASE: u64 = 0x187_8000_0000;
const RANGE: &str = "0x18780000000..0x187c0000000";
/// Samples with a page walk in each region of it.
const EXPECTED: [(u64, u64); 11] = [
    (0, 16),
    (5, 40),
    (7, 3),
    (9, 20),
    (99, 2),
    (120, 12),
    (130, 10),
    (333, 24),
    (380, 8),
    (440, 9),
    (511, 1),
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/perf")
        .join(name)
}

/// The command that imports a file to `profile`.
fn importing(file: &Path, profile: &Path) -> Command {
    let mut command = Command::new(tool::tollfree());
    command.arg("import").arg(file).arg("-o").arg(profile);
    command
}

/// Imports a file. Returns the summary and the profile.
fn import(file: &Path, more: &[&str]) -> (Value, Value) {
    let directory = Directory::empty();
    let mut command = importing(file, &directory.path("profile.json"));
    let output = command.arg("--json").args(more).output().unwrap();
    assert!(
        output.status.success(),
        "{}: {}",
        file.display(),
        stderr(&output)
    );
    (json(&output), directory.json("profile.json"))
}

/// An import that must fail. Returns its exit code and message; no profile may exist.
fn refused(file: &Path, more: &[&str]) -> (i32, String) {
    let directory = Directory::empty();
    let mut command = importing(file, &directory.path("profile.json"));
    let output = command.args(more).output().unwrap();
    assert!(directory.names().is_empty(), "nothing half-written");
    assert!(output.stdout.is_empty());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message.lines().count(), 1, "one clear line: {message}");
    (output.status.code().unwrap(), message)
}

fn text(content: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), content).unwrap();
    file
}

/// Misses per region of the site of that kind.
fn regions(profile: &Value, kind: &str) -> Vec<(u64, f64)> {
    let sites = profile["sites"].as_array().unwrap();
    let mut counts = std::collections::BTreeMap::new();
    for site in sites.iter().filter(|a| a["kind"] == kind) {
        for row in site["rows"].as_array().unwrap() {
            let region = row["offset"].as_u64().unwrap() / REGION;
            *counts.entry(region).or_insert(0.0) += row["misses"].as_f64().unwrap();
        }
    }
    counts.retain(|_, misses| *misses > 0.0);
    counts.into_iter().collect()
}

fn expected(period: u64) -> Vec<(u64, f64)> {
    EXPECTED
        .iter()
        .map(|&(region, samples)| (region, (samples * period) as f64))
        .collect()
}

#[test]
fn every_text_of_every_cpu_gives_the_same_regions() {
    for (name, kind, period) in [
        ("intel-pebs.script.txt", "perf script", 1000),
        ("intel-pebs.default.script.txt", "perf script", 1000),
        ("intel-pebs.report.txt", "perf mem report --stdio", 1),
        ("intel-pebs.dump.txt", "perf mem -D report", 1),
        ("amd-ibs.script.txt", "perf script", 262_144),
        ("amd-ibs.report.txt", "perf mem report --stdio", 1),
        ("arm-spe.script.txt", "perf script", 1),
    ] {
        let (summary, profile) = import(&fixture(name), &["--only", RANGE]);
        assert_eq!(summary["kind"], kind, "{name}");
        assert_eq!(summary["samples_counted"], 145, "{name}");
        assert_eq!(regions(&profile, "address"), expected(period), "{name}");
        let sites = profile["sites"].as_array().unwrap();
        assert_eq!(sites.len(), 1, "{name}");
        assert_eq!(sites[0]["start"], BASE, "{name}");
        assert_eq!(profile["source"], "perf", "{name}");
    }
}

#[test]
fn mappings_name_the_sites() {
    let (_, profile) = import(&fixture("intel-pebs.script.txt"), &[]);
    let sum = |kind: &str| regions(&profile, kind).iter().map(|r| r.1).sum::<f64>();
    assert_eq!(
        regions(&profile, "address"),
        expected(1000),
        "a fixed mapping"
    );
    assert_eq!(sum("heap"), 6000.0);
    assert_eq!(sum("stack"), 1000.0);
    assert_eq!(sum("anonymous"), 9000.0);
    assert_eq!(sum("file"), 1000.0);
    assert_eq!(profile["program"]["path"], "/opt/demo/main");
    let levels: Vec<&Value> = profile["sites"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["level"])
        .collect();
    assert!(levels.contains(&&Value::from("kind")), "{levels:?}");
}

#[test]
fn addresses_of_an_unknown_mapping_are_never_advised() {
    let (summary, profile) = import(&fixture("intel-pebs.default.script.txt"), &[]);
    let sites = profile["sites"].as_array().unwrap();
    let level = |start: u64| {
        let found = sites.iter().find(|a| a["start"] == start).unwrap();
        found["level"].as_str().unwrap().to_owned()
    };
    assert_eq!(level(BASE), "exact");
    assert_eq!(level(0x7f3a_1012_3008 / REGION * REGION), "not-found");
    assert!(summary["warnings"].to_string().contains("ASLR"));
}

/// Reproduces the top 8 of a published table: report text, range, top n.
/// With the default of the kernel (28 bits) and with that of Ubuntu 24.04 (32 bits).
#[test]
fn random_addresses_of_both_layouts_are_never_advised() {
    for name in ["aslr-28-bits.script.txt", "aslr-32-bits.script.txt"] {
        let (_, profile) = import(&fixture(name), &[]);
        let sum = |kind: &str| regions(&profile, kind).iter().map(|r| r.1).sum::<f64>();
        assert_eq!(sum("heap"), 4000.0, "{name}");
        assert_eq!(sum("anonymous"), 4000.0, "{name}");
        let sites = profile["sites"].as_array().unwrap();
        let addresses = sites.iter().filter(|site| site["kind"] == "address");
        let levels: Vec<(&Value, bool)> = addresses
            .map(|site| (&site["level"], site["start"] == BASE))
            .collect();
        let (not_found, exact) = (Value::from("not-found"), Value::from("exact"));
        assert_eq!(
            levels,
            [(&exact, true), (&not_found, false), (&not_found, false)],
            "{name}"
        );
    }
}

/// Output of perf with --data-page-size: memory that is already huge has no gain.
#[test]
fn pages_that_are_huge_already_are_no_gain() {
    let samples = fs::read_to_string(fixture("intel-pebs.script.txt")).unwrap();
    for (size, gains) in [("4K", true), ("2M", false)] {
        let sized = |line: &str| match line.contains("PERF_RECORD") {
            true => format!("{line}\n"),
            false => format!("{line} {size}\n"),
        };
        let file = text(samples.lines().map(sized).collect::<String>().as_bytes());
        let (_, profile) = import(file.path(), &["--only", RANGE]);
        let rows = profile["sites"][0]["rows"].as_array().unwrap();
        let huge = |row: &Value| row["huge"] == true;
        assert_eq!(rows.iter().all(huge), !gains, "{size}");
        assert_eq!(rows.iter().any(huge), !gains, "{size}");
    }
}

#[test]
fn the_founding_workflow_gives_its_largepages() {
    let directory = Directory::empty();
    let (summary, _) = import(&fixture("seed.report.txt"), &["--only", RANGE]);
    assert_eq!(summary["samples_outside"], 17_000);
    let mut command = importing(&fixture("seed.report.txt"), &directory.path("p.json"));
    succeeds(&command.args(["--only", RANGE]).output().unwrap());
    let plan = ["plan", "p.json", "--top", "8", "--format", "largepages"];
    succeeds(&directory.run(&[&plan[..], &["-o", "largepages.txt"]].concat()));
    let mut found: Vec<u64> = directory
        .read("largepages.txt")
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    let mut top = [
        0x187b5000000u64,
        0x187b1a00000,
        0x18782400000,
        0x187b0000000,
        0x1879d800000,
        0x18783400000,
        0x187b9200000,
        0x187b7800000,
    ];
    found.sort();
    top.sort();
    assert_eq!(found, top);
}

#[test]
fn perf_data_is_read_through_perf() {
    let file = fixture("intel-pebs.perf.data");
    let has_perf = Command::new("perf")
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success());
    if !has_perf {
        let (code, message) = refused(&file, &[]);
        assert_eq!(code, 4);
        assert!(message.contains("linux-perf"), "{message}");
        return;
    }
    let (summary, profile) = import(&file, &[]);
    let (_, from_text) = import(&fixture("intel-pebs.script.txt"), &[]);
    assert_eq!(summary["kind"], "perf script");
    assert_eq!(profile["sites"], from_text["sites"]);
    assert_eq!(profile["program"], from_text["program"]);

    let whole = fs::read(&file).unwrap();
    let (code, message) = refused(text(&whole[..100]).path(), &[]);
    assert_eq!(code, 3);
    assert!(message.contains("perf script cannot read it"), "{message}");
}

#[test]
fn perf_is_named_when_it_is_missing() {
    let directory = Directory::empty();
    let file = fixture("intel-pebs.perf.data");
    let mut command = importing(&file, &directory.path("p.json"));
    let output = command.env("PATH", directory.as_path()).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("linux-perf"));
}

#[test]
fn foreign_files_are_named_with_line_and_reason() {
    let script = fs::read_to_string(fixture("intel-pebs.script.txt")).unwrap();
    let cut = script.rfind("|SNP").unwrap();
    let no_data = "main 7/7 1.5: 1 page-faults: 7f00 401000 f (/p)\n";
    let plain_report = "# Overhead  Command  Shared Object  Symbol\n# ........  .......\n 9.1%  main  main  [.] f\n";
    for (content, parts) in [
        (&b""[..], &["empty"][..]),
        (b"\x7fELF\x02\x01\x01\0\0\0", &["binary"]),
        (b"\x1f\x8b\x08\0", &["gzip"]),
        (b"{\"format\":\"tollfree-profile\"}", &["already a profile"]),
        (b"dear diary\n", &["line 1", "dear diary"]),
        (&script.as_bytes()[..cut], &["line 260", "TLB"]),
        (no_data.as_bytes(), &["no data source", "perf mem record"]),
        (plain_report.as_bytes(), &["line 1", "perf mem report"]),
    ] {
        let file = text(content);
        let (code, message) = refused(file.path(), &[]);
        assert_eq!(code, 3, "{message}");
        let name = file.path().to_str().unwrap();
        for part in parts.iter().chain([&name]) {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
    }
}

#[test]
fn usage_errors() {
    let file = fixture("intel-pebs.script.txt");
    let (code, message) = refused(&file, &["--only", "9..1"]);
    assert_eq!(code, 2, "{message}");
    let (code, _) = refused(Path::new("/nonexistent/perf.data"), &[]);
    assert_eq!(code, 1);

    let taken = text(b"precious");
    let output = importing(&file, taken.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read(taken.path()).unwrap(), b"precious");
}

/// Text of any size is read line by line: 200,000 samples of 200 bytes in a small address space.
#[test]
fn large_texts_are_streamed() {
    let directory = Directory::empty();
    let path = directory.path("large.txt");
    let mut file = BufWriter::new(fs::File::create(&path).unwrap());
    for i in 0..200_000u64 {
        let address = BASE + (i * 7919 % 4096) * 4096;
        writeln!(file, "            main 24623/24623     1.{:09}:       1000 cpu/mem-loads,ldlat=30/P:      {address:x}      1a50101042 |OP LOAD|LVL Local RAM or RAM hit|SNP None|TLB L2 miss|LCK No|BLK  N/A              63           40100e", i).unwrap();
    }
    drop(file);
    let limit = 96 << 20;
    let output = directory.shell(&format!(
        "ulimit -v {}; exec \"$TOLLFREE\" --json import large.txt -o p.json",
        limit / 1024
    ));
    succeeds(&output);
    let summary = json(&output);
    assert_eq!(summary["misses"], 200_000_000.0);
}
