// SPDX-License-Identifier: MIT OR Apache-2.0
//! The goals of lab/scenarios, on made-up results.

mod made;

pub(crate) use made::{Made, results};

use super::*;
use crate::scenario::Verdict::{Met, NotMeasured, NotMet, NotShown};
use crate::workspace::Workspace;

fn part(scenario: &str, made: &[Made]) -> Part {
    let workspace = Workspace::find().unwrap();
    let found = Scenario::find(&workspace, scenario).unwrap();
    Part::new(found, results(scenario, made))
}

/// Evaluates the goals of a scenario's short form.
fn verdicts(scenario: &str, made: &[Made]) -> Vec<Verdict> {
    let part = part(scenario, made);
    part.goals.iter().map(|goal| goal.verdict).collect()
}

#[test]
fn a_tail_is_compared_with_never_and_with_compaction() {
    let of = |ours| {
        let made = |variant, policy, tail| {
            Made::new(variant, policy, "main", &[("fault_instr_tail", tail)])
        };
        let all = [
            made("vanilla", "never", 1000.0),
            made("vanilla", "always-defrag", 100_000.0),
            made("tollfree", "econ", ours),
        ];
        verdicts("fault-tail", &all)
    };
    assert_eq!(of(1000.0), [Met, Met]);
    assert_eq!(of(1001.0), [NotMet, NotMet]);
}

#[test]
fn the_worst_workload_counts_by_its_upper_end() {
    let of = |spread: f64| {
        let cost = |variant, policy, section, costs: [f64; 2]| {
            Made::rounds(variant, policy, section, "modelled_ns", &costs)
        };
        let mut all = Vec::new();
        for (section, defrag, costs) in [
            ("whole-xz", 50.0, [90.0, 90.0]),
            ("movable-xz", 125.0, [60.0 - spread, 60.0 + spread]),
        ] {
            all.push(cost("vanilla", "never", section, [100.0; 2]));
            all.push(cost("vanilla", "madvise", section, [101.0; 2]));
            all.push(cost("vanilla", "always-defrag", section, [defrag; 2]));
            all.push(cost("tollfree", "econ", section, costs));
        }
        part("econ-throughput", &all)
    };
    let steady = of(0.0);
    let said = |part: &Part| -> Vec<Verdict> { part.goals.iter().map(|it| it.verdict).collect() };
    assert_eq!(said(&steady), [Met; 5]);
    let values = [0, 2, 3, 4].map(|at| steady.goals[at].value.unwrap());
    // The last one: memory that is not fragmented, by memory that is.
    let expected = [
        (0.9f64 * 0.6).sqrt(),
        60.0 / 125.0,
        100.0 / 125.0,
        50.0 / 125.0,
    ];
    for (value, expected) in values.iter().zip(expected) {
        assert!((value - expected).abs() < 1e-9, "{value} and {expected}");
    }
    assert_eq!(steady.goals[1].section, "whole-xz");
    let spread = of(20.0);
    assert_eq!(spread.goals[1].verdict, NotShown);
    assert_eq!(spread.goals[1].section, "movable-xz");
}

#[test]
fn a_gain_is_a_share_of_what_huge_pages_everywhere_gain() {
    let of = |steps, huge| {
        let made = |variant, policy, walks, huge| {
            let counters = [("walk_steps", walks), ("vmstat_thp_fault_alloc", huge)];
            Made::new(variant, policy, "main", &counters)
        };
        let all = [
            made("vanilla", "never", 1000.0, 0.0),
            made("vanilla", "always", 0.0, 60.0),
            made("tollfree", "econ", steps, huge),
        ];
        verdicts("hot-regions", &all)
    };
    assert_eq!(of(100.0, 6.0), [Met, Met]);
    assert_eq!(of(101.0, 7.0), [NotMet, NotMet]);
}

#[test]
fn no_profile_may_cost_more_than_two_percent() {
    let costs = [
        ("none", 100.0),
        ("none-version", 200.0),
        ("right", 90.0),
        ("size", 102.0),
        ("wrong", 103.0),
        ("version", 200.0),
        ("scarce-none", 100.0),
        ("scarce-none-version", 200.0),
        ("scarce-right", 103.0),
        ("scarce-size", 102.0),
        ("scarce-wrong", 90.0),
        ("scarce-version", 205.0),
    ];
    let made = |(section, cost)| Made::new("tollfree", "econ", section, &[("modelled_ns", cost)]);
    let found = verdicts("other-profiles", &costs.map(made));
    let plenty = [Met, Met, NotMet, Met];
    let scarce = [NotMet, Met, Met, NotMet];
    assert_eq!(found, [plenty, scarce].concat());
}

#[test]
fn a_long_profile_costs_a_fault_little() {
    let of = |many| {
        let made = |section, faults, total| {
            let counters = [("page_faults", faults), ("fault_instr_total", total)];
            Made::new("tollfree", "econ", section, &counters)
        };
        let all = [made("rows-1", 10.0, 1000.0), made("rows-31000", 20.0, many)];
        verdicts("many-rows", &all)
    };
    assert_eq!(of(2100.0), [Met]);
    assert_eq!(of(2101.0), [NotMet]);
}

#[test]
fn a_neighbour_changes_nothing_in_either_direction() {
    let of = |faults| {
        let mut all = Vec::new();
        for state in ["whole", "pieces"] {
            for neighbour in ["plain", "hostile"] {
                for again in ["", "-again"] {
                    let section = format!("{state}-{neighbour}{again}");
                    let is_changed = section.starts_with("pieces-hostile");
                    let counts = [
                        ("instructions_user", 100.0),
                        ("instructions_kernel", 100.0),
                        ("page_faults", if is_changed { faults } else { 100.0 }),
                    ];
                    let made = Made::new("tollfree", "econ", &section, &[]);
                    all.push(made.with_process("sparse", &counts));
                }
            }
        }
        verdicts("hostile-profile", &all)
    };
    // Each of the three counts in pieces, then in whole memory.
    assert_eq!(of(98.0), [Met; 6]);
    assert_eq!(of(97.0), [Met, Met, Met, Met, NotMet, Met]);
    assert_eq!(of(103.0), [Met, Met, Met, Met, NotMet, Met]);
}

#[test]
fn faults_that_compact_are_found_by_their_kind() {
    let of = |kind: &str| {
        let counters = [("latency_base_1000", 9.0), (kind, 1.0)];
        verdicts(
            "fault-kinds",
            &[Made::new("tollfree", "econ", "main", &counters)],
        )
    };
    assert_eq!(of("latency_huge_4096"), [Met]);
    assert_eq!(of("latency_fell_back_compacted_4096"), [NotMet]);
}

#[test]
fn runs_that_differ_have_an_interval() {
    let of = |values: &[f64]| {
        let tail = |variant, policy, values: &[f64]| {
            Made::rounds(variant, policy, "main", "fault_instr_tail", values)
        };
        let all = [
            tail("vanilla", "never", &vec![5.0; values.len()]),
            tail("vanilla", "always-defrag", &vec![5.0; values.len()]),
            tail("tollfree", "econ", values),
        ];
        part("fault-tail", &all).goals[0].clone()
    };
    assert_eq!(of(&[5.0]).high, Some(0.0));
    assert_eq!(of(&[5.0, 5.0, 5.0]).high, Some(0.0));
    let spread = of(&[4.0, 5.0, 6.0]);
    assert!(spread.high > spread.value && spread.value > spread.low);
    assert_eq!(spread.verdict, NotShown);
}

#[test]
fn the_policies_of_a_scenario_are_rounds_or_are_combined() {
    let all = |ours: [f64; 3]| {
        let mut all = Vec::new();
        for (policy, ours) in ["whole", "less-24", "less-48"].iter().zip(ours) {
            let counters = |value| [("alloc_failures", value), ("instructions_kernel", value)];
            all.push(Made::new(
                "vanilla",
                policy,
                "storm-nowait-0",
                &counters(10.0),
            ));
            all.push(Made::new(
                "tollfree",
                policy,
                "storm-nowait-0",
                &counters(ours),
            ));
        }
        part("nowait-storm", &all).goals[0].clone()
    };
    // 30 failures in total, and no interval.
    let goal = all([25.0, 5.0, 0.0]);
    assert_eq!(
        (goal.base, goal.ours, goal.verdict),
        (Some(30.0), Some(30.0), Met)
    );
    assert_eq!(all([25.0, 5.0, 1.0]).verdict, NotMet);
    let mut loops = Vec::new();
    for number in 0..4 {
        let policy = format!("less-{number}");
        let made =
            |variant, cost| Made::new(variant, &policy, "fork", &[("instructions_kernel", cost)]);
        loops.push(made("vanilla", 1000.0 + f64::from(number)));
        loops.push(made("tollfree", 1001.0 + f64::from(number)));
    }
    let goal = part("loops-many", &loops).goals[0].clone();
    assert_eq!((goal.rounds, goal.verdict), (4, Met));
}

#[test]
fn where_the_base_is_zero_only_zero_is_no_more() {
    let of = |base, ours| {
        let made = |variant, value| {
            let counters = [("vmstat_numa_miss", value), ("shootdown_irqs", 7.0)];
            Made::new(variant, "local", "main", &counters)
        };
        verdicts(
            "node-reclaim",
            &[made("vanilla", base), made("tollfree", ours)],
        )
    };
    assert_eq!(of(0.0, 0.0), [Met, Met]);
    assert_eq!(of(0.0, 1.0), [NotMet, Met]);
    assert_eq!(of(5.0, 0.0), [Met, Met]);
}

#[test]
fn fewer_rounds_than_a_goal_needs_show_nothing() {
    let counters = [
        ("shootdown_irqs", 10.0),
        ("shootdown_irqs_compaction_eligible", 10.0),
    ];
    let made = |variant| Made::new(variant, "default", "whole", &counters);
    let found = verdicts("inference-compaction", &[made("vanilla"), made("tollfree")]);
    assert_eq!(found, [NotShown; 4]);
}

#[test]
fn what_did_not_run_is_not_measured() {
    let tail = [("fault_instr_tail", 1000.0)];
    let ours = Made::new("tollfree", "econ", "main", &tail);
    assert_eq!(verdicts("fault-tail", &[ours]), [NotMeasured; 2]);
    assert_eq!(verdicts("fault-tail", &[]), [NotMeasured; 2]);
    // A process that did not run.
    let sections = [
        "whole-plain",
        "whole-plain-again",
        "whole-hostile",
        "whole-hostile-again",
    ];
    let made = |section| Made::new("tollfree", "econ", section, &[]);
    assert_eq!(
        verdicts("hostile-profile", &sections.map(made)),
        [NotMeasured; 3]
    );
}

/// Round trips and mappings of the short form, each kind with a cost of its own.
#[test]
fn morsels_are_compared_by_section_and_kernel() {
    let trip = |kind: &str, size: &str, kernel: f64| {
        let variant = if kind.starts_with("morsel") {
            "tollfree"
        } else {
            "vanilla"
        };
        let notes = [("note_packets", 10.0), ("note_elapsed_ns", 1e6)];
        Made::new(variant, "default", &format!("{kind}-{size}"), &notes).with_process(
            "pipeline",
            &[("instructions_kernel", kernel), ("instructions_user", 5.0)],
        )
    };
    let all = [
        trip("memfd-keep", "4k", 100.0),
        trip("memfd-remap", "4k", 300.0),
        trip("morsel-keep", "4k", 101.0),
        trip("morsel-remap", "4k", 299.0),
        trip("memfd-keep", "2m", 1000.0),
        trip("memfd-remap", "2m", 100_000.0),
        trip("morsel-keep", "2m", 99.0),
        trip("morsel-remap", "2m", 9000.0),
    ];
    let found = verdicts("morsel-pipeline", &all);
    assert_eq!(found, [NotMet, Met, Met, NotMet, Met]);
    let map = |section: &str, variant: &str, cost: f64| {
        let counters = [("instructions_kernel", cost), ("note_rounds", 2.0)];
        Made::new(variant, "default", section, &counters)
    };
    let all = [
        map("ext4-128m", "vanilla", 1e8),
        map("huge-128m", "vanilla", 1e4),
        map("hugetlb-128m", "vanilla", 9e3),
        map("open-128m", "tollfree", 1e4),
        map("sealed-128m", "tollfree", 9e3),
        map("sealed-sparse-1g", "tollfree", 1000.0),
        map("sealed-sparse-64g", "tollfree", 1000.0 + 63.0 * 60.0),
        map("open-sparse-1g", "tollfree", 1000.0),
        map("open-sparse-64g", "tollfree", 1000.0 + 63.0 * 62.0),
    ];
    let part = part("morsel-map", &all);
    let verdicts: Vec<Verdict> = part.goals.iter().map(|goal| goal.verdict).collect();
    assert_eq!(verdicts, [Met, Met, Met, NotMet, Met, Met]);
    assert!((part.goals[2].value.unwrap() - 30.0).abs() < 1e-9);
}

#[test]
fn a_report_counts_its_goals_and_stores_what_they_use() {
    let made = |variant, policy, tail| {
        let counters = [("fault_instr_tail", tail), ("invlpgs", 7.0)];
        Made::new(variant, policy, "main", &counters)
    };
    let mut report = Report::new(Subject::Econ);
    let all = [
        made("vanilla", "never", 10.0),
        made("vanilla", "always-defrag", 20.0),
        made("tollfree", "econ", 9.0),
    ];
    report.parts.push(part("fault-tail", &all));
    report.missing.push(Missing {
        scenario: "fault-kinds".to_owned(),
        why: "no kernel\nmore".to_owned(),
    });
    assert_eq!((report.count(Met), report.count(NotMet)), (1, 1));
    let text = document(&report, "toll-lab report econ");
    assert!(
        text.contains("Goals: 1 met, 1 not met, 0 not shown.\n"),
        "{text}"
    );
    assert!(text.contains(" -10.0 % |"), "{text}");
    assert!(
        text.contains(" 2.2 x | reduction_factor >= 100 | **not met** |"),
        "{text}"
    );
    assert!(text.contains("- fault-kinds: no kernel\n"), "{text}");
    let shown = goals_text(&report);
    assert!(
        shown.contains("**not met**") && !shown.contains("k is 10^-4"),
        "{shown}"
    );
    let file = serde_json::to_string(&report.file()).unwrap();
    let stored = Stored::read(&file).unwrap();
    let stored = stored.of("fault-tail").unwrap();
    let entry = &stored.results[0];
    assert_eq!(entry.counters["fault_instr_tail"].median, 10.0);
    let run = &entry.runs[0];
    assert!(run.contains_key("fault_instr_tail") && !run.contains_key("invlpgs"));
    let workspace = Workspace::find().unwrap();
    let scenario = Scenario::find(&workspace, "fault-tail").unwrap();
    let again = Part::new(scenario, stored.clone());
    let values =
        |part: &Part| -> Vec<Option<f64>> { part.goals.iter().map(|it| it.value).collect() };
    assert_eq!(values(&again), values(&report.parts[0]));
}
