// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn a_policy_is_written_before_anything_runs() {
    let policy = Policy {
        name: "never".to_owned(),
        variants: Vec::new(),
        profiles: true,
        kernel: Vec::new(),
        set: [("/sys/x".to_owned(), "never".to_owned())].into(),
    };
    assert_eq!(
        setting(&policy, 0).command[3],
        "echo 'never' > '/sys/x' && echo 0 > /tmp/round"
    );
    let nothing = Policy {
        set: BTreeMap::new(),
        ..policy
    };
    assert_eq!(setting(&nothing, 2).command[3], "echo 2 > /tmp/round");
}

#[test]
fn a_day_has_ten_letters() {
    assert_eq!(today().unwrap().len(), 10);
}
