// SPDX-License-Identifier: MIT OR Apache-2.0
use super::super::tests::example;
use super::*;

fn count(condition: &str, vanilla: f64, tollfree: f64) -> usize {
    let results = example(&[vanilla], &[tollfree]);
    let condition: Condition = condition.parse().unwrap();
    holds(&condition, &results).unwrap().len()
}

#[test]
fn a_change_is_against_the_first_variant() {
    assert_eq!(count("shootdown_irqs>+5%", 100.0, 105.0), 0);
    assert_eq!(count("shootdown_irqs>+5%", 100.0, 106.0), 1);
    assert_eq!(count("shootdown_irqs > 5 %", 100.0, 106.0), 1);
    assert_eq!(count("shootdown_irqs<-99%", 100.0, 0.5), 1);
    assert_eq!(count("shootdown_irqs<-99%", 100.0, 1.5), 0);
    assert_eq!(count("shootdown_irqs>0%", 0.0, 1.0), 1);
}

#[test]
fn a_value_is_for_every_variant() {
    assert_eq!(count("shootdown_irqs>99", 100.0, 101.0), 2);
    assert_eq!(count("shootdown_irqs<100.5", 100.0, 101.0), 1);
}

#[test]
fn a_requirement_is_of_every_run() {
    let results = example(&[100.0, 5.0], &[100.0]);
    let broken = |text: &str| broken(&text.parse().unwrap(), &results);
    assert_eq!(broken("shootdown_irqs>1"), Vec::<String>::new());
    let found = broken("shootdown_irqs>10");
    assert_eq!(
        found,
        ["vanilla, default: shootdown_irqs>10 is required, found 5"]
    );
    assert_eq!(broken("nothing>0").len(), 3);
    assert_eq!(broken("shootdown_irqs>+5%").len(), 1);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let results = example(&[1.0], &[1.0]);
    let unknown: Condition = "nothing>5".parse().unwrap();
    assert!(holds(&unknown, &results).unwrap_err().contains("nothing"));
    let mut one = results;
    one.environment.kernels.truncate(1);
    let change: Condition = "walks>+5%".parse().unwrap();
    assert!(holds(&change, &one).unwrap_err().contains("two variants"));
}
