// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree top` on this machine, on fixture machines, and on terminals.

mod live;
mod machines;
mod terminals;

use serde_json::Value;
use toll_testkit::{Directory, schema};

const GROUP: &str = "sys/fs/cgroup/web.slice/a\u{1b}[2J";

/// A fixture machine with a server in a cgroup, an idle process and kswapd.
struct Machine(Directory);

impl Machine {
    fn new() -> Machine {
        let machine = Machine(Directory::with(&[
            (
                "proc/self/mountinfo",
                "33 30 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            (
                "proc/stat",
                "cpu  10 5 20 900 1 2 3 0 0 0\ncpu0 5 0 0 0 0 0 0 0 0 0\n",
            ),
        ]));
        machine.vmstat(1_000);
        machine.group(500);
        machine.process(2, "kthreadd", 0x0020_0000, 0, "");
        machine.process(40, "kswapd0", 0x0020_0000, 0, "");
        machine.process(100, "server", 0, 50, "0::/web.slice/a\u{1b}[2J\n");
        machine.process(101, "idle) S", 0, 5, "0::/elsewhere\n");
        machine
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        self.0.replace(name, text);
    }

    fn vmstat(&self, faults: u64) {
        let text = format!("pgfault {faults}\npgmajfault 10\nthp_fault_alloc 3\n");
        self.write("proc/vmstat", text);
    }

    fn group(&self, faults: u64) {
        self.write(&format!("{GROUP}/cgroup.procs"), "");
        let text = format!("pgfault {faults}\npgmajfault 1\nanon_thp 2097152\n");
        self.write(&format!("{GROUP}/memory.stat"), text);
    }

    /// A process with a number of faults, and a tick of kernel time for each.
    fn process(&self, pid: u32, name: &str, flags: u64, faults: u64, cgroup: &str) {
        let text = format!(
            "{pid} ({name}) S 1 1 1 0 -1 {flags} {faults} 0 2 0 3 {faults} 0 0 20 0 1 0 77 0 512 0\n"
        );
        self.write(&format!("proc/{pid}/stat"), text);
        self.write(&format!("proc/{pid}/cgroup"), cgroup);
        let text = format!("Name:\tx\nState:\tS\nTgid:\t{pid}\nVmRSS:\t2048 kB\n");
        self.write(&format!("proc/{pid}/status"), text);
        let text = "Rss: 2048 kB\nAnonHugePages: 2048 kB\n";
        self.write(&format!("proc/{pid}/smaps_rollup"), text);
    }
}

/// Checks a document: it is valid, and what is null has a reason.
fn check(document: &Value) {
    schema::check("top", document);
    let rows = |name: &str| document[name].as_array().unwrap().iter();
    let machine = std::iter::once(&document["machine"]);
    for (name, row) in machine
        .map(|row| ("machine", row))
        .chain(rows("cgroups").map(|row| ("cgroups", row)))
        .chain(rows("processes").map(|row| ("processes", row)))
    {
        for (field, value) in row.as_object().unwrap() {
            let may_be_null = ["loss_interval_ns", "cgroup", "namespace_pid"];
            let explained = rows("missing").any(|gap| {
                gap["rows"] == name
                    && gap["fields"]
                        .as_array()
                        .unwrap()
                        .contains(&field.as_str().into())
            });
            assert!(
                !value.is_null() || may_be_null.contains(&field.as_str()) || explained,
                "{field} of {row}"
            );
        }
    }
    let mut reasons: Vec<String> = rows("missing")
        .map(|gap| format!("{}{}", gap["rows"], gap["reason"]))
        .collect();
    let all = reasons.len();
    reasons.sort();
    reasons.dedup();
    assert_eq!(reasons.len(), all, "a reason is named once");
}

/// The row of a process or a cgroup.
fn row<'a>(document: &'a Value, rows: &str, key: &str, value: impl Into<Value>) -> &'a Value {
    let value = value.into();
    let mut all = document[rows].as_array().unwrap().iter();
    let found = all.find(|row| row[key] == value);
    found.unwrap_or_else(|| panic!("no {key} {value} in {document:#}"))
}
