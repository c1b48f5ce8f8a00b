// SPDX-License-Identifier: MIT OR Apache-2.0
//! Services with rules of their own: PostgreSQL, a real one where it is installed, and MongoDB.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use toll_testkit::Directory;
use toll_testkit::machine::is_root;
use toll_testkit::output::{stderr, stdout, succeeds};
use toll_testkit::pool::Pool;
use toll_testkit::process::{Running, interrupt, wait_until};
use toll_testkit::schema;

use crate::{billed, bytes, check};

/// The user that PostgreSQL runs as: it refuses root.
const USER: u32 = 65534;
const OPTIONS: [&str; 7] = [
    "-D",
    "data",
    "-h",
    "",
    "-c",
    "shared_buffers=16MB",
    "--max_connections=5",
];

/// A directory with an empty cluster.
struct Cluster {
    directory: Directory,
    programs: PathBuf,
}

impl Cluster {
    /// `None`, with a message, without PostgreSQL.
    fn new() -> Option<Cluster> {
        let versions = fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten();
        let programs = versions.map(|it| it.path().join("bin"));
        let programs = programs.into_iter().find(|it| it.join("initdb").exists());
        let (Some(programs), true) = (programs, is_root()) else {
            eprintln!("skipped: no PostgreSQL, or not root");
            return None;
        };
        let directory = Directory::empty();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o711)).unwrap();
        chown(directory.as_path(), Some(USER), Some(USER)).unwrap();
        let cluster = Cluster {
            directory,
            programs,
        };
        let make = [
            "-D",
            "data",
            "--no-sync",
            "--no-locale",
            "-A",
            "trust",
            "-U",
            "x",
        ];
        let made = cluster.command("initdb", &make).output().unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
        Some(cluster)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        let user = USER.to_string();
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
        command.arg(self.programs.join(program)).args(arguments);
        command.current_dir(&self.directory).env("LC_ALL", "C");
        command
    }

    /// Huge pages that its shared memory takes; `None` before PostgreSQL 15.
    fn pages(&self) -> Option<u64> {
        let ask = [&OPTIONS[..], &["-C", "shared_memory_size_in_huge_pages"]].concat();
        let output = self.command("postgres", &ask).output().unwrap();
        stdout(&output).trim().parse().ok()
    }

    /// The report of `why` on the server.
    fn why(&self) -> Value {
        let place = self.directory.as_path().to_str().unwrap();
        let line = [&OPTIONS[..], &["-k", place]].concat();
        let mut command = self.command("postgres", &line);
        let mut server = Running::start(command.stderr(Stdio::null()));
        wait_until("PostgreSQL", || {
            self.directory.read("data/postmaster.pid").contains("ready")
        });
        let pid = server.pid().to_string();
        let output = self.directory.run(&["why", &pid, "--json"]);
        interrupt(server.pid());
        server.child.wait().unwrap();
        let report = schema::json("why", &output);
        check(&report);
        report
    }
}

fn fix(report: &Value, reason: &str) -> String {
    let mut lines = report["bill"].as_array().unwrap().iter();
    let line = lines.find(|line| line["reason"] == reason);
    let line = line.unwrap_or_else(|| panic!("no {reason} in {report:#}"));
    line["fix"].as_str().unwrap().to_owned()
}

/// "Did huge_pages = try work?"
#[test]
fn a_real_postgres_shows_whether_try_worked() {
    let Some(cluster) = Cluster::new() else {
        return;
    };
    if Pool::free() == 0 {
        let report = cluster.why();
        let setting = &report["settings"][0];
        assert_eq!(
            (&setting["of"], &setting["value"]),
            (&"PostgreSQL".into(), &"try".into())
        );
        assert!(
            billed(&report, "shared") > 1 << 20,
            "it did not: {report:#}"
        );
        assert!(fix(&report, "shared").contains("huge_pages = on"));
    }
    let Some(_pool) = cluster.pages().and_then(|pages| Pool::reserve(pages + 2)) else {
        return eprintln!("skipped: no pool of huge pages here");
    };
    let report = cluster.why();
    let is_huge = |line: &&Value| line["kind"] == "hugetlb" && line["page_bytes"] == 2 << 20;
    let mut lines = report["bill"].as_array().unwrap().iter();
    let line = lines.find(is_huge).unwrap_or_else(|| panic!("{report:#}"));
    assert!(bytes(&line["bytes"]) >= 2 << 20, "it did: {line}");
    assert_eq!(billed(&report, "shared"), 0, "{report:#}");
}

/// A machine at madvise with a process of this program and environment, as its image sets it.
fn service(program: &str, environment: &str) -> Directory {
    let machine = super::machines::machine();
    machine.write(
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    );
    let exe = machine.path("proc/7/exe");
    std::os::unix::fs::symlink(format!("/usr/bin/{program}"), exe).unwrap();
    machine.write("proc/7/cmdline", format!("{program}\0"));
    machine.write("proc/7/environ", environment);
    machine
}

/// "MongoDB 8 says enable, 7 says disable": the version of the official image decides.
#[test]
fn mongodb_is_told_by_its_version() {
    let told = |environment: &str| {
        let machine = service("mongod", environment);
        let mut why = machine.as_machine(&["why", "7", "--json"]);
        let report = schema::json("why", &why.output().unwrap());
        let text = succeeds(&machine.as_machine(&["why", "7"]).output().unwrap());
        assert!(text.contains("MongoDB"), "{text}");
        fix(&report, "not-advised")
    };
    let with = "MongoDB 8.0 and newer with huge pages";
    let without = "7.0 and older without huge pages (MemoryTHP=disable)";
    let old = told("MONGO_MAJOR=7.0\0MONGO_VERSION=7.0.14\0");
    assert!(old.contains(without) && !old.contains(with), "{old}");
    let new = told("MONGO_VERSION=8.0.4\0");
    assert!(new.contains(with) && new.contains("echo always"), "{new}");
    assert!(!new.contains(without), "{new}");
    let unknown = told("");
    assert!(
        unknown.contains(with) && unknown.contains("7.0 and older without"),
        "{unknown}"
    );
    assert!(
        !unknown.contains("echo always"),
        "neither is advised: {unknown}"
    );
}
