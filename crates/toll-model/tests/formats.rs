// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files are read as they were written, and invalid content is reported.

mod common;

use common::any_profile;
use proptest::prelude::*;
use toll_model::cost::CostTable;
use toll_model::error::FormatError;
use toll_model::estimate::{Options, estimate};
use toll_model::plan::Plan;
use toll_model::profile::{Profile, Stack};
use toll_testkit::model::{costs, regions};

/// Expected error text, and the change that causes it.
type Case<T> = (&'static str, fn(&mut T));

fn stack(frames: &[&str], misses: f64) -> Stack {
    let frames = frames.iter().map(|name| (*name).into());
    Stack {
        frames: frames.collect(),
        misses,
    }
}

fn plan() -> Plan {
    estimate(&regions(&[5e6, 1.0, 7e6]), &costs(), Options::default())
}

fn profile_error(change: impl Fn(&mut Profile)) -> String {
    let mut profile = regions(&[5.0, 6.0]);
    change(&mut profile);
    let written = profile
        .to_json()
        .expect_err("must not be written")
        .to_string();
    // The same file, written without checks.
    let text = serde_json::to_string(&profile).expect("JSON");
    match Profile::from_json(text) {
        Ok(_) => panic!("read: {written}"),
        Err(FormatError::Damaged { .. }) => written,
        Err(error) => {
            assert_eq!(written, error.to_string());
            written
        }
    }
}

#[test]
fn impossible_profiles_are_named() {
    let cases: [Case<Profile>; 16] = [
        ("row 0: misses is NaN", |p| {
            p.sites[0].rows[0].misses = f64::NAN
        }),
        ("row 1: misses is -1", |p| p.sites[0].rows[1].misses = -1.0),
        ("row 1: accesses is inf", |p| {
            p.sites[0].rows[1].accesses = f64::INFINITY
        }),
        ("dependent is above 1", |p| {
            p.sites[0].rows[0].dependent = Some(1.5)
        }),
        ("reuse_log2 is above 64", |p| {
            p.sites[0].rows[0].reuse_log2 = Some(65.0)
        }),
        ("lies before 0x200000", |p| p.sites[0].rows[1].offset = 4096),
        ("lies before", |p| p.sites[0].rows.swap(0, 1)),
        ("overflows", |p| p.sites[0].rows[1].length = u64::MAX - 4095),
        ("behind its length", |p| p.sites[0].site.length = 4096),
        ("not multiples of 4096", |p| {
            p.sites[0].rows[1].length = 5000
        }),
        ("touched_pages is 513, of 512", |p| {
            p.sites[0].rows[0].touched_pages = 513
        }),
        ("its id is taken", |p| p.sites.push(p.sites[0].clone())),
        ("misalignment 0x200000", |p| {
            p.sites[0].site.misalignment = 2 << 20
        }),
        ("sampled is 0", |p| p.sampled = 0.0),
        ("stack 0: it has no frame", |p| {
            p.stacks.push(stack(&[], 1.0))
        }),
        ("stack 0: misses is -1", |p| {
            p.stacks.push(stack(&["f"], -1.0))
        }),
    ];
    for (expected, change) in cases {
        let error = profile_error(change);
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(error.starts_with("profile: "), "{error}");
    }
}

#[test]
fn code_stacks_are_read_as_they_were_written() {
    let mut profile = regions(&[5.0, 6.0]);
    assert!(!profile.to_json().unwrap().contains("stacks"));
    profile.stacks = vec![stack(&["f", "main"], 7.5), stack(&["g", "main"], 3.0)];
    let text = profile.to_json().unwrap();
    assert_eq!(text.matches("main").count(), 1, "each name once: {text}");
    assert_eq!(Profile::from_json(&text).unwrap(), profile);
    let wrong = text.replace("\"frames\":[2,1]", "\"frames\":[2,9]");
    let error = Profile::from_json(wrong).unwrap_err().to_string();
    assert!(error.contains("stack 1: there is no function 9"), "{error}");
}

#[test]
fn foreign_files_are_told_from_damaged_ones() {
    let table = costs().to_json().unwrap();
    let profile = regions(&[1.0]).to_json().unwrap();
    let cases = [
        (Vec::new(), "not a profile: the file is empty"),
        (
            b"PERFILE2\x68".to_vec(),
            "this is perf.data (see tollfree import)",
        ),
        (b"\x7fELF\x02\x01".to_vec(), "this is a program"),
        (b"GET / HTTP/1.1".to_vec(), "does not begin like one"),
        (b"{}".to_vec(), "no field \"format\""),
        (table.into_bytes(), "its format is \"tollfree-costs\""),
        (
            profile
                .replace("\"version\":1", "\"version\":9")
                .into_bytes(),
            "format version 9; this build reads version 1",
        ),
        (
            profile.as_bytes()[..profile.len() / 2].to_vec(),
            "damaged or cut short",
        ),
        (
            profile
                .replace("\"frames\":[0,1]", "\"frames\":[0,7]")
                .into_bytes(),
            "site 0: there is no frame 7",
        ),
    ];
    for (bytes, expected) in cases {
        let error = Profile::from_json(&bytes).expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let error = Plan::from_toml(b"\xff\xfe not a plan")
        .unwrap_err()
        .to_string();
    assert!(error.contains("not a plan"), "{error}");
}

#[test]
fn a_plan_names_what_is_wrong_with_it() {
    let cases: [Case<Plan>; 7] = [
        ("no such site", |p| p.regions[1].site = 7),
        ("begins before", |p| p.regions[1].offset = 4096),
        ("cost_ns is NaN", |p| p.regions[0].cost_ns = f64::NAN),
        ("benefit_ns is -1", |p| p.regions[0].benefit_ns = -1.0),
        ("within 2 MiB", |p| p.regions[0].length = 4 << 20),
        ("predicted_speedup is no estimate", |p| {
            p.predicted_speedup.low = 9.0
        }),
        ("its id is taken", |p| p.sites.push(p.sites[0].clone())),
    ];
    for (expected, change) in cases {
        let mut plan = plan();
        change(&mut plan);
        let error = plan.to_toml().expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_cost_table_names_what_is_wrong_with_it() {
    let cases: [Case<CostTable>; 6] = [
        ("collapse: low", |t| t.collapse.low = 1e12),
        ("fault_4k: median is NaN", |t| t.fault_4k.median = f64::NAN),
        ("grid of 0 points", |t| t.walk.clear()),
        ("has this point already", |t| t.walk.push(t.walk[0])),
        ("bloat_page is -1", |t| t.bloat_page = -1.0),
        ("0 ways", |t| t.tlb.l2_4k.ways = 0),
    ];
    for (expected, change) in cases {
        let mut table = costs();
        change(&mut table);
        let error = table.to_json().expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn every_cut_of_a_plan_is_noticed() {
    let text = plan().to_toml().unwrap();
    for end in 0..text.len() - 1 {
        let cut = Plan::from_toml(&text[..end]);
        assert!(
            cut.is_err(),
            "cut at {end} of {} went unnoticed",
            text.len()
        );
    }
    assert_eq!(Plan::from_toml(&text).unwrap(), plan());
}

#[test]
fn every_cut_of_a_profile_or_a_cost_table_is_noticed() {
    let profile = regions(&[1.0, 2.0]).to_json().unwrap();
    let table = costs().to_json().unwrap();
    for end in 0..profile.len() {
        assert!(Profile::from_json(&profile[..end]).is_err(), "{end}");
    }
    for end in 0..table.len() {
        assert!(CostTable::from_json(&table[..end]).is_err(), "{end}");
    }
}

/// Changes some bytes of a file.
fn mutated(text: &str, changes: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for &(at, byte) in changes {
        let at = at % bytes.len();
        bytes[at] = byte;
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn profiles_come_back(profile in any_profile()) {
        let text = profile.to_json().unwrap();
        prop_assert_eq!(Profile::from_json(text).unwrap(), profile);
    }

    #[test]
    fn plans_come_back(profile in any_profile(), top in prop::option::of(0u64..9)) {
        let plan = estimate(&profile, &costs(), Options { top, ..Options::default() });
        let text = plan.to_toml().unwrap();
        prop_assert_eq!(Plan::from_toml(text).unwrap(), plan);
    }

    #[test]
    fn mutated_files_never_panic(
        profile in any_profile(),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..6),
        printable in prop::collection::vec((any::<usize>(), prop::sample::select(b"0123456789-.e\",:[]{}n".to_vec())), 1..6),
    ) {
        let plan = estimate(&profile, &costs(), Options::default());
        for changes in [changes, printable] {
            let files = [profile.to_json().unwrap(), plan.to_toml().unwrap(), costs().to_json().unwrap()];
            let [one, two, three] = files.map(|text| mutated(&text, &changes));
            if let Ok(profile) = Profile::from_json(one) {
                // What is taken can be estimated.
                estimate(&profile, &costs(), Options::default()).to_toml().unwrap();
            }
            if let Ok(plan) = Plan::from_toml(two) {
                toll_model::actions::compile(&plan, &|f| Some(toll_model::actions::FrameRange::recorded(f))).to_bytes();
            }
            if let Ok(costs) = CostTable::from_json(three) {
                estimate(&profile, &costs, Options::default()).to_toml().unwrap();
            }
        }
    }
}

/// Tables of the version before have no costs of events, and those that have none are written so.
#[test]
fn costs_of_events_are_optional_and_checked() {
    use toll_model::cost::Measured;
    let plain = costs();
    let text = plain.to_json().unwrap();
    assert!(!text.contains("events"), "{text}");
    assert_eq!(CostTable::from_json(&text).unwrap().events, plain.events);
    let mut with = costs();
    let cost = Measured {
        median: 2.0,
        low: 1.0,
        high: 3.0,
    };
    with.events.shootdown_sent = Some(cost);
    let text = with.to_json().unwrap();
    assert_eq!(CostTable::from_json(&text).unwrap().events, with.events);
    with.events.fault_major = Some(Measured { low: 9.0, ..cost });
    let error = with.to_json().unwrap_err().to_string();
    assert!(
        error.contains("fault_major") && error.contains("out of order"),
        "{error}"
    );
}
