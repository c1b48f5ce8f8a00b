// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes of a container, seen from outside: their id differs there, their files are in another
//! mount namespace, and their control group may have any name.

use serde_json::Value;
use toll_linux::{Root, proc};
use toll_testkit::machine::thp_is_madvise;
use toll_testkit::output::{stderr, stdout, succeeds};
use toll_testkit::process::{Running, wait_until};
use toll_testkit::{Directory, output, schema};

use crate::group::Group;
use crate::memory;
use crate::namespaces::{Namespaces, Processes, are_possible};

/// A group with a name that acts on terminals.
const HOSTILE: &str = "tollfree-\x1b[2J\u{202e}x y";

/// A name of a program, as hostile.
const NAME: &str = "only\x1b[7mhere";

/// The program with memory in a container. Its executable is visible there alone.
struct Inmate {
    /// It ends before its group is removed.
    _running: Running,
    directory: Directory,
    group: Group,
    pid: String,
    /// The id in the container.
    inner: u32,
}

impl Inmate {
    fn start(kind: &str) -> Option<Inmate> {
        let directory = Directory::empty();
        if !memory::build(&directory) || !are_possible() {
            return None;
        }
        let group = Group::new(HOSTILE)?;
        let line = format!(
            "cp memory '/dev/shm/{NAME}' && mkfifo input && exec 4<>input
            '/dev/shm/{NAME}' {kind} <&4 & wait"
        );
        // /dev/shm is the container's own.
        let inside = Namespaces::docker(&[]).with("mount -t tmpfs tmpfs /dev/shm");
        let mut command = inside.command(&line);
        let command = group.holding(command.current_dir(&directory));
        let mut running = Running::start(command);
        running.line();
        let root = Root::system();
        let name = |pid: &u32| proc::stat(&root, *pid).is_ok_and(|stat| stat.name == NAME);
        let tree = proc::tree(&root, running.pid());
        let pid = tree.into_iter().find(name).expect("the program");
        let status = proc::status(&root, pid).unwrap();
        Some(Inmate {
            _running: running,
            directory,
            group,
            pid: pid.to_string(),
            inner: status.namespace_pid.expect("an id in the container"),
        })
    }

    /// A report on the process has its place.
    fn assert_placed(&self, report: &Value, cgroup: &str) {
        assert_eq!(
            report["pid"].as_u64().map(|pid| pid.to_string()),
            Some(self.pid.clone())
        );
        assert_eq!(report["namespace_pid"], self.inner, "{report:#}");
        assert_eq!(report[cgroup], self.group.path.as_str(), "{report:#}");
    }

    /// The text about the process has its place, and no control characters.
    fn assert_shown(&self, text: &str) {
        // Long lines are wrapped.
        let text: String = text.split_whitespace().collect();
        assert!(!text.contains(['\x1b', '\u{202e}']), "{text:?}");
        let inner = format!("{},{}initspidnamespace", self.pid, self.inner);
        assert!(text.contains(&inner), "{inner:?} is not in {text}");
        assert!(text.contains("tollfree-?[2J?xy"), "{text}");
    }

    fn run(&self, words: &[&str]) -> std::process::Output {
        self.directory.run(words)
    }
}

#[test]
fn why_stat_and_top_name_both_ids_and_the_group() {
    let Some(inmate) = Inmate::start("plain") else {
        return;
    };
    let pid = inmate.pid.as_str();
    let why = schema::json("why", &inmate.run(&["why", pid, "--json"]));
    inmate.assert_placed(&why, "cgroup_path");
    assert_eq!(why["cgroup"]["limit_bytes"], Group::LIMIT);
    inmate.assert_shown(&succeeds(&inmate.run(&["why", pid])));
    let settings = why["settings"].as_array().unwrap();
    assert!(!settings.is_empty(), "its libc is read in its namespace");

    let line = ["stat", "-p", pid, "--for", "20ms"];
    let mut stat = schema::json("stat", &inmate.run(&[&line[..], &["--json"]].concat()));
    stat["pid"] = stat["subject"]["pid"].clone();
    inmate.assert_placed(&stat, "cgroup");
    inmate.assert_shown(&succeeds(&inmate.run(&line)));

    let top = ["top", "--once", "-I", "20ms"];
    let document = schema::json("top", &inmate.run(&[&top[..], &["--json"]].concat()));
    let mut rows = document["processes"].as_array().unwrap().iter();
    let row = rows.find(|row| row["command"] == NAME).unwrap();
    inmate.assert_placed(row, "cgroup");
    assert!(!succeeds(&inmate.run(&top)).contains('\x1b'));
}

#[test]
fn recording_applying_and_tuning_name_both_ids_and_the_group() {
    let Some(inmate) = Inmate::start("plain") else {
        return;
    };
    let of = ["--pid", inmate.pid.as_str()];
    let record = ["record", "--for", "50ms", "--force", "-o", "profile.json"];
    let record = [&record[..], &of].concat();
    let output = inmate.run(&record);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    inmate.assert_shown(&stderr(&output));
    let summary = [&record[..], &["--summary", "summary.json"]].concat();
    succeeds(&inmate.run(&summary));
    inmate.assert_placed(&inmate.directory.json("summary.json"), "cgroup");
    let profile = inmate.directory.json("profile.json");
    let path = profile["program"]["path"].as_str().unwrap();
    assert_eq!(path, format!("/dev/shm/{NAME}"), "as the container sees it");

    inmate.directory.write("list", "2097152\n");
    let apply = [&["apply", "--plan", "list", "--dry-run"][..], &of].concat();
    let report = output::json(&inmate.run(&[&apply[..], &["--json"]].concat()));
    inmate.assert_placed(&report, "cgroup");
    inmate.assert_shown(&stdout(&inmate.run(&apply)));

    let tune = [&["tune", "--within", "1s", "-o", "out"][..], &of].concat();
    inmate.assert_shown(&succeeds(&inmate.run(&tune)));
    let findings = inmate.directory.json("out/tune.json");
    schema::check("tune", &findings);
    inmate.assert_placed(&findings["process"], "cgroup");
}

/// A process of a container is made huge from outside, as one of the host.
#[test]
fn a_plan_is_applied_to_a_process_of_a_container() {
    if !thp_is_madvise() {
        return;
    }
    let Some(inmate) = Inmate::start("plain") else {
        return;
    };
    let pid: u32 = inmate.pid.parse().unwrap();
    let maps = proc::maps(&Root::system(), pid).unwrap();
    let block = maps
        .iter()
        .find(|it| it.is_private_anonymous() && it.len() == 8 << 20);
    let start = block.expect("8 MiB").start;
    inmate.directory.write("list", format!("{start}\n"));
    let apply = ["apply", "--plan", "list", "--pid", &inmate.pid, "--json"];
    let report = output::json(&inmate.run(&apply));
    assert_eq!(report["collapsed"], 1, "{report:#}");
}

#[test]
fn a_process_of_a_container_that_ends_is_named() {
    let Some(inmate) = Inmate::start("plain") else {
        return;
    };
    let pid = inmate.pid.clone();
    drop(inmate);
    wait_until("its end", || !toll_testkit::process::is_running(&pid));
    let directory = Directory::empty();
    for words in [&["why", &pid][..], &["stat", "-p", &pid]] {
        output::assert_fails(&directory.run(words), 3, &[&pid, "not found"]);
    }
}

/// In another container with the same pid namespace, the process has the id of its own container.
#[test]
fn a_container_beside_it_sees_the_id_of_the_container() {
    let Some(inmate) = Inmate::start("plain") else {
        return;
    };
    let beside = Namespaces {
        processes: Processes::Of(inmate.pid.parse().unwrap()),
        ..Namespaces::docker(&[])
    };
    let output = beside.run(&format!("$TOLLFREE --json why {}", inmate.inner));
    let why = schema::json("why", &output);
    assert_eq!(why["name"], NAME);
    assert_eq!(
        (&why["pid"], &why["namespace_pid"]),
        (&inmate.inner.into(), &Value::Null)
    );
}

/// With the host's processes but a cgroup namespace of its own, groups outside of the namespace are
/// named as the kernel names them, and their counters are not mixed up with those of others.
#[test]
fn groups_outside_of_the_cgroup_namespace_are_summed_from_processes() {
    let Some(inmate) = Inmate::start("plain") else {
        return;
    };
    let host = Namespaces {
        processes: Processes::OfHost,
        ..Namespaces::docker(&[])
    };
    let Some(own) = Group::new("tollfree-watcher") else {
        return;
    };
    let mut command = host.command("$TOLLFREE --json top --once -I 20ms");
    let document = schema::json("top", &own.holding(&mut command).output().unwrap());
    let of = |rows: &str, field: &str, value: &Value| {
        let mut all = document[rows].as_array().unwrap().iter();
        let found = all.find(|row| &row[field] == value);
        found
            .unwrap_or_else(|| panic!("no {value} in {document:#}"))
            .clone()
    };
    // The containers of the other tests run programs with this name.
    let pid: u32 = inmate.pid.parse().unwrap();
    let row = of("processes", "pid", &pid.into());
    assert_eq!(row["command"], NAME);
    assert_eq!(row["namespace_pid"], inmate.inner);
    let name = inmate.group.directory.file_name().unwrap();
    let path = format!("/../{}", name.to_str().unwrap());
    assert_eq!(row["cgroup"], path.as_str());
    assert_eq!(
        of("cgroups", "cgroup", &path.into())["counted_by"],
        "processes"
    );
    assert_eq!(of("cgroups", "cgroup", &"/".into())["counted_by"], "kernel");
}
