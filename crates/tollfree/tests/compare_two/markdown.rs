// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table for a pull request.

use toll_testkit::Directory;
use toll_testkit::output::{assert_fails, stdout, succeeds};

/// The cells of a row.
fn cells(row: &str) -> Vec<&str> {
    let row = row
        .strip_prefix("| ")
        .and_then(|row| row.strip_suffix(" |"));
    row.unwrap().split(" | ").collect()
}

/// The rows of the table, without its header.
fn rows(text: &str) -> Vec<&str> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("| "));
    assert_eq!(
        lines.next(),
        Some("| variant | elapsed | CPU time | memory | speed-up (95 % interval) |")
    );
    assert_eq!(lines.next(), Some("|---|--:|--:|--:|--:|"));
    lines.take_while(|line| !line.is_empty()).collect()
}

fn three_pairs<'a>(a: &'a str, b: &'a str) -> [&'a str; 8] {
    ["compare", "--markdown", "-n", "3", "-a", a, "-b", b]
}

#[test]
fn two_commands_with_verdict_table_and_machine() {
    let directory = Directory::empty();
    let words = three_pairs("sleep 0.5 | cat", "sleep 0.05");
    let text = succeeds(&directory.run(&words));
    assert!(text.starts_with("**b is faster: "), "{text}");
    let rows = rows(&text);
    let first = cells(rows[0]);
    assert_eq!((first[0], first[4]), ("a: `sleep 0.5 \\| cat`", "-"));
    let second = cells(rows[1]);
    assert_eq!(second[0], "b: `sleep 0.05`");
    assert!(second[4].contains("x ("), "{text}");
    assert!(
        second[1].ends_with(" s") && second[3].ends_with('B'),
        "{text}"
    );
    assert!(
        text.contains("\nMedians of 3 pairs, run in turn; speed-up: time of a / time of"),
        "{text}"
    );
    assert!(text.contains(", Linux "), "{text}");
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text:?}");
}

#[test]
fn a_threshold_is_part_of_it() {
    let directory = Directory::empty();
    let words = three_pairs("sleep 0.05", "sleep 0.5");
    let slower = directory.run(&[&words[..], &["--fail-if-slower", "2.5%"]].concat());
    assert_fails(&slower, 6, &["b is slower"]);
    assert!(stdout(&slower).contains("\n**Slower than allowed** (`--fail-if-slower 2.5%`).\n"));
    let allowed = directory.run(&[&words[..], &["--fail-if-slower", "9900"]].concat());
    assert!(succeeds(&allowed).contains("Not proved to be slower than allowed"));
}

#[test]
fn a_plan_with_notes() {
    let directory = Directory::with(&[("none.txt", "")]);
    let words = [
        "compare",
        "--plan",
        "none.txt",
        "--markdown",
        "-n",
        "1",
        "--",
        "sh",
        "-c",
        "exit 7",
    ];
    let text = succeeds(&directory.run(&words));
    let names: Vec<&str> = rows(&text).iter().map(|row| cells(row)[0]).collect();
    assert_eq!(
        names[..2],
        ["none: as it is run today", "plan: the plan's regions huge"]
    );
    assert!(
        text.contains("\n- the program ends with status 7 in each run"),
        "{text}"
    );
}

#[test]
fn a_metric_has_a_column() {
    let directory = Directory::empty();
    directory.executable("server", "#!/bin/sh\nexec sleep 600\n");
    let load = [
        "--ready",
        "true",
        "--workload",
        "echo 12 ms",
        "--metric",
        "([0-9]+) ms",
    ];
    let words = [
        "compare",
        "--markdown",
        "-n",
        "1",
        "-a",
        "./server",
        "-b",
        "./server",
    ];
    let text = succeeds(&directory.run(&[&words[..], &load].concat()));
    assert!(text.contains("\n| variant | metric | elapsed |"), "{text}");
    assert!(text.contains("\n| a: `./server` | 12.000 | "), "{text}");
}
