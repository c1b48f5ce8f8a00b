// SPDX-License-Identifier: MIT OR Apache-2.0

use std::time::Duration;

use toll_model::losses::Missing;

use super::*;
use crate::cmd::top::columns::Column;
use crate::cmd::top::document::Counted;
use crate::cmd::top::gaps::{Gaps, Rows};

fn figures(loss: f64) -> Figures {
    Figures {
        cpu_ns: Some(2.0 * loss),
        loss_ns: Some(loss),
        loss_interval_ns: Some([loss / 2.0, loss * 2.0]),
        loss_share: Some(0.5),
        faults: Some(100.0),
        huge_bytes: Some(2e6),
        ..Figures::default()
    }
}

fn process(pid: u32, command: &str, loss: f64) -> ProcessRow {
    ProcessRow {
        pid,
        command: command.into(),
        cgroup: Some("/a.slice".into()),
        namespace_pid: None,
        resident_bytes: u64::from(pid) << 20,
        figures: figures(loss),
    }
}

fn document() -> Document {
    let mut missing = Gaps::default();
    missing.note(
        Rows::Processes,
        "shootdowns_sent",
        &Missing::new("nobody counts them", "another kernel"),
    );
    Document {
        format: "tollfree-top",
        version: 1,
        interval_ns: 1_000_000_000,
        cpus: 2,
        default_costs: vec!["compaction"],
        machine: figures(3e8),
        cgroups: vec![GroupRow {
            cgroup: "/a.slice".into(),
            processes: 3,
            counted_by: Counted::Kernel,
            figures: figures(2e8),
        }],
        processes: vec![
            process(10, "first", 1e8),
            process(11, "second\x1b[2J", 1e7),
            process(12, "idle", 0.0),
        ],
        missing,
    }
}

fn view() -> View {
    View::new(Duration::from_secs(1))
}

/// Rows of a page below its header, by the last word.
fn names(page: &str) -> Vec<&str> {
    let rows = page.lines().skip_while(|line| !line.contains("COMMAND"));
    rows.skip(1)
        .map(|line| line.rsplit(' ').next().unwrap())
        .collect()
}

#[test]
fn a_block_has_both_tables_and_the_reasons_once() {
    let first = block(&document(), 120, false);
    assert!(
        first.contains("1 s: 2 CPUs, 3 processes, 1 cgroup"),
        "{first}"
    );
    assert!(
        first.contains("lost 30.0 % of a CPU (15.0 % to 60.0 %)"),
        "{first}"
    );
    assert!(first.contains("second?[2J"), "{first}");
    assert!(
        first.contains("shootdowns sent: nobody counts them; another kernel"),
        "{first}"
    );
    assert!(
        first.contains("PROCS") && first.contains("CGROUP"),
        "{first}"
    );
    let later = block(&document(), 120, true);
    assert!(
        later.starts_with('\n') && !later.contains("nobody"),
        "{later}"
    );
}

#[test]
fn a_block_counts_the_rows_that_it_leaves_out() {
    let mut document = document();
    document.processes = (0..50).map(|pid| process(pid, "x", 1e6)).collect();
    let text = block(&document, 80, true);
    assert!(
        text.contains("and 30 more (--json has every one)"),
        "{text}"
    );
}

#[test]
fn lines_fit_into_40_columns() {
    let mut document = document();
    document.processes[0].command = "a very long name of a thread of the kernel".into();
    let mut view = view();
    for is_help in [false, true] {
        view.shows_help = is_help;
        let page = page(&document, &mut view, 24, 40, false);
        let long = page.lines().find(|line| line.chars().count() > 40);
        assert_eq!(long, None, "{page}");
    }
    let text = block(&document, 40, false);
    let long = text.lines().find(|line| line.chars().count() > 40);
    assert_eq!(long, None, "{text}");
}

#[test]
fn rows_are_sorted_and_filtered() {
    let document = document();
    let mut view = view();
    assert_eq!(
        names(&page(&document, &mut view, 24, 60, false)),
        ["first", "second?[2J", "idle"]
    );
    view.sort = Column::Memory;
    assert_eq!(
        names(&page(&document, &mut view, 24, 60, false)),
        ["idle", "second?[2J", "first"]
    );
    view.filter = "ir".to_owned();
    let text = page(&document, &mut view, 24, 60, false);
    assert_eq!(names(&text), ["first"]);
    assert!(text.contains("by MEMORY, with \"ir\"; h help"), "{text}");
    view.filter = "/a.slice".to_owned();
    assert_eq!(names(&page(&document, &mut view, 24, 60, false)).len(), 3);
}

#[test]
fn a_page_has_the_rows_that_fit_from_the_first_one() {
    let mut document = document();
    document.processes = (0..50)
        .map(|pid| process(pid, &format!("p{pid}"), 1e6))
        .collect();
    let mut view = view();
    view.first = 48;
    let text = page(&document, &mut view, 10, 120, false);
    assert_eq!(text.lines().count(), 10, "{text}");
    assert_eq!((view.rows, view.first), (50, 50 - view.page));
    assert!(text.contains("/a.slice"), "{text}");
}

#[test]
fn attributes_are_only_where_they_work() {
    let mut view = view();
    view.shows_groups = true;
    assert!(page(&document(), &mut view, 24, 80, true).contains("\x1b[7m"));
    assert!(!page(&document(), &mut view, 24, 80, false).contains('\x1b'));
}

#[test]
fn what_is_typed_is_shown() {
    let mut view = view();
    view.input = Some(Input::Filter("ab".to_owned()));
    assert!(page(&document(), &mut view, 24, 80, false).contains("rows with: ab_"));
    view.input = Some(Input::Interval("2".to_owned()));
    assert!(page(&document(), &mut view, 24, 80, false).contains("updates: 2_"));
}
