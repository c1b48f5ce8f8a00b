// SPDX-License-Identifier: MIT OR Apache-2.0
//! The watcher: its selection as a pure function of mappings, and its effect on a process with a
//! growing heap.

use std::env;
use std::time::{Duration, Instant};

use toll_linux::proc::{InMemory, Kind, Mapping, maps, smaps};
use toll_linux::remote::RemoteProcess;
use toll_linux::watch::{Counters, Ranges, WatchPlan, Watcher, grown, heap_start, map_budget};
use toll_linux::{Root, accessed, sys};
use toll_model::{PAGE, REGION};
use toll_testkit::Directory;
use toll_testkit::model::mapping;
use toll_testkit::process::{Running, TARGET};

const BASE: u64 = 0x5600_0000_0000;

#[test]
fn shared_memory_is_wanted_by_its_place_in_the_file() {
    let plan = WatchPlan {
        files: vec![("/dev/shm/x".to_owned(), vec![(2 * REGION, 4 * REGION)])],
        ..WatchPlan::default()
    };
    let in_memory = InMemory::default();
    // A window of the file from its second region on.
    let mut window = mapping(BASE, BASE + 4 * REGION, "/dev/shm/x");
    (window.shared, window.offset, window.inode) = (true, REGION, 7);
    let wanted = |mapping: &Mapping, plan: &WatchPlan| {
        grown(std::slice::from_ref(mapping), plan, Some(&in_memory))
    };
    assert_eq!(wanted(&window, &plan), [BASE + REGION, BASE + 2 * REGION]);
    assert!(grown(std::slice::from_ref(&window), &plan, None).is_empty());
    let all = WatchPlan {
        all: true,
        ..WatchPlan::default()
    };
    assert_eq!(wanted(&window, &all).len(), 4);
    // A huge page does not fit at such an address, and a private mapping has copies.
    let mut shifted = window.clone();
    shifted.offset += PAGE;
    assert!(wanted(&shifted, &all).is_empty());
    window.shared = false;
    assert!(wanted(&window, &all).is_empty());
}

#[test]
fn ranges_merge_and_count() {
    let ranges = Ranges::new([(30, 40), (0, 10), (5, 20), (50, 50), (70, 60)]);
    assert_eq!(ranges.iter().collect::<Vec<_>>(), [(0, 20), (30, 40)]);
    assert_eq!(ranges.covered(0, 100), 30);
    assert_eq!(ranges.covered(10, 35), 15);
    assert_eq!(ranges.covered(20, 30), 0);
}

#[test]
fn a_heap_region_is_wanted_from_75_percent_on() {
    let heap = [mapping(BASE + REGION / 2, BASE + 4 * REGION, "[heap]")];
    // In the heap, the first whole region begins half a region from its start.
    let wants = |planned: u64| {
        let plan = WatchPlan {
            heap: vec![(REGION / 2, REGION / 2 + planned)],
            ..WatchPlan::default()
        };
        grown(&heap, &plan, None)
    };
    assert!(wants(REGION / 4 * 3 - PAGE).is_empty());
    assert_eq!(wants(REGION / 4 * 3), [BASE + REGION]);
    assert_eq!(wants(2 * REGION), [BASE + REGION, BASE + 2 * REGION]);
}

#[test]
fn a_region_that_has_not_grown_whole_is_left() {
    let plan = WatchPlan {
        heap: vec![(0, 64 * REGION)],
        ..WatchPlan::default()
    };
    let heap = |end: u64| [mapping(BASE, BASE + end, "[heap]")];
    assert_eq!(grown(&heap(2 * REGION - PAGE), &plan, None), [BASE]);
    assert_eq!(grown(&heap(2 * REGION), &plan, None), [BASE, BASE + REGION]);
    assert!(grown(&[], &plan, None).is_empty());
}

#[test]
fn everything_means_private_anonymous_memory_but_the_stack() {
    let mut shared = mapping(BASE + 8 * REGION, BASE + 10 * REGION, "");
    shared.shared = true;
    let mut file = mapping(BASE + 16 * REGION, BASE + 18 * REGION, "/lib/x");
    file.inode = 3;
    let maps = [
        mapping(BASE, BASE + REGION, "[heap]"),
        mapping(BASE + 4 * REGION, BASE + 5 * REGION, "[anon:x]"),
        mapping(BASE + 6 * REGION + PAGE, BASE + 7 * REGION, ""),
        shared,
        file,
        mapping(BASE + 32 * REGION, BASE + 34 * REGION, "[stack]"),
    ];
    let all = WatchPlan {
        all: true,
        ..WatchPlan::default()
    };
    assert_eq!(grown(&maps, &all, None), [BASE, BASE + 4 * REGION]);
}

#[test]
fn named_mappings_and_the_heap_of_go_are_found() {
    let go = mapping(
        0xc0_0000_0000,
        0xc0_0000_0000 + 2 * REGION,
        "[anon: Go: heap]",
    );
    let old_go = mapping(0xc0_4000_0000, 0xc0_4000_0000 + REGION, "");
    let named = mapping(BASE, BASE + 4 * REGION, "[anon:pool]");
    let maps = [
        named,
        go,
        old_go,
        mapping(BASE + 8 * REGION, BASE + 9 * REGION, ""),
    ];
    let plan = WatchPlan {
        vmas: vec![("[anon:pool]".to_owned(), vec![(REGION, 2 * REGION)])],
        reservations: vec!["go".to_owned(), "jvm".to_owned()],
        ..WatchPlan::default()
    };
    let go = [0xc0_0000_0000, 0xc0_0000_0000 + REGION, 0xc0_4000_0000];
    assert_eq!(
        grown(&maps, &plan, None),
        [&[BASE + REGION][..], &go].concat()
    );
}

#[test]
fn the_map_budget_is_five_percent_of_what_is_left() {
    let machine = Directory::with(&[("proc/sys/vm/max_map_count", "10000\n")]);
    assert_eq!(map_budget(&machine.root(), 2000), 400);
    assert_eq!(map_budget(&machine.root(), 20_000), 0);
    machine.write("proc/sys/vm/max_map_count", "1000000\n");
    assert_eq!(map_budget(&machine.root(), 0), 1000);
}

toll_testkit::before_main!(target);

/// Becomes a target, if requested.
fn target() {
    match env::var(TARGET).as_deref() {
        Ok("grows") => growing_target(),
        Ok("advises") => advising_target(),
        Ok("touches") => touching_target(),
        Ok("forks") => forking_target(),
        _ => {}
    }
}

/// Length of the shared memory.
const SHARED: u64 = 4 * REGION;

const STEP: u64 = REGION;
const STEPS: u64 = 12;

/// Grows the brk heap by 2 MiB every 20 ms, touches all of it, then waits to be killed.
fn growing_target() -> ! {
    for _ in 0..STEPS {
        // SAFETY: no other code in this process moves the break meanwhile or depends on it.
        unsafe {
            let start = libc::sbrk(STEP as isize).cast::<u8>();
            assert_ne!(start as isize, -1);
            for page in 0..(STEP / PAGE) as usize {
                start.add(page * PAGE as usize).write_volatile(page as u8);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("grown");
    wait_for_death()
}

/// Grows the brk heap as glibc's own switch does: by complete regions, advised before their first
/// touch. Every other one stays untouched.
fn advising_target() -> ! {
    // SAFETY: no other code in this process moves the break meanwhile or depends on it.
    unsafe {
        let odd = REGION - libc::sbrk(0) as u64 % REGION;
        libc::sbrk(odd as isize);
        for step in 0..STEPS {
            let start = libc::sbrk(STEP as isize);
            assert_eq!(libc::madvise(start, STEP as usize, libc::MADV_HUGEPAGE), 0);
            if step % 2 == 0 {
                start.cast::<u8>().write_volatile(1);
            }
        }
    }
    println!("advised");
    wait_for_death()
}

/// Maps shared memory where huge pages fit; only a fork touches it.
fn forking_target() -> ! {
    let (length, none) = (SHARED as usize, std::ptr::null_mut());
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: mappings of our own; only the fork writes.
    unsafe {
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let room = libc::mmap(none, length + REGION as usize, 0, private, -1, 0);
        let at = (room as usize).next_multiple_of(REGION as usize) as *mut libc::c_void;
        let shared = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        assert_eq!(libc::mmap(at, length, protection, shared, -1, 0), at);
        if libc::fork() == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::memset(at, 1, length);
            println!("touched {}", at as u64);
        }
    }
    wait_for_death()
}

/// Touches half of its memory forever.
fn touching_target() -> ! {
    let memory = vec![1u8; 32 << 20];
    println!("touched {}", memory.as_ptr() as u64);
    loop {
        let half = memory.iter().take(16 << 20).step_by(PAGE as usize);
        std::hint::black_box(half.map(|byte| u64::from(*byte)).sum::<u64>());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn wait_for_death() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(100));
    }
}

/// The huge bytes of a target's heap.
fn heap_huge(target: &Running) -> u64 {
    let smaps = smaps(&Root::system(), target.pid()).unwrap_or_default();
    let heap = smaps
        .iter()
        .filter(|smap| smap.mapping.kind() == Kind::Heap);
    heap.map(|smap| smap.anon_huge).sum()
}

#[test]
fn a_growing_heap_becomes_huge_where_it_is_planned() {
    let mut target = Running::target("grows");
    let remote = RemoteProcess::for_pid(target.pid(), true).unwrap();
    let plan = WatchPlan {
        heap: vec![(0, 6 * REGION)],
        ..WatchPlan::default()
    };
    let mut watcher = Watcher::new(target.pid(), remote, plan.clone());
    let began = Instant::now();
    let mut wanted = Vec::new();
    while began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(watcher.tick());
        let maps = maps(&Root::system(), target.pid()).unwrap();
        wanted = grown(&maps, &plan, None);
        let heap = heap_start(&maps).map_or(0, |start| {
            maps.iter()
                .filter(|m| m.kind() == Kind::Heap)
                .map(|m| m.end)
                .max()
                .unwrap()
                - start
        });
        if heap >= STEPS * STEP && watcher.counters().collapsed == wanted.len() as u64 {
            break;
        }
    }
    assert_eq!(target.line(), "grown");
    // Depending on the start of the heap, 5 or 6 regions are sufficiently covered by it.
    assert!((5..=6).contains(&wanted.len()), "{wanted:x?}");
    assert_eq!(heap_huge(&target), wanted.len() as u64 * REGION);
    assert_eq!(watcher.counters().collapsed, wanted.len() as u64);
    assert_eq!(watcher.counters().failed, 0, "{:?}", watcher.counters());
}

#[test]
fn shared_memory_that_only_a_fork_touches_becomes_huge() {
    let thp = sys::Thp::read(&Root::system());
    if thp.is_none_or(|thp| thp.forbids_shared()) {
        return eprintln!("skipped: no huge pages in shared memory here");
    }
    if sys::kernel_version(&Root::system()).is_none_or(|version| version < (6, 7)) {
        return eprintln!("skipped: Linux 6.7 is needed to tell");
    }
    let mut target = Running::target("forks");
    let start: u64 = target.answer("touched ").parse().unwrap();
    let huge = || {
        let smaps = smaps(&Root::system(), target.pid()).unwrap();
        let shared = smaps.iter().find(|smap| smap.mapping.start == start);
        shared.unwrap().huge()
    };
    assert_eq!(huge(), 0);
    let remote = RemoteProcess::for_pid(target.pid(), true).unwrap();
    let plan = WatchPlan {
        all: true,
        ..WatchPlan::default()
    };
    let mut watcher = Watcher::new(target.pid(), remote, plan);
    let began = Instant::now();
    while huge() < SHARED && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(watcher.tick());
    }
    assert_eq!(huge(), SHARED, "{:?}", watcher.counters());
}

#[test]
fn a_heap_that_its_allocator_makes_huge_is_not_disturbed() {
    if sys::kernel_version(&Root::system()).is_none_or(|version| version < (6, 7)) {
        return eprintln!("skipped: Linux 6.7 is needed to tell");
    }
    let mut target = Running::target("advises");
    assert_eq!(target.line(), "advised");
    if heap_huge(&target) < STEPS / 2 * REGION {
        return eprintln!("skipped: no huge pages here");
    }
    let remote = RemoteProcess::for_pid(target.pid(), true).unwrap();
    let plan = WatchPlan {
        heap: vec![(0, u64::MAX)],
        ..WatchPlan::default()
    };
    let mut watcher = Watcher::new(target.pid(), remote, plan);
    for _ in 0..3 {
        watcher.tick();
    }
    let Counters {
        collapsed,
        retried,
        failed,
        ..
    } = *watcher.counters();
    assert_eq!((collapsed, retried, failed), (0, 0, 0));
    assert_eq!(heap_huge(&target), STEPS / 2 * REGION);
}

#[test]
fn a_dead_process_is_not_watched_any_more() {
    let target = Running::target("grows");
    let remote = RemoteProcess::for_pid(target.pid(), true).unwrap();
    let plan = WatchPlan {
        all: true,
        ..WatchPlan::default()
    };
    let mut watcher = Watcher::new(target.pid(), remote, plan);
    drop(target);
    for _ in 0..3 {
        assert!(watcher.tick() >= Duration::from_millis(5));
    }
    assert_eq!(watcher.counters().collapsed, 0);
}

#[test]
fn a_watcher_without_a_plan_rests() {
    let target = Running::target("grows");
    let remote = RemoteProcess::for_pid(target.pid(), true).unwrap();
    let mut watcher = Watcher::new(target.pid(), remote, WatchPlan::default());
    assert!(watcher.tick() >= Duration::from_millis(100));
    assert_eq!(watcher.counters().spent_ns, 0);
}

#[test]
fn the_working_set_is_what_is_touched() {
    let mut target = Running::target("touches");
    let base: u64 = target.answer("touched ").parse().unwrap();
    let set = accessed::working_set(target.pid(), Duration::from_millis(300)).unwrap();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    assert!((15.0..22.0).contains(&mib(set.referenced)), "{set:?}");
    assert!(mib(set.resident) > 32.0, "{set:?}");
    let touched = accessed::referenced(target.pid()).unwrap();
    let block = touched
        .iter()
        .find(|t| (t.mapping.start..t.mapping.end).contains(&base))
        .unwrap();
    assert!((15.0..18.0).contains(&mib(block.referenced)), "{block:?}");
}

#[test]
fn nobody_has_no_working_set() {
    // Ids end at 2^22.
    assert!(accessed::working_set(1 << 23, Duration::ZERO).is_err());
    assert!(accessed::clear(1 << 23).is_err());
}
