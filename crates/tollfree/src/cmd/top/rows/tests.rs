// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::cmd::top::gaps::Gap;

fn used(cpu: f64, loss: f64) -> Figures {
    let mut figures = Figures {
        cpu_ns: Some(cpu),
        faults: Some(1.0),
        major_faults: Some(0.0),
        huge_bytes: Some(2.0),
        ..Figures::default()
    };
    figures.lose(Some(Loss {
        ns: loss,
        low: loss / 2.0,
        high: loss * 4.0,
    }));
    figures
}

#[test]
fn no_more_is_lost_than_was_used() {
    let figures = used(100.0, 60.0);
    assert_eq!(figures.loss_share, Some(0.6));
    assert_eq!(figures.loss_interval_ns, Some([30.0, 100.0]));
    assert_eq!(used(100.0, 600.0).loss_share, Some(1.0));
}

#[test]
fn a_share_of_no_time_is_not_known() {
    assert_eq!(used(0.0, 5.0).loss_share, None);
    assert_eq!(used(0.0, 0.0).loss_share, Some(0.0), "nothing was lost");
}

#[test]
fn a_sum_lacks_what_one_lacks() {
    let one = used(100.0, 60.0);
    let other = Figures {
        huge_bytes: None,
        ..used(300.0, 0.0)
    };
    let mut gaps = Gaps::default();
    let sum = Figures::sum([&one, &other].into_iter());
    sum.explain_sum(&mut gaps);
    assert_eq!((sum.cpu_ns, sum.loss_ns), (Some(400.0), Some(60.0)));
    assert_eq!((sum.loss_share, sum.faults), (Some(0.15), Some(2.0)));
    assert_eq!(sum.huge_bytes, None);
    let of_memory = |gap: &&Gap| gap.fields == ["huge_bytes"];
    assert!(gaps.all().iter().any(|gap| of_memory(&gap)), "{gaps:?}");
}

#[test]
fn a_counter_that_is_missing_has_a_reason() {
    let error = value(&[], Scope::Cgroup, "tlb_shootdowns_sent").unwrap_err();
    assert!(error.reason.ends_with("for a cgroup"), "{}", error.reason);
}
