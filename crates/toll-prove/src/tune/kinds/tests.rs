// SPDX-License-Identifier: MIT OR Apache-2.0
use toll_linux::calibrate::default_costs;
use toll_linux::sys::Hugetlb;
use toll_model::estimate::{Options, estimate};
use toll_observe::observation::TextUse;

use super::*;
use crate::tune::decide::tests::mock::{MIB, profile};

fn text(path: &str, touched: u64, length: u64) -> TextUse {
    TextUse {
        path: path.to_owned(),
        touched,
        huge: 0,
        length,
    }
}

fn look(text: Vec<TextUse>) -> Observation {
    Observation {
        text,
        anonymous: 5 * MIB,
        ..Observation::default()
    }
}

fn machine() -> Machine {
    Machine {
        text_reach: 256 << 10,
        ..Machine::default()
    }
}

#[test]
fn text_pays_only_beyond_the_reach_of_the_instruction_tlb() {
    let small = look(vec![text("/bin/a", 200 << 10, 8 * MIB)]);
    let why = hot_text(&small, &machine()).unwrap_err();
    assert!(why.contains("200 KiB") && why.contains("256 KiB"), "{why}");
    let hot = look(vec![
        text("/bin/a", 3 * MIB, 8 * MIB),
        text("/lib/b.so", MIB, 4 * MIB),
        text("/lib/c.so", 64 << 10, 4 * MIB),
        text("/lib/d.so", MIB, MIB),
        text("/memfd:jit (deleted)", 0, 4 * MIB),
    ]);
    let found = hot_text(&hot, &machine()).unwrap();
    let paths: Vec<&str> = found.iter().map(|text| text.path.as_str()).collect();
    // The third is hardly touched, the fourth too short for a huge page.
    assert_eq!(paths, ["/bin/a", "/lib/b.so"]);
    assert_eq!(found[0].touched_bytes, 3 * MIB);
}

#[test]
fn short_segments_and_programs_without_the_library_are_reasons() {
    let short = look(vec![text("/bin/a", MIB, MIB)]);
    let why = hot_text(&short, &machine()).unwrap_err();
    assert!(why.contains("no segment of 2 MiB"), "{why}");
    let fixed = Machine {
        obstacle: Some("statically linked".to_owned()),
        ..machine()
    };
    let hot = look(vec![text("/bin/a", 8 * MIB, 8 * MIB)]);
    let why = hot_text(&hot, &fixed).unwrap_err();
    assert!(why.contains("statically linked"), "{why}");
}

fn reasons(machine: &Machine, profile: &Profile) -> Vec<Kind> {
    reasons_with(machine, profile, 0.01)
}

fn reasons_with(machine: &Machine, profile: &Profile, fault_share: f64) -> Vec<Kind> {
    let plan = estimate(profile, &default_costs(), Options::default());
    Evidence {
        look: &look(Vec::new()),
        machine,
        profile: Some(profile),
        plan: Some(&plan),
        ran: vec![PageKind::Anonymous],
        has_glibc: true,
        fault_share: Some(fault_share),
    }
    .kinds()
}

fn reason(kinds: &[Kind], pages: PageKind) -> &str {
    let found = kinds.iter().find(|kind| kind.pages == pages);
    &found.unwrap().reason
}

#[test]
fn each_kind_has_a_reason() {
    let kinds = reasons(&machine(), &profile());
    assert_eq!(kinds.len(), PageKind::ALL.len());
    assert!(kinds[0].tried && kinds[1..].iter().all(|kind| !kind.tried));
    assert!(kinds.iter().all(|kind| !kind.reason.is_empty()));
    assert!(reason(&kinds, PageKind::Shared).starts_with("0 % of the misses"));
}

#[test]
fn what_the_machine_forbids_is_named_with_its_fix() {
    let mut shared = profile();
    shared.sites[0].site.kind = SiteKind::Shared {
        path: "/dev/shm/x".to_owned(),
    };
    let deny = Machine {
        shared_forbidden: true,
        ..machine()
    };
    let kinds = reasons(&deny, &shared);
    let why = reason(&kinds, PageKind::Shared);
    assert!(why.contains("shmem_enabled is deny: as root"), "{why}");
    let kinds = reasons(&machine(), &shared);
    let why = reason(&kinds, PageKind::Shared);
    assert!(why.contains("no region of it pays"), "{why}");
    let why = reason(&kinds, PageKind::Anonymous);
    assert_eq!(why, "only as part of everything huge: no region of it pays");
    let why = reason(&kinds, PageKind::Hugetlb2m);
    assert!(why.contains("no plan has anonymous memory"), "{why}");
}

#[test]
fn a_pool_needs_room_for_all_anonymous_memory() {
    let pool = |page, free| Hugetlb {
        page,
        total: 7,
        free,
        overcommit: 0,
    };
    let machine = Machine {
        pools: vec![pool(REGION, 2), pool(GIB, 1)],
        ..machine()
    };
    assert!(!machine.has_pool(REGION, 5 * MIB) && machine.has_pool(REGION, 4 * MIB));
    assert!(machine.has_pool(GIB, 5 * MIB));
    let kinds = reasons(&machine, &profile());
    let why = reason(&kinds, PageKind::Hugetlb2m);
    // Five pages are in use, three are needed.
    assert!(
        why.contains("2 of the 3 pages") && why.contains("echo 8 >"),
        "{why}"
    );
}

#[test]
fn programs_and_libraries_are_no_data() {
    let mut mapped = profile();
    let why = |profile: &Profile| {
        let kinds = reasons(&machine(), profile);
        reason(&kinds, PageKind::File).to_owned()
    };
    for (build_id, expected) in [("", "run --morsel"), ("00ff", "0 % of the misses")] {
        mapped.sites[0].site.kind = SiteKind::File {
            build_id: build_id.to_owned(),
            path: "/data".to_owned(),
        };
        assert!(why(&mapped).contains(expected), "{}", why(&mapped));
    }
}

#[test]
fn smaller_sizes_pay_for_short_blocks() {
    let mut short = profile();
    let site = &mut short.sites[0].site;
    site.kind = SiteKind::Alloc {
        frames: Vec::new(),
        class: 20,
        ordinal: 0,
        thread: 0,
        shared: false,
    };
    site.length = MIB;
    let sizes = |mode| Machine {
        sizes: vec![(64 << 10, mode)],
        ..machine()
    };
    let why = |machine: &Machine| reason(&reasons(machine, &short), PageKind::Mthp).to_owned();
    assert!(
        why(&sizes(Mode::Never)).contains("setting of the machine: as root, `tune --mthp 64K`")
    );
    assert!(why(&sizes(Mode::Madvise)).contains("64 KiB need advice"));
    assert!(why(&sizes(Mode::Always)).contains("64 KiB are used already"));
    assert!(why(&machine()).contains("no such sizes"));
    let kinds = reasons(&sizes(Mode::Never), &profile());
    let why = reason(&kinds, PageKind::Mthp);
    assert!(
        why.starts_with("0 % of the misses") && !why.contains("--mthp"),
        "{why}"
    );
    let kinds = reasons_with(&sizes(Mode::Never), &profile(), 0.08);
    let why = reason(&kinds, PageKind::Mthp);
    assert!(
        why.contains("about 8.0 % of the CPU time is in page faults"),
        "{why}"
    );
    assert!(why.contains("--mthp"), "{why}");
}
