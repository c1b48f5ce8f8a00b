// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree report --folded`: stacks of the code, of allocations, and of a real recording.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toll_testkit::compiler::compile;
use toll_testkit::output::{assert_fails, json, stderr, succeeds};
use toll_testkit::{Directory, schema};

/// Data sources of perf: none, as for page faults, and a load with a page walk.
const NO_SOURCE: u64 = 0x1e_0508_0021;
const PAGE_WALK: u64 = 0x1a_5010_1042;

fn fixture(name: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/perf");
    data.join(name)
}

/// Imports a recording of perf into `profile.json`.
fn import(directory: &Directory, file: &Path) {
    let mut command = directory.tollfree(&["import", "-o", "profile.json"]);
    succeeds(&command.arg(file).output().unwrap());
    schema::check("profile", &directory.json("profile.json"));
}

/// Checks each line as strict readers do: frames without blanks or control characters, separated by
/// semicolons, one blank, a whole number above 0. Returns the lines and the sum.
fn strict(text: &str) -> (Vec<(Vec<&str>, u64)>, u64) {
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    let parse = |line| {
        let (stack, count) = str::split_once(line, ' ').unwrap_or_else(|| panic!("{line}"));
        let frames: Vec<&str> = stack.split(';').collect();
        let bad = |c: char| c.is_whitespace() || c.is_control();
        assert!(
            frames.iter().all(|it| !it.is_empty() && !it.contains(bad)),
            "{line}"
        );
        assert!(count.bytes().all(|it| it.is_ascii_digit()), "{line}");
        (frames, count.parse().unwrap())
    };
    let lines: Vec<(Vec<&str>, u64)> = text.lines().map(parse).collect();
    assert!(lines.iter().all(|(_, count)| *count > 0), "{text}");
    let sum = lines.iter().map(|(_, count)| count).sum();
    (lines, sum)
}

#[test]
fn call_chains_are_folded_and_every_miss_is_in_one() {
    let directory = Directory::empty();
    import(&directory, &fixture("stacks.script.txt"));
    let output = directory.run(&["report", "--folded", "profile.json"]);
    let text = succeeds(&output);
    assert_eq!(stderr(&output), "");
    let (lines, sum) = strict(&text);
    let misses = directory.run(&["--json", "report", "profile.json"]);
    let misses = json(&misses)["misses"].as_f64();
    assert_eq!(misses, Some(sum as f64));
    let is_insert =
        |(frames, _): &&(Vec<&str>, u64)| frames.ends_with(&["main", "table::insert<long>"]);
    let of_insert: Vec<_> = lines.iter().filter(is_insert).collect();
    assert!(of_insert.len() == 1 && of_insert[0].1 == 12, "{text}");
    assert!(lines[0].1 >= lines[lines.len() - 1].1, "most misses first");
}

#[test]
fn json_has_the_frames_as_they_are() {
    let directory = Directory::empty();
    import(&directory, &fixture("stacks.script.txt"));
    let words = ["--json", "report", "--folded=code", "profile.json"];
    let got = schema::json("folded", &directory.run(&words));
    assert_eq!(got["of"], "code");
    let sum: f64 = got["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["misses"].as_f64().unwrap())
        .sum();
    assert_eq!(Some(sum), got["misses"].as_f64());
}

/// Recordings without call chains have the function of each access, or at least its file.
#[test]
fn instructions_alone_are_stacks_of_one_frame() {
    let directory = Directory::empty();
    for name in ["intel-pebs.script.txt", "intel-pebs.default.script.txt"] {
        let mut command = directory.tollfree(&["import", "--force", "-o", "profile.json"]);
        succeeds(&command.arg(fixture(name)).output().unwrap());
        let output = directory.run(&["report", "--folded", "profile.json"]);
        let text = succeeds(&output);
        let (lines, sum) = strict(&text);
        assert_eq!(
            (lines[0].0.as_slice(), sum),
            (&["[main]"][..], 162_000),
            "{name}: {text}"
        );
        assert!(
            stderr(&output).contains("no call chains"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn without_code_the_allocations_are_printed_and_the_difference_is_told() {
    let directory = Directory::empty();
    import(&directory, &fixture("intel-pebs.report.txt"));
    let output = directory.run(&["report", "--folded", "profile.json"]);
    let text = succeeds(&output);
    assert_eq!(strict(&text).1, 161, "{text}");
    assert!(text.starts_with("[address_0x18780000000] 145\n"), "{text}");
    assert!(
        stderr(&output).contains("not the code that misses"),
        "{}",
        stderr(&output)
    );
    let same = directory.run(&["report", "--folded=allocations", "profile.json"]);
    assert_eq!(succeeds(&same), text);
    let got = schema::json(
        "folded",
        &directory.run(&["--json", "report", "--folded", "profile.json"]),
    );
    assert_eq!(got["of"], "allocations");
    let none = directory.run(&["report", "--folded=code", "profile.json"]);
    assert_fails(
        &none,
        3,
        &["profile.json: has no code stacks", "perf mem record -g"],
    );
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let directory = Directory::empty();
    for words in [
        &["report", "--folded", "p", "--html", "x.html"][..],
        &["report", "--folded", "p", "--after", "q"],
        &["report", "--folded=nonsense", "p"],
        &["record", "--stacks", "--", "touch", "ran"],
        &[
            "record", "--stacks", "--source", "sim", "--", "touch", "ran",
        ],
    ] {
        let output = directory.run(words);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{words:?}: {}",
            stderr(&output)
        );
        assert!(!directory.path("ran").exists());
    }
}

/// A program with a known call chain.
const PROGRAM: &str = "
#include <sys/mman.h>
void touch(volatile char *at) { *at = 1; }
void sweep(volatile char *at)
{ for (long i = 0; i < 100; i++) touch(at + i * 4096); }
int main(void)
{
	char *at = mmap(0, 100 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(at, 100 * 4096, MADV_NOHUGEPAGE);
	sweep(at);
	return 0;
}
";

/// Records page faults, which every machine has, with call chains; the samples then get the data
/// source of a page walk. The rest of the file is as perf wrote it.
fn recorded(directory: &Directory) -> Option<PathBuf> {
    let source = directory.write("program.c", PROGRAM);
    // Compilers that optimize leave out the frame pointer of a function that calls no other.
    let options = ["-O0", "-fno-omit-frame-pointer"];
    if !compile(&source, &directory.path("program"), &options) {
        return None;
    }
    let line = "perf record -q -g -d -W -k mono -e page-faults:u -c 1 -o perf.data -- ./program";
    let output = directory.shell(line);
    if !output.status.success() {
        eprintln!("skipped: perf cannot record here: {}", stderr(&output));
        return None;
    }
    let file = directory.path("perf.data");
    let mut bytes = fs::read(&file).unwrap();
    let at: Vec<usize> = (0..bytes.len() - 8)
        .filter(|at| bytes[*at..*at + 8] == NO_SOURCE.to_le_bytes())
        .collect();
    assert!(at.len() > 100, "{}", at.len());
    for at in at {
        bytes[at..at + 8].copy_from_slice(&PAGE_WALK.to_le_bytes());
    }
    fs::write(&file, bytes).unwrap();
    Some(file)
}

#[test]
fn a_real_recording_with_call_chains() {
    if Command::new("perf").arg("--version").output().is_err() {
        eprintln!("skipped: perf is not installed");
        return;
    }
    let directory = Directory::empty();
    let Some(file) = recorded(&directory) else {
        return;
    };
    import(&directory, &file);
    let text = succeeds(&directory.run(&["report", "--folded=code", "profile.json"]));
    let (lines, _) = strict(&text);
    let found = lines
        .iter()
        .find(|(frames, _)| frames.ends_with(&["main", "sweep", "touch"]));
    assert_eq!(found.unwrap_or_else(|| panic!("{text}")).1, 100, "{text}");
}
