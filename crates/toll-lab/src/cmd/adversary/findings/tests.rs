// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

fn symbols(directory: &Path) -> Symbols {
    let path = directory.join("System.map");
    let map = "1000 t unmap_page\n2000 t __vm_munmap\n3000 T entry\n4000 t exit_mmap\n";
    files::write(&path, map.as_bytes()).unwrap();
    Symbols::read(&path).unwrap()
}

fn report(calls: &str) -> String {
    format!(
        r#"{{"finding": "stale read", "count": 2, "access": "load", "possible_only": false, "pending": false,
            "address": "0x1", "cpu": 1, "pcid": 1, "frame": "0x2000", "frame_now": "0",
            "seen": {{"cpu": 1, "instruction": 1, "tgid": 1, "pid": 1, "task": "a", "calls": []}},
            "unmapped": {{"cpu": 0, "instruction": 1, "tgid": 1, "pid": 1, "task": "a", "calls": [{calls}]}}}}"#
    )
}

fn read(reports: &[String]) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("adversary.json");
    let text = format!(
        r#"{{"found_after": 0.5, "checked": 10, "stale_capable": 3, "legal": 1, "unmaps": 2,
            "flushes": 2, "frames_taken": 1, "frames_freed": 1, "planted": 0, "lost": 0,
            "reports": [{}]}}"#,
        reports.join(",")
    );
    files::write(&path, text.as_bytes()).unwrap();
    Findings::read(&path, &symbols(directory.path())).unwrap()
}

#[test]
fn addresses_become_functions() {
    let findings = read(&[report(r#""0x1010", "0x2010", "0x2020", "0x5", "0x3010""#)]);
    let unmapped = findings.reports[0].unmapped.as_ref().unwrap();
    assert_eq!(unmapped.calls, ["unmap_page", "__vm_munmap", "entry"]);
    let text = findings.reports[0].to_string();
    assert!(text.contains("unmap_page < __vm_munmap < entry"), "{text}");
}

#[test]
fn findings_of_one_cause_are_one_report() {
    let same = report(r#""0x1010", "0x2010", "0x3010""#);
    let elsewhere = report(r#""0x1018", "0x2018", "0x3018""#);
    let other = report(r#""0x1010", "0x4010", "0x3010""#);
    let findings = read(&[same, elsewhere, other]);
    let counts: Vec<u64> = findings.reports.iter().map(|it| it.count).collect();
    assert_eq!(counts, [4, 2]);
}

#[test]
fn a_guest_that_wrote_nothing_was_not_checked() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("adversary.json");
    let error = Findings::read(&missing, &symbols(directory.path())).unwrap_err();
    assert!(
        error.to_string().ends_with("nothing was checked"),
        "{error}"
    );
}

#[test]
fn counts_that_show_nothing_are_a_problem() {
    let good = read(&[]).counts;
    assert_eq!(good.problem(), None);
    let cases = [
        (Counts { lost: 3, ..good }, "3 events were lost"),
        (Counts { checked: 0, ..good }, "no access was checked"),
        (
            Counts {
                frames_taken: 0,
                ..good
            },
            "the kernel announced no frames",
        ),
        (Counts { unmaps: 0, ..good }, "nothing was unmapped"),
    ];
    for (counts, why) in cases {
        assert_eq!(counts.problem().as_deref(), Some(why));
    }
}
