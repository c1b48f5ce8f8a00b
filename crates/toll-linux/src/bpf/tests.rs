// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::HashSet;
use std::sync::Mutex;

use toll_model::losses::{self, EventCosts};
use toll_testkit::Directory;

use super::*;

/// Maps without a kernel.
#[derive(Debug, Default, Clone)]
struct Fake(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    sums: Vec<(Key, Totals)>,
    followed: Vec<u32>,
    lost: u64,
    fails: bool,
}

impl Table for Fake {
    fn sums(&self) -> io::Result<Vec<(Key, Totals)>> {
        let state = self.0.lock().unwrap();
        match state.fails {
            true => Err(io::Error::from_raw_os_error(libc::ENOMEM)),
            false => Ok(state.sums.clone()),
        }
    }

    fn remove(&self, key: Key) {
        let mut state = self.0.lock().unwrap();
        state.sums.retain(|(other, _)| *other != key);
    }

    fn lost(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().lost)
    }

    fn followed(&self) -> io::Result<Vec<u32>> {
        Ok(self.0.lock().unwrap().followed.clone())
    }

    fn follow(&self, process: u32, _: bool) -> io::Result<()> {
        self.0.lock().unwrap().followed.push(process);
        Ok(())
    }

    fn forget(&self, process: u32) {
        self.0
            .lock()
            .unwrap()
            .followed
            .retain(|other| *other != process);
    }
}

impl Fake {
    fn add(&self, process: u32, cpu: u32, totals: Totals) {
        let key = Key { process, cpu };
        self.0.lock().unwrap().sums.push((key, totals));
    }

    fn probes(&self) -> Probes {
        Probes::new(Box::new(self.clone()), MissingParts::new())
    }
}

fn shootdowns(count: u64) -> Totals {
    Totals::default().with(Event::Shootdown, count, 0)
}

#[test]
fn sums_are_over_cpus() {
    let fake = Fake::default();
    fake.add(7, 0, shootdowns(3));
    fake.add(7, 1, shootdowns(4).with(Event::Reclaim, 2, 500));
    fake.add(8, 1, shootdowns(10));
    let sums = fake.probes().read().unwrap();
    assert_eq!(sums.of_process(7).shootdowns(), Ok(7));
    assert_eq!(sums.of_process(9).shootdowns(), Ok(0));
    let mut snapshot = Snapshot::default();
    sums.set(Scope::Machine, &mut snapshot);
    let value = |name| snapshot.value(Scope::Machine, name);
    assert_eq!(value("tlb_shootdowns_sent"), Some(17));
    assert_eq!(value("delay_reclaim"), Some(500));
    assert_eq!(value("direct_reclaims"), Some(2));
    assert_eq!(value("bpf_lost"), None);
}

/// Another process may get the id of one that has ended; the machine keeps the sum.
#[test]
fn ended_processes_stay_in_the_sum_of_all() {
    let fake = Fake::default();
    fake.add(7, 0, shootdowns(3));
    fake.add(8, 0, shootdowns(10));
    let mut probes = fake.probes();
    let living = HashSet::from([8]);
    let sums = probes.read().unwrap();
    probes.keep_only(&sums, |process| living.contains(&process));
    assert_eq!(fake.0.lock().unwrap().sums.len(), 1);
    let sums = probes.read().unwrap();
    assert_eq!(sums.all.shootdowns(), Ok(13));
    assert_eq!(sums.of_process(7).shootdowns(), Ok(0));
}

#[test]
fn ended_processes_are_not_followed() {
    let machine = Directory::with(&[("proc/8/stat", "")]);
    let fake = Fake::default();
    let probes = fake.probes();
    probes.follow(&[7, 8]);
    probes.forget_ended(&Root::at(machine.as_path()));
    assert_eq!(fake.0.lock().unwrap().followed, [8]);
    probes.follow_own_forks();
    assert!(
        fake.0
            .lock()
            .unwrap()
            .followed
            .contains(&std::process::id())
    );
    probes.leave_own_forks();
    assert_eq!(fake.0.lock().unwrap().followed, [8]);
}

#[test]
fn the_kernels_own_numbers_stay_and_measured_times_replace_others() {
    let fake = Fake::default();
    let totals = shootdowns(5).with(Event::Compaction, 1, 900);
    fake.add(0, 0, totals);
    let mut snapshot = Snapshot::default();
    snapshot.set(Scope::Machine, "tlb_shootdowns_sent", Ok(6));
    snapshot.set(Scope::Machine, "delay_compaction", Ok(1));
    let missing = Missing::without_fix("no counter");
    snapshot.set(Scope::Machine, "direct_compactions", Err(missing));
    fake.probes()
        .read()
        .unwrap()
        .set(Scope::Machine, &mut snapshot);
    let value = |name| snapshot.value(Scope::Machine, name);
    assert_eq!(value("tlb_shootdowns_sent"), Some(6));
    assert_eq!(value("delay_compaction"), Some(900));
    assert_eq!(value("direct_compactions"), Some(1));
}

#[test]
fn a_part_that_did_not_start_has_its_reason() {
    let missing = Missing::without_fix("no such function");
    let parts = MissingParts::from([(Part::Faults, missing.clone())]);
    let fake = Fake::default();
    fake.add(0, 0, shootdowns(5));
    let probes = Probes::new(Box::new(fake), parts);
    assert!(probes.counts("tlb_shootdowns_sent") && !probes.counts("fault_time"));
    let mut snapshot = Snapshot::default();
    probes.read().unwrap().set(Scope::Tree, &mut snapshot);
    let costs = EventCosts::of(&crate::calibrate::default_costs());
    let counters = losses::counters(&snapshot, &snapshot, &costs);
    let of = |name: &str| {
        counters
            .iter()
            .find(|counter| counter.name == name)
            .unwrap()
    };
    assert_eq!(of("fault_time").missing, Some(missing));
    assert_eq!(of("tlb_shootdowns_sent").source, Some("bpf"));
}

#[test]
fn lost_events_and_failed_reads_are_told() {
    let fake = Fake::default();
    fake.0.lock().unwrap().lost = 3;
    let mut snapshot = Snapshot::default();
    fake.probes()
        .read()
        .unwrap()
        .set(Scope::Machine, &mut snapshot);
    assert_eq!(snapshot.value(Scope::Machine, "bpf_lost"), Some(3));
    fake.0.lock().unwrap().fails = true;
    let reason = fake.probes().read().unwrap_err().reason;
    assert!(reason.starts_with("BPF: reading: "), "{reason}");
}

/// The sums have the layout of `bpf/abi.h`.
#[test]
fn the_layout_is_that_of_the_header() {
    assert_eq!((size_of::<Key>(), size_of::<Totals>()), (8, 5 * 16 + 8));
    let header = include_str!("../../bpf/abi.h");
    let enumerators = |prefix: &str| -> Vec<&str> {
        let words = header.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
        words.filter(|word| word.starts_with(prefix)).collect()
    };
    let modes = [
        "MODE_MACHINE",
        "MODE_PROCESSES",
        "MODE_CGROUP",
        "MODE_FOLLOWED",
    ];
    assert_eq!(enumerators("MODE_"), modes);
    let events = [
        "EVENT_SHOOTDOWN",
        "EVENT_FAULT",
        "EVENT_FAULT_SLEPT",
        "EVENT_RECLAIM",
        "EVENT_COMPACTION",
    ];
    assert_eq!(enumerators("EVENT_"), events);
}

#[test]
fn fixtures_are_judged_by_their_files() {
    let machine = Directory::empty();
    let root = Root::at(machine.as_path());
    assert!(probe(&root).unwrap_err().reason.contains("BTF"));
    machine.write("sys/kernel/btf/vmlinux", "");
    assert_eq!(probe(&root), Ok(Vec::new()));
}

/// Either the programs run here, or there is a reason with the word BPF.
#[test]
fn this_machine_counts_or_says_why_not() {
    match Probes::open(&Root::system(), &Of::Machine) {
        Ok(probes) => {
            let sums = probes.read().unwrap();
            assert!(probes.missing.len() < PARTS.len());
            assert_eq!(sums.lost, 0);
        }
        Err(missing) => {
            assert!(missing.reason.contains("BPF"), "{}", missing.reason);
            eprintln!("skipped: {}", missing.reason);
        }
    }
}
