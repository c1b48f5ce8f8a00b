// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn words(page_size: bool, stacks: bool) -> Vec<String> {
    let switches = switches(page_size, stacks);
    let line = command_line(Path::new("perf"), Path::new("/tmp/data"), &switches);
    let text = |word: OsString| word.to_string_lossy().into_owned();
    line.into_iter().map(text).collect()
}

#[test]
fn page_sizes_are_asked_for_and_build_ids_are_not() {
    let with = words(true, false);
    assert!(with.contains(&"--data-page-size".to_owned()), "{with:?}");
    assert!(with.contains(&"-B".to_owned()), "{with:?}");
    assert_eq!(with[with.len() - 3..], ["-o", "/tmp/data", "--"]);
    let without = words(false, false);
    assert!(!without.contains(&"--data-page-size".to_owned()));
    let chains = "--call-graph=fp".to_owned();
    assert!(!with.contains(&chains) && words(true, true).contains(&chains));
}

/// Without a PMU there is no memory event, but the clock event takes the same options.
#[test]
fn perf_knows_the_switches() {
    let Ok(perf) = ensure_installed() else {
        eprintln!("skipped: perf is not installed");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("perf.data");
    let output = Command::new(&perf)
        .arg("record")
        .args(["-e", "cpu-clock", "-d"])
        .args(switches(knows_page_size(&perf), true))
        .arg(&data)
        .args(["--", "true"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("unknown"), "{said}");
    assert_ne!(output.status.code(), Some(129), "usage: {said}");
    assert!(knows_page_size(&perf), "this perf and kernel are recent");
}

#[test]
fn fields_that_a_recording_lacks() {
    let complaint = "Samples for 'x' event do not have DATA_PAGE_SIZE attribute set. Cannot print 'data_page_size' field.\n";
    assert_eq!(missing_field(complaint), Some("data_page_size"));
    assert_eq!(
        missing_field("Invalid field requested.\n"),
        Some("data_page_size")
    );
    assert_eq!(missing_field("Cannot print 'nonsense' field."), None);
    assert_eq!(missing_field("zero-sized data (x), nothing to do!"), None);
}
