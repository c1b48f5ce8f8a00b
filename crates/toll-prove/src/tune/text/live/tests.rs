// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_model::stats::Interval;

use super::*;
use crate::tune::findings::{Answer, Results};

fn alternated() -> Alternated {
    Alternated {
        pid: 4242,
        measure: "CPU time per line of log".to_owned(),
        assumption: None,
        window_seconds: Some(2.0),
        speedup_from_before: None,
        rate_speedup: None,
        regions: 256,
        selected_regions: 256,
        huge_before: 0,
        added_bytes: 0,
        idle_bytes: 0,
        forbidden_bytes: 0,
        shared_bytes: 0,
        collapses: 1280,
        splits: 1280,
        refused: 0,
        refusal: None,
        stops: false,
        longest_pause_ns: 4_600_000,
        pauses_ns: 900_000_000,
        pauses_share: 0.004,
        pauses_cpu_ns: 800_000_000,
        rate_while_changing: Some(0.97),
        astray_share: 0.0,
        kept: false,
        unrestored_regions: 0,
        unrestored_reason: None,
    }
}

#[test]
fn the_pauses_and_the_undo_are_said() {
    let found = Results::new("server", 60.0).findings;
    let mut live = alternated();
    let text = render(&found, &live);
    for part in [
        "256 regions (512 MiB): 1,280 collapses, 1,280 splits",
        "faults may have waited for 4.6 ms at most, 900 ms in all, 0.4 % of the time",
        "meanwhile  97.0 % of the progress",
        "restored   yes",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    live.unrestored_regions = 1;
    live.stops = true;
    let text = render(&found, &live);
    assert!(text.contains("restored   NOT ALL"), "{text}");
    assert!(text.contains("a thread stopped for"), "{text}");
}

#[test]
fn the_speed_up_from_the_pages_before_is_no_interleaved_one() {
    let mut live = alternated();
    assert_eq!(as_it_was(&live), "");
    live.speedup_from_before = Some(Interval {
        median: 1.571,
        low: 1.551,
        high: 1.594,
    });
    let line = "  as it was  1.571 (1.551 to 1.594) from the pages before; not interleaved\n";
    assert_eq!(as_it_was(&live), line);
}

#[test]
fn a_gain_that_was_undone_comes_with_the_command_that_keeps_it() {
    let mut found = Results::new("server", 60.0).findings;
    found.directory = Some("out".into());
    let mut live = alternated();
    assert_eq!(now(&found, &live), "");
    (found.advice, found.answer) = (Advice::Apply, Answer::Apply);
    assert!(now(&found, &live).contains("tollfree apply --plan out/largepages.txt --pid 4242"));
    live.kept = true;
    assert_eq!(now(&found, &live), "");
}
