// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

const EVENT: &str = r#"{"cpu": 1, "instruction": 1, "tgid": 1, "pid": 1, "task": "a",
    "calls": ["0xffffffff81000010"]}"#;

fn findings(lost: u64, reports: &str) -> String {
    format!(
        r#"{{"found_after": null, "checked": 10, "stale_capable": 3, "legal": 1, "unmaps": 2,
            "flushes": 2, "frames_taken": 1, "frames_freed": 1, "planted": 0, "lost": {lost},
            "reports": [{reports}]}}"#
    )
}

fn report(finding: &str) -> String {
    format!(
        r#"{{"finding": "{finding}", "count": 2, "access": "load", "possible_only": false,
            "pending": false, "address": "0x1", "cpu": 1, "pcid": 1, "frame": "0",
            "frame_now": "0", "seen": {EVENT}}}"#
    )
}

/// The results of guests, each with the content of its file, or without one.
fn checked(guests: &[Option<String>]) -> Checked {
    let directory = tempfile::tempdir().unwrap();
    let map = directory.path().join("System.map");
    std::fs::write(&map, "ffffffff81000000 T function\n").unwrap();
    let mut checked = Checked {
        variant: "vanilla".to_owned(),
        symbols: Symbols::read(&map).unwrap(),
        guests: 0,
        unchecked: 0,
        counts: Counts::default(),
        reports: Vec::new(),
    };
    for (number, content) in guests.iter().enumerate() {
        let own = directory.path().join(number.to_string());
        std::fs::create_dir_all(own.join("findings")).unwrap();
        if let Some(content) = content {
            std::fs::write(own.join("findings/adversary.json"), content).unwrap();
        }
        checked.add(&own);
    }
    checked
}

#[test]
fn guests_without_a_report_are_right() {
    let checked = checked(&[Some(findings(0, "")), Some(findings(0, ""))]);
    assert_eq!(checked.problem(), None);
    assert_eq!((checked.guests, checked.counts.checked), (2, 20));
}

#[test]
fn reports_of_one_cause_become_one() {
    let twice = [report("stale read"), report("stale write")].join(",");
    let checked = checked(&[Some(findings(0, &twice)), Some(findings(0, &twice))]);
    let counts: Vec<u64> = checked.reports.iter().map(|it| it.count).collect();
    assert_eq!(counts, [4, 4]);
    let why = checked.problem().unwrap();
    assert_eq!(why, "vanilla: hardware could be hurt in 2 ways");
}

#[test]
fn a_guest_that_was_not_checked_is_no_clean_one() {
    let why = |guests: &[Option<String>]| checked(guests).problem().unwrap();
    assert_eq!(
        why(&[Some(findings(0, "")), None]),
        "vanilla: 1 guests were not checked"
    );
    assert_eq!(why(&[Some(findings(1, ""))]), "vanilla: 1 events were lost");
    assert_eq!(why(&[]), "vanilla: no access was checked");
}
