// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_testkit::Directory;

use super::*;

fn stats(version: u16) -> Vec<u8> {
    let mut stats = vec![0u8; 448];
    stats[..2].copy_from_slice(&version.to_ne_bytes());
    for (at, ns) in [(56, 3u64), (320, 1), (336, 4), (360, 2)] {
        stats[at..at + 8].copy_from_slice(&ns.to_ne_bytes());
    }
    stats
}

#[test]
fn times_are_where_each_version_has_them() {
    assert_eq!(times(&stats(13)), Some((13, [1, 2, 3, 4])));
    assert_eq!(times(&stats(16)), Some((16, [1, 2, 3, 4])));
    assert_eq!(
        times(&stats(10)),
        Some((10, [1, 0, 3, 4])),
        "no compaction yet"
    );
    assert_eq!(times(&stats(15)), None, "fields moved");
    assert_eq!(times(&stats(13)[..330]), None, "cut short");
    assert_eq!(times(&[]), None);
}

#[test]
fn attributes_are_found_behind_others_and_padding() {
    let request = request(7, 1, BY_TGID, &42u32.to_ne_bytes());
    assert_eq!(request.len(), 28);
    assert_eq!(
        attribute(&request[HEADERS..], BY_TGID),
        Some(&42u32.to_ne_bytes()[..])
    );
    let mut two = vec![5, 0, 6, 0, 9, 0, 0, 0];
    two.extend(&request[HEADERS..]);
    assert_eq!(attribute(&two, BY_TGID), Some(&42u32.to_ne_bytes()[..]));
    assert_eq!(attribute(&two, 6), Some(&[9][..]));
    assert_eq!(attribute(&two, 3), None);
    for cut in 0..two.len() {
        attribute(&two[..cut], BY_TGID);
    }
    assert_eq!(attribute(&[0, 0, 0, 0], 1), None, "a length of 0 ends it");
}

#[test]
fn each_obstacle_has_its_fix() {
    let machine = Directory::empty();
    let none = refusal(&Root::at(machine.as_path())).unwrap();
    assert!(none.fix.unwrap().contains("CONFIG_TASK_DELAY_ACCT"));
    machine.write("proc/sys/kernel/task_delayacct", "0\n");
    let off = refusal(&Root::at(machine.as_path())).unwrap();
    assert!(off.fix.unwrap().contains("kernel.task_delayacct=1"));
}

/// The kernel answers for this process, or its refusal is explained.
#[test]
fn the_kernel_answers_or_says_why_not() {
    let root = Root::system();
    let mut delays = Delays::default();
    delays.look(&root, &[std::process::id()]);
    for value in delays.totals(&root) {
        if let Err(missing) = value {
            assert!(missing.fix.is_some(), "{missing:?}");
        }
    }
}

/// An ended process keeps its times, and a kernel that does not time compaction has no zero for it.
#[test]
fn ended_processes_are_remembered() {
    for version in [10, 13] {
        let Ok(connection) = Connection::connect() else {
            eprintln!("skipped: no netlink");
            return;
        };
        let mut delays = Delays {
            connection: Some(Ok(Connection {
                version,
                ..connection
            })),
            seen: BTreeMap::from([(1, [5, 0, 0, 0]), (2, [7, 1, 0, 0])]),
            ended: [0; 4],
        };
        delays.look(&Root::system(), &[]);
        let totals = delays.totals(&Root::system());
        assert_eq!(totals[0], Ok(12));
        assert_eq!(totals[1].is_ok(), version == 13);
    }
}
