// SPDX-License-Identifier: MIT OR Apache-2.0

use std::time::{Duration, Instant};

use toll_act::switch::Selection;
use toll_observe::observation::Observation;

use super::*;

fn reading(at: Instant, units: f64, cpu_ms: u64, cycles: Option<f64>) -> Reading {
    Reading {
        at,
        units,
        cpu: Duration::from_millis(cpu_ms),
        cycles,
    }
}

fn look(calls: f64) -> Look {
    Look {
        observation: Observation::default(),
        busy: 1.0,
        own_busy: 1.0,
        calls,
        selection: Selection::default(),
    }
}

#[test]
fn a_window_is_divided_by_its_units() {
    let begun = Instant::now();
    let first = reading(begun, 100.0, 50, None);
    let last = reading(begun + Duration::from_secs(2), 500.0, 1050, None);
    let (sample, resource) = per_unit(&Counter::Calls, &first, &last).unwrap();
    assert_eq!(resource, Resource::Cpu);
    assert_eq!(sample.elapsed, 0.005);
    assert_eq!(resource.time_of(&sample), 0.0025);
}

#[test]
fn cycles_are_compared_where_they_are_counted() {
    let begun = Instant::now();
    let first = reading(begun, 1000.0, 50, Some(4000.0));
    let last = reading(begun + Duration::from_secs(1), 3000.0, 60, Some(9000.0));
    let (sample, resource) = per_unit(&Counter::Calls, &first, &last).unwrap();
    assert_eq!(resource, Resource::MetricTime);
    assert_eq!(resource.time_of(&sample), 2.5);
}

#[test]
fn a_counter_that_falls_is_an_error() {
    let begun = Instant::now();
    let counter = Counter::Command("redis-cli dbsize".to_owned());
    let [first, last] = [9.0, 7.0].map(|units| reading(begun, units, 0, None));
    let error = per_unit(&counter, &first, &last).unwrap_err().to_string();
    for part in ["redis-cli dbsize", "from 9 to 7", "--gauge"] {
        assert!(error.contains(part), "{error}");
    }
}

/// Without a PMU: with one, instructions come first.
#[test]
fn calls_are_a_unit_only_if_there_are_enough() {
    let request = Request {
        pid: std::process::id(),
        ..Request::default()
    };
    if Counter::instructions(request.pid).is_some() {
        eprintln!("skipped: this machine has a PMU");
        return;
    }
    let chosen = Measure::choose(&request, &look(1000.0)).unwrap();
    assert_eq!(
        chosen.name(chosen.resource()),
        "CPU time per call of read or write"
    );
    assert!(chosen.assumption().unwrap().contains("read and write"));
    let reason = Measure::choose(&request, &look(3.0)).unwrap_err();
    for part in ["3 read and write calls", "--workload", "--count-lines"] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn what_the_user_names_comes_first() {
    let workload = Load {
        workload: Some("true".to_owned()),
        ..Load::default()
    };
    let mut request = Request {
        load: workload,
        ..Request::default()
    };
    let name = |request: &Request| {
        let chosen = Measure::choose(request, &look(1000.0)).unwrap();
        chosen.name(chosen.resource())
    };
    assert_eq!(name(&request), "elapsed time of the workload");
    request.progress = Some(Progressing::Counter("echo 1".to_owned()));
    assert_eq!(name(&request), "CPU time per unit of the metric command");
    request.progress = Some(Progressing::Gauge("echo 1".to_owned()));
    assert_eq!(name(&request), "the number of the metric command");
    request.progress = Some(Progressing::Lines("/nowhere".into()));
    assert!(
        Measure::choose(&request, &look(0.0))
            .unwrap_err()
            .contains("/nowhere")
    );
}

#[test]
fn a_gauge_is_a_rate_unless_a_unit_of_time_follows() {
    let metric = Metric::new(NUMBER).unwrap();
    let found = |text: &str| metric.find(text).unwrap();
    assert_eq!(found("1234.5 requests\n"), (1234.5, Resource::MetricRate));
    assert_eq!(found("0.25 ms\n"), (0.25, Resource::MetricTime));
}
