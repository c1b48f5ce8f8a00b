// SPDX-License-Identifier: MIT OR Apache-2.0

use std::process::Command;

use toll_testkit::process::Running;

use super::*;

#[test]
fn few_samples_are_no_cost_and_negative_ones_are_noise() {
    assert_eq!(of_samples(vec![1.0; ENOUGH - 1]), None);
    let cost = of_samples([vec![-5.0; 4], vec![3.0; 8]].concat()).unwrap();
    assert_eq!((cost.low, cost.median, cost.high), (0.0, 3.0, 3.0));
}

#[test]
fn a_round_counts_if_the_other_thread_had_its_cpu() {
    let of = |cpu| Work {
        chunks: 40.0,
        cpu,
        elapsed: 400_000.0,
    };
    assert!(of(385_000.0).is_throughout());
    assert!(!of(200_000.0).is_throughout());
}

/// Pages of another thread's process are flushed there: the time is that of an interrupt, not of a
/// system call or of a second. Another process that has the CPU half of the time does not make it
/// less.
#[test]
fn a_shootdown_costs_both_sides() {
    // Threads of other tests would be interrupted too, while the thread that is measured sleeps.
    const ALONE: &str = "TOLLFREE_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let name = "calibrate::events::tests::a_shootdown_costs_both_sides";
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone.args([name, "--exact", "--nocapture"]).env(ALONE, "");
        let output = alone.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("1 passed"), "{text}{errors}");
        return;
    }
    let Some([_, there]) = sched_getaffinity(None)
        .ok()
        .and_then(|allowed| two_of(&allowed))
    else {
        eprintln!("skipped: one CPU");
        return;
    };
    let stop = || false;
    let budget = Budget {
        began: Instant::now(),
        within: Duration::from_secs(20),
        memory: 1 << 30,
        stop: &stop,
    };
    let _busy = busy(there);
    let (sent, received) = shootdowns(&budget);
    assert_eq!(sent.len(), received.len());
    if sent.len() < ENOUGH {
        eprintln!("skipped: the other thread got no CPU");
        return;
    }
    for cost in [sent, received] {
        let cost = of_samples(cost).unwrap();
        assert!(cost.low > 0.0 && cost.median < 1e6, "{cost:?}");
    }
}

/// Starts a process that uses half of a CPU, in turns that are longer than a phase.
fn busy(cpu: usize) -> Running {
    let turns = "while :; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; sleep 0.003; done";
    Running::start(Command::new("taskset").args(["-c", &cpu.to_string(), "sh", "-c", turns]))
}
