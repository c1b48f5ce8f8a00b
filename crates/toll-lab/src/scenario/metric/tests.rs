// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

fn metric(text: &str) -> Metric {
    Metric::try_from(text.to_owned()).unwrap()
}

fn problem(text: &str) -> String {
    Metric::try_from(text.to_owned()).unwrap_err()
}

/// Every counter is 3, every sum of counters 10, every count of a process 100.
fn value(text: &str) -> f64 {
    metric(text).value(&|name| match name {
        Name::Counter(_) => 3.0,
        Name::Prefix(_) => 10.0,
        Name::Process { .. } => 100.0,
    })
}

#[test]
fn a_metric_is_computed_as_arithmetic_is() {
    assert_eq!(value("walks"), 3.0);
    assert_eq!(value("1 + walks * 2"), 7.0);
    assert_eq!(value("(1 + walks) * 2 / 4"), 2.0);
    assert_eq!(value("10 - walks - 2"), 5.0);
    assert_eq!(value("8 / 2 / 2"), 2.0);
    assert_eq!(value("max(walks - 5, 0.5)"), 0.5);
    assert_eq!(value("luf_drains_* * 2"), 20.0);
    assert_eq!(
        value("process.scale.instructions_kernel / walks"),
        100.0 / 3.0
    );
}

#[test]
fn a_metric_lists_what_it_uses() {
    let used = metric("process.scale.instructions_kernel / max(note_rounds, 1) + luf_drains_*");
    let [process, counter, prefix] = &used.names()[..] else {
        panic!("three names");
    };
    assert!(matches!(process, Name::Process { process, .. } if process == "scale"));
    assert_eq!(**counter, Name::Counter("note_rounds".to_owned()));
    assert_eq!(**prefix, Name::Prefix("luf_drains_".to_owned()));
    assert!(used.is_of_a_process());
    assert!(!metric("walks").is_of_a_process());
    assert_eq!(metric("1 + walks").to_string(), "1 + walks");
}

#[test]
fn an_unknown_counter_is_named() {
    assert!(problem("walk_steps + steps").contains("steps: no such counter"));
    assert!(problem("process.scale.steps").contains("steps: no such counter"));
    assert!(problem("process.scale").contains("process.NAME.COUNTER"));
    assert!(problem("wal_*").contains("wal_: no such counter"));
}

#[test]
fn what_is_not_arithmetic_is_refused() {
    assert!(problem("").contains("ends too early"));
    assert!(problem("walks +").contains("ends too early"));
    assert!(problem("walks walks").contains("not expected"));
    assert!(problem("(walks").contains("\")\" is missing"));
    assert!(problem("max(walks)").contains("\",\" is missing"));
    assert!(problem("max walks").contains("\"(\" is missing"));
    assert!(problem("* walks").contains("not expected"));
    assert!(problem("walks % 2").contains("\"%\" is not expected"));
    assert!(problem("Walks").contains("\"W\""));
}
