// SPDX-License-Identifier: MIT OR Apache-2.0
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;

const LISTED: &str = "always inherit [madvise] never\n";
/// Names the file for the process that is killed.
const VICTIM: &str = "TOLLFREE_TEST_HELD_FILE";

fn setting(file: &Path) -> MachineSetting {
    MachineSetting {
        file: file.to_owned(),
        value: "always".to_owned(),
    }
}

#[test]
fn a_setting_is_restored_when_it_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("enabled");
    for (text, restored) in [(LISTED, "madvise"), ("511\n", "511")] {
        fs::write(&file, text).unwrap();
        let held = setting(&file).hold().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "always");
        drop(held);
        assert_eq!(fs::read_to_string(&file).unwrap(), restored);
    }
}

#[test]
fn a_check_leaves_the_value() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("enabled");
    fs::write(&file, LISTED).unwrap();
    setting(&file).check().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "madvise");
}

#[test]
fn what_cannot_be_changed_is_named() {
    let file = Path::new("/proc/version");
    for error in [
        setting(file).check().unwrap_err().to_string(),
        setting(file).hold().unwrap_err().to_string(),
    ] {
        assert!(
            error.starts_with("/proc/version: cannot be changed: "),
            "{error}"
        );
        assert!(error.contains("root"), "{error}");
    }
    let absent = setting(Path::new("/sys/kernel/mm/absent")).check();
    assert!(absent.unwrap_err().to_string().contains("No such file"));
}

/// The process that the next test kills; does nothing by itself.
#[test]
fn a_victim_holds_a_setting() {
    let Some(file) = std::env::var_os(VICTIM) else {
        return;
    };
    let _held = setting(Path::new(&file)).hold().unwrap();
    // SAFETY: ends this process.
    unsafe { libc::raise(libc::SIGKILL) };
}

#[test]
fn a_setting_is_restored_if_the_process_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("enabled");
    fs::write(&file, LISTED).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "machine::tests::a_victim_holds_a_setting"])
        .env(VICTIM, &file)
        .status()
        .unwrap();
    assert!(status.code().is_none(), "{status}");
    let begin = Instant::now();
    let restored = || fs::read_to_string(&file).unwrap() == "madvise";
    while !restored() && begin.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(restored());
}
