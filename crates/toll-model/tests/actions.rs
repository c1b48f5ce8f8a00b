// SPDX-License-Identifier: MIT OR Apache-2.0
//! Actions of a plan: rules, ranges, bytes; and sites that are not found.

use proptest::prelude::*;
use toll_model::REGION;
use toll_model::actions::{Actions, FrameRange, compile};
use toll_model::estimate::{Options, estimate};
use toll_model::plan::{Plan, Text, Verdict, Why};
use toll_model::profile::SiteRows;
use toll_model::site::{Frame, Level, SiteKind};
use toll_model::wire::{ANY, ActionsHeader, Interval, Module, Rule, flags};
use toll_testkit::model::{alloc, arenas, costs, frame, profile, regions, row, site, site_rows};

fn same(frame: &Frame) -> Option<FrameRange> {
    Some(FrameRange::recorded(frame))
}

fn block(id: u32, call_site: u64, regions: u64, ordinal: u32) -> SiteRows {
    let length = regions * REGION;
    let rows = (0..regions).map(|n| row(n * REGION, REGION, 5e6)).collect();
    site_rows(site(id, alloc(call_site, length, ordinal), length), rows)
}

/// Returns a plan with huge regions given as (site, index) and no others.
fn plan(sites: Vec<SiteRows>, huge: &[(u32, u64)]) -> Plan {
    let mut plan = estimate(
        &profile(sites),
        &costs(),
        Options {
            top: Some(0),
            ..Options::default()
        },
    );
    for region in &mut plan.regions {
        let chosen = huge.contains(&(region.site, region.offset / REGION));
        region.verdict = if chosen {
            Verdict::Huge
        } else {
            Verdict::Leave
        };
    }
    plan
}

fn intervals(actions: &Actions, rule: usize) -> Vec<(u64, u64, u32)> {
    let rule = &actions.rules[rule];
    let range = rule.first as usize..(rule.first + rule.count) as usize;
    actions.intervals[range]
        .iter()
        .map(|i| (i.start, i.end, i.advice))
        .collect()
}

const END: u64 = u64::MAX;

#[test]
fn parts_of_one_block_are_found_at_the_same_event_and_class() {
    let plan = plan(vec![block(0, 0x40, 8, 2)], &[(0, 1), (0, 2), (0, 5)]);
    let actions = compile(&plan, &same);
    assert_eq!(actions.rules.len(), 2);
    let expected = vec![(REGION, 3 * REGION, 1), (5 * REGION, 6 * REGION, 1)];
    let exact = &actions.rules[0];
    assert_eq!((exact.ordinal, exact.thread, exact.frames_used), (2, 0, 2));
    assert_eq!((exact.frames[0].low, exact.frames[0].high), (0x40, 0x40));
    assert_eq!(
        (exact.length_low, exact.length_high),
        (1 << 24, (1 << 25) - 1)
    );
    let class = &actions.rules[1];
    assert_eq!((class.ordinal, class.thread), (ANY, ANY));
    assert_eq!(
        (class.length_low, class.length_high),
        (1 << 24, (1 << 25) - 1)
    );
    assert_eq!(intervals(&actions, 0), expected);
    assert_eq!(intervals(&actions, 1), expected);
    assert_eq!(actions.matched.exact, 1.0);
    assert_eq!(actions.modules.len(), 1);
    assert_eq!(
        (actions.modules[0].id_len, &actions.modules[0].id[..2]),
        (2, &[0x00, 0xff][..])
    );
}

#[test]
fn a_block_that_is_mostly_planned_is_planned_at_any_length() {
    let all: Vec<(u32, u64)> = (0..8).map(|n| (0, n)).collect();
    let whole = compile(&plan(vec![block(0, 0x40, 8, 0)], &all), &same);
    assert_eq!(intervals(&whole, 0), [(0, END, 1)]);
    assert_eq!(intervals(&whole, 1), [(0, END, 1)]);
    assert_eq!(
        (whole.rules[1].length_low, whole.rules[1].length_high),
        (1 << 24, END)
    );
    // Six of eight: the event itself as planned, others of its site as a whole.
    let most = compile(&plan(vec![block(0, 0x40, 8, 0)], &all[..6]), &same);
    assert_eq!(intervals(&most, 0), [(0, 6 * REGION, 1)]);
    assert_eq!(intervals(&most, 1), [(0, END, 1)]);
    // Five of eight are less than 75 %.
    let some = compile(&plan(vec![block(0, 0x40, 8, 0)], &all[..5]), &same);
    assert_eq!(intervals(&some, 1), [(0, 5 * REGION, 1)]);
    assert_ne!(some.rules[1].length_high, END);
}

#[test]
fn an_event_that_was_left_is_shielded_from_its_class() {
    let mut sites: Vec<SiteRows> = (0..5).map(|n| block(n, 0x40, 4, n)).collect();
    sites.push(block(5, 0x9000, 4, 0));
    let huge: Vec<(u32, u64)> = (0..4).flat_map(|a| (0..4).map(move |r| (a, r))).collect();
    let actions = compile(&plan(sites, &huge), &same);
    // Five events of the site and its class; none of the other site.
    assert_eq!(actions.rules.len(), 6);
    assert_eq!(actions.rules[4].ordinal, 4);
    assert_eq!(intervals(&actions, 4), []);
    assert_eq!(intervals(&actions, 5), [(0, END, 1)]);
}

#[test]
fn blocks_of_one_class_must_agree() {
    let sites: Vec<SiteRows> = (0..4).map(|n| block(n, 0x40, 4, n)).collect();
    // Region 2 in all four, region 0 in three, region 1 in two.
    let huge = [
        (0, 2),
        (1, 2),
        (2, 2),
        (3, 2),
        (0, 0),
        (1, 0),
        (2, 0),
        (0, 1),
        (1, 1),
    ];
    let actions = compile(&plan(sites, &huge), &same);
    let class = actions.rules.len() - 1;
    assert_eq!(actions.rules[class].ordinal, ANY);
    assert_eq!(
        intervals(&actions, class),
        [(0, REGION, 1), (2 * REGION, 3 * REGION, 1)]
    );
}

#[test]
fn a_rebuilt_program_matches_by_function_and_class() {
    let plan = plan(vec![block(0, 0x40, 2, 0)], &[(0, 0), (0, 1)]);
    let moved = |f: &Frame| {
        Some(FrameRange::function(
            "abcd".to_owned(),
            f.offset + 0x100,
            f.offset + 0x180,
        ))
    };
    let actions = compile(&plan, &moved);
    assert_eq!(actions.rules.len(), 1);
    let rule = &actions.rules[0];
    assert_eq!(
        (rule.ordinal, rule.frames[0].low, rule.frames[0].high),
        (ANY, 0x140, 0x1c0)
    );
    assert_eq!(actions.matched.class, 1.0);
}

#[test]
fn what_is_not_found_is_named_and_never_acted_on() {
    let plan = plan(
        vec![block(0, 0x40, 2, 0), block(1, 0x2000, 2, 0)],
        &[(0, 0), (1, 0)],
    );
    // The outer frame of the first block does not exist any more.
    let some = |f: &Frame| (f.offset != 0x1040).then(|| FrameRange::recorded(f));
    let actions = compile(&plan, &some);
    assert_eq!(actions.lost, ["function_40+0x40 2^22 #0"]);
    assert!(
        actions
            .rules
            .iter()
            .all(|rule| rule.frames[0].low == 0x2000)
    );
    assert_eq!(actions.matched.lost, 0.5);
    let none = compile(&plan, &|_| None);
    assert!(none.is_empty() && none.rules.is_empty());
    assert_eq!((none.lost.len(), none.matched.lost), (2, 1.0));
}

#[test]
fn an_event_without_frames_is_lost_and_no_rule_matches_everything() {
    let mut rows = block(0, 0x40, 2, 0);
    rows.site.kind = SiteKind::Alloc {
        frames: Vec::new(),
        class: 22,
        ordinal: 0,
        thread: 0,
        shared: false,
    };
    let actions = compile(&plan(vec![rows], &[(0, 0)]), &same);
    assert_eq!(actions.lost, ["unknown site 2^22 #0"]);
    assert!(actions.rules.is_empty());
}

#[test]
fn what_is_not_the_preloads_business_is_listed() {
    let kinds = [
        SiteKind::Heap,
        SiteKind::Address { start: 4 * REGION },
        SiteKind::Anonymous,
        SiteKind::Reservation {
            runtime: "go".to_owned(),
        },
        SiteKind::Vma {
            name: "[anon:a]".to_owned(),
        },
    ];
    let sites = kinds.into_iter().zip(0..).map(|(kind, id)| {
        let mut rows = block(id, 0x40, 3, 0);
        rows.site.kind = kind;
        rows.site.level = Level::Kind;
        rows
    });
    let huge: Vec<(u32, u64)> = (0..5).flat_map(|id| [(id, 0), (id, 2)]).collect();
    let actions = compile(&plan(sites.collect(), &huge), &same);
    let parts = vec![(0, REGION), (2 * REGION, 3 * REGION)];
    assert_eq!(actions.heap, parts);
    assert_eq!(
        actions.addresses,
        [(4 * REGION, 5 * REGION), (6 * REGION, 7 * REGION)]
    );
    assert!(actions.anonymous && actions.rules.is_empty());
    assert_eq!(actions.reservations, ["go"]);
    assert_eq!(actions.vmas, [("[anon:a]".to_owned(), parts)]);
    assert_eq!(actions.matched.kind, 1.0);
}

#[test]
fn losers_are_named_only_where_thp_is_always() {
    let mut plan = plan(vec![block(0, 0x40, 4, 0)], &[]);
    plan.regions[1].why = Why::CostsMore;
    assert!(compile(&plan, &same).is_empty());
    plan.thp_always = true;
    let actions = compile(&plan, &same);
    assert_eq!(actions.flags, flags::NOHUGE);
    assert_eq!(intervals(&actions, 0), [(REGION, 2 * REGION, 2)]);
}

#[test]
fn a_module_without_a_build_id_goes_by_its_name() {
    let plan = plan(vec![block(0, 0x40, 2, 0)], &[(0, 0)]);
    let named = |f: &Frame| Some(FrameRange::exact("path:tool".to_owned(), f.offset));
    let module = compile(&plan, &named).modules[0];
    assert_eq!((module.id_len, &module.path[..5]), (0, &b"tool\0"[..]));
    let junk = |f: &Frame| Some(FrameRange::exact("not hex!".to_owned(), f.offset));
    assert_eq!(compile(&plan, &junk).lost.len(), 1);
}

/// The action file, decoded as the preload library decodes it.
#[test]
fn the_file_is_what_wire_says() {
    let mut actions = compile(&plan(vec![block(0, 0x40, 8, 2)], &[(0, 1), (0, 5)]), &same);
    actions.addresses = vec![(REGION, 2 * REGION)];
    let bytes = actions.to_bytes();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(&bytes[..8], b"TOLLACT1");
    assert_eq!(
        [word(8), word(12), word(16), word(20), word(24)],
        [1, 2, 4, 0, 1]
    );
    let rules = size_of::<ActionsHeader>() + size_of::<Module>();
    let first = rules + std::mem::offset_of!(Rule, ordinal);
    assert_eq!((word(first), word(first + size_of::<Rule>())), (2, ANY));
    assert_eq!(long(rules + std::mem::offset_of!(Rule, frames) + 8), 0x40);
    let intervals = rules + 2 * size_of::<Rule>();
    assert_eq!(
        (long(intervals), long(intervals + 8), word(intervals + 16)),
        (REGION, 2 * REGION, 1)
    );
    let addresses = intervals + 4 * size_of::<Interval>();
    assert_eq!((long(addresses), long(addresses + 8)), (REGION, 2 * REGION));
    assert_eq!(bytes.len(), addresses + 16);
}

#[test]
fn the_variant_all_needs_no_rule() {
    let all = Actions::all();
    assert!(!all.is_empty());
    assert_eq!(all.to_bytes().len(), size_of::<ActionsHeader>());
    assert!(Actions::default().is_empty());
}

/// Returns the bytes of `start..end` that planned intervals cover.
fn covered(intervals: &[(u64, u64, u32)], start: u64, end: u64) -> u64 {
    let part = |&(from, to, _): &(u64, u64, u32)| to.min(end).saturating_sub(from.max(start));
    intervals.iter().map(part).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// At the recorded alignment, the preload library's rule (75 % of a region lies in planned
    /// intervals) acts on exactly the regions of the plan.
    #[test]
    fn the_recorded_alignment_gives_the_planned_regions(
        misses in prop::collection::vec(0.0f64..1e7, 1..30),
        page in 0u64..512,
        top in 0u64..30,
    ) {
        let mut profile = regions(&misses);
        let misalignment = page * 4096;
        profile.sites[0].site.misalignment = misalignment;
        let plan = estimate(&profile, &costs(), Options { top: Some(top), ..Options::default() });
        let actions = compile(&plan, &same);
        let acted = |start: u64| {
            !actions.rules.is_empty()
                && covered(&intervals(&actions, 0), start, start + REGION) * 4 >= REGION * 3
        };
        let length = profile.sites[0].site.length;
        let first = (REGION - misalignment) % REGION;
        for start in (first..).step_by(REGION as usize).take_while(|start| start + REGION <= length) {
            let planned = plan.huge().any(|region| region.offset == start);
            prop_assert_eq!(acted(start), planned, "region at {:#x}", start);
        }
    }

    /// At any other alignment, no region is acted on if more than a quarter of it was left.
    #[test]
    fn other_alignments_never_act_on_what_was_mostly_left(
        misses in prop::collection::vec(0.0f64..1e7, 2..30),
        shift in 0u64..512,
        top in 1u64..30,
    ) {
        let profile = regions(&misses);
        let plan = estimate(&profile, &costs(), Options { top: Some(top), ..Options::default() });
        let actions = compile(&plan, &same);
        let planned: Vec<(u64, u64, u32)> = plan.huge().map(|r| (r.offset, r.end(), 1)).collect();
        let length = profile.sites[0].site.length;
        let exact = intervals(&actions, 0);
        for start in (shift * 4096..).step_by(REGION as usize).take_while(|start| start + REGION <= length) {
            let acted = covered(&exact, start, start + REGION) * 4 >= REGION * 3;
            prop_assert_eq!(acted, covered(&planned, start, start + REGION) * 4 >= REGION * 3);
        }
    }
}

#[test]
fn the_display_name_is_what_lost_sites_are_called() {
    assert_eq!(
        site(0, alloc(0x40, REGION, 3), REGION).to_string(),
        "function_40+0x40 2^21 #3"
    );
    assert_eq!(frame(1).module, "00ff");
}

/// The name of an allocation uses what is known of the call: a line, a function, a function before
/// it.
#[test]
fn a_call_is_named_by_function_and_offset() {
    let named = |change: fn(&mut Frame)| {
        let mut frame = frame(0x1234);
        change(&mut frame);
        let kind = SiteKind::Alloc {
            frames: vec![std::sync::Arc::new(frame)],
            class: 20,
            ordinal: 19,
            thread: 0,
            shared: false,
        };
        site(0, kind, REGION).to_string()
    };
    assert_eq!(named(|_| {}), "function_1234+0x34 2^20 #19");
    let with_line = named(|frame| frame.source = Some("x.c:4".to_owned()));
    assert_eq!(with_line, "function_1234 (x.c:4) 2^20 #19");
    let after = named(|frame| {
        (frame.symbol, frame.function) = (None, None);
        frame.nearest = Some("PyObject_Free+0x3d1d".to_owned());
    });
    assert_eq!(after, "program after PyObject_Free+0x3d1d 2^20 #19");
    let nothing = named(|frame| (frame.symbol, frame.function) = (None, None));
    assert_eq!(nothing, "program+0x1234 2^20 #19");
}

/// Python's arenas: in another run they have other addresses, and other pairs share a region.
#[test]
fn small_neighbours_are_taken_whole_and_none_is_left_out() {
    // An odd number: the last one fills no region.
    let profile = arenas(0x7fff_0010_0000, &[1e6; 33]);
    let plan = estimate(&profile, &costs(), Options::default());
    assert_eq!(plan.huge().count(), 32, "{}", plan.reason);
    let actions = compile(&plan, &same);
    // Each arena but the last by its event, then any of the site.
    assert_eq!(actions.rules.len(), 33);
    for rule in 0..33 {
        assert_eq!(intervals(&actions, rule), [(0, END, 3)], "{rule}");
    }
    let last = &actions.rules[32];
    assert_eq!((last.ordinal, last.length_low), (ANY, 1 << 20));
    assert_eq!(actions.matched.exact, 1.0);
}

#[test]
fn shared_memory_goes_to_the_parent_and_is_aligned_by_the_library() {
    let kind = SiteKind::Shared {
        path: "/dev/shm/x".to_owned(),
    };
    let rows = (0..4).map(|n| row(n * REGION, REGION, 5e6)).collect();
    let rows = site_rows(site(0, kind, 4 * REGION), rows);
    let actions = compile(&plan(vec![rows], &[(0, 1), (0, 2)]), &same);
    let planned = vec![(REGION, 3 * REGION)];
    assert_eq!(actions.files, [("/dev/shm/x".to_owned(), planned)]);
    assert_eq!(actions.flags, flags::SHARED);
    assert!(!actions.is_empty());
}

#[test]
fn text_names_its_modules() {
    let text = |path: &str, build_id: &str| Text {
        path: path.to_owned(),
        build_id: build_id.to_owned(),
        touched_bytes: 1 << 20,
    };
    let plan = Plan::of_text(vec![
        text("/bin/a", "00ff"),
        text("/lib/b.so", ""),
        text("/lib/c.so", "no hex"),
    ]);
    let actions = compile(&plan, &same);
    assert_eq!(actions.texts, [0, 1]);
    assert_eq!(actions.modules[0].id[..2], [0x00, 0xff]);
    assert!(actions.modules[1].path.starts_with(b"b.so\0"));
    assert_eq!(actions.lost, ["text of /lib/c.so"]);
    assert!(!plan.does_nothing() && !actions.is_empty());
    let stored = Plan::from_toml(plan.to_toml().unwrap()).unwrap();
    assert_eq!(stored, plan);
}
