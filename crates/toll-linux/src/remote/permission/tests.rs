// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn user(id: u32) -> Status {
    Status {
        tgid: 10,
        uid: [id; 3],
        gid: [id; 3],
        rss: Some(4096),
        ..Status::default()
    }
}

fn root() -> Status {
    Status {
        effective_capabilities: u64::MAX,
        ..user(0)
    }
}

#[test]
fn own_programs_may_be_stopped() {
    let none = |target: &Status, own: &Status, relation, yama| {
        assert_eq!(objection(target, own, relation, yama), None);
    };
    none(&user(1000), &user(1000), Relation::Stranger, 0);
    none(&user(1000), &user(1000), Relation::Child, 1);
    none(&user(1000), &root(), Relation::Stranger, 2);
}

#[test]
fn only_foreign_filters_are_feared() {
    let filtered = |filters| Status {
        seccomp: 2,
        seccomp_filters: filters,
        ..user(1000)
    };
    let ours = filtered(Some(1));
    let case = |target: &Status, relation| objection(target, &ours, relation, 0);
    assert_eq!(case(&ours, Relation::Child), None);
    assert_eq!(case(&ours, Relation::Neighbour), None);
    assert!(case(&ours, Relation::Stranger).is_some());
    // The child has added one.
    assert!(case(&filtered(Some(2)), Relation::Child).is_some());
    // A kernel without the count.
    let unknown = filtered(None);
    assert!(objection(&unknown, &unknown, Relation::Child, 0).is_some());
    let strict = Status {
        seccomp: 1,
        ..ours.clone()
    };
    assert!(case(&strict, Relation::Child).is_some());
}

#[test]
fn each_objection_is_named() {
    let traced = Status {
        tracer: 7,
        ..user(1000)
    };
    let filtered = Status {
        seccomp: 2,
        ..user(1000)
    };
    let kernel = Status {
        rss: None,
        ..user(0)
    };
    let mut setuid = user(1000);
    setuid.uid[1] = 0;
    let cases = [
        (traced, root(), 0, "traces"),
        (filtered, root(), 0, "seccomp"),
        (kernel, root(), 0, "kernel thread"),
        (setuid, user(1000), 0, "setuid"),
        (user(1000), user(1001), 0, "another user"),
        (user(1000), user(1000), 1, "ptrace_scope = 1"),
        (user(1000), root(), 3, "ptrace_scope"),
    ];
    for (target, own, yama, word) in cases {
        let said = objection(&target, &own, Relation::Stranger, yama).expect(word);
        assert!(said.contains(word), "{said}");
    }
}
