// SPDX-License-Identifier: MIT OR Apache-2.0
//! This machine, with real programs.

use std::process::{Command, Stdio};

use serde_json::Value;
use toll_testkit::Directory;
use toll_testkit::output::{json, stderr, stdout};
use toll_testkit::process::{Running, interrupt};

use crate::{check, row};

/// Maps and touches memory for ever, in processes that live long or end at once.
const TOUCH: &str = "import mmap\nwhile True:\n  m = mmap.mmap(-1, 1 << 22)\n  for at in range(0, 1 << 22, 4096): m[at] = 1\n  m.close()\n";

/// A program that runs until this value is dropped.
struct Load(std::process::Child);

impl Load {
    fn start(program: &str, arguments: &[&str]) -> Load {
        let mut command = Command::new(program);
        Load(
            command
                .args(arguments)
                .stdout(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn once(directory: &Directory) -> Value {
    let document = json(&directory.run(&["--json", "top", "--once", "-I", "500ms"]));
    check(&document);
    document
}

#[test]
fn a_program_that_faults_loses_time() {
    let load = Load::start("python3", &["-c", TOUCH]);
    let directory = Directory::empty();
    // python3 may be a script that executes it.
    let runs = |it: &Value| {
        let process = row(it, "processes", "pid", load.0.id());
        let command = process["command"].as_str().unwrap();
        command.starts_with("python3") && process["faults"] != 0.0
    };
    let document = std::iter::repeat_with(|| once(&directory))
        .find(runs)
        .unwrap();
    let process = row(&document, "processes", "pid", load.0.id());
    let value = |field: &str| process[field].as_f64().unwrap();
    assert!(
        value("loss_ns") > 0.0 && value("loss_ns") <= value("cpu_ns"),
        "{process}"
    );
    let bounds = process["loss_interval_ns"].as_array().unwrap();
    assert!(bounds[0].as_f64() <= Some(value("loss_ns")), "{process}");
    assert!(bounds[1].as_f64() >= Some(value("loss_ns")), "{process}");
    assert!(document["machine"]["faults"].as_f64() >= Some(value("faults")));
}

/// Programs that start and end between two looks are counted with the shell that waits for them.
#[test]
fn short_lived_children_are_counted_with_their_parent() {
    let load = Load::start("sh", &["-c", "while :; do /bin/true; done"]);
    let directory = Directory::empty();
    // A shell forks with a few dozen faults of its own; a program that starts has more than 100.
    let by_children = |it: &Value| {
        let shell = row(it, "processes", "pid", load.0.id());
        shell["faults"].as_f64() > Some(500.0)
    };
    std::iter::repeat_with(|| once(&directory))
        .find(by_children)
        .unwrap();
}

#[test]
fn this_process_is_in_a_cgroup() {
    let document = once(&Directory::empty());
    let own = row(&document, "processes", "pid", std::process::id());
    if let Some(cgroup) = own["cgroup"].as_str() {
        let group = row(&document, "cgroups", "cgroup", cgroup);
        assert!(group["processes"].as_u64() >= Some(1), "{group}");
    }
}

/// An ordinary user sees what is measurable, and the reason for the rest.
#[test]
fn another_user_is_told_what_root_would_see() {
    let directory = Directory::empty();
    let line = "chmod 755 .; cp $TOLLFREE ./tollfree; setpriv --reuid 65534 --regid 65534 --clear-groups ./tollfree --json top --once -I 300ms";
    let Some(output) = directory.in_own_mounts(line) else {
        return;
    };
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
    check(&document);
    let missing = document["missing"].to_string();
    assert!(missing.contains("as root"), "{missing}");
    let own = row(&document, "processes", "pid", std::process::id());
    assert!(
        own["faults"].is_number() && own["huge_bytes"].is_null(),
        "{own}"
    );
}

/// In a PID namespace of its own, as in a container.
#[test]
fn a_container_shows_its_own_processes() {
    let directory = Directory::empty();
    let line = "unshare --pid --fork --mount-proc $TOLLFREE --json top --once -I 200ms";
    let Some(output) = directory.in_own_mounts(line) else {
        return;
    };
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
    check(&document);
    assert_eq!(document["processes"].as_array().unwrap().len(), 1);
    let missing = document["missing"].to_string();
    assert!(
        missing.contains("only the processes of this container"),
        "{missing}"
    );
}

#[test]
fn ctrl_c_ends_it() {
    let directory = Directory::empty();
    let mut top = directory.tollfree(&["--json", "top", "-I", "50ms"]);
    let mut top = Running::start(crate::terminals::heeding_ctrl_c(&mut top));
    check(&serde_json::from_str(&top.line()).unwrap());
    interrupt(top.pid());
    assert!(top.child.wait().unwrap().success());
}
