// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn full() -> PerfAbility {
    PerfAbility::Full {
        event: "cpu/mem-loads/P".to_owned(),
        samples: 9,
    }
}

fn missing() -> PerfAbility {
    PerfAbility::Missing {
        reason: "no PMU".to_owned(),
        fix: String::new(),
    }
}

#[test]
fn auto_takes_the_simulator_before_the_unverified_source() {
    let (choice, _) = preferred(Ok(()), full);
    assert_eq!(choice, SourceChoice::Sim);
    let no_sim = || Err(anyhow::anyhow!("no QEMU"));
    let (choice, why) = preferred(no_sim(), full);
    assert_eq!(choice, SourceChoice::Perf);
    assert!(
        why.contains("not verified") && why.contains("no QEMU"),
        "{why}"
    );
    let (choice, why) = preferred(no_sim(), missing);
    assert_eq!(choice, SourceChoice::Accessed);
    assert!(why.contains("no PMU") && why.contains("no QEMU"), "{why}");
}
