// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two servers under the same load.

use toll_testkit::output::{assert_fails, stderr};
use toll_testkit::process::{is_running, wait_until};
use toll_testkit::{Directory, schema};

use super::compare;

/// A server that writes its process and its rate. The shell stays its parent.
const SERVER: &str = "cd . && ./server";

/// A load that prints the rate of the server, and removes it before the next one starts.
const LOAD: [&str; 6] = [
    "--ready",
    "test -s rate",
    "--workload",
    "echo $(cat rate) requests per second; rm rate",
    "--metric",
    "([0-9]+) requests",
];

fn servers() -> Directory {
    let directory = Directory::empty();
    let script = "#!/bin/sh\necho $$ >> pids\necho ${RATE:-1000} > rate\nexec sleep 600\n";
    directory.executable("server", script);
    directory
}

fn none_runs(directory: &Directory) -> bool {
    let pids = directory.read("pids");
    assert!(!pids.is_empty());
    !pids.lines().any(is_running)
}

#[test]
fn the_metric_of_two_servers_is_compared() {
    let directory = servers();
    let words = [
        "-n",
        "3",
        "-a",
        SERVER,
        "-b",
        SERVER,
        "--env-b",
        "RATE=1200",
    ];
    let output = compare(&directory, &[&words[..], &LOAD].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let got = schema::json("compare", &output);
    assert_eq!(
        (&got["resource"], &got["verdict"]),
        (&"metric-rate".into(), &"faster".into())
    );
    assert_eq!(got["speedup"]["median"], 1.2);
    assert!(none_runs(&directory));
}

/// A command that equals the other is never a gain.
#[test]
fn equal_servers_do_not_differ() {
    let directory = servers();
    let words = [
        "-n",
        "8",
        "-a",
        SERVER,
        "-b",
        SERVER,
        "--fail-if-slower",
        "0",
    ];
    let got = schema::json(
        "compare",
        &compare(&directory, &[&words[..], &LOAD].concat()),
    );
    assert_eq!(
        (&got["speedup"]["median"], &got["verdict"]),
        (&1.0.into(), &"no-difference".into())
    );
    assert_eq!(got["variants"][1]["proven"], false);
}

/// Without a workload, the CPU time of the server counts, which the shell has to wait for.
#[test]
fn the_cpu_time_of_a_server_behind_a_shell_is_counted() {
    let directory = Directory::empty();
    let busy = "sh -c 'while :; do :; done'; true";
    let words = [
        "-n",
        "2",
        "--for",
        "300ms",
        "--ready",
        "true",
        "-a",
        "sleep 600",
        "-b",
        busy,
    ];
    let output = compare(&directory, &words);
    assert!(output.status.success(), "{}", stderr(&output));
    let got = schema::json("compare", &output);
    assert_eq!(got["resource"], "cpu");
    let cpu = |variant: usize| got["variants"][variant]["median"]["cpu"].as_f64().unwrap();
    assert!(cpu(0) < cpu(1), "{got}");
}

#[test]
fn a_server_that_ends_is_named() {
    let directory = servers();
    let words = ["-a", SERVER, "-b", "echo bad port >&2; exit 9"];
    let output = compare(&directory, &[&words[..], &LOAD].concat());
    assert_fails(&output, 5, &["status 9", "(variant b)", "bad port"]);
    assert!(none_runs(&directory));
}

#[test]
fn a_workload_that_fails_names_the_variant() {
    let directory = servers();
    let load = [
        "--ready",
        "test -s rate",
        "--workload",
        "grep 1000 rate && rm rate",
    ];
    let words = ["-a", SERVER, "-b", SERVER, "--env-b", "RATE=7"];
    let output = compare(&directory, &[&words[..], &load].concat());
    assert_fails(&output, 5, &["grep 1000 rate", "(variant b)"]);
    // It is killed together with its shell, which does not wait for it then.
    wait_until("the end of the server", || none_runs(&directory));
}
