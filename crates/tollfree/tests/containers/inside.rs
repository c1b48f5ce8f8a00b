// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands in a container with Docker's capabilities, filter and hidden files: they report what
//! they can measure, and name the rest with its fix.

use std::io::Write;
use std::net::TcpStream;

use serde_json::Value;
use toll_testkit::machine::thp_is_madvise;
use toll_testkit::output::{stderr, succeeds};
use toll_testkit::process::Running;
use toll_testkit::{Directory, output, schema};

use crate::group::Group;
use crate::memory;
use crate::namespaces::{Namespaces, are_possible};
use crate::{OTHER, executable};

/// (value, reason, fix) of a counter of `stat`.
fn counter<'a>(report: &'a Value, scope: &str, name: &str) -> [&'a Value; 3] {
    let counters = report["counters"].as_array().unwrap();
    let is_it = |it: &&Value| it["name"] == name && it["scope"] == scope;
    let found = counters.iter().find(is_it);
    let found = found.unwrap_or_else(|| panic!("no {name} of the {scope} in {report:#}"));
    ["value", "why_missing", "fix"].map(|field| &found[field])
}

/// Asserts that a counter is missing, with parts of the reason and of the fix.
fn assert_missing(report: &Value, scope: &str, name: &str, says: [&str; 2]) {
    let [value, reason, fix] = counter(report, scope, name);
    assert!(value.is_null(), "{name}: {value}");
    for (said, part) in [reason, fix].into_iter().zip(says) {
        let said = said.as_str().unwrap_or_default();
        assert!(said.contains(part), "{name}: {part:?} is not in {said:?}");
    }
}

#[test]
fn the_machine_is_counted_but_for_what_is_hidden() {
    if !are_possible() {
        return;
    }
    let output = Namespaces::docker(&[]).run("$TOLLFREE --json stat -a --for 100ms");
    let report = schema::json("stat", &output);
    for name in [
        "page_faults",
        "cpu_user",
        "direct_compactions",
        "page_tables",
    ] {
        let [value, reason, _] = counter(&report, "machine", name);
        assert!(value.is_number(), "{name}: {reason}");
    }
    let hidden = ["hidden from this container", "systempaths=unconfined"];
    assert_missing(&report, "machine", "tlb_shootdowns_received", hidden);
    let threads = ["threads are not visible", "docker run --pid host"];
    assert_missing(&report, "machine", "cpu_kcompactd", threads);
    let [walks, reason, _] = counter(&report, "machine", "page_walk_cycles");
    assert!(
        walks.is_null() && reason.is_string(),
        "no CAP_PERFMON: {walks}"
    );
}

#[test]
fn a_program_in_a_container_is_counted() {
    if !are_possible() {
        return;
    }
    let line = "$TOLLFREE --json stat -o /dev/fd/3 3>&1 >&2 -- sh -c 'exit 4'; test $? = 4";
    let report = schema::json("stat", &Namespaces::docker(&[]).run(line));
    let [faults, ..] = counter(&report, "process tree", "page_faults_minor");
    assert!(faults.as_f64() > Some(0.0), "{report:#}");
    let events = ["perf events", "--cap-add PERFMON"];
    assert_missing(&report, "process tree", "context_switches", events);
    let tracing = ["tracepoint tlb:tlb_flush", "mount -t tracefs"];
    assert_missing(&report, "process tree", "tlb_shootdowns_sent", tracing);
    assert!(report["loss_ns"].as_f64() > Some(0.0), "{report:#}");
}

/// The group of a container with a cgroup namespace is its root, and has the container's limit.
#[test]
fn processes_and_the_group_of_a_container_are_shown() {
    let Some(group) = are_possible()
        .then(|| Group::new("tollfree-inside"))
        .flatten()
    else {
        return;
    };
    let line = "sleep 100 & $TOLLFREE --json top --once -I 50ms; $TOLLFREE --json why $!";
    let mut command = Namespaces::docker(&[]).command(line);
    let output = group.holding(&mut command).output().unwrap();
    let documents = documents(&succeeds(&output));
    let [top, why] = documents.as_slice() else {
        panic!("{documents:#?}");
    };
    schema::check("top", top);
    schema::check("why", why);
    let processes = top["processes"].as_array().unwrap();
    let commands: Vec<&str> = processes
        .iter()
        .filter_map(|it| it["command"].as_str())
        .collect();
    assert!(
        commands.contains(&"sleep") && processes.len() < 5,
        "{commands:?}"
    );
    assert!(processes.iter().all(|it| it["cgroup"] == "/"), "{top:#}");
    assert_eq!(top["cgroups"][0]["counted_by"], "kernel");
    let missing = top["missing"].to_string();
    assert!(missing.contains("docker run --pid host"), "{missing}");
    assert!(missing.contains("systempaths=unconfined"), "{missing}");
    assert_eq!(
        (&why["cgroup_path"], &why["namespace_pid"]),
        (&"/".into(), &Value::Null)
    );
    assert_eq!(why["cgroup"]["limit_bytes"], Group::LIMIT);
    let usage = why["cgroup"]["usage_bytes"].as_u64().unwrap();
    assert!(usage < Group::LIMIT, "not that of the machine: {usage}");
}

/// Root in a container may not read the processes of its other users, without a capability.
#[test]
fn the_memory_of_another_user_needs_a_capability() {
    if !are_possible() {
        return;
    }
    let line = format!("{OTHER} sleep 100 & sleep 0.1; $TOLLFREE --json why $!");
    let why =
        |capabilities: &[&str]| schema::json("why", &Namespaces::docker(capabilities).run(&line));
    let report = why(&[]);
    let missing = &report["missing"][0];
    assert_eq!(missing["what"], "mappings", "{report:#}");
    assert!(
        missing["fix"]
            .as_str()
            .unwrap()
            .contains("--cap-add SYS_PTRACE")
    );
    assert!(report["resident_bytes"].as_u64() > Some(0));
    let report = why(&["SYS_PTRACE"]);
    assert!(
        !report["mappings"].as_array().unwrap().is_empty(),
        "{report:#}"
    );
}

/// The documents that a shell line printed.
fn documents(text: &str) -> Vec<Value> {
    let all = serde_json::Deserializer::from_str(text).into_iter();
    all.map(Result::unwrap).collect()
}

/// Without root, too: the machine is counted, and own processes are explained.
#[test]
fn a_user_of_a_container_is_told_as_much() {
    if !are_possible() {
        return;
    }
    let directory = executable();
    let line = format!(
        "unset HOME; exec {OTHER} sh -c 'sleep 100 &
        for command in \"stat -a --for 50ms\" \"top --once -I 50ms\" \"why $!\" \"why 1\"; do
            ./tollfree --json $command || exit
        done'"
    );
    let mut command = Namespaces::docker(&[]).command(&line);
    let output = command.current_dir(&directory).output().unwrap();
    let documents = documents(&succeeds(&output));
    let [stat, top, why, init] = documents.as_slice() else {
        panic!("{documents:#?}");
    };
    let [faults, ..] = counter(stat, "machine", "page_faults");
    assert!(faults.is_number(), "{stat:#}");
    assert!(top["missing"].to_string().contains("docker run --pid host"));
    assert!(!why["mappings"].as_array().unwrap().is_empty(), "{why:#}");
    assert_eq!(init["pid"], 1, "its own shell: {init:#}");
}

/// Huge pages are read, and the sizes of the others are missing with the fix.
#[test]
fn why_reads_content_and_names_what_page_frames_would_tell() {
    let directory = Directory::empty();
    if !thp_is_madvise() || !memory::build(&directory) || !are_possible() {
        return;
    }
    let why = |kind: &str, capabilities: &[&str]| {
        let line = memory::line(kind, "$TOLLFREE --json why $pid");
        let mut command = Namespaces::docker(capabilities).command(&line);
        schema::json("why", &command.current_dir(&directory).output().unwrap())
    };
    let report = why("bloat", &[]);
    assert_eq!(
        report["unused"]["bytes"],
        f64::from((8 << 20) - 4 * 4096),
        "{report:#}"
    );
    let report = why("purged", &[]);
    let missing = report["missing"].as_array().unwrap();
    let sizes = missing
        .iter()
        .find(|it| it["what"].as_str().unwrap().contains("split"));
    let fix = sizes.unwrap()["fix"].as_str().unwrap();
    assert!(fix.contains("--cap-add SYS_ADMIN"), "{fix}");
    let report = why("purged", &["SYS_ADMIN"]);
    assert_eq!(report["folios"]["retained_bytes"], 4 << 20, "{report:#}");
}

/// Without CAP_SYS_NICE, and with process_madvise filtered, memory is switched by ptrace.
#[test]
fn a_running_process_is_tuned_by_ptrace() {
    let directory = Directory::empty();
    if !thp_is_madvise() || !memory::build(&directory) || !are_possible() {
        return;
    }
    let tune = "$TOLLFREE --json tune --pid $pid --within 5s --for 600ms --window 300ms \
        --count-lines address -o out";
    let line = memory::line("busy", tune);
    let mut command = Namespaces::docker(&[]).command(&line);
    let output = command.current_dir(&directory).output().unwrap();
    let answer = schema::json("tune", &output);
    assert_eq!(answer["process"]["cgroup"], "/", "{answer:#}");
    let live = &answer["live"];
    assert_eq!(live["stops"], true, "{}\n{answer:#}", stderr(&output));
    assert!(live["collapses"].as_u64() > Some(0), "{answer:#}");
    assert_eq!(live["unrestored_regions"], 0, "{answer:#}");
}

#[test]
fn the_exporter_says_what_is_missing() {
    if !are_possible() {
        return;
    }
    let mut command =
        Namespaces::docker(&[]).command("exec $TOLLFREE exporter --listen 127.0.0.1:0");
    let mut running = Running::start(&mut command);
    let address = running.answer("serving http://");
    let mut stream = TcpStream::connect(address.trim_end_matches("/metrics")).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    let text = std::io::read_to_string(stream).unwrap();
    let missing = |counter: &str| {
        let start = format!("tollfree_missing{{counter=\"{counter}\"");
        let mut lines = text.lines();
        lines
            .find(|line| line.starts_with(&start))
            .unwrap_or_else(|| panic!("{counter}: {text}"))
    };
    assert!(missing("tlb_shootdowns_received").contains("systempaths=unconfined"));
    assert!(missing("cpu_khugepaged").contains("docker run --pid host"));
    assert!(missing("processes").contains("of this container"));
    let own = "tollfree_machine_page_faults_total ";
    assert!(text.lines().any(|line| line.starts_with(own)), "{text}");
}

/// What the report says of the machine stays true where nothing is hidden.
#[test]
fn paths_that_are_not_hidden_are_read() {
    if !are_possible() {
        return;
    }
    let open = Namespaces {
        hides: false,
        ..Namespaces::docker(&[])
    };
    let output = open.run("$TOLLFREE --json stat -a --for 50ms");
    let [value, reason, _] =
        counter(&output::json(&output), "machine", "tlb_shootdowns_received").map(Clone::clone);
    let is_there = std::fs::read_to_string("/proc/interrupts").is_ok_and(|it| it.contains("TLB:"));
    assert_eq!(value.is_number(), is_there, "{reason}");
}
