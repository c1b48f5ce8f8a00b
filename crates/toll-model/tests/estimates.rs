// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invariants of the planner, and its plans for well-known programs.

mod common;

use common::any_profile;
use proptest::prelude::*;
use toll_model::REGION;
use toll_model::estimate::{MAX_LEAVES, Options, estimate};
use toll_model::pages::PageKind;
use toll_model::plan::{Estimate, Plan, Verdict, Why};
use toll_model::profile::{Profile, SiteRows, Source};
use toll_model::site::{Level, SiteKind};
use toll_testkit::model::{PAGES, alloc, arenas, costs, profile, regions, row, site, site_rows};

fn plan(profile: &Profile) -> Plan {
    estimate(profile, &costs(), Options::default())
}

fn huge(plan: &Plan) -> Vec<u64> {
    plan.huge().map(|region| region.offset / REGION).collect()
}

fn whys(plan: &Plan) -> Vec<Why> {
    plan.regions.iter().map(|region| region.why).collect()
}

#[test]
fn the_hot_regions_are_chosen() {
    let mut misses = vec![2e3; 64];
    for hot in [3, 17, 40] {
        misses[hot] = 5e6;
    }
    // Only misses count: another page's fault touched every page.
    let mut profile = regions(&misses);
    profile.sites[0]
        .rows
        .iter_mut()
        .for_each(|row| row.touched_pages = 200);
    let plan = plan(&profile);
    assert_eq!(huge(&plan), [3, 17, 40]);
    assert!(
        plan.predicted_speedup.low > 1.0,
        "{:?}",
        plan.predicted_speedup
    );
    assert!(
        plan.reason.starts_with("Make 3 of 64 regions huge (6 MiB)"),
        "{}",
        plan.reason
    );
    assert_eq!(plan.regions.len(), 64);
    assert!(plan.regions[0].level == Level::Exact);
}

#[test]
fn a_small_working_set_is_left_alone() {
    let mut profile = regions(&[5e6, 5e6]);
    profile.footprint = 4 << 20;
    let plan = plan(&profile);
    assert!(plan.does_nothing());
    assert_eq!(plan.predicted_speedup, Estimate::exact(1.0));
    assert_eq!(
        plan.reason,
        "Do nothing: the program touches 4 MiB, and the second-level TLB reaches 12 MiB with 4 KiB pages."
    );
    assert_eq!(whys(&plan), [Why::Nothing, Why::Nothing]);
}

#[test]
fn a_gain_below_two_percent_is_left_alone() {
    let mut profile = regions(&[1e5]);
    profile.sites[0].rows[0].touched_pages = 400;
    let plan = plan(&profile);
    assert!(plan.does_nothing());
    assert!(plan.reason.contains("% of the run"), "{}", plan.reason);
}

#[test]
fn nothing_is_advised_that_costs_more() {
    // Few touches, few misses.
    let mut profile = regions(&[50.0, 80.0]);
    profile.sites[0]
        .rows
        .iter_mut()
        .for_each(|row| row.touched_pages = 2);
    let plan = plan(&profile);
    assert!(plan.does_nothing());
    assert_eq!(whys(&plan), [Why::CostsMore, Why::CostsMore]);
    assert!(
        plan.reason.contains("cost more than they save"),
        "{}",
        plan.reason
    );
}

#[test]
fn few_samples_are_not_trusted() {
    let mut profile = regions(&[1e6]);
    profile.sites[0].rows[0].touched_pages = 100;
    profile.source = Source::Perf;
    profile.observations = 1;
    let one = plan(&profile);
    assert_eq!(whys(&one), [Why::Unclear]);
    assert!(one.reason.contains("told from zero"), "{}", one.reason);
    profile.observations = 1000;
    assert!(!plan(&profile).does_nothing());
}

#[test]
fn what_is_huge_already_is_no_gain() {
    let mut profile = regions(&[5e6, 5e6]);
    profile.sites[0].rows[0].huge = true;
    let plan = plan(&profile);
    assert_eq!(whys(&plan), [Why::AlreadyHuge, Why::Pays]);
    assert_eq!(plan.regions[0].benefit_ns, 0.0);
    assert_eq!(plan.regions[0].misses, 5e6);
}

#[test]
fn ends_of_an_site_cannot_be_huge() {
    let mut profile = regions(&[5e6, 5e6, 5e6]);
    profile.sites[0].site.misalignment = 0x1000;
    let plan = plan(&profile);
    let bounds: Vec<(u64, u64)> = plan.regions.iter().map(|r| (r.offset, r.length)).collect();
    let head = REGION - 0x1000;
    assert_eq!(
        bounds,
        [
            (0, head),
            (head, REGION),
            (head + REGION, REGION),
            (head + 2 * REGION, 0x1000)
        ]
    );
    let whys = whys(&plan);
    assert_eq!((whys[0], whys[3]), (Why::Partial, Why::Partial));
    assert_eq!(plan.huge().count(), 2);
    // A row that crosses a boundary is divided by bytes.
    let misses: f64 = plan.regions.iter().map(|region| region.misses).sum();
    assert!((misses - 15e6).abs() < 1.0);
}

#[test]
fn files_and_stacks_are_estimated_and_left() {
    for kind in [
        SiteKind::Stack,
        SiteKind::File {
            build_id: String::new(),
            path: "/data".to_owned(),
        },
    ] {
        let mut profile = regions(&[5e6]);
        profile.sites[0].site.kind = kind;
        let plan = plan(&profile);
        assert_eq!(whys(&plan), [Why::NotActedOn]);
        assert!(plan.regions[0].benefit_ns > 0.0);
        assert!(plan.reason.contains("not acted on"), "{}", plan.reason);
    }
}

#[test]
fn shared_memory_is_acted_on_unless_the_machine_forbids_it() {
    let named = SiteKind::Shared {
        path: "/dev/shm/x".to_owned(),
    };
    let mut anonymous = regions(&[5e6]).sites[0].site.kind.clone();
    if let SiteKind::Alloc { shared, .. } = &mut anonymous {
        *shared = true;
    }
    for kind in [named, anonymous] {
        let mut profile = regions(&[5e6]);
        profile.sites[0].site.kind = kind;
        let found = plan(&profile);
        assert_eq!(whys(&found), [Why::Pays]);
        assert_eq!(found.pages(), [PageKind::Shared]);
        let options = Options {
            shared_forbidden: true,
            ..Options::default()
        };
        let forbidden = estimate(&profile, &costs(), options);
        assert_eq!(whys(&forbidden), [Why::Forbidden]);
        assert!(forbidden.pages().is_empty());
    }
}

#[test]
fn memory_without_offsets_is_taken_whole_or_not_at_all() {
    let mut profile = regions(&[5e6, 1.0, 5e6]);
    profile.sites[0].site.kind = SiteKind::Anonymous;
    let all = plan(&profile);
    assert_eq!(huge(&all), [0, 1, 2]);
    let some = estimate(
        &profile,
        &costs(),
        Options {
            budget: Some(2 * REGION),
            ..Options::default()
        },
    );
    assert_eq!(whys(&some), [Why::Nothing; 3].map(|_| Why::Budget).to_vec());
}

#[test]
fn top_takes_the_most_misses_whatever_they_cost() {
    let mut profile = regions(&[5.0, 9.0, 1.0, 7.0]);
    profile.footprint = 1 << 20;
    for n in 0..=4 {
        let plan = estimate(
            &profile,
            &costs(),
            Options {
                top: Some(n),
                ..Options::default()
            },
        );
        let mut expected = [1u64, 3, 0, 2][..n as usize].to_vec();
        expected.sort_unstable();
        assert_eq!(huge(&plan), expected);
    }
}

#[test]
fn a_budget_is_kept() {
    let profile = regions(&[5e6, 9e6, 1e6, 7e6]);
    let options = |budget| Options {
        budget: Some(budget),
        ..Options::default()
    };
    assert_eq!(
        huge(&estimate(&profile, &costs(), options(2 * REGION + 5))),
        [1, 3]
    );
    assert_eq!(
        huge(&estimate(&profile, &costs(), options(REGION - 1))),
        [0u64; 0]
    );
    assert_eq!(
        huge(&estimate(&profile, &costs(), options(1 << 40))).len(),
        4
    );
}

#[test]
fn short_memory_is_a_risk_that_only_much_gain_takes() {
    let profile = regions(&[9e7, 2e5, 2e5, 2e5]);
    let options = |free| Options {
        free_regions: Some(free),
        ..Options::default()
    };
    assert_eq!(huge(&estimate(&profile, &costs(), options(0))), [0]);
    assert_eq!(
        whys(&estimate(&profile, &costs(), options(0)))[1],
        Why::CostsMore
    );
    let ample = estimate(&profile, &costs(), options(4));
    assert!(
        ample
            .regions
            .iter()
            .all(|region| region.why != Why::CostsMore)
    );
}

#[test]
fn a_collapse_saves_no_fault() {
    let mut profile = regions(&[2e3]);
    let at_fault = plan(&profile).regions[0].cost_ns;
    profile.sites[0].site.kind = SiteKind::Vma {
        name: "jit".to_owned(),
    };
    let later = plan(&profile).regions[0].cost_ns;
    assert_eq!(at_fault, 300_000.0 - 512.0 * 500.0);
    assert_eq!(later, 400_000.0);
}

/// Returns regions of the heap, with misses and touched pages each.
fn heap(regions_of: &[(f64, u32)]) -> Profile {
    let misses: Vec<f64> = regions_of.iter().map(|(misses, _)| *misses).collect();
    let mut profile = regions(&misses);
    profile.sites[0].site.kind = SiteKind::Heap;
    for (row, (_, touched)) in profile.sites[0].rows.iter_mut().zip(regions_of) {
        row.touched_pages = *touched;
    }
    profile
}

#[test]
fn a_heap_that_pays_is_the_allocators_and_one_unit() {
    let plan = plan(&heap(&[(5e6, 512), (1.0, 512), (5e6, 512)]));
    assert!(plan.whole_heap);
    assert_eq!(huge(&plan), [0, 1, 2]);
    assert_eq!(plan.regions[0].cost_ns, 300_000.0 - 512.0 * 500.0);
}

#[test]
fn a_heap_with_one_region_that_pays_is_collapsed_there() {
    // Huge at the first touch, each of the others would cost a huge fault and its bloat.
    let mut many = vec![(0.0, 1); 64];
    many[7] = (3e6, 512);
    let plan = plan(&heap(&many));
    assert!(!plan.whole_heap);
    assert_eq!(huge(&plan), [7]);
    assert_eq!(plan.regions[7].cost_ns, 400_000.0);
}

#[test]
fn what_was_asked_for_by_number_keeps_the_heap_in_regions() {
    let profile = heap(&[(5e6, 512), (1.0, 512), (5e6, 512)]);
    let options = Options {
        top: Some(2),
        ..Options::default()
    };
    let plan = estimate(&profile, &costs(), options);
    assert!(!plan.whole_heap);
    assert_eq!(huge(&plan), [0, 2]);
}

#[test]
fn hits_of_the_second_level_pay_too() {
    let mut profile = regions(&[1e3; 8]);
    let misses_only = plan(&profile);
    for row in &mut profile.sites[0].rows {
        row.l2_spared = 1e8;
    }
    let with_hits = plan(&profile);
    assert!(misses_only.does_nothing() && !with_hits.does_nothing());
    // The default cost of a dependent hit, by the share of accesses that miss the first level.
    let first_level = f64::from(costs().tlb.l1d_4k.entries) * 4096.0;
    let hit = 2.0 / (1.0 - first_level / f64::from(2 << 20));
    let expected = 8.0 * 1e8 * hit * 0.95;
    let saved = with_hits.saved_all_ns.median;
    assert!((saved / expected - 1.0).abs() < 0.02, "{saved} {expected}");
}

#[test]
fn warmed_memory_is_not_charged_for_cold_blocks() {
    let profile = regions(&[5e6; 8]);
    let mut costs = costs();
    costs.fault_2m_cold.median *= 20.0;
    costs.fault_2m_cold.high *= 20.0;
    let cost = |warm| {
        let options = Options {
            warm,
            ..Options::default()
        };
        estimate(&profile, &costs, options).regions[0].cost_ns
    };
    assert_eq!(cost(true), 300_000.0 - 512.0 * 500.0);
    assert!(cost(false) > cost(true) + 500_000.0);
}

#[test]
fn touches_say_less_than_misses() {
    let width = |source| {
        let mut profile = regions(&[5e6; 8]);
        profile.source = source;
        let saved = plan(&profile).saved_all_ns;
        saved.high / saved.low.max(1.0)
    };
    assert!(width(Source::Accessed) > 4.0 * width(Source::Sim));
}

/// Returns the plan after everything huge was measured.
fn under(upper_bound: Estimate, profile: &Profile) -> Plan {
    let options = Options {
        upper_bound: Some(upper_bound),
        ..Options::default()
    };
    estimate(profile, &costs(), options)
}

#[test]
fn a_measured_upper_bound_is_followed() {
    let profile = regions(&[5e6; 8]);
    let alone = plan(&profile);
    let upper_bound = Estimate {
        median: 1.10,
        low: 1.09,
        high: 1.11,
    };
    let told = under(upper_bound, &profile);
    let all = told.saved_all_ns;
    let measured = 1e10 * (1.0 - 1.0 / 1.10);
    assert!((all.median / measured - 1.0).abs() < 0.05, "{all:?}");
    let width = |e: Estimate| e.high - e.low;
    assert!(width(told.predicted_speedup) < width(alone.predicted_speedup));
    // Measured as worthless: the estimate follows.
    let none = Estimate {
        median: 0.99,
        low: 0.985,
        high: 0.995,
    };
    let told = under(none, &profile);
    assert!(told.does_nothing(), "{}", told.reason);
}

#[test]
fn what_is_proved_next_is_tried_on_its_median() {
    let profile = regions(&[5e6; 8]);
    let nothing = |median: f64, doubt: f64, is_proved_next| {
        let upper_bound = Estimate {
            median,
            low: median - doubt,
            high: median + doubt,
        };
        let options = Options {
            upper_bound: Some(upper_bound),
            is_proved_next,
            ..Options::default()
        };
        estimate(&profile, &costs(), options).does_nothing()
    };
    assert!(nothing(1.1, 0.3, false), "cannot be told from zero");
    assert!(!nothing(1.1, 0.3, true));
    assert!(nothing(0.9, 0.02, true), "surely slower");
}

#[test]
fn touched_pages_leave_the_amount_to_the_upper_bound() {
    check_that_the_upper_bound_says_it(Source::Accessed, true);
}

#[test]
fn so_does_a_recording_of_a_part_of_the_run() {
    check_that_the_upper_bound_says_it(Source::Sim, false);
}

/// A few counts, which do not give the amount: the upper bound does.
fn check_that_the_upper_bound_says_it(source: Source, complete: bool) {
    let mut profile = regions(&[100.0; 8]);
    (profile.source, profile.complete) = (source, complete);
    let upper_bound = Estimate {
        median: 1.3,
        low: 1.2,
        high: 1.4,
    };
    let plan = under(upper_bound, &profile);
    let Estimate { median, low, high } = plan.predicted_speedup;
    assert_eq!(plan.huge().count(), 8, "{}", plan.reason);
    for (said, measured) in [(median, 1.3), (low, 1.2), (high, 1.4)] {
        assert!(
            (said / measured - 1.0).abs() < 0.02,
            "{:?}",
            plan.predicted_speedup
        );
    }
}

#[test]
fn with_thp_always_only_losers_are_named() {
    let mut profile = regions(&[5e6, 10.0]);
    profile.sites[0].rows[1].touched_pages = 1;
    let options = Options {
        thp_always: true,
        ..Options::default()
    };
    let plan = estimate(&profile, &costs(), options);
    assert_eq!(whys(&plan), [Why::AlreadyHuge, Why::CostsMore]);
    assert!(plan.huge().next().is_none() && !plan.does_nothing());
    assert!(
        plan.reason.starts_with("Keep huge pages away from 1 of 2"),
        "{}",
        plan.reason
    );
}

#[test]
fn without_a_time_the_interval_is_wide() {
    let mut profile = regions(&[5e6; 8]);
    let timed = plan(&profile).predicted_speedup;
    profile.native_ns = None;
    profile.instructions = Some(20_000_000_000);
    let counted = plan(&profile);
    profile.instructions = None;
    let blind = plan(&profile);
    let width = |e: Estimate| e.high - e.low;
    assert!(width(counted.predicted_speedup) > width(timed));
    assert!(blind.predicted_speedup.low <= 1.0 && blind.baseline_ns.is_none());
    assert!(
        blind
            .warnings
            .iter()
            .any(|text| text.contains("the time of a run is unknown"))
    );
}

#[test]
fn long_lists_are_cut_where_they_matter_least() {
    let mut misses = vec![10.0; MAX_LEAVES + 100];
    misses[4000] = 9e6;
    let mut profile = regions(&misses);
    profile.sites[0]
        .rows
        .iter_mut()
        .for_each(|row| row.touched_pages = 3);
    profile.footprint = 1 << 34;
    let plan = plan(&profile);
    assert_eq!(huge(&plan), [4000]);
    assert_eq!(plan.regions.len(), MAX_LEAVES + 1);
    assert!(
        plan.warnings
            .iter()
            .any(|text| text.starts_with("99 regions"))
    );
}

/// Returns the smallest number of regions that reach 90 % of the full benefit, by trying every set.
fn exhaustive(benefits: &[f64]) -> u32 {
    let total: f64 = benefits.iter().sum();
    // As docs/guide/estimates.md: a set's benefit for its share of everything.
    let value = |set: u32| {
        let sum: f64 = (0..benefits.len())
            .filter(|i| set >> i & 1 == 1)
            .map(|i| benefits[i])
            .sum();
        sum * (0.85 + 0.15 * sum / total)
    };
    let enough = |set: &u32| value(*set) >= 0.9 * total * (1.0 - 1e-12);
    (0..1u32 << benefits.len())
        .filter(enough)
        .map(u32::count_ones)
        .min()
        .unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_set_is_smaller_than_the_planned_one(misses in prop::collection::vec(1e5f64..1e8, 1..11)) {
        let mut profile = regions(&misses);
        // A cost above 0 leaves the decision to the benefit alone.
        profile.sites[0].rows.iter_mut().for_each(|row| row.touched_pages = 500);
        // Too far apart for gaps to be filled.
        profile.sites[0].rows.iter_mut().for_each(|row| row.offset *= 6);
        profile.sites[0].site.length *= 6;
        let plan = plan(&profile);
        prop_assert!(plan.regions.iter().all(|region| region.cost_ns > 0.0));
        if !plan.does_nothing() {
            prop_assert_eq!(plan.huge().count() as u32, exhaustive(&misses));
        }
    }

    #[test]
    fn no_set_gains_more_than_everything(misses in prop::collection::vec(0.0f64..1e7, 1..20), n in 0u64..20) {
        let mut profile = regions(&misses);
        profile.sites[0].rows.iter_mut().for_each(|row| row.touched_pages = PAGES / 2);
        let top = |n| estimate(&profile, &costs(), Options { top: Some(n), ..Options::default() });
        let benefit = |plan: &Plan| plan.huge().map(|region| region.benefit_ns).sum::<f64>();
        let (some, all) = (benefit(&top(n)), benefit(&top(20)));
        prop_assert!(some <= all * (1.0 + 1e-9), "{some} > {all}");
        // A larger set never gains less.
        prop_assert!(some <= benefit(&top(n + 1)) * (1.0 + 1e-9));
    }

    #[test]
    fn every_plan_is_sound(
        profile in any_profile(),
        baseline in prop::option::of(1.0f64..1e12),
        budget in prop::option::of(0u64..1 << 26),
        free in prop::option::of(0u64..20),
        thp_always: bool,
        warm: bool,
        upper_bound in prop::option::of(0.5f64..3.0), repeats in prop::option::of(0.0f64..3.0),
        is_proved_next: bool,
        shared_forbidden: bool,
    ) {
        let upper_bound = upper_bound.map(|median| Estimate { median, low: median * 0.9, high: median * 1.1 });
        let options = Options { baseline_ns: baseline, top: None, budget, free_regions: free, thp_always, warm, upper_bound, repeats, is_proved_next, shared_forbidden };
        let plan = estimate(&profile, &costs(), options);
        plan.to_toml().unwrap();
        let e = plan.predicted_speedup;
        prop_assert!(0.0 < e.low && e.low <= e.median && e.median <= e.high && e.high <= 10.0 + 1e-9);
        let bytes: u64 = plan.huge().map(|region| region.length).sum();
        prop_assert!(bytes <= budget.unwrap_or(u64::MAX));
        for region in &plan.regions {
            let site = plan.site(region.site).unwrap();
            let aligned = (region.offset + site.misalignment) % REGION == 0;
            if region.verdict == Verdict::Huge {
                prop_assert!(aligned && region.length == REGION);
                let acted_on = !matches!(site.kind, SiteKind::Stack | SiteKind::File { .. });
                prop_assert!(acted_on);
            } else {
                prop_assert!(region.why != Why::Pays && region.why != Why::Asked);
            }
        }
        let misses: f64 = plan.regions.iter().map(|region| region.misses).sum();
        prop_assert!((misses - profile.misses()).abs() <= 1e-6 * profile.misses().max(1.0));
    }

    #[test]
    fn advised_regions_gain_more_than_they_cost(profile in any_profile()) {
        for region in plan(&profile).huge() {
            let whole = profile.sites.iter().any(|rows| {
                rows.site.id == region.site
                    && matches!(rows.site.kind, SiteKind::Anonymous | SiteKind::Reservation { .. })
            });
            prop_assert!(whole || region.benefit_ns / 0.85 > region.cost_ns);
        }
    }

    #[test]
    fn more_misses_never_save_less(misses in prop::collection::vec(0.0f64..1e6, 1..8), more in 0.0f64..1e6, at in 0usize..8) {
        let at = at % misses.len();
        let mut larger = misses.clone();
        larger[at] += more;
        let saved = |misses: &[f64]| plan(&regions(misses)).saved_all_ns.median;
        prop_assert!(saved(&misses) <= saved(&larger) + 1e-6);
    }
}

/// As [`regions`], sampled: `observed` counts of a tenth of the run.
fn sampled(observed: &[u32]) -> Profile {
    let misses: Vec<f64> = observed.iter().map(|&n| f64::from(n) * 10.0).collect();
    let mut profile = regions(&misses);
    profile.sampled = 0.1;
    profile.observations = observed.iter().map(|&n| u64::from(n)).sum();
    profile.footprint = 1 << 31;
    profile
}

/// Returns sums of `n` coin tosses around `mean`: uniform noise, the same in every run.
fn noisy(count: usize, mean: u32) -> Vec<u32> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut coins = |n: u32| {
        (0..n)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 40) as u32 & 1
            })
            .sum::<u32>()
    };
    (0..count).map(|_| coins(2 * mean)).collect()
}

fn benefits(plan: &Plan) -> Vec<f64> {
    plan.regions
        .iter()
        .map(|region| region.benefit_ns)
        .collect()
}

/// Checks that all regions of a plan have the same benefit.
fn assert_equal_benefits(plan: &Plan) {
    let benefits = benefits(plan);
    let is_first = |benefit: &f64| (benefit / benefits[0] - 1.0).abs() < 1e-9;
    assert!(benefits.iter().all(is_first), "{benefits:?}");
}

#[test]
fn a_uniform_block_is_taken_whole() {
    let mut profile = sampled(&noisy(256, 200));
    profile.native_ns = Some(200_000_000);
    let plan = plan(&profile);
    assert_eq!(plan.huge().count(), 256);
    assert_equal_benefits(&plan);
}

#[test]
fn a_sweep_seen_in_part_makes_no_hot_region() {
    let mut observed = noisy(256, 6);
    observed[40..60].fill(512);
    let mut profile = sampled(&observed);
    for row in &mut profile.sites[0].rows[40..60] {
        (row.reuse_log2, row.dependent) = (Some(16.0), Some(0.0));
    }
    let plan = plan(&profile);
    assert!([0, 256].contains(&plan.huge().count()));
    assert_equal_benefits(&plan);
}

#[test]
fn of_a_skewed_block_the_hot_regions_are_taken() {
    let mut observed = vec![1; 512];
    let hot: Vec<u64> = (0..8).map(|n| n * 61 + 7).collect();
    hot.iter().for_each(|&at| observed[at as usize] = 60_000);
    let mut profile = sampled(&observed);
    profile.sites[0]
        .rows
        .iter_mut()
        .for_each(|row| row.touched_pages = 400);
    assert_eq!(huge(&plan(&profile)), hot);
}

#[test]
fn small_holes_are_filled_with_what_pays() {
    let mut misses = vec![5e6; 32];
    misses[9] = 1e5;
    // The last ten have the same benefit, but lie in no gap.
    misses[22..].fill(1e5);
    let plan = plan(&regions(&misses));
    assert_eq!(huge(&plan), (0..22).collect::<Vec<u64>>());
    assert!(whys(&plan)[22..].iter().all(|why| *why == Why::Spare));
}

#[test]
fn saved_faults_are_never_a_cost() {
    // A huge fault costs less than the 4 KiB faults, unless its block is cold.
    let mut costs = costs();
    costs.fault_2m_warm = costs.fault_4k;
    costs.fault_2m_cold.high = 4e6;
    costs.fault_2m_cold.median = 1e6;
    let plan = estimate(&sampled(&noisy(64, 2)), &costs, Options::default());
    assert!(plan.regions.iter().all(|region| region.cost_ns < 0.0));
    let refused = |why: &Why| matches!(why, Why::CostsMore | Why::Unclear);
    assert!(!whys(&plan).iter().any(refused), "{}", plan.reason);
}

#[test]
fn everything_is_predicted_as_it_was_measured() {
    let upper_bound = Estimate {
        median: 1.45,
        low: 1.35,
        high: 1.55,
    };
    let plan = under(upper_bound, &regions(&[5e6; 64]));
    assert_eq!(plan.huge().count(), 64);
    let Estimate { median, low, high } = plan.predicted_speedup;
    assert!(
        (median / upper_bound.median - 1.0).abs() < 0.05,
        "{:?}",
        plan.predicted_speedup
    );
    let width = (high - low) / (upper_bound.high - upper_bound.low);
    assert!((0.8..1.2).contains(&width), "{:?}", plan.predicted_speedup);
    assert_eq!(plan.saved_ns, plan.saved_all_ns);
}

#[test]
fn a_comparison_that_repeats_itself_badly_is_predicted_with_less_certainty() {
    let width = |repeats| {
        let options = Options {
            repeats,
            ..Options::default()
        };
        let told = estimate(&regions(&[5e6; 8]), &costs(), options).predicted_speedup;
        assert!(told.low <= told.median && told.median <= told.high);
        assert!(told.low > 0.0);
        (told.high / told.low).ln()
    };
    let least = width(None);
    assert_eq!(
        width(Some(0.001)),
        least,
        "no comparison is that repeatable"
    );
    let badly = width(Some(0.2));
    assert!(
        badly > least.max(0.4) && badly < least + 0.4,
        "{least} {badly}"
    );
}

#[test]
fn the_model_alone_is_sure_within_a_factor_of_two() {
    let saved = plan(&regions(&[5e6; 64])).saved_ns;
    assert!(
        (0.35..0.6).contains(&(saved.low / saved.median)),
        "{saved:?}"
    );
    assert!(
        (1.7..3.0).contains(&(saved.high / saved.median)),
        "{saved:?}"
    );
}

proptest! {
    #[test]
    fn shrinking_keeps_order_and_sum(observed in prop::collection::vec(0u32..20_000, 2..64)) {
        prop_assume!(observed.iter().any(|&n| n > 0));
        let exact = benefits(&estimate(&regions(&observed.iter().map(|&n| f64::from(n) * 10.0).collect::<Vec<_>>()), &costs(), Options { top: Some(64), ..Options::default() }));
        let shrunk = benefits(&estimate(&sampled(&observed), &costs(), Options { top: Some(64), ..Options::default() }));
        let sums = [&exact, &shrunk].map(|b| b.iter().sum::<f64>());
        prop_assert!((sums[0] / sums[1] - 1.0).abs() < 1e-6, "{sums:?}");
        for (i, &a) in observed.iter().enumerate() {
            for (j, &b) in observed.iter().enumerate() {
                prop_assert!(a <= b || shrunk[i] >= shrunk[j] * (1.0 - 1e-9));
            }
        }
    }

    #[test]
    fn a_plan_saves_more_than_everything_only_if_the_rest_loses(
        profile in any_profile(), upper_bound in prop::option::of(0.8f64..2.0),
    ) {
        let upper_bound = upper_bound.map(|median| Estimate { median, low: median * 0.9, high: median * 1.1 });
        let plan = estimate(&profile, &costs(), Options { upper_bound, ..Options::default() });
        if !plan.does_nothing() {
            let more = plan.saved_ns.median > plan.saved_all_ns.median;
            prop_assert_eq!(more, plan.reason.contains("left out would cost"));
            let Estimate { median, low, high } = plan.predicted_speedup;
            prop_assert!(low <= median * 0.985 + 1e-9 && (high >= median * 1.015 - 1e-9 || high >= 9.999));
        }
    }
}

#[test]
fn a_nameless_site_is_estimated_too() {
    let rows = vec![row(0, REGION, 5e6)];
    let site = site(
        9,
        SiteKind::Vma {
            name: "[anon:x]".to_owned(),
        },
        REGION,
    );
    let plan = plan(&profile(vec![SiteRows {
        freed: true,
        ..site_rows(site, rows)
    }]));
    assert_eq!(plan.huge().count(), 1);
}

const ARENAS: u64 = 0x7fff_0010_0000;

#[test]
fn neighbours_that_share_a_region_are_planned_together() {
    // The address is the upper half of a region, that of the last one the lower half.
    let plan = plan(&arenas(ARENAS, &[1e6; 64]));
    assert_eq!(plan.huge().count(), 64, "{}", plan.reason);
    assert!(
        plan.reason.starts_with(
            "Make 32 of 32 regions huge (64 MiB): they hold 100 % of the 64.0 M misses recorded"
        ),
        "{}",
        plan.reason
    );
    for region in plan.huge() {
        assert_eq!((region.length, region.why), (REGION / 2, Why::Pays));
        // Each takes half of one collapse.
        assert!((region.cost_ns - 200_000.0).abs() < 1.0, "{region:?}");
    }
}

#[test]
fn what_fills_no_region_with_its_neighbours_is_left() {
    // Shifted by a quarter: both ends extend beyond whole regions.
    let first = ARENAS - REGION / 4;
    let plan = plan(&arenas(first, &[1e6; 64]));
    let partial: f64 = plan
        .regions
        .iter()
        .filter(|region| region.why == Why::Partial)
        .map(|region| region.length as f64)
        .sum();
    assert_eq!(partial, REGION as f64, "{}", plan.reason);
    assert!(plan.reason.starts_with("Make 31 of 31"), "{}", plan.reason);
    assert!(
        plan.reason.contains("97 % of the 64.0 M misses"),
        "{}",
        plan.reason
    );

    let mut apart = arenas(ARENAS, &[1e6; 64]);
    // Every other one is elsewhere.
    for rows in apart.sites.iter_mut().step_by(2) {
        rows.address = Some(rows.address.unwrap() + (1 << 40));
    }
    assert!(is_left_as_partial(&apart));
    // Their addresses are unknown.
    let mut unknown = arenas(ARENAS, &[1e6; 64]);
    unknown
        .sites
        .iter_mut()
        .for_each(|rows| rows.address = None);
    assert!(is_left_as_partial(&unknown));
}

fn is_left_as_partial(profile: &Profile) -> bool {
    let plan = plan(profile);
    plan.does_nothing() && plan.reason.contains("less than 2 MiB")
}

#[test]
fn cold_neighbours_are_left_together() {
    let mut profile = arenas(ARENAS, &[10.0; 64]);
    // A single hot block pays.
    let mut hot = regions(&[5e6; 32]).sites.remove(0);
    hot.site.id = 64;
    hot.site.kind = alloc(0x4567, 32 * REGION, 0);
    profile.sites.push(hot);
    let plan = plan(&profile);
    assert!(
        plan.huge().all(|region| region.site == 64),
        "{}",
        plan.reason
    );
    assert_eq!(plan.huge().count(), 32);
}

#[test]
fn the_share_is_that_of_all_misses() {
    let mut profile = regions(&[5e6; 32]);
    // A file is never advised; its misses still count as misses.
    let file = SiteKind::File {
        build_id: String::new(),
        path: "/data".to_owned(),
    };
    let rows = vec![row(0, 32 * REGION, 480e6)];
    let file = site(1, file, 32 * REGION);
    profile.sites.push(site_rows(file, rows));
    let text = plan(&profile).reason;
    assert!(
        text.contains("they hold 25 % of the 640 M misses recorded"),
        "{text}"
    );
    profile.source = Source::Accessed;
    let text = plan(&profile).reason;
    assert!(
        text.contains("25 % of the 640 M page touches recorded"),
        "{text}"
    );
}
