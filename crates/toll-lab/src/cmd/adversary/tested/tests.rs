// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

fn plant(more: &str) -> Plant {
    let text = r#"name = "m"
        breaks = "b"
        scenario = "munmap"
        variants = ["vanilla"]"#;
    toml::from_str(&format!("{text}\n{more}")).unwrap()
}

fn scenario() -> Scenario {
    toml::from_str("name = 'random'\nrun = 'mmfuzz SEED 9'\nmachines = ['nodes']").unwrap()
}

fn findings(planted: u64, reports: &str) -> Findings {
    let text = format!(
        r#"{{"found_after": 0.5, "checked": 10, "stale_capable": 3, "legal": 1, "unmaps": 2,
            "flushes": 2, "frames_taken": 1, "frames_freed": 1, "planted": {planted}, "lost": 0,
            "reports": [{reports}]}}"#
    );
    serde_json::from_str(&text).unwrap()
}

const REPORT: &str = r#"{"finding": "stale read", "count": 2, "access": "load",
    "possible_only": false, "pending": false, "address": "0x1", "cpu": 1, "pcid": 1, "frame": "0", "frame_now": "0",
    "seen": {"cpu": 1, "instruction": 1, "tgid": 1, "pid": 1, "task": "a", "calls": []}}"#;

#[test]
fn a_bug_is_there_only_while_its_scenario_runs() {
    assert_eq!(job(&scenario(), 7, None).command[5], "mmfuzz 7 9");
    let spoiled = job(&scenario(), 7, Some(&plant("spoil = 'drop:f'")));
    assert_eq!(
        spoiled.command[5],
        format!("echo drop:f > {SPOIL}; mmfuzz 7 9; echo nothing > {SPOIL}")
    );
    let shell = job(&scenario(), 7, Some(&plant("shell = 'echo x > y'")));
    assert_eq!(shell.command[5], "echo x > y; mmfuzz 7 9");
}

#[test]
fn a_bug_that_had_no_effect_is_not_caught() {
    let spoil = plant("spoil = 'drop:f'");
    let of = |planted, reports| Planted::new(&spoil, "vanilla", None, findings(planted, reports));
    assert!(of(3, REPORT).caught);
    let idle = of(0, REPORT);
    assert_eq!((idle.caught, &*idle.says), (false, "no flush was changed"));
    let missed = of(3, "");
    assert_eq!((missed.caught, &*missed.says), (false, "nothing was found"));
}

#[test]
fn a_bug_that_cannot_be_seen_is_not_missed() {
    let of = |more, reports| Planted::new(&plant(more), "vanilla", None, findings(0, reports));
    assert!(of("kernel = 'x'", "").is_missed());
    assert!(!of("kernel = 'x'", REPORT).is_missed());
    let unseen = of("unseen = 'no TLB is involved'", "");
    assert!(!unseen.is_missed());
    let text = unseen.to_string();
    let end = "not seen (nothing was found): no TLB is involved";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn what_broke_the_guest_is_named_if_nothing_was_found() {
    let error = || Some(anyhow::anyhow!("the guest hung"));
    let plant = plant("kernel = 'x'");
    let missed = Planted::new(&plant, "vanilla", error(), findings(0, ""));
    assert_eq!((missed.caught, &*missed.says), (false, "the guest hung"));
    assert!(Planted::new(&plant, "vanilla", error(), findings(0, REPORT)).caught);
}

#[test]
fn drains_are_added_up() {
    assert_eq!(drains("1 20\n64 3\n"), 23);
    assert_eq!(drains(""), 0);
}

#[test]
fn a_scenario_that_failed_stays_failed() {
    let done = |status| Done {
        name: "munmap".to_owned(),
        status,
        out: String::new(),
        err: "why".to_owned(),
    };
    let mut plain = Plain {
        variant: String::new(),
        release: String::new(),
        machine: String::new(),
        seconds: 0.0,
        counts: Counts::default(),
        scenarios: Vec::new(),
        reports: Vec::new(),
    };
    plain.add(vec![done(Status::Exit(0))], findings(0, ""));
    assert_eq!(plain.problem(), None);
    plain.add(vec![done(Status::Signal(6))], findings(0, ""));
    plain.add(vec![done(Status::Exit(0))], findings(0, ""));
    assert_eq!(plain.problem().as_deref(), Some("failed: munmap"));
    plain.add(Vec::new(), findings(0, REPORT));
    let worse = plain.problem().unwrap();
    assert_eq!(worse, "hardware could be hurt in 1 ways");
}
