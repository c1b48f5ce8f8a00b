// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that the preload library cannot enter, and users other than root.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use toll_testkit::compiler::compile_where_possible;
use toll_testkit::machine::{has_program, is_root};
use toll_testkit::output::{stderr, stdout};
use toll_testkit::tool::{library, tollfree};

use crate::{Fixture, feed};

#[test]
fn a_library_in_a_directory_with_a_space_is_found_by_the_loader() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("my programs")).unwrap();
    fs::copy(library(), fixture.path("my programs/libtoll_preload.so")).unwrap();
    let mut command = fixture.run("inside.txt", &["cat", "/proc/self/maps"]);
    let output = command
        .env("TOLLFREE_LIBDIR", fixture.path("my programs"))
        .output()
        .unwrap();
    assert_eq!(stderr(&output), "");
    assert!(stdout(&output).contains("my programs/libtoll_preload.so"));
}

/// Builds a program that exits with 11; false if the compiler does not support the options.
fn builds_exit(fixture: &Fixture, option: &str, name: &str) -> bool {
    let source = fixture.write("exit.c", "int main(void) { return 11; }\n");
    compile_where_possible(&source, &fixture.path(name), &[option])
}

/// AddressSanitizer aborts a program if another library is loaded before its own.
#[test]
fn a_sanitized_program_is_left_alone() {
    let fixture = Fixture::new();
    if !builds_exit(&fixture, "-fsanitize=address", "sanitized") {
        return;
    }
    let output = fixture
        .run("inside.txt", &["./sanitized"])
        .output()
        .unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(11), "{said}");
    assert!(said.contains("AddressSanitizer"), "{said}");
}

#[test]
fn a_program_that_cannot_be_entered_runs_all_the_same() {
    let fixture = Fixture::new();
    if !builds_exit(&fixture, "-static", "static") {
        return;
    }
    let output = fixture.run("inside.txt", &["./static"]).output().unwrap();
    assert_eq!(output.status.code(), Some(11));
    assert!(
        stderr(&output).contains("linked statically"),
        "{}",
        stderr(&output)
    );
    let output = fixture.run("nothing.txt", &["./static"]).output().unwrap();
    assert_eq!(
        stderr(&output),
        "",
        "nothing to say where nothing is planned"
    );
    let json = ["--json", "run", "--plan", "inside.txt", "--", "./static"];
    let output = fixture.0.run(&json);
    let summary: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(summary["exit_code"], 11);
    assert!(
        summary["not_entered"]
            .as_str()
            .unwrap()
            .contains("statically")
    );
}

#[test]
fn a_setuid_program_is_left_alone() {
    let fixture = Fixture::new();
    let program = match is_root() {
        true => {
            let copy = fixture.path("setuid");
            fs::copy("/bin/true", &copy).unwrap();
            std::os::unix::fs::chown(&copy, Some(65534), Some(65534)).unwrap();
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
            copy.to_string_lossy().into_owned()
        }
        false => "/usr/bin/su".to_owned(),
    };
    let mut command = fixture.run("inside.txt", &[&program, "--help"]);
    let Ok(output) = command.output() else {
        return;
    };
    if output.status.code() == Some(127) {
        eprintln!("skipped: no setuid program here");
        return;
    }
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("privileges of its own"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_32_bit_program_is_said_to_be_one() {
    let fixture = Fixture::new();
    let mut header = [0u8; 64];
    header[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    header[16] = 2;
    header[18] = 3;
    fixture.executable("i386", header);
    let output = fixture.run("inside.txt", &["./i386"]).output().unwrap();
    assert!(stderr(&output).contains("32-bit"), "{}", stderr(&output));
}

#[test]
fn an_ordinary_user_gets_the_same() {
    let fixture = Fixture::new();
    if !is_root() || !has_program("setpriv") {
        eprintln!("skipped: not root");
        return;
    }
    fs::set_permissions(fixture.as_path(), fs::Permissions::from_mode(0o777)).unwrap();
    for file in [tollfree(), library()] {
        fs::copy(file, fixture.path(file.file_name().unwrap())).unwrap();
    }
    for plan in ["nothing.txt", "inside.txt"] {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "./tollfree",
            "run",
            "--plan",
            plan,
        ]);
        command.args(["--", "sh", "-c", "cat; id -u; exit 12"]);
        command.current_dir(fixture.as_path());
        command.env("TMPDIR", fixture.as_path());
        let output = feed(&mut command, b"hello\n".to_vec());
        assert_eq!(
            stdout(&output),
            "hello\n65534\n",
            "{plan}: {}",
            stderr(&output)
        );
        assert_eq!(output.status.code(), Some(12), "{plan}");
    }
}
