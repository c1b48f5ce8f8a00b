// SPDX-License-Identifier: MIT OR Apache-2.0

use std::sync::Arc;

use toll_model::REGION;
use toll_model::profile::Stack;
use toll_model::site::Frame;
use toll_testkit::model;

use super::*;

fn stack(frames: &[&str], misses: f64) -> Stack {
    Stack {
        frames: frames.iter().map(|name| Arc::from(*name)).collect(),
        misses,
    }
}

fn text(stacks: &[Folded]) -> String {
    stacks.iter().filter_map(line).collect()
}

#[test]
fn frames_are_printed_outermost_first() {
    let mut profile = model::regions(&[7.0]);
    profile.stacks = vec![
        stack(&["grow", "insert", "main"], 5.4),
        stack(&["main"], 0.4),
    ];
    assert_eq!(text(&code(&profile)), "main;insert;grow 5\n");
}

#[test]
fn what_separates_frames_and_counts_is_replaced() {
    let all = ["a;b", "f(int, char)", "x\u{1b}[31m\n", ""].map(escaped);
    assert_eq!(all, ["a:b", "f(int,_char)", "x?[31m_", "[unknown]"]);
}

#[test]
fn allocations_of_one_call_stack_are_summed() {
    let frame = |symbol: &str| {
        Arc::new(Frame {
            module: "ab".to_owned(),
            symbol: Some(symbol.to_owned()),
            source: Some(format!("{symbol}.c:1")),
            ..Frame::default()
        })
    };
    let grown = |ordinal| SiteKind::Alloc {
        frames: vec![frame("grow"), frame("main")],
        class: 21,
        ordinal,
        thread: 0,
        shared: false,
    };
    let kinds = [grown(0), grown(1), SiteKind::Anonymous, SiteKind::Heap];
    let misses = [4.0, 4.0, 9.0, 0.0];
    let sites = kinds.into_iter().zip(misses).zip(0..);
    let site = |((kind, misses), id)| {
        let rows = vec![model::row(0, REGION, misses)];
        model::site_rows(model::site(id, kind, REGION), rows)
    };
    let profile = model::profile(sites.map(site).collect());
    assert_eq!(
        text(&allocations(&profile)),
        "[other_anonymous_memory] 9\nmain_(main.c:1);grow_(grow.c:1) 8\n"
    );
}

#[test]
fn what_the_stacks_are_is_noted() {
    let mut profile = model::regions(&[6.0, 4.0]);
    let note = |profile: &Profile, of, is_code| {
        let stacks = match is_code {
            true => code(profile),
            false => allocations(profile),
        };
        notes(profile, &stacks, of, is_code).join("\n")
    };
    let by_memory = note(&profile, Of::Auto, false);
    assert!(by_memory.contains("no code stacks"), "{by_memory}");
    assert!(by_memory.contains("not the code"), "{by_memory}");
    assert!(!note(&profile, Of::Allocations, false).contains("no code stacks"));
    profile.stacks = vec![stack(&["f"], 5.0)];
    let single = note(&profile, Of::Code, true);
    assert!(single.contains("no call chains"), "{single}");
    assert!(single.contains("no stack is known for 50.0 %"), "{single}");
    profile.stacks = vec![stack(&["f", "main"], 10.0)];
    assert_eq!(note(&profile, Of::Code, true), "");
    profile.source = Source::Accessed;
    assert!(note(&profile, Of::Auto, false).contains("touches"));
}
