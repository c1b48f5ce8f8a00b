// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies a function to items on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, available_parallelism};

use anyhow::Result;

/// The number of this machine's CPUs that may be used.
pub fn cpus() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Applies a function to all items, to at most `jobs` at a time, in their order. The function also
/// gets the number of its thread, from 0 to `jobs - 1`. Results are in the order of the items.
///
/// # Errors
/// The first error, in the order of the items. After an error no further item is begun.
pub fn map<T: Send, R: Send>(
    jobs: usize,
    items: Vec<T>,
    apply: impl Fn(T, usize) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = jobs.min(items.len());
    let failed = AtomicBool::new(false);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let left = Mutex::new(items.into_iter().enumerate());
    let next = || left.lock().expect("no thread panics here").next();
    let work = |thread: usize| {
        while !failed.load(Ordering::Relaxed) {
            let Some((place, item)) = next() else { break };
            let result = apply(item, thread);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            let mut done = done.lock().expect("no thread panics here");
            done.push((place, result));
        }
    };
    thread::scope(|scope| {
        for thread in 0..threads {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
    let mut done = done.into_inner().expect("no thread panics here");
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests;
