// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel put`, `ls`, `stat`, `rm` and `seal`.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use toll_testkit::machine::has_program;
use toll_testkit::output::{stderr, stdout};
use toll_testkit::process::{Running, interrupt, wait_until};

use crate::{Fixture, content};

#[test]
fn a_file_comes_and_goes() {
    let fixture = Fixture::new();
    let model = fixture.file("model", &content(5_000_000));
    let put = fixture.json(&["put", &model]);
    assert_eq!(
        (put["filled"].as_bool(), put["kind"].as_str()),
        (Some(true), Some("tmpfs"))
    );
    assert_eq!(
        fs::read(fixture.morsels.path().join("model")).unwrap(),
        content(5_000_000)
    );
    assert_eq!(fixture.json(&["put", &model])["filled"], false);
    let text = stdout(&fixture.run(&["morsel", "ls"]));
    assert!(text.contains("1 morsel") && text.contains(&model), "{text}");
    let stat = &fixture.json(&["stat", "model"])["morsels"][0];
    assert_eq!(stat["source"], model);
    assert_eq!(
        (&stat["source_is"], &stat["sealed"]),
        (&"same".into(), &true.into())
    );
    let pages = |name: &str| stat[name].as_u64().unwrap();
    assert_eq!(pages("huge") + pages("small"), pages("allocated"));
    fixture.file("model", b"other");
    assert_eq!(
        fixture.json(&["stat", "model"])["morsels"][0]["source_is"],
        "changed"
    );
    let text = stdout(&fixture.run(&["morsel", "stat", "model"]));
    assert!(
        text.contains("(changed)") && text.contains("mode bits"),
        "{text}"
    );
    assert_eq!(fixture.json(&["rm", "model"])["removed"][0], "model");
    assert_eq!(fixture.names(), [""; 0]);
}

#[test]
fn mapping_processes_are_counted() {
    let fixture = Fixture::new();
    let model = fixture.file("model", &content(10_000));
    fixture.json(&["put", &model]);
    let path = fixture.morsels.path().join("model");
    let program = "import mmap, sys\n\
        file = open(sys.argv[1], 'rb')\n\
        m = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n\
        print('mapped', flush=True)\n\
        sys.stdin.read()";
    let mut python = Command::new("python3");
    python.args(["-c", program]).arg(path);
    python.stdin(Stdio::piped());
    if !has_program("python3") {
        eprintln!("skipped: no python3");
        return;
    }
    let mut running = Running::start(&mut python);
    assert_eq!(running.line(), "mapped");
    assert_eq!(
        fixture.json(&["stat", "model"])["morsels"][0]["mapped_by"],
        1
    );
    // A morsel in use is not removed to make room.
    let other = fixture.file("other", &content(10_000));
    let output = fixture.run(&["morsel", "put", &other, "--limit", "12K"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(stderr(&output).contains("no room"), "{output:?}");
    let output = fixture.run(&["morsel", "rm", "model"]);
    assert!(
        stderr(&output).contains("a process still maps it"),
        "{output:?}"
    );
    drop(running.child.stdin.take());
    assert!(running.child.wait().unwrap().success());
    let put = fixture.json(&["put", &other, "--limit", "12K"]);
    assert_eq!(put["filled"], true);
}

#[test]
fn a_limit_removes_what_was_used_least_recently() {
    let fixture = Fixture::new();
    for name in ["first", "second"] {
        fixture.json(&["put", &fixture.file(name, &content(9000)), "--limit", "24K"]);
        // Times of use have the resolution of the kernel's clock.
        sleep(Duration::from_millis(20));
    }
    fs::read(fixture.morsels.path().join("first")).unwrap();
    let times = fs::FileTimes::new().set_accessed(std::time::SystemTime::now());
    let first = File::open(fixture.morsels.path().join("first")).unwrap();
    first.set_times(times).unwrap();
    drop(first);
    let put = fixture.json(&[
        "put",
        &fixture.file("third", &content(9000)),
        "--limit",
        "24K",
    ]);
    assert_eq!(put["removed"], serde_json::json!(["second"]));
    assert_eq!(fixture.names(), ["first", "third"]);
}

#[test]
fn mistakes_are_named_with_their_exit_code() {
    let fixture = Fixture::new();
    let file = fixture.file("file", b"x");
    let empty = fixture.file("empty", b"");
    let cases: [(&[&str], i32, &str); 12] = [
        (&["put", "./nowhere"], 1, "./nowhere: No such file"),
        (&["put", "/dev/null"], 3, "/dev/null: is not a regular file"),
        (&["put", &empty], 3, "is empty"),
        (&["put", &file, "--name", "a/b"], 2, "slash"),
        (&["put", &file, "--limit", "lots"], 2, "lots"),
        (&["put", &file, "--limit", "1K"], 4, "no room for 4 KiB"),
        (
            &["put", &file, "--to", "/nowhere"],
            4,
            "morsel mount /nowhere",
        ),
        (&["put", &file, "--to", "/proc"], 4, "is on proc"),
        (&["ls", &file], 3, "the least is 16"),
        (&["stat", "nothing"], 1, "no such morsel"),
        (&["rm", "nothing"], 1, "no such morsel"),
        (&["seal", ".."], 2, "names a directory"),
    ];
    for (arguments, code, says) in cases {
        let output = fixture.run(&[&["morsel"], arguments].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
        assert_eq!(
            said.lines().count(),
            if code == 2 { said.lines().count() } else { 1 },
            "{said}"
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(fixture.names(), [""; 0]);
}

/// A put that waits for another one's lock.
fn waiting(fixture: &Fixture) -> (File, Child) {
    let records = fixture.records();
    let lock = File::open(&records).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let file = fixture.file("file", b"x");
    let mut put = fixture.command(&["morsel", "put", &file]);
    put.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = put.spawn().unwrap();
    let fds = format!("/proc/{}/fd", child.id());
    wait_until("the put that waits", || {
        let mut fds = fs::read_dir(&fds).into_iter().flatten().flatten();
        fds.any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == records))
    });
    (lock, child)
}

#[test]
fn an_interrupted_copy_is_130() {
    let fixture = Fixture::new();
    let (lock, child) = waiting(&fixture);
    interrupt(child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(stderr(&output), "tollfree: interrupted\n");
    drop(lock);
    assert_eq!(fixture.names(), [""; 0]);
}

#[test]
fn a_copy_waits_for_its_turn() {
    let fixture = Fixture::new();
    let (lock, child) = waiting(&fixture);
    drop(lock);
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(fixture.names(), ["file"]);
}

#[test]
fn a_killed_copy_leaves_nothing() {
    let fixture = Fixture::new();
    let path = fixture.path("large");
    // Sparse: much to copy, nothing to store.
    File::create(&path).unwrap().set_len(1 << 30).unwrap();
    let mut put = fixture.command(&["morsel", "put", path.to_str().unwrap()]);
    let mut child = put.spawn().unwrap();
    let maps = format!("/proc/{}/maps", child.id());
    let directory = fixture.morsels.path().to_str().unwrap().to_owned();
    wait_until("the copy", || {
        fs::read_to_string(&maps).is_ok_and(|maps| maps.contains(&directory))
    });
    child.kill().unwrap();
    let status = child.wait().unwrap();
    if status.success() {
        eprintln!("skipped: the copy was faster than its end");
        return;
    }
    assert_eq!(status.signal(), Some(9));
    assert_eq!(fixture.names(), [""; 0]);
    assert_eq!(fs::read_dir(fixture.records()).unwrap().count(), 0);
}

#[test]
fn by_hand_sealed_morsels_keep_writers_out() {
    let fixture = Fixture::new();
    let path = fixture.morsels.path().join("made");
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .open(path)
        .unwrap();
    file.write_all(b"content").unwrap();
    let output = fixture.run(&["morsel", "seal", "made"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("a writer"), "{output:?}");
    drop(file);
    let sealed = fixture.json(&["seal", "made"]);
    assert_eq!(sealed["morsels"][0]["sealed"], true);
    assert_eq!(sealed["morsels"][0]["source"], Value::Null);
}

#[test]
fn the_lock_of_a_user_is_the_users_own() {
    let fixture = Fixture::new();
    fixture.json(&["put", &fixture.file("first", b"1")]);
    // A file that any user can open, any user can lock.
    let hidden = File::open(fixture.morsels.path().join(".tollfree")).unwrap();
    flock(&hidden, FlockOperation::LockExclusive).unwrap();
    let second = fixture.file("second", b"2");
    assert_eq!(
        fixture.json(&["put", &second, "--wait", "0"])["filled"],
        true
    );
    let own = File::open(fixture.records()).unwrap();
    flock(&own, FlockOperation::LockExclusive).unwrap();
    let third = fixture.file("third", b"3");
    let output = fixture.run(&["morsel", "put", &third, "--wait", "50ms"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = stderr(&output);
    let holder = format!("process {} (", std::process::id());
    assert!(said.contains(fixture.records().to_str().unwrap()), "{said}");
    assert!(said.contains(&holder), "{said}");
}

#[test]
fn a_hidden_directory_that_is_a_link_is_4() {
    let fixture = Fixture::new();
    let hidden = fixture.morsels.path().join(".tollfree");
    std::os::unix::fs::symlink(fixture.files.as_path(), &hidden).unwrap();
    let output = fixture.run(&["morsel", "put", &fixture.file("model", b"weights")]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(
        stderr(&output).contains(hidden.to_str().unwrap()),
        "{output:?}"
    );
    assert_eq!(fixture.names(), [""; 0]);
    assert_eq!(fixture.files.names().len(), 1);
}

#[test]
fn memory_is_left_to_other_programs() {
    let fixture = Fixture::new();
    let reserved = fixture.json(&["ls"])["reserved"].as_u64().unwrap();
    assert!(reserved >= 64 << 20);
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo.lines().find_map(|line| {
        let kilobytes = line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?;
        Some(kilobytes.parse::<u64>().unwrap() << 10)
    });
    // More than available, even if other processes free memory meanwhile; less than the total.
    let large = fixture.path("large");
    let size = total.unwrap() - reserved / 2;
    File::create(&large).unwrap().set_len(size).unwrap();
    let output = fixture.run(&["morsel", "put", large.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("are left to other programs"), "{said}");
    assert_eq!(fixture.names(), [""; 0]);
}
