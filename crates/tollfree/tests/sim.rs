// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulator: counts that can be computed by hand, and equality with a second model.

#[path = "sim/reader.rs"]
mod reader;
#[path = "sim/reference.rs"]
mod reference;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use toll_observe::record::Simulator;

use reader::{Block, Page, Recording, Run, SMALL, guest, simulate, simulate_by, simulators};

/// The advice constants of madvise.
const HUGEPAGE: &str = "14";
const NOHUGEPAGE: &str = "15";

/// 8 MiB: 2048 pages, 4 regions; the TLB of the tests covers 256 pages.
const PAGES: u64 = 2048;
const REGIONS: u64 = 4;
const COMPLETE: u32 = 1;
const EXECED: u32 = 2;
const HUGE: u32 = 2;

fn sweep(thp: &str, rounds: &str, advice: &str, threads: &str, how: &str) -> Run {
    let directory = tempfile::tempdir().unwrap();
    let program = guest(directory.path(), "sweep");
    let arguments = format!("{SMALL},sample=1,thp={thp}");
    simulate(
        directory.path(),
        &arguments,
        &[program.to_str().unwrap(), "8", rounds, advice, threads, how],
    )
}

/// Whether exactly the pages of the sweep have these counts.
fn check_sweep(block: &Block, rounds: u64, walks: u64, walks_huge: u64) {
    assert_eq!(block.sum(|p| p.accesses), rounds * PAGES);
    assert_eq!(block.pages.len() as u64, PAGES);
    assert_eq!(block.sum(|p| p.walks), walks);
    assert_eq!(block.sum(|p| p.walks_huge), walks_huge);
}

#[test]
fn a_sweep_beyond_the_reach_walks_for_each_page() {
    let run = sweep("madvise", "3", "0", "1", "plain");
    assert!(run.status.success(), "{}", run.stderr);
    assert_eq!(run.stdout, "swept\n");
    assert_eq!(run.stderr, "");
    assert_eq!(run.recording.flags, COMPLETE);
    assert_eq!(run.recording.seen, run.recording.counted);
    let block = run.recording.main_block();
    check_sweep(block, 3, 3 * PAGES, REGIONS);
    for page in block.pages.values() {
        assert_eq!((page.accesses, page.walks, page.flags & HUGE), (3, 3, 0));
    }
    // Seven of eight pages find their entries' line read just before; the other line was last read
    // a whole sweep of 256 lines (and the stack's) ago. The count of a first walk is known.
    let later = |p: &&reader::Page| p.reuse_sum > 3 * 15 * 256;
    assert_eq!(block.pages.values().filter(later).count() as u64, PAGES / 8);
    // The address advances by a constant.
    assert_eq!(block.sum(|p| p.dependent.into()), 0);
}

#[test]
fn advised_memory_is_huge_natively_where_the_mode_is_madvise() {
    let block_of = |thp, advice| sweep(thp, "3", advice, "1", "plain");
    let run = block_of("madvise", HUGEPAGE);
    check_sweep(run.recording.main_block(), 3, REGIONS, REGIONS);
    assert!(
        run.recording
            .main_block()
            .pages
            .values()
            .all(|p| p.flags & HUGE != 0)
    );
    let run = block_of("never", HUGEPAGE);
    check_sweep(run.recording.main_block(), 3, 3 * PAGES, REGIONS);
}

/// Most touches of a sampled run are outside its windows.
#[test]
fn what_is_huge_is_known_of_pages_that_were_not_looked_at() {
    let directory = tempfile::tempdir().unwrap();
    let program = guest(directory.path(), "sweep");
    let sweep = [
        program.to_str().unwrap(),
        "128",
        "1",
        HUGEPAGE,
        "1",
        "plain",
    ];
    let run = simulate(
        directory.path(),
        &format!("{SMALL},sample=0.01,window=1000,warm=1000,thp=madvise"),
        &sweep,
    );
    let blocks = run.recording.blocks.iter();
    let pages = &blocks.max_by_key(|block| block.pages.len()).unwrap().pages;
    assert_eq!(pages.len(), 128 << 8);
    assert!(pages.values().any(|page| page.accesses == 0));
    assert!(pages.values().all(|page| page.flags & HUGE != 0));
}

#[test]
fn everything_is_huge_where_the_mode_is_always_unless_forbidden() {
    let run = sweep("always", "3", "0", "1", "plain");
    check_sweep(run.recording.main_block(), 3, REGIONS, REGIONS);
    let run = sweep("always", "3", NOHUGEPAGE, "1", "plain");
    check_sweep(run.recording.main_block(), 3, 3 * PAGES, REGIONS);
}

#[test]
fn each_thread_has_a_core_of_its_own() {
    let run = sweep("madvise", "3", "0", "4", "plain");
    assert!(run.status.success());
    assert_eq!(run.recording.threads, 4);
    let swept: Vec<&Block> = run
        .recording
        .blocks
        .iter()
        .filter(|block| block.kind == 2 && block.sum(|p| p.accesses) >= 3 * PAGES)
        .collect();
    assert_eq!(swept.len(), 4);
    for block in swept {
        check_sweep(block, 3, 3 * PAGES, REGIONS);
    }
}

#[test]
fn an_address_that_is_mapped_again_is_another_block() {
    let run = sweep("madvise", "2", "0", "1", "twice");
    assert!(run.status.success());
    let at = run
        .recording
        .main_block()
        .pages
        .keys()
        .next()
        .copied()
        .unwrap();
    let there: Vec<&Block> = run
        .recording
        .blocks
        .iter()
        .filter(|b| b.pages.contains_key(&at))
        .collect();
    assert_eq!(there.len(), 2);
    for block in there {
        check_sweep(block, 2, 2 * PAGES, REGIONS);
    }
}

/// QEMU's brk ends after 32 MiB; malloc then maps its heap in pieces.
#[test]
fn a_large_heap_is_heap_to_its_end() {
    const HEAP: u32 = 3;
    let directory = tempfile::tempdir().unwrap();
    let program = guest(directory.path(), "heap");
    let arguments = format!("{SMALL},sample=1,thp=madvise");
    let run = simulate(
        directory.path(),
        &arguments,
        &[program.to_str().unwrap(), "96"],
    );
    assert!(run.status.success(), "{}", run.stderr);
    let heap = run.recording.blocks.iter().filter(|b| b.kind == HEAP);
    let pages: usize = heap.map(|block| block.pages.len()).sum();
    assert!((96 << 8..97 << 8).contains(&pages), "{pages} pages");
}

#[test]
fn a_child_leaves_the_counts_alone_and_is_reported() {
    let run = sweep("madvise", "2", "0", "1", "fork");
    assert_eq!(run.status.code(), Some(3), "{}", run.stderr);
    check_sweep(run.recording.main_block(), 2, 2 * PAGES, REGIONS);
    assert_eq!(run.recording.forks, 1);
    assert_eq!(run.recording.flags, COMPLETE);
}

#[test]
fn a_program_that_replaces_itself_is_reported() {
    let run = sweep("madvise", "2", "0", "1", "exec");
    assert!(run.status.success());
    assert_eq!(run.stdout, "");
    check_sweep(run.recording.main_block(), 2, 2 * PAGES, REGIONS);
    assert_eq!(run.recording.flags, EXECED);
    assert_eq!(run.recording.execs, 1);
    assert_eq!(run.recording.exec_path, "/bin/true");
}

#[test]
fn nothing_is_lost_when_descriptors_close_or_the_program_is_killed() {
    let run = sweep("madvise", "2", "0", "1", "close");
    assert!(run.status.success());
    check_sweep(run.recording.main_block(), 2, 2 * PAGES, REGIONS);
    assert_eq!(run.recording.flags, COMPLETE);
    let run = sweep("madvise", "2", "0", "1", "kill");
    assert_eq!(run.status.signal(), Some(9));
    check_sweep(run.recording.main_block(), 2, 2 * PAGES, REGIONS);
    assert_eq!(run.recording.flags & COMPLETE, 0);
}

#[test]
fn only_a_range_is_counted_if_asked() {
    let directory = tempfile::tempdir().unwrap();
    let program = guest(directory.path(), "sweep");
    let command = [program.to_str().unwrap(), "8", "2", "0", "1", "fixed"];
    let only = 1 << 40..(1 << 40) + (2 << 20);
    let arguments = format!("{SMALL},sample=1,only={:#x}-{:#x}", only.start, only.end);
    let part = simulate(directory.path(), &arguments, &command).recording;
    let total: u64 = part.blocks.iter().map(|b| b.sum(|p| p.accesses)).sum();
    assert_eq!(total, 2 * 512);
    let block = part.main_block();
    assert_eq!(block.sum(|p| p.walks), 2 * 512);
    let counted = block.pages.iter().filter(|(_, page)| page.accesses > 0);
    assert!(
        counted
            .into_iter()
            .all(|(address, _)| only.contains(address))
    );
}

/// Runs `walk` and returns its recording.
fn walk(directory: &Path, arguments: &str, words: &[&str]) -> Recording {
    let program = guest(directory, "walk");
    let mut command = vec![program.to_str().unwrap()];
    command.extend(words);
    let run = simulate(directory, &format!("{SMALL},{arguments}"), &command);
    assert!(run.status.success(), "{}", run.stderr);
    run.recording
}

#[test]
fn chases_are_told_from_gathers() {
    let directory = tempfile::tempdir().unwrap();
    let chase = walk(directory.path(), "sample=1", &["chase", "8", "100000"]);
    let block = chase.main_block();
    let dependent = block.sum(|p| p.dependent.into());
    // Pages in the TLB at the start of the chase hit once.
    assert!(dependent >= 100_000 - 256 - 16 - 1, "{dependent}");
    let gather = walk(directory.path(), "sample=1", &["gather", "8", "100000"]);
    let block = gather.main_block();
    // An eighth of the pages is in the TLB.
    assert!(block.sum(|p| p.independent.into()) >= 85_000);
    assert_eq!(block.sum(|p| p.dependent.into()), 0);
}

/// What a QEMU counts that does not depend on the addresses that it chooses: of each page of the main
/// block in order, and of the block.
fn counted_by(
    simulator: &Simulator,
    directory: &Path,
    command: &[&str],
) -> (Vec<[u64; 2]>, [u64; 4]) {
    let run = simulate_by(simulator, directory, &format!("{SMALL},sample=1"), command);
    assert!(run.status.success(), "{}", run.stderr);
    let block = run.recording.main_block();
    let pages = block.pages.values();
    let pages = pages.map(|p| [p.accesses, p.flags.into()]).collect();
    let dependent = |p: &Page| p.dependent.into();
    let independent = |p: &Page| p.independent.into();
    let walks = block.sum(|p| p.walks);
    (
        pages,
        [
            walks,
            block.sum(|p| p.walks_huge),
            block.sum(dependent),
            block.sum(independent),
        ],
    )
}

/// In all QEMUs that are found here, whatever their plugin interface.
#[test]
fn every_qemu_counts_the_same() {
    let simulators = simulators();
    let [first, others @ ..] = simulators.as_slice() else {
        panic!("no qemu-x86_64 (the setup installs it)");
    };
    if others.is_empty() {
        eprintln!(
            "skipped: the only QEMU with plugins here is {}",
            first.version
        );
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (name, words) in [
        ("sweep", ["8", "3", HUGEPAGE, "1", "plain"].as_slice()),
        ("sweep", &["8", "3", "0", "2", "plain"]),
        ("walk", &["chase", "8", "100000"]),
        ("walk", &["gather", "8", "100000"]),
    ] {
        let program = guest(directory.path(), name);
        let mut command = vec![program.to_str().unwrap()];
        command.extend(words);
        let (pages, sums) = counted_by(first, directory.path(), &command);
        assert!(pages.len() as u64 >= PAGES);
        for other in others {
            let (others_pages, others_sums) = counted_by(other, directory.path(), &command);
            eprintln!(
                "{words:?}: {sums:?} in {}, {others_sums:?} in {}",
                first.version, other.version
            );
            assert!(others_pages == pages, "accesses and flags of pages");
            // Pages of the stack and of libraries compete for the same sets of the TLB.
            let near = |(a, b): (&u64, &u64)| a.abs_diff(*b) * 1000 <= *a;
            assert!(sums.iter().zip(&others_sums).all(near));
        }
    }
}

/// The counts of every page, of any block.
fn by_page(recording: &Recording) -> BTreeMap<u64, reference::Counts> {
    let mut pages: BTreeMap<u64, reference::Counts> = BTreeMap::new();
    for (address, page) in recording.blocks.iter().flat_map(|b| &b.pages) {
        let counts = pages.entry(*address).or_default();
        counts.accesses += page.accesses;
        counts.l2_hits += page.l2_hits;
        counts.l2_spared += page.l2_spared;
        counts.walks += page.walks;
        counts.walks_huge += page.walks_huge;
    }
    pages.retain(|_, counts| *counts != reference::Counts::default());
    pages
}

#[test]
fn a_second_model_counts_the_same() {
    for (thp, words) in [
        ("madvise", ["skew", "16", "100000"]),
        ("always", ["chase", "16", "50000"]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("trace");
        let arguments = format!(
            "sample=1,thp={thp},trace={},trace_max=100000000",
            trace.display()
        );
        let recording = walk(directory.path(), &arguments, &words);
        let replay = reference::replay(&trace);
        assert!(replay.pages.len() > 4096);
        assert_eq!(by_page(&recording), replay.pages);

        let pages = recording.blocks.iter().flat_map(|b| b.pages.values());
        let (sum, count) = pages.fold((0, 0), |(sum, count), page| {
            (sum + page.reuse_sum, count + u64::from(page.reuse_count))
        });
        assert_eq!(count, replay.reuse.1);
        let (ours, exact) = (sum as f64 / 256.0, replay.reuse.0);
        assert!(
            (ours - exact).abs() / (count as f64) < 0.1,
            "mean log2 of reuse distance: {} and {}",
            ours / count as f64,
            exact / count as f64
        );
    }
}

/// Ranks, averaged over ties.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |v: f64| values.iter().filter(|w| **w < v).count() as f64;
    let equal = |v: f64| values.iter().filter(|w| **w == v).count() as f64;
    values.iter().map(|v| below(*v) + equal(*v) / 2.0).collect()
}

fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = a.iter().sum::<f64>() / a.len() as f64;
    let cov = |x: &[f64], y: &[f64]| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    cov(&a, &b) / (cov(&a, &a) * cov(&b, &b)).sqrt()
}

/// Walks per region of 2 MiB.
fn by_region(pages: &BTreeMap<u64, reference::Counts>) -> BTreeMap<u64, f64> {
    let mut regions = BTreeMap::new();
    for (address, counts) in pages {
        *regions.entry(address >> 21).or_default() += counts.walks as f64;
    }
    regions
}

/// A tenth of the run ranks regions as the second model ranks them from the whole run.
#[test]
fn sampling_ranks_regions_as_the_whole_trace_does() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["skew", "32", "400000"];
    let trace = directory.path().join("trace");
    let arguments = format!("sample=1,trace={},trace_max=100000000", trace.display());
    walk(directory.path(), &arguments, &words);
    let exact = by_region(&reference::replay(&trace).pages);
    std::fs::remove_file(&trace).unwrap();

    let sampled = walk(directory.path(), "sample=0.1,window=5000,warm=2500", &words);
    let share = sampled.counted as f64 / sampled.seen as f64;
    assert!((0.03..0.12).contains(&share), "{share}");
    let estimate = by_region(&by_page(&sampled));
    let often: Vec<_> = exact.iter().filter(|(_, walks)| **walks >= 100.0).collect();
    assert!(often.len() >= 16, "{}", often.len());
    let right: Vec<f64> = often.iter().map(|(_, walks)| **walks).collect();
    let found: Vec<f64> = often
        .iter()
        .map(|(region, _)| estimate.get(region).copied().unwrap_or(0.0) / share)
        .collect();
    let correlation = spearman(&right, &found);
    eprintln!("Spearman {correlation:.3} over {} regions", often.len());
    assert!(correlation >= 0.95, "{correlation}");
    let total = found.iter().sum::<f64>() / right.iter().sum::<f64>();
    assert!(
        (0.8..1.25).contains(&total),
        "scaled total is {total} of the exact"
    );
}
