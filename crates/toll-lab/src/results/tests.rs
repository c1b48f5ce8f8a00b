// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

/// Results of two variants with one run per value.
pub(crate) fn example(vanilla: &[f64], tollfree: &[f64]) -> Results {
    let entry = |variant: &str, values: &[f64]| {
        let mut entry = Entry::new(variant, "default", MAIN);
        for value in values {
            let counters = [
                ("shootdown_irqs".to_owned(), *value),
                ("walks".to_owned(), 7.0),
            ];
            let last = Detail {
                fault_tail: vec![(100, 0.1), (2000, 0.0)],
                ..Detail::default()
            };
            entry.add(counters.into(), last, false);
        }
        entry
    };
    let kernel = |variant: &str| Kernel {
        variant: variant.to_owned(),
        release: format!("6.12.117-{variant}"),
        source: "6.12.117-1".to_owned(),
        patches: vec!["900-lab-x.patch".to_owned()],
    };
    Results {
        format: FORMAT.to_owned(),
        version: VERSION,
        scenario: "example".to_owned(),
        form: Size::Short,
        preset: "skylake".to_owned(),
        environment: Environment {
            date: "2026-11-21".to_owned(),
            host: Host {
                cpu: "a CPU".to_owned(),
                cpus: 2,
                memory_mib: 4096,
                kernel: "6.18".to_owned(),
            },
            qemu: "10.0.2".to_owned(),
            machine: Machine::plain(2, 512),
            first_touch: "writes".to_owned(),
            fingerprint: "0".to_owned(),
            kernels: vec![kernel("vanilla"), kernel("tollfree")],
        },
        judged_by: vec!["shootdown_irqs".to_owned(), "walks".to_owned()],
        results: vec![entry("vanilla", vanilla), entry("tollfree", tollfree)],
        sizes: Vec::new(),
        workloads: Vec::new(),
    }
}

#[test]
fn a_counter_is_the_median_of_its_runs_with_their_range() {
    let results = example(&[3.0, 1.0, 2.0], &[1.0]);
    let irqs = results.results[0].counters["shootdown_irqs"];
    assert_eq!((irqs.median, irqs.low, irqs.high), (2.0, 1.0, 3.0));
    assert_eq!(results.results[0].samples, 3);
}

#[test]
fn a_relation_is_ours_by_the_base() {
    let results = example(&[100.0; 6], &[50.0; 6]);
    let [base, ours] = &results.results[..] else {
        panic!("two entries");
    };
    assert_eq!(
        results.counterpart(ours, "vanilla").unwrap().variant,
        "vanilla"
    );
    let ratio = ours.relative_to(base, "shootdown_irqs").unwrap();
    assert_eq!((ratio.median, ratio.low, ratio.high), (0.5, 0.5, 0.5));
    assert!(ours.relative_to(base, "no such counter").is_none());
}

#[test]
fn rounds_grow_with_the_spread() {
    let results = example(&[100.0, 101.0, 99.0], &[100.0, 110.0, 90.0]);
    let [steady, spread] = &results.results[..] else {
        panic!("two entries");
    };
    assert_eq!(steady.rounds_for("shootdown_irqs", 0.03), Some(6));
    // 2 * (1.96 * 0.1 / 0.03)^2
    assert_eq!(spread.rounds_for("shootdown_irqs", 0.03), Some(86));
    assert_eq!(spread.rounds_for("nothing", 0.03), None);
    // Over all judged counters, in the first variant.
    assert_eq!(results.rounds_for(0.03).map(|it| it.0), Some(6));
    let other = example(&[100.0, 110.0, 90.0], &[100.0; 3]);
    assert_eq!(other.rounds_for(0.03), Some((86, "shootdown_irqs")));
    let one = example(&[1.0], &[1.0]);
    assert_eq!(one.rounds_for(0.03), None);
    assert_eq!(one.results[0].rounds_for("walks", 0.03), None);
}

#[test]
fn results_survive_their_file() {
    let results = example(&[1.0], &[2.0]);
    let text = serde_json::to_string(&results).unwrap();
    let back: Results = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
}
