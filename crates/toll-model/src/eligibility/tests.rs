// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;

const ALWAYS: Policy = Policy {
    mode: Mode::Always,
    shmem: HugeOption::Never,
    disabled: false,
    group_is_full: false,
    khugepaged_is_off: false,
};

/// 9 MiB of anonymous memory that contain 8 MiB in regions, all resident, 4 MiB of it huge.
fn facts() -> Facts {
    Facts {
        start: 0x7f00_0000_0000 - MIB / 2,
        end: 0x7f00_0000_0000 + 8 * MIB + MIB / 2,
        offset: 0,
        backing: Backing::Anonymous,
        advice: Advice::None,
        userfaultfd: false,
        eligible: None,
        resident: 9 * MIB,
        huge: 4 * MIB,
        copied: 0,
        edges: MIB,
        sparse: 0,
    }
}

fn shares(facts: Facts, policy: Policy) -> Vec<(Reason, u64)> {
    let verdict = facts.judge(&policy);
    let sum: u64 = verdict.shares.iter().map(|share| share.bytes).sum();
    assert_eq!(sum + facts.huge, facts.resident, "{facts:?}");
    verdict
        .shares
        .iter()
        .map(|share| (share.reason, share.bytes))
        .collect()
}

#[test]
fn what_is_allowed_waits_for_khugepaged_but_for_the_edges() {
    let expected = vec![(Reason::Edge, MIB), (Reason::Waiting, 4 * MIB)];
    assert_eq!(shares(facts(), ALWAYS), expected);
    assert_eq!(facts().judge(&ALWAYS).eligible, 8 * MIB);
}

#[test]
fn settings_forbid_in_their_order() {
    let madvise = Policy {
        mode: Mode::Madvise,
        ..ALWAYS
    };
    let never = Policy {
        mode: Mode::Never,
        ..ALWAYS
    };
    let missing = Policy {
        mode: Mode::Missing,
        ..ALWAYS
    };
    let disabled = Policy {
        disabled: true,
        ..never
    };
    let advised = |advice| Facts { advice, ..facts() };
    let table = [
        (facts(), madvise, Reason::NotAdvised),
        (advised(Advice::Huge), madvise, Reason::Waiting),
        (advised(Advice::Huge), never, Reason::Never),
        (advised(Advice::Never), ALWAYS, Reason::AdvisedNever),
        (advised(Advice::Huge), disabled, Reason::Disabled),
        (facts(), missing, Reason::Missing),
        (
            Facts {
                userfaultfd: true,
                ..facts()
            },
            ALWAYS,
            Reason::Userfaultfd,
        ),
        (
            Facts {
                eligible: Some(false),
                ..facts()
            },
            ALWAYS,
            Reason::Refused,
        ),
        (
            Facts {
                eligible: Some(false),
                ..facts()
            },
            madvise,
            Reason::NotAdvised,
        ),
        (
            facts(),
            Policy {
                group_is_full: true,
                ..ALWAYS
            },
            Reason::GroupFull,
        ),
        (
            facts(),
            Policy {
                khugepaged_is_off: true,
                ..ALWAYS
            },
            Reason::NoKhugepaged,
        ),
    ];
    for (facts, policy, reason) in table {
        let expected = vec![(Reason::Edge, MIB), (reason, 4 * MIB)];
        assert_eq!(shares(facts, policy), expected, "{facts:?} {policy:?}");
    }
    let all = advised(Advice::Never).judge(&disabled);
    assert_eq!(all.also, [Reason::AdvisedNever, Reason::Never]);
    assert_eq!(all.eligible, 0);
}

#[test]
fn geometry_comes_before_settings() {
    let never = Policy {
        mode: Mode::Never,
        ..ALWAYS
    };
    let at = |start: u64, end: u64| Facts {
        start,
        end,
        resident: 64 * KIB,
        huge: 0,
        edges: 0,
        ..facts()
    };
    let base = 0x7f00_0000_0000;
    let table = [
        (at(base, base + MIB), Reason::Short),
        (at(base + MIB, base + 3 * MIB + MIB / 2), Reason::Unaligned),
        (at(base, base + 2 * MIB), Reason::Never),
    ];
    for (facts, reason) in table {
        assert_eq!(shares(facts, never), [(reason, 64 * KIB)], "{facts:?}");
    }
    let shared = Facts {
        backing: Backing::Shared,
        offset: PAGE,
        ..at(base, base + 4 * MIB)
    };
    let always = Policy {
        shmem: HugeOption::Always,
        ..ALWAYS
    };
    assert_eq!(shares(shared, always), [(Reason::Offset, 64 * KIB)]);
    let verdict = shared.judge(&ALWAYS);
    assert_eq!(verdict.shares[0].reason, Reason::Shared);
    assert_eq!(verdict.also, [Reason::Offset]);
    let aligned = Facts {
        offset: 2 * MIB,
        ..shared
    };
    assert_eq!(shares(aligned, always), [(Reason::Waiting, 64 * KIB)]);
}

#[test]
fn shared_memory_has_settings_of_its_own() {
    let of = |backing, advice| Facts {
        backing,
        advice,
        offset: 0x7f00_0000_0000 - MIB / 2,
        ..facts()
    };
    let shmem = |shmem| Policy {
        shmem,
        mode: Mode::Never,
        ..ALWAYS
    };
    let tmpfs = Backing::Tmpfs;
    use HugeOption as H;
    let table = [
        (Backing::Shared, Advice::None, H::Never, Reason::Shared),
        (Backing::Shared, Advice::Huge, H::Never, Reason::Shared),
        (
            Backing::Shared,
            Advice::None,
            H::Advise,
            Reason::SharedNotAdvised,
        ),
        (Backing::Shared, Advice::Huge, H::Advise, Reason::Waiting),
        (
            Backing::Shared,
            Advice::None,
            H::WithinSize,
            Reason::Waiting,
        ),
        (tmpfs(H::Never), Advice::Huge, H::Always, Reason::Tmpfs),
        (tmpfs(H::Always), Advice::None, H::Never, Reason::Waiting),
        (tmpfs(H::Always), Advice::None, H::Deny, Reason::Shared),
        (tmpfs(H::Never), Advice::None, H::Force, Reason::Waiting),
    ];
    for (backing, advice, setting, reason) in table {
        let expected = vec![(Reason::Edge, MIB), (reason, 4 * MIB)];
        assert_eq!(shares(of(backing, advice), shmem(setting)), expected);
    }
}

#[test]
fn files_are_pages_of_the_file_or_private_copies() {
    let file = Facts {
        backing: Backing::File,
        copied: MIB,
        ..facts()
    };
    let expected = vec![(Reason::Copied, MIB), (Reason::File, 4 * MIB)];
    assert_eq!(shares(file, ALWAYS), expected);
    let kernel = Facts {
        backing: Backing::Kernel,
        ..facts()
    };
    assert_eq!(shares(kernel, ALWAYS), [(Reason::Kernel, 5 * MIB)]);
}

/// smaps and pagemap are read one after the other, so parts may exceed the whole.
#[test]
fn parts_never_exceed_the_whole() {
    let facts = Facts {
        edges: 100 * MIB,
        sparse: MIB,
        ..facts()
    };
    assert_eq!(shares(facts, ALWAYS), [(Reason::Edge, 5 * MIB)]);
    let facts = Facts {
        huge: 9 * MIB,
        ..facts
    };
    assert_eq!(shares(facts, ALWAYS), []);
}

#[test]
fn present_pages_are_edges_or_in_sparse_regions() {
    let (first, last) = (2 * MIB, 8 * MIB);
    let runs = [
        (MIB, 2 * MIB + 8 * KIB),
        (3 * MIB, 3 * MIB + 4 * KIB),
        (4 * MIB, 6 * MIB),
        (8 * MIB - 4 * KIB, 8 * MIB + 4 * KIB),
    ];
    let edges = MIB + 4 * KIB;
    assert_eq!(spread(&runs, (first, last), 511), (edges, 0));
    assert_eq!(spread(&runs, (first, last), 510), (edges, 4 * KIB));
    assert_eq!(spread(&runs, (first, last), 509), (edges, 4 * KIB));
    assert_eq!(spread(&runs, (first, last), 508), (edges, 16 * KIB));
    assert_eq!(spread(&runs, (first, last), 0), (edges, 16 * KIB));
    assert_eq!(spread(&[], (first, last), 0), (0, 0));
}
