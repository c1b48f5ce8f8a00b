// SPDX-License-Identifier: MIT OR Apache-2.0
use toll_image::crash::trace::Trace;
use toll_image::layout::{PAGE, inode, kind};
use toll_image::ops::Fs;

use super::*;
use crate::cmd::persistent::tests::empty;

/// Offset of the range.
const START: u64 = 1 << 16;
/// Its size.
const PAGES: u64 = 64;

fn step(kind: u8, name: u8, version: u64) -> Record {
    Record::Step(u64::from(kind) << 8 | u64::from(name), version)
}

/// What is recorded of the first version of the open file; `synced` is the number that is persistent.
fn log(synced: u64) -> (Vec<u8>, Vec<Record>) {
    let mut fs = Fs::mount(Trace::new(empty(PAGES))).unwrap();
    let number = fs
        .create(inode::FIRST, b"l", kind::FILE | 0o600, 0)
        .unwrap();
    fs.write(number, 0, &vec![0; 8192]).unwrap();
    fs.sync(number).unwrap();
    let image = fs.medium().bytes().clone();
    fs.medium_mut().commit();
    for at in [0, 4096] {
        fs.write(number, at, &synced.to_le_bytes()).unwrap();
    }
    fs.sync(number).unwrap();
    let records = fs.medium().events.iter().flat_map(|event| match event {
        Event::Store { offset, value } => vec![Record::Store {
            offset: START + offset,
            value: value.to_le_bytes(),
            size: 8,
        }],
        Event::Flush(range) => (range.start / LINE..range.end.div_ceil(LINE))
            .map(|line| Record::Flush {
                offset: START + line * LINE,
            })
            .collect(),
        Event::Fence => vec![Record::Fence],
    });
    let all = [step(b'b', b'l', 3)].into_iter().chain(records);
    let all = all.chain([step(b'd', b'l', 3)]).collect();
    (image, all)
}

fn searched(image: Vec<u8>, records: &[Record]) -> Search {
    let mut search = Search::new(image, START);
    search.follow_all(records.iter().map(|it| Ok(*it))).unwrap();
    search
}

#[test]
fn what_is_flushed_and_fenced_is_persistent() {
    let (image, records) = log(3);
    let search = searched(image, &records);
    assert_eq!(search.figures.violation, None);
    assert_eq!(search.figures.operations, 1);
    assert!(search.figures.crash_states > 4);
    assert_eq!(search.samples.len(), MOUNTED);
}

#[test]
fn a_missing_flush_or_fence_is_found() {
    let (image, records) = log(3);
    for missing in [
        |it: &Record| matches!(it, Record::Flush { .. }),
        |it: &Record| *it == Record::Fence,
    ] {
        let some: Vec<Record> = records.iter().filter(|it| !missing(it)).copied().collect();
        let search = searched(image.clone(), &some);
        let what = search.figures.violation.unwrap();
        assert!(what.contains("l has the numbers"), "{what}");
        assert_eq!(search.figures.lost, 1);
    }
}

#[test]
fn a_number_that_was_not_written_is_found() {
    let (image, records) = log(4);
    assert!(searched(image, &records).figures.violation.is_some());
}

#[test]
fn a_store_that_was_not_recorded_is_found() {
    let (image, records) = log(3);
    let search = searched(image, &records);
    let mut memory = search.memory.bytes().clone();
    search.is_complete(&memory).unwrap();
    memory[5000] ^= 1;
    let why = search.is_complete(&memory).unwrap_err().to_string();
    assert!(why.contains("lacks one to byte 0x1388"), "{why}");
}

#[test]
fn what_the_kernel_makes_of_a_state_is_compared() {
    let (image, records) = log(3);
    let mut search = searched(image.clone(), &records);
    let last = search.memory.bytes().clone();
    let sample = (last.clone(), search.files.clone());
    search
        .mounted(sample.clone(), |_| Ok(last.clone()))
        .unwrap();
    assert_eq!((search.figures.mounted, search.figures.lost), (1, 0));
    search.mounted(sample, |_| Ok(image.clone())).unwrap();
    assert_eq!((search.figures.mounted, search.figures.lost), (2, 1));
}

#[test]
fn free_pages_are_soiled_and_others_are_not() {
    let clean = empty(PAGES);
    let mut range = clean.clone();
    soil(&mut range).unwrap();
    assert_eq!(range[..PAGE as usize], clean[..PAGE as usize]);
    let soiled = range.iter().filter(|byte| **byte == 0xa5).count();
    assert!(soiled > range.len() / 2, "{soiled}");
    assert!(toll_image::survey(&range).unwrap().findings.list.is_empty());
}
