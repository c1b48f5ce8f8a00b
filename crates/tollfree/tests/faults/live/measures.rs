// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the work of a running process is measured by.

use serde_json::Value;

use super::*;

/// Alternates short windows on ./faulty, which writes a line for each piece of work.
fn measure(server: &Server, more: &[&str]) -> Output {
    let options = ["--within", "12s", "--window", "100ms"];
    server.look("2s", &[&options[..], more].concat())
}

fn answer(server: &Server, more: &[&str]) -> Value {
    let output = measure(server, more);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    schema::json("tune", &output)
}

/// The time of one unit that the runs of a variant have, in seconds.
fn time_of_a_unit(answer: &Value) -> f64 {
    let median = &answer["upper_bound"]["variants"][0]["median"];
    median["elapsed"].as_f64().unwrap()
}

#[test]
fn calls_stand_for_the_work_of_a_process_that_nobody_drives() {
    let server = Server::start_as("counts");
    let answer = answer(&server, &[]);
    let live = &answer["live"];
    assert_eq!(live["measure"], "CPU time per call of read or write");
    let assumption = live["assumption"].as_str().unwrap();
    assert!(assumption.contains("read and write calls"), "{live}");
    assert!(answer["notes"].to_string().contains("assumed: "));
    assert_eq!(answer["resource"], "cpu");
    assert!(answer["pairs"].as_u64().unwrap() > 0, "{answer}");
    assert_eq!(live["window_seconds"], 0.1);
    assert!(live["rate_speedup"]["median"].as_f64().unwrap() > 0.0);
    assert!(live["speedup_from_before"]["low"].as_f64().unwrap() > 0.0);
    assert!(live["rate_while_changing"].as_f64().unwrap() > 0.0);
    assert_eq!(server.huge(), 0);
}

/// Each piece of work is one line and one call of write, so all three count the same.
#[test]
fn lines_and_a_command_count_the_same_work() {
    let server = Server::start_as("counts");
    let lines = answer(&server, &["--count-lines", "counts"]);
    assert_eq!(lines["live"]["measure"], "CPU time per line of counts");
    assert!(lines["live"]["assumption"].is_null());
    let command = ["--force", "--metric-command", "wc -l <counts"];
    let command = answer(&server, &command);
    let measure = &command["live"]["measure"];
    assert_eq!(
        measure, "CPU time per unit of the metric command",
        "{command}"
    );
    let ratio = time_of_a_unit(&lines) / time_of_a_unit(&command);
    assert!((0.2..5.0).contains(&ratio), "{ratio}: {lines} {command}");
}

#[test]
fn a_gauge_is_compared_as_it_is() {
    if !thp_is_madvise() {
        return;
    }
    let server = Server::start();
    let latency = format!(
        "if grep -q 'AnonHugePages: *0 kB' /proc/{}/smaps_rollup; \
         then echo 20 ms; else echo 10 ms; fi",
        server.pid()
    );
    let answer = answer(&server, &["--gauge", "--metric-command", &latency]);
    assert_eq!(answer["resource"], "metric-time", "{answer}");
    assert_eq!(answer["speedup_all"]["median"], 2.0, "{answer}");
    // The memory is in 4 KiB pages before as well.
    assert_eq!(
        answer["live"]["speedup_from_before"]["median"], 2.0,
        "{answer}"
    );
    assert_eq!(answer["advice"], "apply");
}

/// The workload drives the load, and something else measures it.
#[test]
fn a_workload_only_drives_the_load_where_a_counter_measures() {
    let server = Server::start_as("counts");
    let load = ["--workload", "echo >>loads; sleep 0.1"];
    let answer = answer(&server, &[&load[..], &["--count-lines", "counts"]].concat());
    assert_eq!(answer["live"]["measure"], "CPU time per line of counts");
    assert!(server.loads() > 2, "{answer}");
}

#[test]
fn a_metric_command_that_counts_nothing_is_an_error_and_undone() {
    let server = Server::start_as("huge");
    let before = server.huge();
    for (command, part) in [
        ("expr 0 - $(date +%s%N)", "fell from"),
        ("echo twelve", "\"twelve\", which is not a number"),
        ("echo no server >&2; exit 3", "no server"),
    ] {
        let output = measure(&server, &["--force", "--metric-command", command]);
        assert_fails(&output, 5, &["--metric-command", part]);
        assert_eq!(server.huge(), before, "{command}");
    }
}

#[test]
fn options_of_a_running_process_are_checked() {
    let server = Server::start();
    let pid = server.pid();
    for (arguments, part) in [
        (&["--pid", &pid, "--count-lines", "none"][..], "none"),
        (&["--pid", &pid, "--gauge"], "--metric-command"),
        (&["--pid", &pid, "--window", "0s"], "--window"),
        (&["--keep", "--", "true"], "--keep"),
        (&["--keep"], "--pid"),
        (
            &["--count-lines", "none.txt", "--", "true"],
            "--count-lines",
        ),
    ] {
        let output = server.place.run(&[&["tune"], arguments].concat());
        assert_fails(&output, 2, &[part]);
    }
}
