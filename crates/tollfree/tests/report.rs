// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree report`: terminal, JSON and page, from fixtures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::prelude::*;
use serde_json::Value;
use toll_testkit::output::{stderr, succeeds};
use toll_testkit::{Directory, tool};

const RANGE: &str = "0x18780000000..0x187c0000000";

/// A profile of a fixture of `import`.
fn profile(directory: &Directory, fixture: &str, only: bool) -> PathBuf {
    let path = directory.path(format!("{fixture}.json"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/perf")
        .join(fixture);
    let mut command = tollfree();
    command.arg("import").arg(file).arg("-o").arg(&path);
    if only {
        command.args(["--only", RANGE]);
    }
    command.assert().success();
    path
}

/// The command in a pipe of 90 columns with UTF-8 characters.
fn tollfree() -> Command {
    let mut command = Command::new(tool::tollfree());
    for name in ["LC_ALL", "LC_CTYPE", "NO_COLOR"] {
        command.env_remove(name);
    }
    command.env("LANG", "C.UTF-8").env("COLUMNS", "90");
    command
}

fn stdout(command: &mut Command) -> String {
    succeeds(&command.output().unwrap())
}

#[test]
fn the_terminal_shows_every_site_with_its_strip() {
    let directory = Directory::empty();
    let file = profile(&directory, "intel-pebs.script.txt", false);
    insta::assert_snapshot!(stdout(tollfree().arg("report").arg(&file)), @r"
    main: 162,000 misses, 988 KiB touched
    source: perf script; 253 samples, 162 with a page walk; mean period 1000; mean latency 23 cycles without a page walk, 208 with one

    memory, most misses first; each strip shows a site from start to end

    address 0x18780000000
      145,000 misses (89.5 %), 920 KiB touched in 92 regions; each mark is 14 MiB
      █▆············▂··▄▄····························▆······▄·······▄··········▂

    other anonymous memory
      9,000 misses (5.6 %), 36 KiB touched in 1 region; each mark is 2 MiB
      █

    heap
      6,000 misses (3.7 %), 24 KiB touched in 1 region; each mark is 2 MiB
      █

    stack
      1,000 misses (0.6 %), 4 KiB touched in 1 region; each mark is 2 MiB
      █

    file /usr/lib/x86_64-linux-gnu/libc.so.6
      1,000 misses (0.6 %), 4 KiB touched in 1 region; each mark is 2 MiB
      █
    note: touched pages are those with a sample: a lower bound
    ");
}

/// The encoded names of allocations are not shown.
#[test]
fn the_names_of_allocations_are_explained_above_them() {
    let directory = Directory::empty();
    let file = profile(&directory, "seed.report.txt", true);
    let mut json: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let frame =
        serde_json::json!({"module": "00ff", "path": "/bin/x", "offset": 64, "symbol": "grow"});
    let site = &mut json["sites"][0];
    site.as_object_mut().unwrap().remove("start");
    site["kind"] = "alloc".into();
    site["frames"] = serde_json::json!([frame]);
    for (name, value) in [("class", 30), ("ordinal", 0), ("thread", 0)] {
        site[name] = value.into();
    }
    fs::write(&file, json.to_string()).unwrap();
    let text = stdout(tollfree().arg("report").arg(&file));
    let legend = text
        .find("FUNCTION+OFFSET 2^N #K: a block of")
        .unwrap_or_else(|| panic!("{text}"));
    assert!(legend < text.find("grow 2^30 #0").unwrap(), "{text}");
}

#[test]
fn plain_characters_without_utf8() {
    let directory = Directory::empty();
    let file = profile(&directory, "amd-ibs.script.txt", true);
    let text = stdout(tollfree().env("LANG", "C").arg("report").arg(&file));
    assert!(text.is_ascii(), "{text}");
    assert!(text.contains('8') && text.contains("..."), "{text}");
    assert!(!text.contains('\x1b'), "no colour in a pipe");
}

#[test]
fn before_and_after_stand_on_one_scale() {
    let directory = Directory::empty();
    let before = profile(&directory, "seed.report.txt", true);
    let after = profile(&directory, "intel-pebs.report.txt", true);
    let text = stdout(
        tollfree()
            .arg("report")
            .arg(&before)
            .arg("--after")
            .arg(&after),
    );
    assert!(
        text.contains("after: 145 misses, >99.9 % averted"),
        "{text}"
    );
    let line = |name: &str| {
        text.lines()
            .find(|l| l.trim_start().starts_with(name))
            .unwrap()
    };
    assert!(line("before ").contains('█'));
    assert!(!line("after  ").contains('▃'), "{}", line("after  "));

    let json = stdout(
        tollfree()
            .args(["--json", "report"])
            .arg(&before)
            .arg("--after")
            .arg(&after),
    );
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["misses"], 336_848.0);
    assert_eq!(json["misses_after"], 145.0);
    let regions = json["sites"][0]["regions"].as_array().unwrap();
    assert_eq!(regions.len(), 512);
    let hottest = regions
        .iter()
        .max_by_key(|r| r["misses"].as_f64().unwrap() as u64)
        .unwrap();
    assert_eq!(hottest["misses"], 4257.0);
    assert_eq!(hottest["offset"], 0x3500_0000u64);
    let sum: f64 = regions
        .iter()
        .map(|r| r["misses_after"].as_f64().unwrap())
        .sum();
    assert_eq!(sum, 145.0);
}

#[test]
fn the_page_is_one_file_and_never_overwrites() {
    let directory = Directory::empty();
    let file = profile(&directory, "seed.report.txt", true);
    let page = directory.path("report.html");
    let write = || {
        let mut command = tollfree();
        command.arg("report").arg(&file).arg("--html").arg(&page);
        command
    };
    assert!(stdout(&mut write()).contains("report.html"));
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
    for part in ["0x187b5000000", "4,257", "90 % of what was counted"] {
        assert!(html.contains(part), "{part}");
    }
    for outside in ["http:", "https:", "src=", "href=", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    write().assert().code(2);
    write().arg("--force").assert().success();
    assert_eq!(fs::read_to_string(&page).unwrap(), html);
}

#[test]
fn wrong_files_are_named() {
    let directory = Directory::empty();
    let good = profile(&directory, "seed.report.txt", true);
    let whole = fs::read(&good).unwrap();
    let cut = directory.path("cut.json");
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let page = directory.path("page.html");
    for (file, code) in [(cut.as_path(), 3), (Path::new("/nonexistent.json"), 1)] {
        let output = tollfree()
            .arg("report")
            .arg(file)
            .arg("--html")
            .arg(&page)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code));
        let message = stderr(&output);
        assert!(message.contains(file.to_str().unwrap()), "{message}");
        assert!(!page.exists(), "nothing half-written");
    }
}
