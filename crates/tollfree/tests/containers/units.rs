// SPDX-License-Identifier: MIT OR Apache-2.0
//! The units of examples/systemd: systemd accepts them, and their rights suffice.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

use toll_testkit::machine::has_program;
use toll_testkit::output::{stderr, stdout};
use toll_testkit::process::Running;
use toll_testkit::{Directory, tool};

use crate::{can_enter, executable};

const EXPORTER: &str = "tollfree-exporter.service";

fn unit(name: &str) -> String {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/systemd");
    fs::read_to_string(examples.join(name)).unwrap()
}

/// The value of a setting of the exporter's unit.
fn setting(name: &str) -> String {
    let text = unit(EXPORTER);
    let start = format!("{name}=");
    let found = text.lines().find_map(|line| line.strip_prefix(&start));
    found.unwrap_or_else(|| panic!("no {name}")).to_owned()
}

/// The unit with this build's executable, which exists.
fn unit_here(directory: &Directory) -> PathBuf {
    let path = tool::tollfree();
    let text = unit(EXPORTER).replace("/usr/bin/tollfree", path.to_str().unwrap());
    directory.write(EXPORTER, text)
}

#[test]
fn systemd_accepts_the_exporter() {
    if !has_program("systemd-analyze") {
        return eprintln!("skipped: no systemd-analyze");
    }
    let directory = Directory::empty();
    let file = unit_here(&directory);
    let verify = || {
        let mut command = Command::new("systemd-analyze");
        stderr(&command.arg("verify").arg(&file).output().unwrap())
    };
    let name = file.file_name().unwrap().to_str().unwrap();
    let about = |line: &&str| line.contains(name);
    let said = verify();
    let complaints: Vec<&str> = said.lines().filter(about).collect();
    assert_eq!(complaints, Vec::<&str>::new(), "{said}");
    // The misspelled setting shows that complaints are seen.
    let wrong = fs::read_to_string(&file)
        .unwrap()
        .replace("NoNewPrivileges", "NoNewPrivilege");
    fs::write(&file, wrong).unwrap();
    assert!(verify().contains("NoNewPrivilege"));
}

/// `systemd-analyze security` rates the unit, offline: 0 is the least exposed, 10 the most.
#[test]
fn the_exporter_is_little_exposed() {
    let directory = Directory::empty();
    let file = unit_here(&directory);
    let rate = ["security", "--offline=true", "--threshold=25", "--no-pager"];
    let output = Command::new("systemd-analyze")
        .args(rate)
        .arg(&file)
        .output();
    match output {
        Ok(output) if stderr(&output).contains("unrecognized option") => {
            eprintln!("skipped: systemd is older than 250");
        }
        Ok(output) => assert!(output.status.success(), "{}", stdout(&output)),
        Err(error) => eprintln!("skipped: systemd-analyze: {error}"),
    }
}

/// With the capabilities of the unit and as another user, the memory of root's processes is read.
#[test]
fn the_rights_of_the_exporter_suffice() {
    if !can_enter() || !has_program("setpriv") {
        return;
    }
    let only = setting("CapabilityBoundingSet").to_lowercase();
    assert_eq!(only, setting("AmbientCapabilities").to_lowercase());
    let names: Vec<&str> = only.split_ascii_whitespace().collect();
    let names = names
        .iter()
        .map(|name| format!("+{}", name.trim_start_matches("cap_")));
    let set = format!("-all,{}", names.collect::<Vec<String>>().join(","));
    let directory = executable();
    let huge = |set: &str| {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "--no-new-privs",
        ]);
        for kind in ["--inh-caps", "--ambient-caps", "--bounding-set"] {
            command.arg(format!("{kind}={set}"));
        }
        command
            .arg(directory.path("tollfree"))
            .args(["exporter", "--listen", "127.0.0.1:0"]);
        command.args(["--processes", "100000"]);
        command.env_remove("HOME").current_dir("/");
        let mut running = Running::start(&mut command);
        let address = running.answer("serving http://");
        let request = || {
            let mut stream = TcpStream::connect(address.trim_end_matches("/metrics")).unwrap();
            stream
                .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                .unwrap();
            std::io::read_to_string(stream).unwrap()
        };
        let own = format!("pid=\"{}\"", std::process::id());
        let has = |text: &str, name: &str| {
            let start = format!("tollfree_process_{name}{{");
            text.lines()
                .any(|line| line.starts_with(&start) && line.contains(&own))
        };
        // A process has metrics once it lost something between two looks; its huge pages are read
        // at one of the next looks.
        let mut looks = (0..3).map(|_| {
            std::hint::black_box(vec![1u8; 32 << 20]);
            std::thread::sleep(std::time::Duration::from_millis(1100));
            let text = request();
            assert!(has(&text, "resident_bytes"), "{text}");
            has(&text, "huge_bytes")
        });
        looks.any(|has| has)
    };
    assert!(huge(&set), "{set}");
    assert!(!huge("-all"), "the capability is needed");
}
