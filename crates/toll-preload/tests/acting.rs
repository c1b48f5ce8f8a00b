// SPDX-License-Identifier: MIT OR Apache-2.0
//! Planned blocks become huge, and no others.

mod support;

use std::path::Path;

use support::{Fixture, MIB, Run};
use toll_model::REGION;
use toll_model::wire::{ANY, Event, EventKind};
use toll_testkit::actions::Actions;
use toll_testkit::machine::has_huge_pages;
use toll_testkit::output::stdout;
use toll_testkit::recorded::Recorded;

/// Runs under a plan and records the events.
fn act(fixture: &Fixture, run: &Run, actions: &Actions) -> Recorded {
    let (plan, events) = (fixture.plan(actions), fixture.events(100_000));
    run.same(Some(&plan), Some(&events));
    Recorded::read(&events)
}

/// KiB of huge pages in each of touch.c's three blocks, and its mappings.
fn huge(fixture: &Fixture, program: &Path, actions: Option<&Actions>) -> [u64; 4] {
    let plan = actions.map(|actions| fixture.plan(actions));
    let run = Run::new(program).env("HUGE", fixture.path("huge"));
    run.same(plan.as_deref(), None);
    // The plain run wrote first, ours last.
    let text = fixture.read("huge");
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect();
    numbers.try_into().unwrap()
}

#[test]
fn planned_blocks_are_huge_and_others_are_not() {
    if !has_huge_pages() {
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program("touch.c");
    let run = Run::new(&program).record();
    let blocks: Vec<Event> = run.with_length(32 * MIB).into_iter().copied().collect();
    assert_eq!(blocks.len(), 3);
    for (planned, event) in blocks.iter().enumerate() {
        let mut actions = Actions::default();
        actions.exact(&run, event, &[(0, u64::MAX)]);
        let found = huge(&fixture, &program, Some(&actions));
        for (block, &kib) in found[..3].iter().enumerate() {
            // All whole regions of a block, at most one less than its length.
            let expected = if block == planned { 30 << 10 } else { 0 };
            assert!(kib >= expected, "{planned}: {found:?}");
            assert!(
                block == planned || found[block] == 0,
                "{planned}: {found:?}"
            );
        }
    }
    let found = huge(&fixture, &program, Some(&Actions::all()));
    assert!(found[..3].iter().all(|&kib| kib >= 30 << 10), "{found:?}");
    assert_eq!(huge(&fixture, &program, None)[..3], [0; 3]);
}

#[test]
fn a_part_of_a_block_is_huge() {
    if !has_huge_pages() {
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program("touch.c");
    let run = Run::new(&program).record();
    let block = *run.with_length(32 * MIB)[1];
    let mut actions = Actions::default();
    actions.exact(&run, &block, &[(8 * MIB, 18 * MIB)]);
    let found = huge(&fixture, &program, Some(&actions));
    // 10 MiB contain four or five whole regions, and cover 75 % of at most one more.
    assert!((8 << 10..=12 << 10).contains(&found[1]), "{found:?}");
    assert_eq!((found[0], found[2]), (0, 0));
}

#[test]
fn small_neighbours_are_huge_where_they_fill_a_region() {
    if !has_huge_pages() {
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program("arenas.c");
    let mut actions = Actions::default();
    actions.any(MIB, &[(0, u64::MAX)]);
    let [alone, _, apart, _] = huge(&fixture, &program, Some(&actions));
    assert_eq!(alone, 0);
    actions.intervals[0].advice = 3;
    let [before, after, together, _] = huge(&fixture, &program, Some(&actions));
    // 16 regions; the last mapping has no neighbour to complete its own.
    assert_eq!((before, after), (32 << 10, 32 << 10));
    assert!(together <= apart, "{together} mappings, not {apart}");
}

#[test]
fn rules_match_call_site_length_ordinal_and_thread() {
    let fixture = Fixture::new();
    let program = fixture.program("sites.c");
    let run = Run::new(&program);
    let recorded = run.record();
    let loops: Vec<Event> = recorded
        .with_length(12 * MIB)
        .into_iter()
        .copied()
        .collect();

    let mut actions = Actions::default();
    actions.exact(&recorded, &loops[1], &[(0, u64::MAX)]);
    actions.exact(&recorded, &loops[2], &[(0, u64::MAX)]).thread = 5;
    actions
        .exact(&recorded, &loops[0], &[(0, u64::MAX)])
        .length_high = 10 * MIB;
    let acted = act(&fixture, &run, &actions);
    let rules: Vec<_> = acted.with_length(12 * MIB).iter().map(|e| e.rule).collect();
    assert_eq!(rules, [ANY, 0, ANY]);
    let others = acted
        .events
        .iter()
        .filter(|e| e.rule != ANY || e.advised != 0);
    assert_eq!(others.count(), 1);

    // Exact rules first, then the class; the first match wins.
    let class = actions.exact(&recorded, &loops[0], &[(0, u64::MAX)]);
    (class.ordinal, class.thread, class.length_high) = (ANY, ANY, u64::MAX);
    (class.frames[0].low, class.frames_used) = (class.frames[0].low - 64, 1);
    let acted = act(&fixture, &run, &actions);
    let rules: Vec<_> = acted.with_length(12 * MIB).iter().map(|e| e.rule).collect();
    assert_eq!(rules, [3, 0, 3]);
}

#[test]
fn many_rules_find_theirs() {
    let fixture = Fixture::new();
    let program = fixture.program("block.c");
    let run = Run::new(&program).args(["mmap", "4096", "500", "keep"]);
    let run_without_maps = |actions: &Actions| {
        let (plan, events) = (fixture.plan(actions), fixture.events(10_000));
        assert!(run.with(Some(&plan), Some(&events)).status.success());
        Recorded::read(&events)
    };
    let recorded = run_without_maps(&Actions::default());
    let made = recorded.with_length(4 * MIB);
    assert_eq!(made.len(), 500);
    let mut actions = Actions::default();
    for event in made.iter().rev().filter(|event| event.ordinal % 3 == 0) {
        actions.exact(&recorded, event, &[(0, u64::MAX)]);
    }
    let acted = run_without_maps(&actions);
    for event in acted.with_length(4 * MIB) {
        let expected = if event.ordinal % 3 == 0 {
            166 - event.ordinal / 3
        } else {
            ANY
        };
        assert_eq!(event.rule, expected, "#{}", event.ordinal);
        assert_eq!(event.advised != 0, event.ordinal % 3 == 0);
    }
}

/// A range for which the witness recorded huge-page advice.
fn witnessed(path: &Path) -> Vec<(u64, u64)> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().map(|line| {
        let numbers: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        (numbers[0], numbers[1])
    });
    lines.collect()
}

/// Whether every 2 MiB region in `range` has 75 % of its bytes in the intervals of the block at
/// `start`, or its whole piece of the range.
fn is_right(range: (u64, u64), start: u64, length: u64, intervals: &[(u64, u64)]) -> bool {
    let planned = |from: u64, to: u64| -> u64 {
        let pieces = intervals.iter().map(|&(low, high)| {
            let (low, high) = (start + low, start + high.min(length));
            high.min(to).saturating_sub(low.max(from))
        });
        pieces.sum()
    };
    let (mut at, end) = (range.0.max(start), range.1.min(start + length));
    while at < end {
        let region = at & !(REGION - 1);
        let next = (region + REGION).min(end);
        let enough = planned(region, region + REGION) >= REGION / 4 * 3;
        if !enough && planned(at, next) != next - at {
            return false;
        }
        at = next;
    }
    true
}

#[test]
fn a_wrong_range_is_never_advised() {
    let fixture = Fixture::new();
    let program = fixture.program("sites.c");
    let witness = fixture.compile("witness.c", "witness.so", &["-shared", "-fPIC"]);
    let recorded = Run::new(&program).record();
    let mut state = 42u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut advised = 0;
    for round in 0..12 {
        let mut actions = Actions::default();
        let mut plans = Vec::new();
        for event in recorded.made() {
            let mut intervals = Vec::new();
            let mut at = 0;
            while at < event.length && intervals.len() < 6 {
                let start = at + random(6) * MIB / 3;
                at = start + (1 + random(14)) * MIB / 3;
                intervals.push((start, at));
            }
            actions.exact(&recorded, event, &intervals);
            plans.push(intervals);
        }
        let (plan, events) = (fixture.plan(&actions), fixture.events(1000));
        let log = fixture.path(format!("witness{round}"));
        let run = Run::new(&program).before(&witness).env("WITNESS", &log);
        run.with(Some(&plan), Some(&events));
        let acted = Recorded::read(&events);
        let blocks: Vec<&Event> = acted.events.iter().filter(|e| e.rule != ANY).collect();
        for range in witnessed(&log) {
            let right = blocks.iter().any(|event| {
                let inside =
                    range.0 + 4096 > event.address && range.1 < event.address + event.length + 4096;
                let intervals = &plans[event.rule as usize];
                inside && is_right(range, event.address, event.length, intervals)
            });
            assert!(right, "{range:x?} of {blocks:x?}");
            advised += 1;
        }
    }
    assert!(advised > 100, "{advised} ranges only");
}

#[test]
fn the_map_budget_holds() {
    let fixture = Fixture::new();
    let program = fixture.program("block.c");
    // 64 GiB of address space, every second region planned: 16,384 ranges.
    let run = Run::new(&program).args(["mmap", "67108864", "1"]);
    let mut actions = Actions::default();
    let intervals: Vec<_> = (0..16_384)
        .map(|i| (i * 2 * REGION, (i * 2 + 1) * REGION))
        .collect();
    actions.any(MIB, &intervals);
    let plan = fixture.plan(&actions);
    let most: u64 = std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let mappings = |output: &std::process::Output| stdout(output).trim().parse::<u64>();
    let kept = |times: &str| {
        let run = Run::new(&program).args(["mmap", "67108864", times, "keep"]);
        let output = run.with(Some(&plan), None);
        assert!(output.status.success());
        mappings(&output).unwrap()
    };
    let plain = mappings(&run.plain()).unwrap();
    for times in ["1", "3"] {
        let split = kept(times) - plain;
        // In addition, the library's own mappings.
        assert!(split <= 1000.min(most / 20) + 20, "{split} splits");
        assert!(split >= 1000.min(most / 20) - 100, "{split} splits");
    }
}

#[test]
fn unmapped_blocks_give_their_splits_back() {
    let fixture = Fixture::new();
    let program = fixture.program("block.c");
    for kind in ["mmap", "alloc"] {
        let run = Run::new(&program).args([kind, "40960", "2000"]);
        let mut actions = Actions::default();
        actions.any(MIB, &[(4 * MIB, 8 * MIB), (16 * MIB, 24 * MIB)]);
        let (plan, events) = (fixture.plan(&actions), fixture.events(10_000));
        run.with(Some(&plan), Some(&events));
        let acted = Recorded::read(&events);
        let made = acted.with_length(40 * MIB);
        assert_eq!(made.len(), 2000, "{kind}");
        assert!(made.iter().all(|event| event.advised > 0), "{kind}");
    }
}

#[test]
fn split_mappings_still_grow_and_move() {
    let fixture = Fixture::new();
    let run = Run::new(&fixture.program("grows.c"));
    let holes: Vec<_> = (0..40)
        .map(|i| (i * 3 * REGION, (i * 3 + 1) * REGION))
        .collect();
    for intervals in [&holes[..], &[(0, u64::MAX)], &[(4 * MIB, 12 * MIB)]] {
        let mut actions = Actions::default();
        actions.any(MIB, intervals);
        let acted = act(&fixture, &run, &actions);
        assert!(acted.of(EventKind::Move).count() >= 10);
    }
    act(&fixture, &run, &Actions::all());
}

#[test]
fn what_a_block_grew_by_is_advised() {
    let fixture = Fixture::new();
    let mut actions = Actions::default();
    actions.any(MIB, &[(0, u64::MAX)]);
    let acted = act(&fixture, &Run::new(&fixture.program("grows.c")), &actions);
    for event in acted
        .of(EventKind::Move)
        .filter(|event| event.length > 20 * MIB)
    {
        assert!(event.advised > 4 * MIB, "{event:x?}");
    }
}

#[test]
fn fixed_addresses_are_advised() {
    let fixture = Fixture::new();
    let source = fixture.write(
        "fixed.c",
        "#include <stdio.h>\n#include <sys/mman.h>\nint main(void) {\n\
         char *p = mmap((void *)0x600000000000, 16 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS |\n\
         MAP_FIXED_NOREPLACE, -1, 0);\np[0] = 1;\np[9 << 20] = 2;\n\
         printf(\"%p %d\\n\", p, p[9 << 20] + p[0]);\nreturn 0;\n}\n",
    );
    let program = fixture.compile(source.to_str().unwrap(), "fixed", &["-D_GNU_SOURCE"]);
    let base = 0x6000_0000_0000;
    let mut actions = Actions {
        addresses: vec![
            (base - 4 * REGION, base - REGION),
            (base + REGION, base + 2 * REGION),
            (base + 4 * REGION, base + 6 * REGION),
            (base + 7 * REGION, base + 9 * REGION),
        ],
        ..Actions::default()
    };
    let acted = act(&fixture, &Run::new(&program), &actions);
    assert_eq!(acted.with_length(16 * MIB)[0].advised, 4 * REGION);
    // Without a pool: the same, and no hole.
    actions.flags = toll_model::wire::flags::HUGETLB;
    let acted = act(&fixture, &Run::new(&program), &actions);
    assert!(acted.with_length(16 * MIB)[0].advised >= 3 * REGION);
}

#[test]
fn no_advice_without_a_match() {
    let fixture = Fixture::new();
    let program = fixture.program("sites.c");
    let witness = fixture.compile("witness.c", "witness.so", &["-shared", "-fPIC"]);
    let other = fixture.compile("sites.c", "other", &["-O0"]);
    // Twice the usual sizes: even the smallest block has a whole region, independent of its
    // address.
    let twice = |program| Run::new(program).args(["2"]);
    let recorded = twice(&program).record();
    let mut actions = Actions::default();
    for event in recorded.made() {
        actions.exact(&recorded, event, &[(0, u64::MAX)]);
    }
    let plan = fixture.plan(&actions);
    let log = fixture.path("log");
    twice(&other)
        .before(&witness)
        .env("WITNESS", &log)
        .same(Some(&plan), None);
    assert_eq!(witnessed(&log), []);
    twice(&program)
        .before(&witness)
        .env("WITNESS", &log)
        .same(Some(&plan), None);
    let advised = witnessed(&log);
    assert!(advised.len() >= 13, "{advised:x?}");
}
