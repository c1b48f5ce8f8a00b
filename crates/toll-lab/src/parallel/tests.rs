// SPDX-License-Identifier: MIT OR Apache-2.0
use std::sync::Barrier;
use std::sync::atomic::AtomicUsize;

use anyhow::bail;

use super::*;

#[test]
fn results_are_in_the_order_of_the_items() {
    let items: Vec<usize> = (0..100).collect();
    for jobs in [1, 3, 1000] {
        let doubled = map(jobs, items.clone(), |item, _| Ok(2 * item)).unwrap();
        assert!(doubled.iter().zip(&items).all(|(two, one)| *two == 2 * one));
        assert_eq!(doubled.len(), items.len());
    }
    assert!(map(4, Vec::new(), |(), _| Ok(())).unwrap().is_empty());
}

#[test]
fn as_many_run_at_a_time_as_there_are_jobs() {
    // It waits for ever unless three threads are there.
    let three = Barrier::new(3);
    let threads = map(3, vec![(); 3], |(), thread| {
        three.wait();
        Ok(thread)
    });
    let mut threads = threads.unwrap();
    threads.sort_unstable();
    assert_eq!(threads, [0, 1, 2]);
}

#[test]
fn nothing_is_begun_after_an_error() {
    let begun = AtomicUsize::new(0);
    let fails_at_two = |item: usize, _| {
        begun.fetch_add(1, Ordering::Relaxed);
        match item {
            2 => bail!("two"),
            _ => Ok(()),
        }
    };
    let items: Vec<usize> = (0..100).collect();
    let error = map(1, items, fails_at_two).unwrap_err();
    assert_eq!(error.to_string(), "two");
    assert_eq!(begun.into_inner(), 3);
}
