// SPDX-License-Identifier: MIT OR Apache-2.0
//! Users who share morsels, and what each may do.

use std::fs;
use std::path::Path;

use toll_testkit::output::{stderr, stdout};
use toll_testkit::tool::tollfree;

use crate::{Fixture, as_nobody, has_nobody, set_mode};

/// A user without the right to mount is told the alternative.
#[test]
fn users_are_told_what_they_can_do_without_root() {
    let fixture = Fixture::new();
    if !has_nobody() {
        return;
    }
    fs::copy(tollfree(), fixture.path("tollfree")).unwrap();
    set_mode(fixture.files.as_path(), 0o755);
    let own = tempfile::tempdir_in(fixture.files.as_path()).unwrap();
    std::os::unix::fs::chown(own.path(), Some(65534), None).unwrap();
    // Without and with the right to create the directory.
    for directory in [fixture.path("m"), own.path().join("m")] {
        let mut command = as_nobody(&fixture.path("tollfree"));
        let mount = command.args(["morsel", "mount"]).arg(&directory);
        let output = mount.output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(4), "{said}");
        let hint = format!("`sudo tollfree morsel mount {}`", directory.display());
        assert!(
            said.contains(&hint) && said.contains("mkdir /dev/shm/morsels"),
            "{said}"
        );
    }
}

/// A file of mode 0644 in a directory that only its owner can access.
#[test]
fn a_file_that_others_cannot_reach_is_not_copied_for_them() {
    let fixture = Fixture::new();
    if !has_nobody() {
        return;
    }
    set_mode(fixture.morsels.path(), 0o1777);
    set_mode(fixture.files.as_path(), 0o700);
    let model = fixture.file("model", b"weights");
    set_mode(Path::new(&model), 0o644);
    let put = fixture.json(&["put", &model]);
    let copy = put["morsels"][0]["path"].as_str().unwrap();
    let read_by_nobody = |path: &str| as_nobody(Path::new("cat")).arg(path).output().unwrap();
    assert!(!read_by_nobody(&model).status.success());
    let output = read_by_nobody(copy);
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(put["morsels"][0]["mode"], "0400");
    let why = put["private"].as_str().unwrap();
    assert!(!why.is_empty());
    let text = stdout(&fixture.run(&["morsel", "put", &model]));
    assert!(text.contains("only you can read it: "), "{text}");
}

/// Users share their own copies and root's. Runs only as root.
#[test]
fn what_another_user_put_there_is_not_served() {
    let fixture = Fixture::new();
    if !has_nobody() {
        return;
    }
    // In a directory that every user can access, unlike the build directory.
    fs::copy(tollfree(), fixture.path("tollfree")).unwrap();
    for (directory, mode) in [
        (fixture.morsels.path(), 0o1777),
        (fixture.files.as_path(), 0o755),
    ] {
        set_mode(directory, mode);
    }
    let model = fixture.file("model", b"weights");
    let run_by_nobody = |arguments: &[&str]| {
        let mut command = as_nobody(&fixture.path("tollfree"));
        command.env("TOLLFREE_MORSELS", fixture.morsels.path());
        command.args(arguments).output().unwrap()
    };
    let put = ["morsel", "put", &model];
    // Root creates the hidden directory, as `morsel mount` does: its owner may remove its contents.
    if fixture.json(&["put", &fixture.file("other", b"other")])["private"].is_string() {
        eprintln!("skipped: others see other file systems here");
        return;
    }
    fixture.json(&["rm", "other"]);
    assert!(run_by_nobody(&put).status.success());
    // Root makes its own copy, which is shared with all users; they cannot remove it.
    assert_eq!(fixture.json(&put[1..])["filled"], true);
    let names = fixture.names();
    assert!(
        names.len() == 2 && names[1].starts_with("model~"),
        "{names:?}"
    );
    let output = run_by_nobody(&["morsel", "rm", &names[1]]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("not permitted"), "{output:?}");
    let removed = run_by_nobody(&["morsel", "rm", "model"]);
    assert!(removed.status.success(), "{removed:?}");
    let output = run_by_nobody(&put);
    assert!(stdout(&output).contains("already exists"), "{output:?}");
    // Only root knows the file that it is a copy of.
    let output = run_by_nobody(&["morsel", "ls"]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    assert!(text.contains(&names[1]) && !text.contains(&model), "{text}");
    assert_eq!(fixture.names(), names[1..]);
}
