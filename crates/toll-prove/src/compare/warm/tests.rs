// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_model::PAGE;

use super::*;

const MIB: u64 = 1 << 20;

#[test]
fn as_much_as_the_largest_run_a_quarter_and_what_is_ahead_in_whole_regions() {
    assert_eq!(wanted(80 * MIB, 1 << 40), (80 + 20 + 128 + 80) * MIB);
    assert_eq!(wanted(MIB, 1 << 40), 132 * MIB);
    assert_eq!(wanted(2 << 30, 1 << 40), (2048 + 512 + 128 + 512) * MIB);
    assert_eq!(wanted(u64::MAX, u64::MAX), u64::MAX / 2 / REGION * REGION);
}

#[test]
fn at_most_half_of_what_is_available() {
    assert_eq!(wanted(1 << 30, 1 << 30), 512 * MIB);
    assert_eq!(wanted(1 << 30, 3 * MIB), 0);
}

#[test]
fn nothing_before_the_first_run_and_then_what_was_seen() {
    let mut warmer = Warmer::new(true);
    warmer.warm(|| false);
    assert_eq!(warmer.warmed(), 0);
    for rss in [8 * MIB, 3 * MIB] {
        warmer.saw(rss);
        warmer.warm(|| false);
    }
    assert_eq!(warmer.warmed(), wanted(8 * MIB, u64::MAX));
}

fn costs(complete: bool, cold: f64) -> CostTable {
    let mut costs = calibrate::default_costs();
    costs.complete = complete;
    costs.fault_2m_warm.median = 40_000.0;
    costs.fault_2m_cold.median = cold;
    costs
}

#[test]
fn memory_is_warmed_only_where_cold_blocks_are_known_to_be_dear() {
    let on = FreePageReporting::On { order: None };
    let (dear, same, unknown) = (costs(true, 4e6), costs(true, 40_000.0), costs(false, 4e6));
    for (cold, reporting, costs, expected) in [
        (false, &FreePageReporting::NoBalloon, None, false),
        (false, &FreePageReporting::Off, None, false),
        (false, &FreePageReporting::Off, Some(&same), false),
        (false, &FreePageReporting::NoBalloon, Some(&unknown), false),
        (false, &FreePageReporting::NoBalloon, Some(&dear), true),
        (false, &on, None, true),
        (false, &on, Some(&same), true),
        (true, &on, Some(&dear), false),
    ] {
        let warming = Warming::decide(cold, reporting, costs);
        assert_eq!(warming.on, expected, "{warming:?}");
    }
}

#[test]
fn costs_that_are_measured_in_between_change_nothing_and_are_said() {
    let (dear, unknown) = (costs(true, 4e6), costs(false, 4e6));
    let off = Warming::decide(false, &FreePageReporting::Off, None);
    assert_eq!(
        off.note_of(false, &unknown),
        None,
        "a default is not a measurement"
    );
    assert_eq!(off.note_of(true, &dear), None, "--cold");
    let note = off.note_of(false, &dear).unwrap();
    assert!(note.contains("4 ms instead of 40 us"), "{note}");
    let on = Warming::decide(false, &FreePageReporting::Off, Some(&dear));
    assert_eq!(on.note_of(false, &dear), None);
}

#[test]
fn cold_warms_nothing() {
    let mut warmer = Warmer::new(false);
    warmer.saw(8 * MIB);
    warmer.warm(|| false);
    assert_eq!(warmer.warmed(), 0);
}

#[test]
fn it_touches_what_it_says_and_ends_when_it_is_told() {
    // SAFETY: getrusage writes a struct for which zero is a value.
    let faults = || unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_minflt
    };
    let before = faults();
    assert_eq!(
        Pool::touched(16 * MIB, 0, || false).unwrap().bytes,
        16 * MIB
    );
    // One fault for each region if they are huge.
    assert!(faults() - before >= 8);
    assert_eq!(Pool::touched(16 * MIB, 0, || true).unwrap().bytes, 0);
}

#[test]
fn an_impossible_size_is_skipped() {
    assert!(Pool::touched(u64::MAX / REGION * REGION, 0, || false).is_none());
    assert!(Pool::touched(1 << 60, 0, || false).is_none());
}

/// Resident regions of the pool.
fn present(pool: &Pool) -> usize {
    let mut pages = vec![0u8; (pool.bytes / PAGE) as usize];
    // SAFETY: a byte for each page of our own mapping.
    let done = unsafe {
        libc::mincore(
            pool.memory.base().cast_mut().cast(),
            pool.bytes as usize,
            pages.as_mut_ptr(),
        )
    };
    assert_eq!(done, 0);
    let regions = pages.chunks((REGION / PAGE) as usize);
    regions
        .filter(|region| region.iter().any(|page| page & 1 != 0))
        .count()
}

#[test]
fn whole_regions_are_freed_from_the_front_on() {
    let mut pool = Pool::touched(16 * MIB, 0, || false).unwrap();
    for (bytes, left) in [
        (0, 8),
        (REGION - 1, 8),
        (5 * MIB, 6),
        (3 * MIB, 6),
        (1 << 40, 0),
    ] {
        pool.free_up_to(bytes);
        assert_eq!(present(&pool), left, "{bytes}");
    }
}

#[test]
fn a_program_gets_what_it_has_and_some_more() {
    let mut pool = Pool::touched(LEAST_AHEAD + 64 * MIB, LEAST_AHEAD, || false).unwrap();
    // The pool is our own memory too, so our size exceeds it.
    feed(&mut pool, std::process::id(), &AtomicBool::new(false));
    assert_eq!(pool.freed, pool.bytes);
    let mut pool = Pool::touched(LEAST_AHEAD + 64 * MIB, LEAST_AHEAD, || false).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // No process has this id.
        scope.spawn(|| feed(&mut pool, u32::MAX, &over));
        std::thread::sleep(10 * SLOWEST);
        over.store(true, Relaxed);
    });
    assert_eq!(pool.freed, LEAST_AHEAD);
}
