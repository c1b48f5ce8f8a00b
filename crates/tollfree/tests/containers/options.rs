// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each option of `docker run` in docs/guide/containers.md makes possible: without it, it is
//! missing; with it, it is there.

use std::fs;
use std::path::Path;

use serde_json::Value;
use toll_testkit::machine::thp_is_madvise;
use toll_testkit::{Directory, output, schema};

use crate::container::CAPABILITIES;
use crate::memory;
use crate::namespaces::{Namespaces, Processes, are_possible};
use crate::{OTHER, open};

/// Whether `stat` of a command in the namespaces has a value for a counter of a scope.
fn counts(namespaces: &Namespaces, tollfree: &str, (scope, name): (&str, &str)) -> bool {
    let line = format!("{tollfree} --json stat -o /dev/fd/3 3>&1 >&2 -- true");
    let report = schema::json("stat", &namespaces.run(&line));
    let counters = report["counters"].as_array().unwrap();
    let is_it = |it: &&Value| it["name"] == name && it["scope"] == scope;
    counters.iter().find(is_it).unwrap()["value"].is_number()
}

/// A counter of perf.
const SWITCHES: (&str, &str) = ("process tree", "context_switches");

fn host_pids() -> Namespaces {
    Namespaces {
        processes: Processes::OfHost,
        ..Namespaces::docker(&[])
    }
}

fn unhidden() -> Namespaces {
    Namespaces {
        hides: false,
        ..Namespaces::docker(&[])
    }
}

#[test]
fn cap_add_perfmon_counts_events() {
    if !are_possible() {
        return;
    }
    let has =
        |capabilities: &[&str]| counts(&Namespaces::docker(capabilities), "$TOLLFREE", SWITCHES);
    assert!(!has(&[]), "the filter forbids it");
    assert!(has(&["PERFMON"]));
}

#[test]
fn pid_host_shows_the_threads_of_the_kernel() {
    if !are_possible() {
        return;
    }
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name != "kthreadd\n") {
        return eprintln!("skipped: the tests are in a container themselves");
    }
    let has = |it: &Namespaces| counts(it, "$TOLLFREE", ("machine", "cpu_kcompactd"));
    assert!(!has(&Namespaces::docker(&[])));
    assert!(has(&host_pids()));
}

#[test]
fn unhidden_paths_show_shootdowns() {
    let is_there = fs::read_to_string("/proc/interrupts").is_ok_and(|it| it.contains("TLB:"));
    if !is_there || !are_possible() {
        return eprintln!("skipped: /proc/interrupts has no line TLB here");
    }
    let has = |it: &Namespaces| counts(it, "$TOLLFREE", ("machine", "tlb_shootdowns_received"));
    assert!(!has(&Namespaces::docker(&[])));
    assert!(has(&unhidden()));
}

/// How `tollfree`, a command, makes a program of a user huge: (`reach`, exit code).
fn apply(namespaces: &Namespaces, user: &str, tollfree: &str) -> (Value, i32) {
    let directory = Directory::empty();
    assert!(memory::build(&directory));
    let apply = format!(
        "printf '%d\\n' $(cat address) >list
        {tollfree} --json apply --plan list --pid $pid"
    );
    let line = memory::line("plain", &apply).replace("./memory", &format!("{user} ./memory"));
    open(&directory);
    let mut command = namespaces.command(&line);
    let output = command.current_dir(&directory).output().unwrap();
    let code = output.status.code().unwrap();
    let report = match output.stdout.is_empty() {
        true => Value::Null,
        false => output::json(&output),
    };
    (report["reach"].clone(), code)
}

#[test]
fn capabilities_decide_how_a_process_is_reached() {
    let directory = Directory::empty();
    if !thp_is_madvise() || !memory::build(&directory) || !are_possible() {
        return;
    }
    let reach =
        |capabilities: &[&str], user| apply(&Namespaces::docker(capabilities), user, "$TOLLFREE");
    let both = ["SYS_PTRACE", "SYS_NICE"];
    assert_eq!(reach(&[], ""), ("ptrace".into(), 0), "of the same user");
    assert_eq!(reach(&[], OTHER).1, 4, "of another user");
    assert_eq!(reach(&["SYS_PTRACE"], OTHER), ("ptrace".into(), 0));
    assert_eq!(reach(&both, OTHER), ("process_madvise".into(), 0));
}

/// Each command that may not read a process names the capability.
#[test]
fn refusals_name_the_capability() {
    if !are_possible() {
        return;
    }
    let directory = Directory::with(&[("list", "2097152\n")]);
    let line = format!(
        "{OTHER} sleep 100 & sleep 0.1
        for command in 'apply --plan list' 'record -o profile --for 50ms' 'tune --within 1s'; do
            $TOLLFREE $command --pid $!; test $? = 4 || exit
        done"
    );
    let mut command = Namespaces::docker(&[]).command(&line);
    let output = command.current_dir(&directory).output().unwrap();
    let said = output::stderr(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("--cap-add SYS_PTRACE").count(), 3, "{said}");
}

/// The capabilities that a file of examples/kubernetes asks for.
fn capabilities(file: &str) -> Vec<String> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kubernetes");
    let text = fs::read_to_string(examples.join(file)).unwrap();
    let list = text
        .split("add: [")
        .nth(1)
        .and_then(|it| it.split(']').next());
    let names = list.expect("a list of capabilities").split(',');
    names.map(|name| name.trim().to_owned()).collect()
}

/// The sidecar of the example reads and advises the pod's other containers, of other users, with
/// its capabilities alone, and without any that a set-user-ID program would bring.
#[test]
fn the_sidecar_has_what_it_needs() {
    let directory = Directory::empty();
    if !thp_is_madvise() || !memory::build(&directory) || !are_possible() {
        return;
    }
    let names = capabilities("sidecar.yaml");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let number = |name: &str| CAPABILITIES.iter().find(|it| it.0 == name).unwrap().1;
    let kept: Vec<String> = names
        .iter()
        .map(|it| format!("+cap_{}", number(it)))
        .collect();
    let only = format!(
        "setpriv --no-new-privs --bounding-set=-all,{} $TOLLFREE",
        kept.join(",")
    );
    let sidecar = Namespaces::docker(&names);
    assert_eq!(apply(&sidecar, OTHER, &only), ("process_madvise".into(), 0));
    assert!(counts(&sidecar, &only, SWITCHES));
}
