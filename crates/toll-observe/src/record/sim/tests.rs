// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_act::actuate::{Actuator, Policy, Settings};

use super::*;

#[test]
fn a_program_without_a_right_to_huge_pages_is_simulated_without_them() {
    let actuator = |policy: &Policy| {
        let command = ["/bin/true".into()];
        Actuator::new(policy, &command, Settings::default()).unwrap()
    };
    let mode = |actuator: Option<Actuator>| {
        thp_mode(&RecordOptions {
            actuator,
            ..RecordOptions::default()
        })
    };
    assert_eq!(mode(Some(actuator(&Policy::Never))), "never");
    // Otherwise it is the machine's.
    assert_eq!(mode(Some(actuator(&Policy::All))), mode(None));
}

#[test]
fn commas_are_doubled() {
    assert_eq!(
        doubled_commas("/a,b/c.so".as_ref()),
        OsString::from("/a,,b/c.so")
    );
}

#[test]
fn the_tighter_limit_counts() {
    let options = RecordOptions {
        limit: Some(Duration::from_secs(30)),
        native: Some(Duration::from_secs(1)),
        ..RecordOptions::default()
    };
    assert_eq!(time_limit(&options).0, Duration::from_secs(20));
    let options = RecordOptions {
        limit: Some(Duration::from_secs(10)),
        ..options
    };
    assert_eq!(time_limit(&options).0, Duration::from_secs(10));
}
